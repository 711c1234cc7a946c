/** Who makes a request. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** Whoever makes a request without credentials. */
export const ANONYMOUS: User = Object.freeze({
  name: "system:anonymous",
  groups: Object.freeze(["system:unauthenticated"]),
});

/** May do everything; the holder of the server's token. */
export const ADMINISTRATOR: User = Object.freeze({
  name: "kubernetes-admin",
  groups: Object.freeze(["system:masters", "system:authenticated"]),
});
