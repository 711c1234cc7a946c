import { type Clock, timestamp } from "@coracle/operator/client";
import type {
  ClusterRole,
  PolicyRule,
  RoleBinding,
  Subject,
} from "@coracle/operator/kinds";
import type { Random } from "../random.ts";
import { accountUser, isPrivileged, type User } from "../request/user.ts";
import type { GroupResource } from "../registry.ts";
import type { Resources } from "../resources.ts";
import { notFound } from "../status.ts";
import type { Store } from "../storage/store.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import { type Attributes, denied } from "./attributes.ts";
import type { KubernetesRelease } from "../kubernetes_release.ts";
import { bootstrapRoles, RBAC_GROUP } from "./bootstrap_roles.ts";
import { allows } from "./policy_rules.ts";

/** Decision of an authorizer on a request. */
export interface Decision {
  readonly allowed: boolean;
  /** Reason of the decision; may be empty. */
  readonly reason: string;
}

/** Dependencies of a {@linkcode RoleAuthorizer}. */
export interface RoleAuthorizerDeps {
  readonly store: Store;
  readonly resources: Resources;
  readonly clock: Clock;
  readonly random: Random;
  /** Whether every request is allowed, without roles. */
  readonly allowsAll: boolean;
  readonly release: Pick<KubernetesRelease, "rolesBefore">;
}

/** Role and subjects of a binding. */
interface Grant extends Pick<RoleBinding, "roleRef" | "subjects"> {
  /** Stored object of the binding. */
  readonly stored: StoredObject;
}

/** Rules of a user in a namespace. */
export interface UserRules {
  readonly rules: readonly PolicyRule[];
  /** Errors of bindings whose roles do not exist. */
  readonly errors: readonly string[];
}

const ALLOWED: Decision = Object.freeze({ allowed: true, reason: "" });

/**
 * Authorizer by the roles and bindings of the store. Reads the bindings at the
 * first request of a user with restricted rights, and later those that change.
 */
export class RoleAuthorizer {
  readonly #deps: RoleAuthorizerDeps;
  /** Grants by namespace and subject. */
  #grants: Map<string, readonly Grant[]> | undefined;
  /** Rules by the stored object of their role. */
  readonly #rules: WeakMap<StoredObject, readonly PolicyRule[]> = new WeakMap();
  #isPrepared = false;

  constructor(deps: RoleAuthorizerDeps) {
    this.#deps = deps;
    deps.store.listen(({ type, object, previous }, { resource }) => {
      if (this.#grants === undefined || !isBinding(resource)) return;
      if (previous) this.#remove(previous);
      if (type !== "DELETED") this.#add(object);
    });
  }

  /** Creates the missing roles and bindings of a new cluster, once. */
  prepare(): void {
    if (this.#isPrepared) return;
    this.#isPrepared = true;
    const { store, resources, clock, random, release } = this.#deps;
    const creationTimestamp = timestamp(clock.wallTime());
    for (const object of bootstrapRoles(release)) {
      const plural = `${object.kind?.toLowerCase()}s`;
      const definition = resources.find(RBAC_GROUP, plural);
      const { name, namespace = "" } = object.metadata;
      const key = storageKey({ namespace, name });
      if (!definition || store.collectionOf(definition).get(key)) continue;
      const uid = random.uid();
      Object.assign(object.metadata, { uid, creationTimestamp });
      store.put(definition, object);
    }
  }

  /**
   * Checks that a user may make a request.
   *
   * @throws {StatusError} 403 if no rule allows it.
   */
  check(user: User, attributes: Attributes): void {
    const { allowed, reason } = this.decide(user, attributes);
    if (!allowed) throw denied(user, attributes, reason);
  }

  /** Decides whether a user may make a request. */
  decide(user: User, attributes: Attributes): Decision {
    if (this.#deps.allowsAll || isPrivileged(user)) return ALLOWED;
    const errors: string[] = [];
    for (const grant of this.#grantsOf(user, attributes.namespace)) {
      const { rules, error } = this.#rulesOfGrant(grant);
      if (error !== undefined) errors.push(error);
      if (rules.some((rule) => allows(rule, attributes))) {
        return {
          allowed: true,
          reason: `RBAC: allowed by ${text(grant, user)}`,
        };
      }
    }
    const reason = errors.length === 0 ? "" : `RBAC: ${aggregate(errors)}`;
    return { allowed: false, reason };
  }

  /** Rules of a user in the whole cluster, and in a namespace if one is given. */
  rulesOf(user: User, namespace: string): UserRules {
    const found = this.#grantsOf(user, namespace)
      .map((grant) => this.#rulesOfGrant(grant));
    return {
      rules: found.flatMap(({ rules }) => rules),
      errors: found.flatMap(({ error }) => error ?? []),
    };
  }

  /**
   * Rules of the role that a binding refers to.
   *
   * @throws {StatusError} 404 if there is no such role.
   */
  rulesOfRole(
    { kind, name }: RoleBinding["roleRef"],
    namespace: string,
  ): readonly PolicyRule[] {
    const key = storageKey({
      namespace: kind === "Role" ? namespace : "",
      name,
    });
    const plural = `${kind.toLowerCase()}s`;
    const stored = this.#deps.store.collection({ group: RBAC_GROUP, plural })
      .get(key);
    if (stored) {
      const rules = this.#rules.get(stored) ??
        (stored.parse() as ClusterRole).rules ?? [];
      this.#rules.set(stored, rules);
      return rules;
    }
    throw notFound({ group: RBAC_GROUP, kind: kind.toLowerCase(), name });
  }

  /** Rules of a binding's role; an error if the role does not exist. */
  #rulesOfGrant(
    { roleRef, stored }: Grant,
  ): { readonly rules: readonly PolicyRule[]; readonly error?: string } {
    try {
      return { rules: this.rulesOfRole(roleRef, stored.namespace) };
    } catch (error) {
      return { rules: [], error: (error as Error).message };
    }
  }

  #grantsOf(user: User, namespace: string): readonly Grant[] {
    if (this.#grants === undefined) this.#readGrants();
    const subjects = [
      `User ${user.name}`,
      ...user.groups.map((group) => `Group ${group}`),
    ];
    const found = ["", namespace].flatMap((place) =>
      subjects.flatMap((one) => this.#grants?.get(`${place} ${one}`) ?? [])
    );
    return [...new Set(found)];
  }

  #readGrants(): void {
    this.prepare();
    this.#grants = new Map();
    for (const plural of BINDINGS) {
      const { store } = this.#deps;
      const collection = store.collection({ group: RBAC_GROUP, plural });
      for (const stored of collection.values()) this.#add(stored);
    }
  }

  #add(stored: StoredObject): void {
    const grant = grantOf(stored);
    for (const key of keysOf(grant)) {
      this.#grants?.set(key, [...this.#grants.get(key) ?? [], grant]);
    }
  }

  #remove(stored: StoredObject): void {
    for (const key of keysOf(grantOf(stored))) {
      const rest = this.#grants?.get(key)
        ?.filter((grant) => grant.stored.key !== stored.key) ?? [];
      if (rest.length > 0) this.#grants?.set(key, rest);
      else this.#grants?.delete(key);
    }
  }
}

function grantOf(stored: StoredObject): Grant {
  const { roleRef, subjects } = stored.parse() as object as RoleBinding;
  return { roleRef, subjects, stored };
}

const BINDINGS = ["clusterrolebindings", "rolebindings"];

function isBinding({ group, plural }: GroupResource): boolean {
  return group === RBAC_GROUP && BINDINGS.includes(plural);
}

/** Keys of a grant: its namespace, empty for the whole cluster, and each subject. */
function keysOf({ subjects, stored: { namespace } }: Grant): Set<string> {
  return new Set(
    subjects?.map((subject) =>
      `${namespace} ${subjectKey(subject, namespace)}`
    ),
  );
}

function subjectKey({ kind, name, namespace }: Subject, home: string): string {
  return kind === "ServiceAccount"
    ? `User ${accountUser(namespace || home, name)}`
    : `${kind} ${name}`;
}

/** Text of a binding and the subject that applies to a user, in kube-apiserver's form. */
function text(
  { roleRef, subjects = [], stored: { name: own, namespace } }: Grant,
  user: User,
): string {
  const keys = [
    `User ${user.name}`,
    ...user.groups.map((group) => `Group ${group}`),
  ];
  const subject = subjects.find((one) =>
    keys.includes(subjectKey(one, namespace))
  );
  const name = subject?.kind === "ServiceAccount"
    ? `${subject.name}/${subject.namespace || namespace}`
    : subject?.name;
  const [kind, place] = namespace === ""
    ? ["ClusterRoleBinding", own]
    : ["RoleBinding", `${own}/${namespace}`];
  return `${kind} ${JSON.stringify(place)} of ${roleRef.kind} ${
    JSON.stringify(roleRef.name)
  } to ${subject?.kind} ${JSON.stringify(name)}`;
}

/** Joins errors into one text as Go does. */
export function aggregate(errors: readonly string[]): string {
  const [first = ""] = errors;
  const distinct = [...new Set(errors)];
  return distinct.length === 1 ? first : `[${distinct.join(", ")}]`;
}
