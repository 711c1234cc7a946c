import type { OpenApiSchema } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";

type Version = CrdManifest["spec"]["versions"][number];

/** JSON Schema, as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Formats that JSON Schema does not have, or that editors do not know. */
const GO_FORMATS = ["int32", "int64", "float", "double", "byte", "password"];

const METADATA: JsonSchema = {
  type: "object",
  description: "Metadata of the object: name, namespace, labels, annotations.",
  properties: {
    name: { type: "string" },
    generateName: { type: "string" },
    namespace: { type: "string" },
    labels: { type: "object", additionalProperties: { type: "string" } },
    annotations: { type: "object", additionalProperties: { type: "string" } },
  },
};

/**
 * JSON Schema (draft 7) of the objects of a version, for editors such as those with
 * yaml-language-server: it refuses fields that the API server would drop.
 */
export function editorSchema(
  { spec: { group, names } }: CrdManifest,
  version: Version,
): JsonSchema {
  const schema = converted(version.schema?.openAPIV3Schema ?? {});
  const { properties, required, type: _, ...rest } = schema as {
    readonly properties?: JsonSchema;
    readonly required?: readonly string[];
    readonly type?: unknown;
  };
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: `${names.kind} of ${group}/${version.name}`,
    ...rest,
    type: "object",
    required: ["apiVersion", "kind", ...required ?? []],
    properties: {
      ...properties,
      apiVersion: { type: "string", enum: [`${group}/${version.name}`] },
      kind: { type: "string", enum: [names.kind] },
      metadata: METADATA,
    },
  };
}

/** Converts a schema of a definition into one of JSON Schema. */
function converted(schema: OpenApiSchema): JsonSchema {
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    const isOwn = keyword.startsWith("x-kubernetes-") || value === undefined ||
      EXPRESSED.has(keyword) ||
      (keyword === "format" && GO_FORMATS.includes(String(value)));
    if (!isOwn) result[keyword] = value;
  }
  const { properties, items, additionalProperties: values } = schema;
  if (properties !== undefined) result["properties"] = each(properties);
  if (items !== undefined) result["items"] = converted(items);
  for (const keyword of ["allOf", "anyOf", "oneOf"] as const) {
    const list = schema[keyword] as readonly OpenApiSchema[] | undefined;
    if (list !== undefined) result[keyword] = list.map(converted);
  }
  const { not } = schema as { readonly not?: OpenApiSchema };
  if (not !== undefined) result["not"] = converted(not);
  const keeps = schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (typeof values === "object") {
    result["additionalProperties"] = converted(values);
  } else if (properties !== undefined && !keeps && values !== true) {
    result["additionalProperties"] = false;
  }
  if (schema["x-kubernetes-embedded-resource"] === true) {
    result["properties"] = {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: METADATA,
      ...result["properties"] as object | undefined,
    };
  }
  for (const [limit, exclusive] of EXCLUSIVE) {
    // A flag in the schema of a definition, a number in JSON Schema.
    if (schema[exclusive] !== true) continue;
    result[exclusive] = schema[limit];
    delete result[limit];
  }
  const types = schema["x-kubernetes-int-or-string"] === true
    ? ["integer", "string"]
    : [schema.type].filter((type) => type !== undefined);
  if (schema.nullable === true && types.length > 0) {
    types.push("null");
    const { enum: values } = schema;
    if (values !== undefined && !values.includes(null)) {
      result["enum"] = [...values, null];
    }
  }
  if (types.length > 0) result["type"] = types.length > 1 ? types : types[0];
  return result;
}

/** Keywords that are expressed in another way. */
const EXPRESSED: ReadonlySet<string> = new Set([
  "additionalProperties",
  "allOf",
  "anyOf",
  "exclusiveMaximum",
  "exclusiveMinimum",
  "items",
  "not",
  "nullable",
  "oneOf",
  "properties",
  "type",
]);

const EXCLUSIVE = [
  ["minimum", "exclusiveMinimum"],
  ["maximum", "exclusiveMaximum"],
] as const;

function each(
  schemas: Readonly<Record<string, OpenApiSchema>>,
): Readonly<Record<string, JsonSchema>> {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, one]) => [name, converted(one)]),
  );
}
