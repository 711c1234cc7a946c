import { readFileSync } from "node:fs";
import type { ApiServerOptions } from "../apiserver/server_options.ts";

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
