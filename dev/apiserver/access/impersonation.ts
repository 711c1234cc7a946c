import type { ServerRequest } from "../http/exchange.ts";
import {
  accountGroups,
  completed,
  serviceAccountOf,
  type User,
} from "../request/user.ts";
import { accessAttributes, type Attributes } from "./attributes.ts";
import type { RoleAuthorizer } from "./role_authorizer.ts";

const EXTRA = "impersonate-extra-";
const GROUP = "authentication.k8s.io";

/** Error of impersonation headers without a user; kube-apiserver answers 500. */
export class ImpersonationError extends Error {
  constructor(requested: string) {
    super(`requested [${requested}] without impersonating a user`);
    this.name = "ImpersonationError";
  }
}

/** Whether a request has impersonation headers. */
export function impersonates({ headers }: ServerRequest): boolean {
  for (const name in headers) {
    if (name.startsWith("impersonate-")) return true;
  }
  return false;
}

/**
 * User that the headers of a request impersonate.
 *
 * @param user User of the credentials.
 * @param authorizer Authorizer, which must allow each part.
 * @throws {StatusError} 403 if the user has no right to do so.
 * @throws {ImpersonationError} If the headers name no user.
 */
export function impersonated(
  { headers }: ServerRequest,
  user: User,
  authorizer: RoleAuthorizer,
): User {
  const name = headers["impersonate-user"] ?? "";
  const groups = valuesOf(headers["impersonate-group"]);
  const uid = headers["impersonate-uid"] ?? "";
  const extra = Object.entries(headers)
    .filter(([header]) => header.startsWith(EXTRA))
    .map(([header, text]) =>
      [unescaped(header.slice(EXTRA.length)), valuesOf(text)] as const
    );
  const account = serviceAccountOf(name);
  const parts: Partial<Attributes>[] = [
    ...groups.map((group) => ({ resource: "groups", name: group })),
    ...extra.flatMap(([key, values]) =>
      values.map((value) => ({
        group: GROUP,
        resource: "userextras",
        subresource: key,
        name: value,
      }))
    ),
    ...uid === "" ? [] : [{ group: GROUP, resource: "uids", name: uid }],
  ];
  if (name === "") {
    if (parts.length === 0) return user;
    throw new ImpersonationError(parts.map(reference).join(" "));
  }
  parts.unshift(
    account === undefined
      ? { resource: "users", name }
      : { resource: "serviceaccounts", ...account },
  );
  for (const part of parts) {
    const attributes = accessAttributes({ verb: "impersonate", ...part });
    authorizer.check(user, attributes);
  }
  return completed({
    name,
    groups: account && groups.length === 0
      ? accountGroups(account.namespace)
      : groups,
    ...uid !== "" && { uid },
    ...extra.length > 0 && { extra: Object.fromEntries(extra) },
  });
}

/** Values of a header; repeated headers are joined by commas. */
function valuesOf(header = ""): readonly string[] {
  return header === "" ? [] : header.split(", ");
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  groups: "Group",
  userextras: "UserExtra",
  uids: "UID",
};

/** Text of an ObjectReference as Go prints it. */
function reference(
  { resource = "", name, subresource = "" }: Partial<Attributes>,
) {
  const version = resource === "groups" ? "" : `${GROUP}/v1`;
  return `{${KINDS[resource]}  ${name}  ${version}  ${subresource}}`;
}
