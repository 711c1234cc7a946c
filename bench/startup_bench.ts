import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PROJECT, runCommand } from "../tests/support/child_process.ts";
import {
  type Bench,
  type Measure,
  type Prepared,
  verify,
} from "./support/bench.ts";
import { currentRuntime } from "./support/runtime.ts";

const PROBE = fileURLToPath(
  new URL("./support/import_probe.js", import.meta.url),
);

/** Measures the import of a module in a fresh process. */
async function measure(
  specifier: string,
  leastNames: number,
): Promise<readonly Measure[]> {
  const { program, command } = currentRuntime();
  const module = import.meta.resolve(specifier);
  const { stdout } = await promisify(execFile)(
    program,
    [...command, PROBE, module],
  );
  const { names, measures } = JSON.parse(stdout);
  verify(names >= leastNames, `${specifier} must export its names: ${names}`);
  return measures;
}

/** Builds the package, since users load built files. */
async function build(
  checkouts: readonly string[] = [PROJECT],
): Promise<Prepared> {
  for (const cwd of checkouts) {
    const { code, stderr } = await runCommand(["npm", "run", "-s", "build"], {
      cwd,
      limit: 5 * 60_000,
    });
    if (code !== 0) throw new Error(`Cannot build: received ${stderr}`);
  }
  return { env: {}, stop: () => Promise.resolve() };
}

export const bench: Bench = {
  name: "startup",
  what: "import of the built main entry point",
  rounds: 9,
  prepare: build,
  subjects: [
    { name: "coracle", run: () => measure("../dist/mod.js", 40) },
    {
      name: "client-node",
      rival: true,
      run: () => measure("@kubernetes/client-node", 100),
    },
    { name: "nothing", rival: true, run: () => measure("node:process", 10) },
  ],
};
