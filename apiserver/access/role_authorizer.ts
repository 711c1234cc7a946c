import { timestamp } from "../../core/api/timestamp.ts";
import type { Clock } from "../../core/clock.ts";
import type {
  ClusterRole,
  PolicyRule,
  RoleBinding,
  Subject,
} from "../../core/kinds/rbac_v1.ts";
import type { Random } from "../random.ts";
import { accountUser, isPrivileged, type User } from "../request/user.ts";
import type { Resources } from "../resources.ts";
import { notFound } from "../status.ts";
import type { Store } from "../storage/store.ts";
import { storageKey } from "../storage/stored_object.ts";
import { type Attributes, denied } from "./attributes.ts";
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
}

/** Rules that one binding grants. */
interface Grant {
  readonly binding: RoleBinding;
  /** Namespace; empty for the whole cluster. */
  readonly namespace: string;
  readonly rules: readonly PolicyRule[];
  /** Error message if the rules could not be found. */
  readonly error?: string | undefined;
}

/** Rules of a user in a namespace. */
export interface UserRules {
  readonly rules: readonly PolicyRule[];
  /** Errors of bindings whose roles do not exist. */
  readonly errors: readonly string[];
}

const ALLOWED: Decision = Object.freeze({ allowed: true, reason: "" });

/**
 * Authorizer by the roles and bindings of the store. Reads them at the first
 * request of a user with restricted rights, and again after a change.
 */
export class RoleAuthorizer {
  readonly #deps: RoleAuthorizerDeps;
  /** Grants by kind and name of their subjects. */
  #grants: Map<string, Grant[]> | undefined;
  #isPrepared = false;

  constructor(deps: RoleAuthorizerDeps) {
    this.#deps = deps;
    deps.store.listen((_change, { resource }) => {
      if (resource.group === RBAC_GROUP) this.#grants = undefined;
    });
  }

  /** Creates the missing roles and bindings of a new cluster, once. */
  prepare(): void {
    if (this.#isPrepared) return;
    this.#isPrepared = true;
    const { store, resources, clock, random } = this.#deps;
    const creationTimestamp = timestamp(clock.wallTime());
    for (const object of bootstrapRoles()) {
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
      if (grant.error !== undefined) errors.push(grant.error);
      if (grant.rules.some((rule) => allows(rule, attributes))) {
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
    const grants = this.#grantsOf(user, namespace);
    return {
      rules: grants.flatMap(({ rules }) => rules),
      errors: grants.flatMap(({ error }) => error ?? []),
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
    if (stored) return (stored.parse() as ClusterRole).rules ?? [];
    throw notFound({ group: RBAC_GROUP, kind: kind.toLowerCase(), name });
  }

  #grantsOf({ name, groups }: User, namespace: string): readonly Grant[] {
    const index = this.#grants ??= this.#readGrants();
    const keys = [`User ${name}`, ...groups.map((group) => `Group ${group}`)];
    const found = [...new Set(keys.flatMap((key) => index.get(key) ?? []))];
    const local = found.filter((grant) => grant.namespace !== "");
    return [
      ...found.filter((grant) => grant.namespace === ""),
      ...local.filter((grant) => grant.namespace === namespace),
    ];
  }

  #readGrants(): Map<string, Grant[]> {
    this.prepare();
    const index = new Map<string, Grant[]>();
    for (const plural of ["clusterrolebindings", "rolebindings"]) {
      const collection = this.#deps.store.collection({
        group: RBAC_GROUP,
        plural,
      });
      for (const stored of collection.values()) {
        const binding = stored.parse() as object as RoleBinding;
        const { namespace } = stored;
        let grant: Grant = { binding, namespace, rules: [] };
        try {
          const rules = this.rulesOfRole(binding.roleRef, namespace);
          grant = { ...grant, rules };
        } catch (error) {
          grant = { ...grant, error: (error as Error).message };
        }
        for (const subject of binding.subjects ?? []) {
          const key = subjectKey(subject, namespace);
          const grants = index.get(key);
          if (grants === undefined) index.set(key, [grant]);
          else grants.push(grant);
        }
      }
    }
    return index;
  }
}

function subjectKey({ kind, name, namespace }: Subject, home: string): string {
  return kind === "ServiceAccount"
    ? `User ${accountUser(namespace || home, name)}`
    : `${kind} ${name}`;
}

/** Text of a binding and the subject that applies to a user, in kube-apiserver's form. */
function text({ binding, namespace }: Grant, user: User): string {
  const { metadata, roleRef, subjects = [] } = binding;
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
  const [kind, own] = namespace === ""
    ? ["ClusterRoleBinding", metadata?.name]
    : ["RoleBinding", `${metadata?.name}/${namespace}`];
  return `${kind} ${JSON.stringify(own)} of ${roleRef.kind} ${
    JSON.stringify(roleRef.name)
  } to ${subject?.kind} ${JSON.stringify(name)}`;
}

/** Joins errors into one text as Go does. */
export function aggregate(errors: readonly string[]): string {
  const [first = ""] = errors;
  const distinct = [...new Set(errors)];
  return distinct.length === 1 ? first : `[${distinct.join(", ")}]`;
}
