/** User of a request. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** User of a request without credentials. */
export const ANONYMOUS: User = Object.freeze({
  name: "system:anonymous",
  groups: Object.freeze(["system:unauthenticated"]),
});

/** User with all rights: the holder of the server's token. */
export const ADMINISTRATOR: User = Object.freeze({
  name: "kubernetes-admin",
  groups: Object.freeze(["system:masters", "system:authenticated"]),
});

/** Token of an `Authorization` header; undefined if the header holds no token. */
export function bearerToken(authorization: string): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
}
