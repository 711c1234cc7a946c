import type { OpenApiSchema } from "../../core/patch/schema.ts";
import { GENERATED_HEADER, type KubernetesData } from "./kubernetes_data.ts";

/** Definitions whose values are respelled when they are stored. */
const LEAVES: Readonly<Record<string, string>> = {
  "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
  "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
  "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "time",
};

const RBAC = "rbac.authorization.k8s.io";

/**
 * What servers fill in inside of values that are owned as a whole, where OpenAPI
 * does not tell: by definition and field, from the defaulting functions of the
 * API groups. A field without values takes any.
 */
const FILLED: Readonly<
  Record<string, Readonly<Record<string, readonly unknown[]>>>
> = {
  "io.k8s.api.core.v1.EndpointPort": { protocol: ["TCP"] },
  "io.k8s.api.core.v1.HTTPGetAction": { scheme: ["HTTP"] },
  "io.k8s.api.core.v1.LimitRangeItem": { default: [], defaultRequest: [] },
  "io.k8s.api.core.v1.ObjectFieldSelector": { apiVersion: ["v1"] },
  "io.k8s.api.core.v1.PersistentVolumeClaim": {
    apiVersion: ["v1"],
    kind: ["PersistentVolumeClaim"],
    status: [{ phase: "Pending" }],
  },
  "io.k8s.api.core.v1.PersistentVolumeClaimSpec": {
    volumeMode: ["Filesystem"],
  },
  "io.k8s.api.core.v1.ResourceFieldSelector": { divisor: ["0"] },
  "io.k8s.api.core.v1.ServiceAccountTokenProjection": {
    expirationSeconds: [3600],
  },
  "io.k8s.api.networking.v1.NetworkPolicyPort": { protocol: ["TCP"] },
  "io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern": {
    status: ["True"],
  },
  "io.k8s.api.discovery.v1.EndpointPort": { protocol: ["TCP"] },
  "io.k8s.api.rbac.v1.Subject": { apiGroup: [RBAC] },
  "io.k8s.api.rbac.v1.RoleRef": { apiGroup: [RBAC] },
  "io.k8s.api.admissionregistration.v1.RuleWithOperations": { scope: ["*"] },
  "io.k8s.api.admissionregistration.v1.NamedRuleWithOperations": {
    scope: ["*"],
  },
};

/** A field as the file has it: its form, or its form and what is filled in. */
type Entry = string | number | null | {
  readonly form: string | number | null;
  readonly filled: readonly unknown[];
};

/** Writes core/kinds/value_forms.ts. */
export function valueFormsFile(data: KubernetesData): string {
  const structs: Record<string, Entry>[] = [];
  const indexes = new Map<string, number | null>();

  const formOf = (schema: OpenApiSchema): string | number | null => {
    const reference = schema.$ref ?? schema.allOf?.[0]?.$ref;
    const name = reference === undefined ? undefined : nameOf(reference);
    const isAtomic = [schema, data.definitions[name ?? ""]]
      .some((one) => one?.["x-kubernetes-map-type"] === "atomic");
    if (name !== undefined) {
      return structOf(name) ?? (isAtomic ? "atomic" : null);
    }
    if (isAtomic) return "atomic";
    if (schema.items !== undefined) return formOf(schema.items);
    const { additionalProperties: values } = schema;
    if (typeof values !== "object") return null;
    const form = formOf(values) ?? "texts";
    if (typeof form !== "number") return form;
    return structs.push({ "*": form }) - 1;
  };

  /** The number of a definition's struct; null if nothing in it is special. */
  const structOf = (name: string): string | number | null => {
    if (LEAVES[name] !== undefined) return LEAVES[name];
    const known = indexes.get(name);
    if (known !== undefined) return known;
    // A definition that contains itself, such as JSON schemas, holds nothing.
    indexes.set(name, null);
    const struct: Record<string, Entry> = {};
    const { properties = {} } = data.definitions[name] ?? {};
    for (const field of Object.keys(properties).sort()) {
      // Nobody asks for these but where a whole object is part of another.
      if (field === "metadata") continue;
      if (field === "status" && FILLED[name]?.[field] === undefined) continue;
      const property = properties[field] ?? {};
      const form = formOf(property);
      const filled = FILLED[name]?.[field] ??
        (meansSomething(property.default) ? [property.default] : undefined);
      if (filled !== undefined) struct[field] = { form, filled };
      else if (form !== null) struct[field] = form;
    }
    const index = Object.keys(struct).length === 0
      ? null
      : structs.push(struct) - 1;
    indexes.set(name, index);
    return index;
  };

  const kinds: Record<string, number> = {};
  for (const [name, definition] of Object.entries(data.definitions)) {
    const named = definition["x-kubernetes-group-version-kind"];
    if (!Array.isArray(named) || named.length !== 1) continue;
    const { group, version, kind } = named[0] as Record<string, string>;
    const form = structOf(name);
    if (typeof form !== "number" || kind?.endsWith("List")) continue;
    kinds[`${group === "" ? "" : `${group}/`}${version} ${kind}`] = form;
  }
  const groups = data.groups.map(({ metadata }) => metadata.name ?? "");
  const text = JSON.stringify({ groups, kinds, structs }).replaceAll(
    "\\",
    "\\\\",
  )
    .replaceAll("'", "\\'");
  return `${GENERATED_HEADER}

/**
 * Where built-in kinds have values that the server spells in its own way, and
 * what it fills in, as JSON: the built-in groups, the number of the struct of
 * each kind, and of each struct the forms of its fields.
 */
export const VALUE_FORMS: string = '${text}';
`;
}

function meansSomething(value: unknown): boolean {
  return value !== undefined && value !== "" && value !== 0 &&
    value !== false && JSON.stringify(value) !== "{}";
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf("/") + 1);
}
