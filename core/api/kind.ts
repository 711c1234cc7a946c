import type { KubernetesObject, UntypedObject } from "./object.ts";
import type { ObjectKey } from "./object_key.ts";
import { checkOptions, type OptionRules, typeText } from "./options.ts";

/** Whether the objects of a kind live in namespaces. */
export type Scope = "Namespaced" | "Cluster";

/**
 * Names one kind of objects and carries their type. `defineKind`, `untyped` and
 * the constants of `@coracle/operator/kinds` give such descriptors; everything
 * that works on objects takes one.
 *
 * @typeParam T The type of the objects.
 */
export interface Kind<T extends KubernetesObject = KubernetesObject> {
  /** The API group; empty for the core group. */
  readonly group: string;
  /** The version, such as `v1`. */
  readonly version: string;
  /** The kind in the singular, such as `Deployment`. */
  readonly kind: string;
  /**
   * The name in paths, such as `deployments`; absent when only discovery can
   * tell.
   */
  readonly plural?: string | undefined;
  /** Where its objects live; absent when only discovery can tell. */
  readonly scope?: Scope | undefined;
  /** Never set: it only carries the type. */
  readonly objectType?: T | undefined;
}

/** A kind whose path is known. */
export interface ResolvedKind<T extends KubernetesObject = KubernetesObject>
  extends Kind<T> {
  /** The name in paths, such as `deployments`. */
  readonly plural: string;
  /** Where its objects live. */
  readonly scope: Scope;
}

/** The type of a kind's objects. */
export type ObjectOf<K extends Kind> = K extends Kind<infer T> ? T : never;

const NAME_RULES: OptionRules<Omit<Kind, "objectType">> = {
  group: "string",
  version: "name",
  kind: "name",
  plural: "name?",
  scope: ["Namespaced", "Cluster", undefined],
};

/**
 * Describes a kind whose type is not known at compile time. Without `plural`
 * and `scope`, the client asks the server's discovery for them.
 *
 * @param names Group (empty for the core group), version and kind.
 * @throws {TypeError} If a name is missing or no text.
 * @throws {RangeError} If a name is empty, or the scope is none.
 *
 * @example Watch any kind
 * ```ts
 * import { untyped } from "@coracle/operator/core";
 *
 * const Gateway = untyped({
 *   group: "gateway.networking.k8s.io",
 *   version: "v1",
 *   kind: "Gateway",
 * });
 * if (Gateway.kind !== "Gateway") throw new Error("Unexpected kind");
 * ```
 */
export function untyped(
  names: Omit<Kind, "objectType">,
): Kind<UntypedObject> {
  checkOptions(names, NAME_RULES, "untyped()");
  const { group, version, kind, plural, scope } = names;
  return Object.freeze({ group, version, kind, plural, scope });
}

/**
 * Refuses what is no kind, which would fail somewhere else.
 *
 * @param kind What the user gave.
 * @param subject What it is for, such as `"an informer"`.
 * @throws {TypeError} If group, version or kind is missing or no text, plural is
 * none, or there is no such scope.
 */
export function checkKind(kind: Kind, subject: string): void {
  const { group, version, kind: name, plural, scope } = kind ?? {};
  if (typeof group !== "string" || !isName(version) || !isName(name)) {
    throw new TypeError(
      `Cannot read the kind of ${subject}: it must have a group, a version and a kind, as those of defineKind(), untyped() and @coracle/operator/kinds have: received ${
        typeText(kind)
      }`,
    );
  }
  if (plural !== undefined && !isName(plural)) {
    throw new TypeError(
      `Cannot read the kind of ${subject}: the plural of ${name} must be text: received ${
        typeText(plural)
      }`,
    );
  }
  if (scope === undefined || scope === "Namespaced" || scope === "Cluster") {
    return;
  }
  throw new TypeError(
    `Cannot read the kind of ${subject}: the scope of ${name} must be "Namespaced" or "Cluster": received ${
      JSON.stringify(scope)
    }`,
  );
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/** The `apiVersion` that objects of a kind carry: `group/version` or `v1`. */
export function apiVersionOf(kind: Pick<Kind, "group" | "version">): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** Splits an `apiVersion` into its group and version. */
export function parseApiVersion(
  apiVersion: string,
): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? { group: "", version: apiVersion } : {
    group: apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
  };
}

/** A kind for people and logs: `apps/v1 Deployment`. */
export function kindText(kind: Kind): string {
  return `${apiVersionOf(kind)} ${kind.kind}`;
}

/** Whether two descriptors name the same group, version and kind. */
export function sameKind(a: Kind, b: Kind): boolean {
  return a.kind === b.kind && a.group === b.group && a.version === b.version;
}

/** Whether the path of a kind is known without asking the server. */
export function isResolved<T extends KubernetesObject>(
  kind: Kind<T>,
): kind is ResolvedKind<T> {
  // Whatever is no kind is refused where the server would be asked for it.
  const { plural, scope } = kind ?? {};
  return plural !== undefined && scope !== undefined;
}

/**
 * The path of a kind's collection, in one namespace or across all.
 *
 * @param kind Which kind.
 * @param namespace Only this namespace; ignored for cluster-scoped kinds.
 * @throws {TypeError} If the namespace is none.
 */
export function collectionPath(kind: ResolvedKind, namespace?: string): string {
  const root = kind.group === ""
    ? `/api/${kind.version}`
    : `/apis/${kind.group}/${kind.version}`;
  return namespace === undefined || kind.scope === "Cluster"
    ? `${root}/${kind.plural}`
    : `${root}/namespaces/${
      segment(kind, "namespace", namespace)
    }/${kind.plural}`;
}

/**
 * The path of one object, or of a subresource of it.
 *
 * @throws {TypeError} If the key of a namespaced kind has no namespace, or a part
 * of it would lead to another path.
 */
export function objectPath(
  kind: ResolvedKind,
  key: ObjectKey,
  subresource?: string,
): string {
  if (kind.scope === "Namespaced" && !key.namespace) {
    throw new TypeError(
      `Cannot address a ${kind.kind}: a namespaced kind needs a namespace: received name "${key.name}" alone`,
    );
  }
  const path = `${collectionPath(kind, key.namespace)}/${
    segment(kind, "name", key.name)
  }`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/**
 * A part of a path. An empty one or dots would make it that of something else:
 * what deletes an object would delete its namespace, or all objects. Kubernetes
 * allows none of these, nor slashes and percent signs.
 */
function segment(
  kind: Pick<Kind, "kind">,
  part: "name" | "namespace",
  value: string,
): string {
  if (
    typeof value === "string" && value !== "" && value !== "." &&
    value !== ".." && !/[/%]/.test(value)
  ) return encodeURIComponent(value);
  throw new TypeError(
    `Cannot address a ${kind.kind}: its ${part} must be text other than "." and "..", without "/" and "%": received ${
      JSON.stringify(value)
    }`,
  );
}
