import { VERBS } from "../apiserver/registry.ts";
import type { ApiRequest, Kind } from "@coracle/operator/client";
import { isResolved, kindText } from "@coracle/operator/internal";
import type { PolicyRule } from "@coracle/operator/kinds";

/** Options of {@linkcode rbacManifests}. */
export interface RbacOptions {
  /** Name of the service account, roles and bindings. */
  readonly name: string;
  /** Namespace of the operator. */
  readonly namespace: string;
  /** Access to the objects of kinds. */
  readonly access: readonly {
    /** Kind of the objects. */
    readonly kind: Kind;
    /** Permitted verbs. */
    readonly verbs: readonly (
      | Exclude<ApiRequest["verb"], "connect">
      | "bind"
      | "escalate"
    )[];
    /** Subresource that the verbs apply to instead of the object, such as `status`. */
    readonly subresource?: string | undefined;
    /** Namespaces of the access. Defaults to all namespaces. */
    readonly namespaces?: "all" | readonly string[] | undefined;
    /** Names of the objects. Defaults to all. Does not apply to `create`. */
    readonly names?: readonly string[] | undefined;
  }[];
}

/** Access of an operator to the objects of a kind. */
export type KindAccess = RbacOptions["access"][number];

export type AccessVerb = KindAccess["verbs"][number];

/** Manifest of a service account, a role or a binding. */
export interface RbacManifest {
  /** API version of the manifest. */
  readonly apiVersion: string;
  /** Kind of the manifest, such as `ClusterRole`. */
  readonly kind: string;
  /** Name, and namespace unless the object is cluster-scoped. */
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
  };
  /** Rules of a role. */
  readonly rules?: readonly PolicyRule[] | undefined;
  /** Role that a binding grants. */
  readonly roleRef?: Readonly<Record<string, string>> | undefined;
  /** Accounts that a binding grants the role to. */
  readonly subjects?: readonly Readonly<Record<string, string>>[] | undefined;
}

/** Verbs in their usual order. */
const ORDER: readonly AccessVerb[] = [...VERBS, "bind", "escalate"];

const RBAC_API = "rbac.authorization.k8s.io";

/**
 * Creates the smallest set of rules for an access: verbs for the same resource
 * are merged, and resources of a group with the same verbs share a rule.
 *
 * @throws {TypeError} If the plural name of a kind is not known.
 */
export function policyRules(
  access: readonly KindAccess[],
): readonly PolicyRule[] {
  const verbsOf = new Map<string, Set<AccessVerb>>();
  for (const { kind, verbs, subresource, names } of access) {
    if (kind.plural === undefined) {
      throw new TypeError(
        `Cannot create rules: the plural name must be known: received ${
          kindText(kind)
        } without 'plural'`,
      );
    }
    const resource = subresource === undefined
      ? kind.plural
      : `${kind.plural}/${subresource}`;
    for (const verb of verbs) {
      // The name of an object that is created is not known to the authorizer.
      const named = verb === "create" ? [] : names ?? [];
      const place = `${kind.group} ${resource} ${named.join()}`;
      verbsOf.set(place, (verbsOf.get(place) ?? new Set()).add(verb));
    }
  }
  const rules = new Map<string, {
    readonly group: string;
    readonly resources: string[];
    readonly names: string;
    readonly verbs: readonly AccessVerb[];
  }>();
  const places = [...verbsOf].sort(([a], [b]) => a < b ? -1 : 1);
  for (const [place, verbs] of places) {
    const [group = "", resource = "", names = ""] = place.split(" ");
    const ordered = ORDER.filter((verb) => verbs.has(verb));
    const key = `${group} ${ordered.join()} ${names}`;
    const rule = rules.get(key) ??
      { group, resources: [], names, verbs: ordered };
    rule.resources.push(resource);
    rules.set(key, rule);
  }
  return [...rules.values()].map(({ group, resources, names, verbs }) => ({
    apiGroups: [group],
    resources,
    ...names !== "" && { resourceNames: names.split(",") },
    verbs: [...verbs],
  }));
}

/** Whether each verb of an access is part of another access, in its namespaces. */
export function isCovered(
  { kind, subresource, verbs, namespaces = "all", names }: KindAccess,
  access: readonly KindAccess[],
): boolean {
  const same = access.filter((other) => {
    const { kind: { group, plural, scope }, namespaces: places = "all" } =
      other;
    const isNamed = other.names === undefined ||
      names?.every((name) => other.names?.includes(name)) === true;
    return isNamed && group === kind.group && plural === kind.plural &&
      other.subresource === subresource &&
      (scope === "Cluster" || places === "all" ||
        (namespaces !== "all" &&
          namespaces.every((one) => places.includes(one))));
  });
  return verbs.every((verb) => same.some((one) => one.verbs.includes(verb)));
}

/**
 * Creates the service account of an operator with its roles and bindings: a
 * ClusterRole for all namespaces and for cluster-scoped kinds, otherwise a Role
 * in each of its namespaces.
 *
 * @param options The names and the access of the operator.
 * @throws {TypeError} If the plural name or the scope of a kind is not known.
 */
export function rbacManifests(options: RbacOptions): readonly RbacManifest[] {
  const { name, namespace, access } = options;
  const clusterWide: KindAccess[] = [];
  const local = new Map<string, KindAccess[]>();
  for (const one of access) {
    const { kind, namespaces = "all" } = one;
    if (!isResolved(kind)) {
      throw new TypeError(
        `Cannot create roles: the scope must be known: received ${
          kindText(kind)
        } without 'plural' and 'scope'`,
      );
    }
    if (namespaces === "all" || kind.scope === "Cluster") clusterWide.push(one);
    else {
      for (const place of namespaces) {
        local.set(place, [...local.get(place) ?? [], one]);
      }
    }
  }
  const account = { name, namespace };
  // Rights for all namespaces need not be repeated for one.
  for (const [place, all] of local) {
    const own = all.filter((one) => !isCovered(one, clusterWide));
    if (own.length > 0) local.set(place, own);
    else local.delete(place);
  }
  return [
    accountManifest(account),
    ...roleAndBinding({ name }, clusterWide, account),
    ...[...local].flatMap(([place, here]) =>
      roleAndBinding({ name, namespace: place }, here, account)
    ),
  ];
}

/** Name and namespace of a service account. */
type Account = Pick<RbacOptions, "name" | "namespace">;

/** Creates a service account. */
export function accountManifest(metadata: Account): RbacManifest {
  return { apiVersion: "v1", kind: "ServiceAccount", metadata };
}

/** Creates a Role with its binding; a ClusterRole without a namespace. */
function roleAndBinding(
  metadata: RbacManifest["metadata"],
  access: readonly KindAccess[],
  account: Account,
): readonly RbacManifest[] {
  const rules = policyRules(access);
  if (rules.length === 0) return [];
  const kind = metadata.namespace === undefined ? "ClusterRole" : "Role";
  return [
    { apiVersion: `${RBAC_API}/v1`, kind, metadata, rules },
    bindingManifest(metadata, metadata.name, account),
  ];
}

/** Creates the binding of a Role; of a ClusterRole without a namespace. */
export function bindingManifest(
  metadata: RbacManifest["metadata"],
  role: string,
  account: Account,
): RbacManifest {
  const kind = metadata.namespace === undefined ? "ClusterRole" : "Role";
  return {
    apiVersion: `${RBAC_API}/v1`,
    kind: `${kind}Binding`,
    metadata,
    roleRef: { apiGroup: RBAC_API, kind, name: role },
    subjects: [{ kind: "ServiceAccount", ...account }],
  };
}
