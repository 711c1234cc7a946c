/**
 * Command line of Coracle: runs an operator against the embedded API server,
 * serves the API server alone, and prints CRDs, manifests and the last runs of
 * an object.
 *
 * No other folder imports this one. Each command is a file `*_command.ts` that is
 * listed in `commands.ts`.
 *
 * ```sh
 * npx coracle help                                # after npm install
 * deno run -A jsr:@coracle/dev/cli help           # without an install
 * ```
 *
 * @module
 */

import process from "node:process";
import { runCli } from "./main.ts";

export type { Terminal } from "./command.ts";
export { runCli } from "./main.ts";

// Without a top-level await, which would keep CommonJS from requiring it.
if (import.meta.main) {
  void runCli(process.argv.slice(2)).then((code) =>
    process.stdout.end(() => process.exit(code))
  );
}
