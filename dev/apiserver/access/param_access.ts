import type { UntypedObject } from "@coracle/operator/client";
import {
  jsonEquals,
  parseApiVersion,
  type StatusCause,
} from "@coracle/operator/internal";
import type {
  ValidatingAdmissionPolicyBindingSpec,
  ValidatingAdmissionPolicySpec,
} from "@coracle/operator/kinds";
import { ADMISSION_GROUP } from "../admission/hooks.ts";
import {
  kindSubjectOf,
  type ResourceRequest,
} from "../request/resource_request.ts";
import { isPrivileged, type User } from "../request/user.ts";
import { fieldError, invalid } from "../status.ts";
import { storageKey } from "../storage/stored_object.ts";
import { accessAttributes } from "./attributes.ts";

type ParamKind = NonNullable<ValidatingAdmissionPolicySpec["paramKind"]>;

/**
 * Checks that the writer of an admission policy may read all objects of the kind
 * of its parameters, and the writer of a binding those that it refers to: the
 * policy could show them in its messages.
 *
 * @param live The stored object; undefined for a new one.
 * @throws {StatusError} 422 if the writer lacks this right.
 */
export function checkParamAccess(
  request: ResourceRequest,
  object: UntypedObject,
  live?: UntypedObject,
): void {
  const { definition: { group, plural }, user } = request;
  if (group !== ADMISSION_GROUP || isPrivileged(user)) return;
  const refused = plural.endsWith("policies")
    ? policyRefusal(request, object, live)
    : plural.endsWith("policybindings")
    ? bindingRefusal(request, object)
    : undefined;
  if (refused === undefined) return;
  throw invalid(kindSubjectOf(request, object.metadata.name), [refused]);
}

function policyRefusal(
  request: ResourceRequest,
  policy: UntypedObject,
  live: UntypedObject | undefined,
): StatusCause | undefined {
  const { paramKind } = specOf<ValidatingAdmissionPolicySpec>(policy);
  const before = specOf<ValidatingAdmissionPolicySpec>(live).paramKind;
  if (!paramKind || jsonEquals(before, paramKind)) return undefined;
  const { apiVersion = "", kind } = paramKind;
  const { group } = parseApiVersion(apiVersion);
  const resource = servedResource(request, paramKind) ?? ANY;
  const all = { group, resource, namespace: ANY, name: ANY };
  if (may(request, { verb: "get", ...all })) return undefined;
  return fieldError.forbidden(
    "spec.paramKind",
    `user ${
      goUser(request.user)
    } must have "get" permission on all objects of the referenced paramKind (kind=${kind}, apiVersion=${apiVersion})`,
  );
}

function bindingRefusal(
  request: ResourceRequest,
  binding: UntypedObject,
): StatusCause | undefined {
  const { context: { store }, definition, user } = request;
  const { paramRef, policyName = "" } = specOf<
    ValidatingAdmissionPolicyBindingSpec
  >(binding);
  if (!paramRef) return undefined;
  const { name = "", namespace = "" } = paramRef;
  const verb = name === "" ? "list" : "get";
  const plural = definition.plural.replace("policybindings", "policies");
  const policy = store.collection({ group: ADMISSION_GROUP, plural })
    .get(storageKey({ namespace: "", name: policyName }))?.parse();
  const { paramKind } = specOf<ValidatingAdmissionPolicySpec>(policy);
  const { apiVersion = "", kind } = paramKind ?? {};
  const resource = paramKind && servedResource(request, paramKind);
  const { group } = resource === undefined
    ? { group: ANY }
    : parseApiVersion(apiVersion);
  const meant = { group, resource: resource ?? ANY, namespace, name };
  if (may(request, { verb, ...meant })) return undefined;
  const who = goUser(user);
  const unknown = policy === undefined
    ? `get policy ${policyName}`
    : paramKind && resource === undefined
    ? `resolve paramKind &{${apiVersion} ${kind}}`
    : undefined;
  // kube-apiserver has the two the wrong way round.
  const [first, second] = definition.plural.startsWith("mutating")
    ? [verb, who]
    : [who, verb];
  return fieldError.forbidden(
    "spec.paramRef",
    unknown === undefined
      ? `user ${first} does not have "${second}" permission on the object referenced by paramRef`
      : `unable to ${unknown} to determine minimum required permissions and user ${who} does not have "${verb}" permission for all groups, versions and resources`,
  );
}

/** All groups, resources, namespaces or names. */
const ANY = "*";

function may(
  { context: { authorizer }, user }: ResourceRequest,
  attributes: Parameters<typeof accessAttributes>[0],
): boolean {
  return authorizer.decide(user, accessAttributes(attributes)).allowed;
}

function specOf<S>(object: UntypedObject | undefined): Partial<S> {
  return (object?.spec ?? {}) as Partial<S>;
}

/** Plural of a kind of parameters; undefined if it is not served. */
function servedResource(
  { context: { resources } }: ResourceRequest,
  { apiVersion = "", kind = "" }: ParamKind,
): string | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  const found = resources.findKind(group, kind);
  return found?.versions.some(({ name, served }) => served && name === version)
    ? found.plural
    : undefined;
}

/** Text of a user, as Go prints it. */
function goUser({ name, uid = "", groups, extra = {} }: User): string {
  const more = Object.keys(extra).sort()
    .map((key) => `${key}:[${extra[key]?.join(" ")}]`);
  return `&{${name} ${uid} [${groups.join(" ")}] map[${more.join(" ")}]}`;
}
