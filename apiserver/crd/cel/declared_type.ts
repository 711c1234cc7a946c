import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { celName } from "./cel_names.ts";

/** What the cost of an operation depends on. */
export type CostKind =
  | "list"
  | "map"
  | "object"
  | "string"
  | "bytes"
  /** A number, a truth, a time: of one size. */
  | "scalar"
  | "dyn"
  | "other";

/** The type of an expression, as far as costs depend on it. */
export interface CostType {
  readonly kind: CostKind;
  /** As signatures write it; empty for what a schema declares. */
  readonly name: string;
  /** The items of a list, or the values of a map. */
  readonly elements?: CostType | undefined;
}

/** What a schema tells of the sizes of values. */
export interface DeclaredType extends CostType {
  readonly elements?: DeclaredType | undefined;
  /** The fields of an object, as rules name them. */
  readonly fields: ReadonlyMap<string, DeclaredType>;
  /** The most characters, bytes, items or entries; 0 where it has no size. */
  readonly maxElements: number;
  /** The fewest bytes it takes as JSON. */
  readonly minSize: number;
}

/** The largest request that a server takes, in bytes. */
const LARGEST_REQUEST = 3 * 1_024 * 1_024;

/** Two quotes, brackets or braces around a value. */
const ENCLOSED = 2;

/** What is a text in JSON and a time to rules: its bytes, at least and at most. */
const TIMES: Readonly<Record<string, readonly [min: number, max: number]>> = {
  duration: [3, 32],
  date: [12, 12],
  "date-time": [21, 32],
};

const NO_FIELDS: ReadonlyMap<string, DeclaredType> = new Map();

/** The keys of maps: a limit for them cannot be declared, and none is assumed. */
export const KEY: DeclaredType = plain("string", 0, ENCLOSED);

const TEXT: OpenApiSchema = { type: "string" };

/** What is known of every object, unless its schema says it all. */
const META: Readonly<Record<string, OpenApiSchema>> = {
  kind: TEXT,
  apiVersion: TEXT,
  metadata: { type: "object", properties: { name: TEXT, generateName: TEXT } },
};

/**
 * The sizes that a schema declares, as kube-apiserver reckons with them: where
 * there is no `maxItems`, `maxProperties` or `maxLength`, as much as fits into
 * one request. Undefined for a node that rules cannot see.
 *
 * @param root Whether it is the schema of a whole object.
 */
export function declaredType(
  schema: OpenApiSchema,
  root = false,
): DeclaredType | undefined {
  if (schema["x-kubernetes-int-or-string"]) {
    return plain("dyn", LARGEST_REQUEST - ENCLOSED, 1);
  }
  const whole = root || schema["x-kubernetes-embedded-resource"] === true;
  const { type, items, additionalProperties: values } = schema;
  switch (type) {
    case "array":
      return items && collection("list", items, {
        limit: schema["maxItems"],
        between: 1,
      });
    case "object":
      return typeof values === "object"
        ? collection("map", values, {
          limit: schema["maxProperties"],
          between: 6,
        })
        : object(whole ? withMeta(schema) : schema);
    case "string":
      return text(schema);
    case "boolean":
      return plain("scalar", 0, 4);
    case "integer":
    case "number":
      return plain("scalar", 0, 1);
    default:
      return undefined;
  }
}

/**
 * How often a value of a type may be in one request, where no limit is declared
 * for the lists and maps around it.
 */
export function mostInRequest({ minSize }: DeclaredType): number {
  return Math.floor(LARGEST_REQUEST / (minSize + 1));
}

function plain(
  kind: CostKind,
  maxElements: number,
  minSize: number,
): DeclaredType {
  return { kind, name: "", fields: NO_FIELDS, maxElements, minSize };
}

/** @param options.between The bytes that come with each element. */
function collection(
  kind: "list" | "map",
  schema: OpenApiSchema,
  { limit, between }: { readonly limit: unknown; readonly between: number },
): DeclaredType | undefined {
  const elements = declaredType(schema);
  if (elements === undefined) return undefined;
  const most = typeof limit === "number"
    ? Math.max(0, limit)
    : Math.floor((LARGEST_REQUEST - ENCLOSED) / (elements.minSize + between));
  return { ...plain(kind, most, ENCLOSED), elements };
}

function object(schema: OpenApiSchema): DeclaredType {
  const { properties = {}, required = [] } = schema;
  const fields = new Map<string, DeclaredType>();
  let minSize = ENCLOSED;
  for (const [field, property] of Object.entries(properties)) {
    const type = declaredType(property);
    if (type === undefined) continue;
    const name = celName(field);
    if (name !== undefined) fields.set(name, type);
    // A default need not be sent.
    if (required.includes(field) && property.default === undefined) {
      minSize += new TextEncoder().encode(field).length + type.minSize + 4;
    }
  }
  return { ...plain("object", 0, minSize), fields };
}

function withMeta(schema: OpenApiSchema): OpenApiSchema {
  const { kind, apiVersion, metadata } = schema.properties ?? {};
  const { name, generateName } = metadata?.properties ?? {};
  const says = metadata?.type === "object" &&
    [kind, apiVersion, name, generateName].every((one) =>
      one?.type === "string"
    );
  return says
    ? schema
    : { ...schema, properties: { ...schema.properties, ...META } };
}

function text(schema: OpenApiSchema): DeclaredType {
  const { format = "", maxLength } = schema;
  const time = Object.hasOwn(TIMES, format) ? TIMES[format] : undefined;
  if (time !== undefined) return plain("scalar", time[1], time[0]);
  const limit = typeof maxLength === "number"
    ? Math.max(0, maxLength)
    : undefined;
  const largest = LARGEST_REQUEST - ENCLOSED;
  if (format === "byte") return plain("bytes", limit ?? largest, ENCLOSED);
  // A character takes up to four bytes.
  const most = limit === undefined ? longestOf(schema.enum) : limit * 4;
  return plain("string", most ?? largest, ENCLOSED);
}

/** The bytes of the longest text among values; undefined if there are none. */
function longestOf(values: readonly unknown[] = []): number | undefined {
  if (values.length === 0) return undefined;
  return Math.max(
    0,
    ...values.map((value) =>
      typeof value === "string" ? new TextEncoder().encode(value).length : 0
    ),
  );
}
