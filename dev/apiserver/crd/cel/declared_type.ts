import type { OpenApiSchema } from "@coracle/operator/internal";
import type { SizeAt } from "../../cel/cost_estimate.ts";
import { celName } from "./cel_names.ts";

/** Type declared by a schema, with size limits (upstream's `DeclType`). */
export interface DeclaredType {
  /** Type of the items of a list or the values of a map. */
  readonly elements?: DeclaredType | undefined;
  readonly isMap: boolean;
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

const TEXT: OpenApiSchema = { type: "string" };

/** Longest name of an object, in bytes. */
const NAME_LENGTH = 253;

/** A text that is no longer than a name may be, as from Kubernetes 1.37. */
function nameOf(
  declared: OpenApiSchema | undefined,
  longest: number,
): OpenApiSchema {
  const { maxLength = longest } = declared ?? {};
  return { ...TEXT, maxLength: Math.min(Number(maxLength), longest) };
}

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
    return plain(
      limitedText(schema.maxLength) ?? MAX_REQUEST_BYTES - ENCLOSING_BYTES,
      1,
    );
  }
  const whole = root || schema["x-kubernetes-embedded-resource"] === true;
  const { type, items, additionalProperties: values } = schema;
  switch (type) {
    case "array":
      return items && collection(items, {
        isMap: false,
        limit: schema["maxItems"],
        between: 1,
      });
    case "object":
      return typeof values === "object"
        ? collection(values, {
          isMap: true,
          limit: schema["maxProperties"],
          between: 6,
        })
        : object(whole ? withMeta(schema) : schema);
    case "string":
      return text(schema);
    case "boolean":
      return plain(0, 4);
    case "integer":
    case "number":
      return plain(0, 1);
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

function plain(maxElements: number, minSize: number): DeclaredType {
  return { isMap: false, fields: NO_FIELDS, maxElements, minSize };
}

/**
 * Sizes of the values below a value of a type. As in kube-apiserver, a path that
 * does not begin with the value is treated as if it did.
 */
export function sizesOf(root: DeclaredType): SizeAt {
  return (path) => {
    let type: DeclaredType | undefined = root;
    for (const step of path.slice(1)) {
      switch (step) {
        case "@items":
        case "@values":
          type = type?.elements;
          break;
        case "@keys":
          type = type?.isMap ? plain(0, ENCLOSING_BYTES) : undefined;
          break;
        default:
          type = type?.fields.get(step);
      }
    }
    return type && { min: 0, max: type.maxElements };
  };
}

/**
 * Declared type of a list or map.
 *
 * @param options.between Additional bytes of each element as JSON.
 */
function collection(
  schema: OpenApiSchema,
  { isMap, limit, between }: {
    readonly isMap: boolean;
    readonly limit: unknown;
    readonly between: number;
  },
): DeclaredType | undefined {
  const elements = declaredType(schema);
  if (elements === undefined) return undefined;
  const most = typeof limit === "number" ? Math.max(0, limit) : Math.floor(
    (MAX_REQUEST_BYTES - ENCLOSING_BYTES) / (elements.minSize + between),
  );
  return { ...plain(most, ENCLOSING_BYTES), isMap, elements };
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
  return { ...plain(0, minSize), fields };
}

/** Schema with the properties of every whole object. */
export function withMeta(schema: OpenApiSchema): OpenApiSchema {
  const { kind, apiVersion, metadata } = schema.properties ?? {};
  const { name, generateName } = metadata?.properties ?? {};
  const declaresAll = metadata?.type === "object" &&
    [kind, apiVersion, name, generateName].every((property) =>
      property?.type === "string"
    );
  if (declaresAll) return schema;
  const names = {
    name: nameOf(name, NAME_LENGTH),
    // What the server appends has a byte at least.
    generateName: nameOf(generateName, NAME_LENGTH - 1),
  };
  return {
    ...schema,
    properties: {
      ...schema.properties,
      kind: TEXT,
      apiVersion: TEXT,
      metadata: { type: "object", properties: names },
    },
  };
}

function text(schema: OpenApiSchema): DeclaredType {
  const { format = "", maxLength } = schema;
  const time = Object.hasOwn(TIMES, format) ? TIMES[format] : undefined;
  if (time !== undefined) return plain(time[1], time[0]);
  const largest = MAX_REQUEST_BYTES - ENCLOSING_BYTES;
  const most = format === "byte"
    ? typeof maxLength === "number" ? Math.max(0, maxLength) : undefined
    : limitedText(maxLength) ?? longestOf(schema.enum);
  return plain(most ?? largest, ENCLOSING_BYTES);
}

/** Size of a text in bytes; a character has up to four. */
function limitedText(maxLength: unknown): number | undefined {
  return typeof maxLength === "number" ? Math.max(0, maxLength) * 4 : undefined;
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
