import { Buffer } from "node:buffer";
import { badRequest } from "../status.ts";

/** Continue token: position of the next page and revision of the list. */
export interface ContinueToken {
  /** Revision of the first page; -1 continues with the current state. */
  readonly revision: number;
  /** First key of the next page. */
  readonly start: string;
  /** Time of the first page, in seconds since the Unix epoch. */
  readonly time?: number | undefined;
}

/** Encodes a token in kube-apiserver's format. */
export function encodeContinue(
  { revision, start, time }: ContinueToken,
): string {
  return Buffer.from(
    JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start, t: time }),
  ).toString("base64url");
}

/**
 * Decodes a token.
 *
 * @param text The `continue` parameter.
 * @throws {StatusError} 400 if the token is invalid.
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
  const { v, rv, start, t } = (token ?? {}) as Record<string, unknown>;
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
  const time = typeof t === "number" ? t : undefined;
  return { revision: rv, start, time };
}
