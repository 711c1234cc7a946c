import type { UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { ClusterRole, RoleBinding } from "@coracle/operator/kinds";
import {
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import { isPrivileged } from "../request/user.ts";
import { forbidden } from "../status.ts";
import { accessAttributes } from "./attributes.ts";
import { RBAC_GROUP } from "./bootstrap_roles.ts";
import { goList, missingRights } from "./policy_rules.ts";
import { aggregate } from "./role_authorizer.ts";

const EVERYTHING = [
  { apiGroups: ["*"], resources: ["*"], verbs: ["*"] },
  { nonResourceURLs: ["*"], verbs: ["*"] },
];

/**
 * Checks that a user may create what a request with another verb creates: a
 * stream, which a WebSocket opens by GET, or the object of an apply or a PUT.
 *
 * @throws {StatusError} 403 if no rule allows it.
 */
export function checkCreates(request: ResourceRequest): void {
  const { context, definition, name, namespace, subresource, user } = request;
  const { allowed, reason } = context.authorizer.decide(
    user,
    accessAttributes({
      verb: "create",
      group: definition.group,
      resource: definition.plural,
      subresource: subresource?.name,
      namespace,
      name,
    }),
  );
  if (!allowed) throw forbidden(subjectOf(request), reason);
}

/**
 * Checks that the writer of a role or binding has the rights that it grants, or
 * may escalate or bind.
 *
 * @param live The stored object; undefined for a new one.
 * @throws {StatusError} 403 if the writer lacks these rights.
 */
export function checkEscalation(
  request: ResourceRequest,
  object: UntypedObject,
  live?: UntypedObject,
): void {
  const { definition, user, name = "", namespace = "" } = request;
  if (definition.group !== RBAC_GROUP || isPrivileged(user)) return;
  const { authorizer } = request.context;
  const may = (verb: string, resource: string, name: string) =>
    authorizer.decide(
      user,
      accessAttributes({ verb, group: RBAC_GROUP, resource, namespace, name }),
    ).allowed;
  const isBinding = definition.plural.endsWith("bindings");
  if (!isBinding && may("escalate", definition.plural, name)) return;
  if (live && jsonEquals(withoutOwners(object), withoutOwners(live))) return;
  const refuse = (why: string) =>
    forbidden(subjectOf(request, object.metadata.name), why);
  const check = (rules: NonNullable<ClusterRole["rules"]>, why?: string) => {
    const owned = authorizer.rulesOf(user, namespace);
    const missing = missingRights(owned.rules, rules);
    if (missing.length === 0) return;
    const errors = owned.errors.length === 0
      ? ""
      : `; resolution errors: [${aggregate(owned.errors)}]`;
    throw refuse(
      why ??
        `user ${JSON.stringify(user.name)} (groups=${
          goList(user.groups)
        }) is attempting to grant RBAC permissions not currently held:\n${
          missing.join("\n")
        }${errors}`,
    );
  };
  if (isBinding) {
    const { roleRef } = object as object as RoleBinding;
    const plural = roleRef?.kind === "Role" ? "roles" : "clusterroles";
    if (!roleRef || may("bind", plural, roleRef.name)) return;
    check([...authorizer.rulesOfRole(roleRef, namespace)]);
    return;
  }
  const role = object as object as ClusterRole;
  check(role.rules ?? []);
  if (isAggregated(role) || isAggregated((live ?? {}) as ClusterRole)) {
    check(
      EVERYTHING,
      "must have cluster-admin privileges to use the aggregationRule",
    );
  }
}

function isAggregated({ aggregationRule }: ClusterRole): boolean {
  return (aggregationRule?.clusterRoleSelectors ?? []).length > 0;
}

/** Copy of an object without the fields that garbage collection changes. */
function withoutOwners(object: UntypedObject): unknown {
  const {
    managedFields: _,
    finalizers: __,
    ownerReferences: ___,
    ...metadata
  } = object.metadata;
  return { ...object, metadata };
}
