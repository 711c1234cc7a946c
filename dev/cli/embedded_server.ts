import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createAuthority, type KeyPair } from "@coracle/operator/internal";
import type { ApiServer } from "../apiserver/server.ts";
import type { ApiServerOptions } from "../apiserver/server_options.ts";
import { requireFile, writeSecretFile } from "./serving.ts";
import { readFileSync } from "node:fs";

/** Flag `--data`, of the commands that start a server. */
export const DATA_FLAG = {
  "data FILE":
    "file that keeps the objects and the server's identity over restarts",
} as const;

/**
 * Starts an API server with the keys and certificates that belong to its data.
 */
export async function startServer(
  options: ApiServerOptions & { readonly port: number },
): Promise<ApiServer> {
  const { ApiServer } = await import("../apiserver/server.ts");
  if (options.data !== undefined) await requireFile(options.data);
  const identity = await serverIdentity(options.data);
  return await serveOn(
    options.port,
    () => ApiServer.start({ ...identity, ...options }),
  );
}

/** Token and certificate authority that clients of a server use. */
export interface ServerIdentity {
  readonly token: string;
  readonly authority: KeyPair;
}

/**
 * Identity that belongs to a data file: created once and stored beside it, so
 * that the same kubeconfig works after a restart with the same data.
 *
 * @param data The data file; without it the result is undefined.
 * @throws {Error} If the identity file exists but is not valid.
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
        `Cannot read ${file}: it must be a readable file: ${error.message}`,
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
    // Reported below, without the contents of the file.
  }
  const { token, authority } = found ?? {};
  const texts = [token, authority?.certificate, authority?.key];
  if (texts.every((part) => typeof part === "string")) {
    return found as ServerIdentity;
  }
  throw new Error(
    `Cannot read ${file}: it must hold the token and authority of a server; delete it to create new ones: received ${text.length} characters of other content`,
  );
}

/** Starts a server, with a clear error for a port that cannot be used. */
export async function serveOn<T>(
  port: number,
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start();
  } catch (error) {
    const why = ({
      EADDRINUSE: "another process listens there",
      EACCES: "listening there requires root",
    } as Record<string, string>)[codeOf(error)];
    if (why === undefined) throw error;
    throw new Error(
      `Cannot serve on port ${port}: ${why}; --port 0 selects any free port`,
      { cause: error },
    );
  }
}

/** Code of a system error, which may be the cause of another error. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return "";
}

/**
 * Reads a file of tokens and users, in CSV.
 *
 * @throws {Error} If a line has fewer than three columns.
 */
export function readUsers(
  file: string,
): NonNullable<ApiServerOptions["users"]> {
  const lines = readFileSync(file, "utf8").split("\n")
    .map((line) => line.trim());
  return lines.flatMap((line, index) => {
    if (line === "" || line.startsWith("#")) return [];
    const cells = [...line.matchAll(/(?:^|,) *(?:"((?:[^"]|"")*)"|([^,]*))/g)]
      .map(([, quoted, plain]) =>
        quoted?.replaceAll('""', '"') ?? plain?.trim() ?? ""
      );
    const [token, name, uid, groups = ""] = cells;
    if (token && name && uid !== undefined) {
      const names = groups.split(",").filter((group) => group !== "");
      return [{ token, name, uid: uid || undefined, groups: names }];
    }
    throw new Error(
      `Cannot read ${file}: line ${
        index + 1
      } must have a token, a user name and a UID`,
    );
  });
}
