import type { UntypedObject } from "@coracle/operator/client";
import type {
  BuiltinResources,
  CustomResources,
  ResourceDefinition,
  ResourceVersion,
} from "../../../dev/apiserver/registry.ts";
import { Schema } from "../../../dev/apiserver/merge/schema.ts";

const VERBS = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
] as const;

const SCHEMA = new Schema({
  type: "object",
  properties: {
    apiVersion: { type: "string" },
    kind: { type: "string" },
    metadata: { type: "object", additionalProperties: true },
    data: { type: "object", additionalProperties: { type: "string" } },
    spec: { type: "object", additionalProperties: true },
    status: { type: "object", additionalProperties: true },
  },
});

function version(name: string): ResourceVersion {
  return {
    name,
    served: true,
    schema: SCHEMA,
    decode: (object) => ({ object, problems: [] }),
    setDefaults: () => {},
    columns: [{
      name: "Name",
      type: "string",
      format: "name",
      description: "",
      priority: 0,
    }],
    cells: (object) => [object.metadata.name],
    selectableFields: new Map([[
      "spec.color",
      ({ spec }) => String((spec as { color?: string })?.color ?? ""),
    ]]),
  };
}

/** A definition without schema, for tests of what all resources share. */
export function plainDefinition(
  names:
    & Pick<ResourceDefinition, "plural" | "kind">
    & Partial<ResourceDefinition>,
): ResourceDefinition {
  const { kind, plural } = names;
  return {
    group: "",
    singular: kind.toLowerCase(),
    listKind: `${kind}List`,
    scope: "Namespaced",
    shortNames: [],
    categories: [],
    verbs: VERBS,
    versions: [version("v1")],
    storageVersion: "v1",
    custom: false,
    subresources: [],
    nameRule: "dns-subdomain",
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    returnsDeletedObject: false,
    hasGeneration: false,
    convert: (object: UntypedObject) => object,
    ...names,
    plural,
  };
}

/** A few kinds that behave like ConfigMaps, and namespaces. */
export const plainKinds: BuiltinResources = {
  builtinDefinitions: () => [
    plainDefinition({
      plural: "namespaces",
      kind: "Namespace",
      scope: "Cluster",
      nameRule: "dns-label",
      subresources: [
        {
          name: "finalize",
          kind: "Namespace",
          group: "",
          version: "v1",
          verbs: ["update"],
          fields: ["spec"],
        },
      ],
      prepareForCreate: (object) => {
        object.spec = { finalizers: ["kubernetes"] };
        object.status = { phase: "Active" };
      },
    }),
    plainDefinition({ plural: "configmaps", kind: "ConfigMap" }),
    plainDefinition({ plural: "serviceaccounts", kind: "ServiceAccount" }),
    plainDefinition({
      group: "coordination.k8s.io",
      plural: "leases",
      kind: "Lease",
      allowCreateOnUpdate: true,
      allowUnconditionalUpdate: false,
    }),
  ],
};

/** No custom resources. */
export const noCustomKinds: CustomResources = {
  customResourceDefinition() {
    throw new TypeError("No custom resources in this test");
  },
  nextCrdStatus: (crd) => crd.status,
  prepareRequest: () => undefined,
  prepareObjects: () => undefined,
};
