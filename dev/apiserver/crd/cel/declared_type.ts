import type { OpenApiSchema } from "@coracle/operator/internal";
import { celName } from "./cel_names.ts";

/** Kind of a type, which determines the cost of operations. */
export type CostKind =
  | "list"
  | "map"
  | "object"
  | "string"
  | "bytes"
  /** Number, boolean, duration or timestamp; has size one. */
  | "scalar"
  | "dyn"
  | "other";

/** Type of an expression, for cost estimates. */
export interface CostType {
  readonly kind: CostKind;
  /** Name in signatures; empty for types declared by a schema. */
  readonly name: string;
  /** Type of the items of a list or the values of a map. */
  readonly elements?: CostType | undefined;
}

/** Type declared by a schema, with size limits (upstream's `DeclType`). */
export interface DeclaredType extends CostType {
  readonly elements?: DeclaredType | undefined;
  /** Fields of an object by their escaped names. */
  readonly fields: ReadonlyMap<string, DeclaredType>;
  /** Maximum number of characters, bytes, items or entries; 0 for types without size. */
  readonly maxElements: number;
  /** Minimum size as JSON in bytes. */
  readonly minSize: number;
}

/** Maximum size of a request in bytes. */
const MAX_REQUEST_BYTES = 3 * 1_024 * 1_024;

/** Bytes of the quotes, brackets or braces around a value. */
const ENCLOSING_BYTES = 2;

/**
 * String formats that CEL rules treat as timestamps or durations, with the
 * minimum and maximum size of a value as JSON, in bytes.
 */
const TIMES: Readonly<Record<string, readonly [min: number, max: number]>> = {
  duration: [3, 32],
  date: [12, 12],
  "date-time": [21, 32],
};

const NO_FIELDS: ReadonlyMap<string, DeclaredType> = new Map();

/** Type of map keys, for which a schema cannot declare a limit. */
export const KEY: DeclaredType = plain("string", 0, ENCLOSING_BYTES);

const TEXT: OpenApiSchema = { type: "string" };

/** Properties of every whole object, added unless the schema declares all of them. */
const META: Readonly<Record<string, OpenApiSchema>> = {
  kind: TEXT,
  apiVersion: TEXT,
  metadata: { type: "object", properties: { name: TEXT, generateName: TEXT } },
};

/**
 * Declared type of a schema, with kube-apiserver's size limits: without
 * `maxItems`, `maxProperties` or `maxLength`, as much as fits into one request.
 * Undefined for a node that rules cannot access.
 *
 * @param root Whether the schema is that of a whole object.
 */
export function declaredType(
  schema: OpenApiSchema,
  root = false,
): DeclaredType | undefined {
  if (schema["x-kubernetes-int-or-string"]) {
    return plain("dyn", MAX_REQUEST_BYTES - ENCLOSING_BYTES, 1);
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
 * Maximum number of values of a type in one request, if the enclosing lists and
 * maps declare no limit.
 */
export function maxPerRequest({ minSize }: DeclaredType): number {
  return Math.floor(MAX_REQUEST_BYTES / (minSize + 1));
}

function plain(
  kind: CostKind,
  maxElements: number,
  minSize: number,
): DeclaredType {
  return { kind, name: "", fields: NO_FIELDS, maxElements, minSize };
}

/**
 * Declared type of a list or map.
 *
 * @param options.between Additional bytes of each element as JSON.
 */
function collection(
  kind: "list" | "map",
  schema: OpenApiSchema,
  { limit, between }: { readonly limit: unknown; readonly between: number },
): DeclaredType | undefined {
  const elements = declaredType(schema);
  if (elements === undefined) return undefined;
  const most = typeof limit === "number" ? Math.max(0, limit) : Math.floor(
    (MAX_REQUEST_BYTES - ENCLOSING_BYTES) / (elements.minSize + between),
  );
  return { ...plain(kind, most, ENCLOSING_BYTES), elements };
}

function object(schema: OpenApiSchema): DeclaredType {
  const { properties = {}, required = [] } = schema;
  const fields = new Map<string, DeclaredType>();
  let minSize = ENCLOSING_BYTES;
  for (const [field, property] of Object.entries(properties)) {
    const type = declaredType(property);
    if (type === undefined) continue;
    const name = celName(field);
    if (name !== undefined) fields.set(name, type);
    // A field with a default may be missing in the request.
    if (required.includes(field) && property.default === undefined) {
      minSize += new TextEncoder().encode(field).length + type.minSize + 4;
    }
  }
  return { ...plain("object", 0, minSize), fields };
}

function withMeta(schema: OpenApiSchema): OpenApiSchema {
  const { kind, apiVersion, metadata } = schema.properties ?? {};
  const { name, generateName } = metadata?.properties ?? {};
  const declaresAll = metadata?.type === "object" &&
    [kind, apiVersion, name, generateName].every((property) =>
      property?.type === "string"
    );
  return declaresAll
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
  const largest = MAX_REQUEST_BYTES - ENCLOSING_BYTES;
  if (format === "byte") {
    return plain("bytes", limit ?? largest, ENCLOSING_BYTES);
  }
  // A character has up to four bytes.
  const most = limit === undefined ? longestOf(schema.enum) : limit * 4;
  return plain("string", most ?? largest, ENCLOSING_BYTES);
}

/** Size of the longest text among values, in bytes; undefined without values. */
function longestOf(values: readonly unknown[] = []): number | undefined {
  if (values.length === 0) return undefined;
  return Math.max(
    0,
    ...values.map((value) =>
      typeof value === "string" ? new TextEncoder().encode(value).length : 0
    ),
  );
}
