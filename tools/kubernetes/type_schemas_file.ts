import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { references } from "./definition_names.ts";
import { GENERATED_HEADER, type KubernetesData } from "./kubernetes_data.ts";

const TIME: OpenApiSchema = { type: "string", format: "date-time" };
const TEXTS: OpenApiSchema = {
  type: "object",
  additionalProperties: { type: "string" },
};
const ANY_OBJECT: OpenApiSchema = {
  type: "object",
  "x-kubernetes-preserve-unknown-fields": true,
};
const ANY: OpenApiSchema = { "x-kubernetes-preserve-unknown-fields": true };

/**
 * Schemas of definitions where OpenAPI has none that a structural schema could
 * have, and of metadata, without the fields that only servers set.
 */
const WRITTEN: Readonly<Record<string, OpenApiSchema>> = {
  "io.k8s.apimachinery.pkg.api.resource.Quantity": {
    "x-kubernetes-int-or-string": true,
    pattern:
      "^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
  },
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
    "x-kubernetes-int-or-string": true,
  },
  "io.k8s.apimachinery.pkg.apis.meta.v1.Time": TIME,
  "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": TIME,
  "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
    type: "object",
    properties: {
      annotations: TEXTS,
      finalizers: {
        type: "array",
        items: { type: "string" },
        "x-kubernetes-list-type": "set",
      },
      generateName: { type: "string" },
      labels: TEXTS,
      name: { type: "string" },
      namespace: { type: "string" },
    },
  },
};

/** Keywords of OpenAPI that structural schemas have. */
const KEPT: readonly (keyof OpenApiSchema)[] = [
  "type",
  "enum",
  "required",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
];

/**
 * Writes core/kinds/type_schemas.ts.
 *
 * @param data The Kubernetes API.
 * @param names The names of the types by their definitions.
 * @param isRequired Whether the type of a definition requires a field.
 */
export function typeSchemasFile(
  data: KubernetesData,
  names: ReadonlyMap<string, string>,
  isRequired: (definition: string, field: string) => boolean,
): string {
  const definitions = new Map(names);
  for (const name of Object.keys(WRITTEN)) {
    definitions.set(name, name.slice(name.lastIndexOf(".") + 1));
  }

  /** A schema as the file has it: one with a type alone is only its type. */
  const schemaOf = (schema: OpenApiSchema): unknown => {
    const [reference] = schema.$ref || schema.allOf ? references(schema) : [];
    if (reference !== undefined) {
      return definitions.get(reference) ??
        schemaOf(data.definitions[reference] ?? {});
    }
    const { items, properties, additionalProperties } = schema;
    if (Object.keys(schema).length === 0) return ANY;
    if (schema.type === "object" && !properties && !additionalProperties) {
      return ANY_OBJECT;
    }
    const draft: Record<string, unknown> = {};
    for (const keyword of KEPT) {
      // OpenAPI has list types of texts in base64, too, which are lists in Go.
      if (keyword === "x-kubernetes-list-type" && items === undefined) continue;
      if (schema[keyword] !== undefined) draft[keyword] = schema[keyword];
    }
    // Go writes empty values for what has no default.
    if (typeof schema.default === "string" && schema.default !== "") {
      draft.default = schema.default;
    }
    if (items !== undefined) draft.items = schemaOf(items);
    if (typeof additionalProperties === "object") {
      draft.additionalProperties = schemaOf(additionalProperties);
    }
    if (properties !== undefined) {
      draft.properties = Object.fromEntries(
        Object.entries(properties).map(([name, one]) => [name, schemaOf(one)]),
      );
    }
    return Object.keys(draft).join() === "type" ? draft.type : draft;
  };

  /** A list whose items may lack a key is replaced as a whole. */
  const withKeys = (property: OpenApiSchema): OpenApiSchema => {
    const { "x-kubernetes-list-map-keys": keys, ...rest } = property;
    const [item = ""] = references(property);
    const { properties = {}, required } = data.definitions[item] ?? {};
    return !keys ||
        keys.every((key) =>
          required?.includes(key) || properties[key]?.default !== undefined
        )
      ? property
      : { ...rest, "x-kubernetes-list-type": "atomic" };
  };

  const typeOf = (definition: string): unknown => {
    if (WRITTEN[definition] !== undefined) return WRITTEN[definition];
    const { properties = {}, ...rest } = data.definitions[definition] ?? {};
    const fields = Object.keys(properties);
    const required = fields.filter((field) => isRequired(definition, field));
    const type = schemaOf({
      ...rest,
      ...(required.length > 0 ? { required } : {}),
      ...(fields.length > 0 ? { properties: {} } : {}),
    });
    if (typeof type !== "object" || fields.length === 0) return type;
    return {
      ...type,
      properties: Object.fromEntries(fields.map((field) => [
        field,
        // The name of a reference is a key of lists, and may be left out.
        definition.endsWith(".LocalObjectReference")
          ? { type: "string", default: "" }
          : schemaOf(withKeys(properties[field] ?? {})),
      ])),
    };
  };

  const schemas = new Map(
    [...definitions].map(([definition, name]) => [name, typeOf(definition)]),
  );
  const types = [...schemas.keys()].toSorted();
  const text = JSON.stringify(
    Object.fromEntries(types.map((name) => [name, schemas.get(name)])),
  ).replaceAll("\\", "\\\\").replaceAll("'", "\\'");
  return `${GENERATED_HEADER}

/** Name of a type of this module. */
export type TypeName = ${types.map((name) => JSON.stringify(name)).join(" | ")};

/**
 * Structural schema of each type as JSON; one without keywords is only its type,
 * or the name of another type. The text takes no memory before the first call.
 */
export function typeSchemas(): string {
  return '${text}';
}
`;
}
