import type { OpenApiSchema } from "../../core/patch/schema.ts";

const META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1";

/** Published properties of every whole object. */
const OBJECT_PROPERTIES: Readonly<Record<string, OpenApiSchema>> = {
  apiVersion: {
    description: "The group and version of the kind, such as apps/v1.",
    type: "string",
  },
  kind: {
    description: "The kind of the object, in CamelCase.",
    type: "string",
  },
  metadata: {
    description: "What all objects have, such as a name and labels.",
    allOf: [{ $ref: `${META}.ObjectMeta` }],
  },
};

/**
 * Schema as published: whole objects, at the root and embedded, get `apiVersion`,
 * `kind` and the full `metadata`.
 */
export function publishedSchema(schema: OpenApiSchema): OpenApiSchema {
  const { properties, items, additionalProperties } = schema;
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const result: Record<string, unknown> = { ...schema };
  if (properties || embedded) {
    result.properties = {
      ...(properties && mapValues(properties, publishedSchema)),
      ...(embedded ? OBJECT_PROPERTIES : {}),
    };
  }
  if (embedded) {
    result.required = [
      ...new Set([...schema.required ?? [], "kind", "apiVersion"]),
    ];
  }
  if (items) result.items = publishedSchema(items);
  if (typeof additionalProperties === "object") {
    result.additionalProperties = publishedSchema(additionalProperties);
  }
  return result;
}

/** Published schema of a custom resource. */
export function publishedRoot(schema: OpenApiSchema): OpenApiSchema {
  const published = publishedSchema(schema);
  return {
    ...published,
    properties: { ...published.properties, ...OBJECT_PROPERTIES },
  };
}

/** Published schema of a list of custom resources. */
export function publishedList(
  kind: string,
  plural: string,
  item: string,
): OpenApiSchema {
  return {
    description: `${kind}List is a list of ${kind}`,
    type: "object",
    required: ["items"],
    properties: {
      ...OBJECT_PROPERTIES,
      items: {
        description: `List of ${plural}.`,
        type: "array",
        items: { $ref: `#/components/schemas/${item}` },
      },
      metadata: {
        description: "What all lists have.",
        allOf: [{ $ref: `${META}.ListMeta` }],
      },
    },
  };
}

function mapValues<T>(
  object: Readonly<Record<string, T>>,
  change: (value: T) => T,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(value)]),
  );
}
