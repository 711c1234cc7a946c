/**
 * The command line: an operator run against the embedded API server, the API
 * server alone, and the manifests of an operator.
 *
 * ```sh
 * npx coracle help                                # after npm install
 * deno run -A jsr:@coracle/operator/cli help      # without an install
 * ```
 *
 * @module
 */

import process from "node:process";
import { runCli } from "./main.ts";

export type {
  Command,
  CommandInput,
  Flag,
  FlagValues,
  Terminal,
} from "./command.ts";
export { UsageError } from "./command.ts";
export { runCli, type RunCliOptions } from "./main.ts";

if (import.meta.main) {
  const code = await runCli(process.argv.slice(2));
  process.stdout.write("", () => process.exit(code));
}
