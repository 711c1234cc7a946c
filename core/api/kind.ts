import type { KubernetesObject, UntypedObject } from "./object.ts";
import type { ObjectKey } from "./object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "./options.ts";

/** Scope of a kind: its objects are in namespaces, or cluster-wide. */
export type Scope = "Namespaced" | "Cluster";

/**
 * Descriptor of a kind, which also carries the type of its objects. Descriptors
 * are created by `defineKind` and `untyped`, and `@coracle/operator/kinds` has
 * those of Kubernetes.
 *
 * @typeParam T The type of the objects.
 */
export interface Kind<T extends KubernetesObject = KubernetesObject> {
  /** API group; empty for the core group. */
  readonly group: string;
  /** Version, such as `v1`. */
  readonly version: string;
  /** Name of the kind, such as `Deployment`. */
  readonly kind: string;
  /** Plural name in paths, such as `deployments`; absent if it is not known. */
  readonly plural?: string | undefined;
  /** Scope; absent if it is not known. */
  readonly scope?: "Namespaced" | "Cluster" | undefined;
  /** Type of the objects, which {@linkcode ObjectOf} returns; never set. */
  readonly "~object"?: T | undefined;
}

/** Descriptor of a kind whose path is known. */
export interface ResolvedKind<T extends KubernetesObject = KubernetesObject>
  extends Kind<T> {
  /** Plural name in paths, such as `deployments`. */
  readonly plural: string;
  /** Whether each object is in a namespace, or in the cluster as a whole. */
  readonly scope: "Namespaced" | "Cluster";
}

/** Type of the objects of a kind. */
export type ObjectOf<K extends Kind> = K extends Kind<infer T> ? T : never;

const NAME_RULES: OptionRules<Omit<Kind, "~object">> = {
  group: "string",
  version: "name",
  kind: "name",
  plural: "name?",
  scope: ["Namespaced", "Cluster", undefined],
};

/**
 * Creates the descriptor of a kind whose type is not known at compile time.
 * Without `plural` and `scope`, the client finds them by discovery.
 *
 * @param names The group (empty for the core group), version and kind.
 * @throws {TypeError} If a name is missing or not a text.
 * @throws {RangeError} If a name is empty, or the scope does not exist.
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
export function untyped(names: Omit<Kind, "~object">): Kind<UntypedObject> {
  checkOptions(names, NAME_RULES, "untyped()");
  const { group, version, kind, plural, scope } = names;
  return Object.freeze({ group, version, kind, plural, scope });
}

/**
 * Checks a kind descriptor of a user, which would fail later otherwise.
 *
 * @param subject User of the kind for errors, such as `"an informer"`.
 * @throws {TypeError} If the group, version or kind is missing, or the plural is
 * not a text.
 * @throws {RangeError} If the plural is empty, or the scope does not exist.
 */
export function checkKind(kind: Kind, subject: string): void {
  const { group, version, kind: name } = kind ?? {};
  if (typeof group !== "string" || !isName(version) || !isName(name)) {
    throw new TypeError(
      `Cannot read the kind of ${subject}: it must have a group, a version and a kind, as those of defineKind(), untyped() and @coracle/operator/kinds have: received ${
        typeText(kind)
      }`,
    );
  }
  checkParts(kind, NAME_RULES, `the kind ${name} of ${subject}`);
}

function isName(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

/** API version of a kind: `group/version`, or the version in the core group. */
export function apiVersionOf(kind: Pick<Kind, "group" | "version">): string {
  return kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
}

/** Splits an API version into its group and version. */
export function parseApiVersion(
  apiVersion: string,
): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? { group: "", version: apiVersion } : {
    group: apiVersion.slice(0, slash),
    version: apiVersion.slice(slash + 1),
  };
}

/** Descriptor of a built-in kind of Kubernetes whose plural is regular. */
export function builtIn<T extends KubernetesObject>(
  kind: string,
  scope: Scope,
  group = "",
): ResolvedKind<T> {
  const plural = `${kind.toLowerCase()}s`;
  return Object.freeze({ group, version: "v1", kind, plural, scope });
}

/** Whether a kind is part of Kubernetes; definitions may use `.k8s.io`, too. */
export function isBuiltIn({ group }: Pick<Kind, "group">): boolean {
  return /^(?:|apps|autoscaling|batch|policy|(?:admissionregistration|api(?:extensions|registration)|auth(?:entication|orization)|certificates|coordination|discovery|events|(?:flowcontrol|internal)\.apiserver|networking|node|rbac\.authorization|resource|scheduling|storage|storagemigration)\.k8s\.io)$/
    .test(group);
}

/** Text of a kind for logs and errors: `apps/v1 Deployment`. */
export function kindText(kind: Kind): string {
  return `${apiVersionOf(kind)} ${kind.kind}`;
}

/** Whether two descriptors have the same group, version and kind. */
export function sameKind(a: Kind, b: Kind): boolean {
  return a.kind === b.kind && a.group === b.group && a.version === b.version;
}

/** Whether the path of a kind is known without discovery. */
export function isResolved<T extends KubernetesObject>(
  kind: Kind<T>,
): kind is ResolvedKind<T> {
  const { plural, scope } = kind ?? {};
  return plural !== undefined && scope !== undefined;
}

/** Why no object of a kind has a key like this; undefined if one may have it. */
export function whyNoKeyOf(
  { kind, scope }: Kind,
  key: string,
): string | undefined {
  const isNamespaced = scope === "Namespaced";
  const isKey = isNamespaced ? /^[^/]+\/[^/]+$/ : /^[^/]+$/;
  if (scope === undefined || isKey.test(key)) return;
  const form = isNamespaced ? "namespace/name" : "name";
  return `the key of a ${kind} is "${form}": received "${key}"`;
}

/**
 * URL path of the collection of a kind.
 *
 * @param namespace The namespace, or undefined for all; ignored for cluster-scoped
 * kinds.
 * @throws {TypeError} If the namespace is not valid in a path.
 */
export function collectionPath(kind: ResolvedKind, namespace?: string): string {
  const { group, version, plural, scope } = kind;
  const last = lastCollection;
  if (
    last !== undefined && last.plural === plural &&
    last.namespace === namespace &&
    last.group === group && last.version === version && last.scope === scope
  ) return last.path;
  const root = versionPath(kind);
  checkedPart(kind, "plural", LABEL);
  const path = namespace === undefined || scope === "Cluster"
    ? `${root}/${plural}`
    : `${root}/namespaces/${segment(kind, "namespace", namespace)}/${plural}`;
  lastCollection = { group, version, plural, scope, namespace, path };
  return path;
}

/** Last result of {@linkcode collectionPath}, which most calls repeat. */
let lastCollection:
  | (Pick<ResolvedKind, "group" | "version" | "plural" | "scope"> & {
    readonly namespace: string | undefined;
    readonly path: string;
  })
  | undefined;

/** DNS label, as in names of Kubernetes; contains no dots and slashes. */
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const DOMAIN =
  /^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$/;
const SUBRESOURCE = /^[A-Za-z0-9][-\w.]*(\/[A-Za-z0-9][-\w.]*)*$/;

/** Longest names of Kubernetes: that of a label, and that of a subdomain. */
const [LABEL_LENGTH, SUBDOMAIN_LENGTH] = [63, 253];

/** Whether a text is a DNS label, such as the name of a namespace. */
export function isLabel(text: string): boolean {
  return text.length <= LABEL_LENGTH && LABEL.test(text);
}

/** Whether a text is a DNS subdomain, such as the names of most objects. */
export function isSubdomain(text: string): boolean {
  return text !== "" && text.length <= SUBDOMAIN_LENGTH && DOMAIN.test(text);
}

/**
 * URL path of the group and version of a kind.
 *
 * @throws {TypeError} If the group or the version is not a Kubernetes name.
 */
export function versionPath(kind: Kind): string {
  const version = checkedPart(kind, "version", LABEL);
  const group = checkedPart(kind, "group", DOMAIN);
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

/**
 * Checks a group, version or plural for a path; the value may come from a spec.
 */
function checkedPart(
  kind: Kind,
  part: "group" | "version" | "plural",
  form: RegExp,
): string {
  const value = kind[part];
  if (typeof value === "string" && form.test(value)) return value;
  throw new TypeError(
    `Cannot address ${kind.kind}: the ${part} of its kind must be ${
      form === LABEL ? "a DNS label" : "a DNS subdomain"
    }: received ${JSON.stringify(value)}`,
  );
}

/**
 * URL path of an object or of one of its subresources.
 *
 * @throws {TypeError} If the key of a namespaced kind has no namespace, or is
 * not valid in a path.
 */
export function objectPath(
  kind: ResolvedKind,
  key: ObjectKey,
  subresource?: string,
): string {
  if (kind.scope === "Namespaced" && !key.namespace) {
    throw new TypeError(
      `Cannot address ${kind.kind}: a namespaced kind needs a namespace: received name "${key.name}" alone`,
    );
  }
  const path = `${collectionPath(kind, key.namespace)}/${
    segment(kind, "name", key.name)
  }`;
  if (subresource === undefined) return path;
  if (SUBRESOURCE.test(subresource)) return `${path}/${subresource}`;
  throw new TypeError(
    `Cannot address ${kind.kind}: its subresource must be a name: received ${
      JSON.stringify(subresource)
    }`,
  );
}

/** Path segment that needs no encoding, such as most object names. */
const PLAIN_SEGMENT = /^[A-Za-z0-9][-\w.]*$/;

/**
 * Encodes a segment of a path. Refuses an empty segment and dots, which would
 * lead to another path: a request to delete an object would delete its
 * namespace, or all objects. Kubernetes does not allow them in names, nor
 * slashes and percent signs.
 */
function segment(
  kind: Pick<Kind, "kind">,
  part: "name" | "namespace",
  value: string,
): string {
  if (typeof value === "string" && PLAIN_SEGMENT.test(value)) return value;
  if (
    typeof value === "string" && value !== "" && value !== "." &&
    value !== ".." && !/[/%]|\p{Surrogate}/u.test(value)
  ) return encodeURIComponent(value);
  throw new TypeError(
    `Cannot address ${kind.kind}: its ${part} must be text other than "." and "..", without "/" and "%": received ${
      typeof value === "string" ? JSON.stringify(value) : typeText(value)
    }`,
  );
}
