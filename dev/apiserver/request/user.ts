/** User of a request. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string | undefined;
  /** Further data about the user, such as the Pod of a token. */
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

const AUTHENTICATED = "system:authenticated";
const UNAUTHENTICATED = "system:unauthenticated";

/** User of a request without credentials. */
export const ANONYMOUS: User = Object.freeze({
  name: "system:anonymous",
  groups: Object.freeze([UNAUTHENTICATED]),
});

/** User with all rights: the holder of the server's token. */
export const ADMINISTRATOR: User = Object.freeze({
  name: "kubernetes-admin",
  groups: Object.freeze(["system:masters", AUTHENTICATED]),
});

/** Whether a user has all rights, regardless of roles. */
export function isPrivileged({ groups }: User): boolean {
  return groups.includes("system:masters");
}

/** User with the group `system:authenticated`, or `system:unauthenticated` if anonymous. */
export function completed(user: User): User {
  const { name, groups } = user;
  const group = name === ANONYMOUS.name ? UNAUTHENTICATED : AUTHENTICATED;
  return groups.includes(group) || groups.includes(UNAUTHENTICATED)
    ? user
    : { ...user, groups: [...groups, group] };
}

const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/** Namespace and name of a user's service account; undefined for other users. */
export function serviceAccountOf(
  user: string,
): { readonly namespace: string; readonly name: string } | undefined {
  const [, namespace, name] = ACCOUNT.exec(user) ?? [];
  if (namespace === undefined || name === undefined) return undefined;
  return { namespace, name };
}

/** User name of a service account. */
export function accountUser(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/** Groups of the service accounts of a namespace. */
export function accountGroups(namespace: string): readonly string[] {
  return ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
}

/** User in the form of the status of reviews. */
export function userInfo(
  { name, groups, uid, extra }: User,
): Record<string, unknown> {
  return {
    username: name,
    ...uid && { uid },
    groups: [...groups],
    ...extra && Object.keys(extra).length > 0 && { extra },
  };
}

/** Token of an `Authorization` header; undefined if the header holds no token. */
export function bearerToken(authorization: string): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}
