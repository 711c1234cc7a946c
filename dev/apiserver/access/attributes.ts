/**
 * Authentication and authorization of requests: users, tokens of service
 * accounts, impersonation and RBAC. Guarantees: a request of the administrator
 * costs only a comparison of tokens. Must not import `write`, `controllers` or
 * `http`, except types.
 *
 * @module
 */
import { parseFieldSelector } from "@coracle/operator/internal";
import type { RequestInfo } from "../request/request_info.ts";
import { verbOf } from "../request/request_info.ts";
import type { User } from "../request/user.ts";
import { forbidden, type StatusError } from "../status.ts";

/** Attributes of a request that an authorizer decides on. */
export interface Attributes {
  /** Verb, such as `list`; for paths without a resource, such as `get`. */
  readonly verb: string;
  /** Path without a resource, such as `/metrics`; undefined for resources. */
  readonly path?: string | undefined;
  /** API group; empty for the core group. */
  readonly group: string;
  /** Plural, such as `pods`. */
  readonly resource: string;
  /** Subresource, such as `status`; empty for the object itself. */
  readonly subresource: string;
  /** Namespace; empty at the cluster scope. */
  readonly namespace: string;
  /** Object name; empty for all objects. */
  readonly name: string;
}

/** Attributes of an access check; some may be absent. */
export function accessAttributes(
  { verb = "", group = "", resource = "", ...rest }: {
    readonly [field in keyof Attributes]?: Attributes[field] | undefined;
  },
): Attributes {
  const { subresource = "", namespace = "", name = "", path } = rest;
  return { verb, group, resource, subresource, namespace, name, path };
}

/** Attributes of a request. */
export function attributesOf(method: string, info: RequestInfo): Attributes {
  const verb = verbOf(method, info);
  if (info.resource === undefined) {
    return accessAttributes({ verb, path: info.path });
  }
  const { group, plural, subresource, name, namespace } = info.resource;
  return accessAttributes({
    verb,
    group,
    resource: plural,
    subresource,
    // An object of namespaces is in the namespace of its name.
    namespace: namespace ?? (plural === "namespaces" ? name : undefined),
    name: name || selectedName(verb, info),
  });
}

/**
 * Object name that the field selector of a list or watch requires; empty without
 * one. As in kube-apiserver, paths with `/watch/` and deletions of a collection
 * need the right to all objects.
 */
function selectedName(verb: string, { query, resource }: RequestInfo): string {
  const selector = query.get("fieldSelector");
  if (!selector || resource?.watch) return "";
  if (verb !== "list" && verb !== "watch") return "";
  try {
    return parseFieldSelector(selector).find(({ field, operator }) =>
      field === "metadata.name" && operator === "="
    )?.value ?? "";
  } catch {
    return "";
  }
}

/** Error 403 of a request that no rule allows. */
export function denied(
  user: User,
  attributes: Attributes,
  reason: string,
): StatusError {
  const { verb, path, group, resource, subresource, namespace, name } =
    attributes;
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  const why = reason === "" ? "" : `: ${reason}`;
  if (path !== undefined) {
    return forbidden(
      { group: "", kind: "" },
      `${who} path ${JSON.stringify(path)}${why}`,
    );
  }
  const what = subresource === "" ? resource : `${resource}/${subresource}`;
  const where = namespace === ""
    ? "at the cluster scope"
    : `in the namespace ${JSON.stringify(namespace)}`;
  return forbidden(
    { group, kind: resource, name },
    `${who} resource ${JSON.stringify(what)} in API group ${
      JSON.stringify(group)
    } ${where}${why}`,
  );
}
