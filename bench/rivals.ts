/**
 * Builds or installs the rivals of the benchmarks, and says which toolchains are
 * missing. `run.ts` does the same for the rivals that it needs.
 *
 * @module
 */
import process from "node:process";
import { commandLine } from "../tests/support/command_line.ts";
import { buildRivals, TOOLCHAINS } from "./support/built_rivals.ts";
import { installRivals } from "./support/rival.ts";

commandLine("install rivals", {});
await installRivals();
process.stdout.write("npm: installed\n");
for (const toolchain of TOOLCHAINS) {
  const missing = await buildRivals(toolchain);
  process.stdout.write(
    `${toolchain}: ${
      missing === undefined ? "built" : `missing: ${missing}`
    }\n`,
  );
}
