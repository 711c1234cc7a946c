import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createAuthority, type KeyPair } from "../apiserver/certificates.ts";
import { writeSecretFile } from "./serving.ts";

/** What clients know a server by. */
export interface ServerIdentity {
  readonly token: string;
  readonly authority: KeyPair;
}

/**
 * The identity that belongs to a data file: made once and kept beside it, so
 * that a server that was ended, or killed, and starts again with the same data
 * takes the same kubeconfig.
 *
 * @param data The data file; without one nothing is kept.
 * @throws {Error} If the file beside it is there but is no identity.
 */
export async function serverIdentity(
  data: string | undefined,
): Promise<ServerIdentity | undefined> {
  if (data === undefined) return undefined;
  const file = `${data}.identity`;
  const text = await readFile(file, "utf8").catch(
    (error: Error & { readonly code?: string }) => {
      if (error.code === "ENOENT") return undefined;
      throw new Error(
        `Cannot read ${file}: it must be a file that this process may read: received ${error.message}`,
        { cause: error },
      );
    },
  );
  if (text !== undefined) return readIdentity(file, text);
  const identity = {
    token: randomBytes(24).toString("hex"),
    authority: createAuthority({ commonName: "coracle" }),
  };
  await writeSecretFile(file, `${JSON.stringify(identity)}\n`);
  return identity;
}

function readIdentity(file: string, text: string): ServerIdentity {
  let found: Partial<ServerIdentity> | undefined;
  try {
    found = JSON.parse(text);
  } catch {
    // Said below, without what is in the file.
  }
  const { token, authority } = found ?? {};
  const texts = [token, authority?.certificate, authority?.key];
  if (texts.every((part) => typeof part === "string")) {
    return found as ServerIdentity;
  }
  throw new Error(
    `Cannot read ${file}: it must hold the token and authority of a server: delete it to make new ones: received ${text.length} characters of something else`,
  );
}
