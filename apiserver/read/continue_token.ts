import { Buffer } from "node:buffer";
import { badRequest } from "../status.ts";

/** Where a page ended: the next one starts after a key, at a revision. */
export interface ContinueToken {
  /** The revision of the first page; -1 to go on with the present state. */
  readonly revision: number;
  /** The first key that may be on the next page. */
  readonly start: string;
}

/** A token as kube-apiserver writes it. */
export function encodeContinue({ revision, start }: ContinueToken): string {
  return Buffer.from(
    JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start }),
  ).toString("base64url");
}

/**
 * Reads a token.
 *
 * @param text The `continue` parameter.
 * @throws {StatusError} 400 if it is not one of ours.
 */
export function decodeContinue(text: string): ContinueToken {
  let token: unknown;
  try {
    token = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch (error) {
    throw badRequest(
      `invalid continue token: continue key is not valid: ${
        (error as Error).message
      }`,
    );
  }
  const { v, rv, start } = (token ?? {}) as Record<string, unknown>;
  if (v !== "meta.k8s.io/v1") {
    throw badRequest(
      `invalid continue token: continue key is not valid: server does not recognize this encoded version ${
        JSON.stringify(v)
      }`,
    );
  }
  if (typeof rv !== "number" || rv === 0 || typeof start !== "string") {
    throw badRequest(
      "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
    );
  }
  return { revision: rv, start };
}
