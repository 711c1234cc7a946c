import type { OpenApiSchema } from "@coracle/operator/internal";

const META = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1";

/** Published properties of every whole object. */
const OBJECT_PROPERTIES: Readonly<Record<string, OpenApiSchema>> = {
  apiVersion: {
    description:
      "APIVersion defines the group and version of the kind, such as apps/v1.",
    type: "string",
  },
  kind: {
    description: "Kind is the name of the type of the object, in CamelCase.",
    type: "string",
  },
  metadata: {
    description: "Standard object's metadata, such as its name and labels.",
    allOf: [{ $ref: `${META}.ObjectMeta` }],
  },
};

/** Descriptions of the fields of `metadata`, which `kubectl explain` prints. */
const METADATA: Readonly<Record<string, string>> = {
  annotations:
    "Annotations are texts by key that tools keep with the object; nothing selects by them.",
  creationTimestamp:
    "CreationTimestamp is a timestamp, set by the server when it creates the object.",
  deletionGracePeriodSeconds:
    "DeletionGracePeriodSeconds is the time that the object has to end, once its deletion was requested.",
  deletionTimestamp:
    "DeletionTimestamp is the time of removal, set by the server when deletion is requested.",
  finalizers:
    "Finalizers delay the removal of a deleted object until the list is empty.",
  generateName:
    "GenerateName is a prefix to which the server appends random characters where no name is set.",
  generation:
    "Generation is a number that the server increments when the desired state changes.",
  labels: "Labels are short texts by key, by which selectors find the object.",
  managedFields:
    "ManagedFields lists the fields that each manager set, for server-side apply.",
  name: "Name identifies the object in its namespace; it cannot be changed.",
  namespace:
    "Namespace contains the object; cluster-scoped objects have none. It cannot be changed.",
  ownerReferences:
    "OwnerReferences lists the objects that this one depends on; it is deleted after all of them.",
  resourceVersion:
    "ResourceVersion identifies this version of the object in the store; clients must not interpret it.",
  selfLink: "SelfLink is no longer set by the server.",
  uid: "UID identifies the object among all that ever had its name.",
};

/** Published schema of `metadata`, with descriptions of its fields. */
export function describedMetadata(schema: OpenApiSchema): OpenApiSchema {
  const { properties = {} } = schema;
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [name, {
        ...(METADATA[name] === undefined
          ? {}
          : { description: METADATA[name] }),
        ...field,
      }]),
    ),
  };
}

/**
 * Schema as published: whole objects, at the root and embedded, get `apiVersion`,
 * `kind` and the full `metadata`.
 */
function publishedSchema(schema: OpenApiSchema): OpenApiSchema {
  const { properties, items, additionalProperties } = schema;
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const result: Record<string, unknown> = { ...schema };
  if (properties || embedded) {
    result.properties = {
      ...(properties && mapValues(properties, publishedSchema)),
      ...(embedded ? OBJECT_PROPERTIES : {}),
    };
  }
  if (schema["x-kubernetes-int-or-string"]) {
    result.anyOf ??= [{ type: "integer" }, { type: "string" }];
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

/** Copy of an object with mapped values. */
export function mapValues<T>(
  object: Readonly<Record<string, T>>,
  change: (value: T) => T,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, change(value)]),
  );
}
