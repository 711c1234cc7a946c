import { cpus } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** Current runtime, and how it runs another file. */
export interface Runtime {
  /** Name, such as `node 24.21.0`. */
  readonly name: string;
  /** Path of the executable. */
  readonly program: string;
  /** Arguments before a file. */
  readonly command: readonly string[];
  /** Arguments before a file that expose garbage collection. */
  readonly flags: readonly string[];
}

/** Condition by which the names of both packages lead to their sources. */
const SOURCE = "--conditions=@coracle/source";

/** Configuration that has those names; Deno would take bench/package.json. */
const CONFIG = `--config=${
  fileURLToPath(new URL("../../deno.json", import.meta.url))
}`;

/** Current runtime. */
export function currentRuntime(): Runtime {
  const { versions, execPath } = process;
  if (versions["deno"] !== undefined) {
    return {
      name: `deno ${versions["deno"]}`,
      program: execPath,
      command: ["run", "-A", CONFIG],
      flags: ["run", "-A", "--no-check", "--v8-flags=--expose-gc", CONFIG],
    };
  }
  if (versions["bun"] !== undefined) {
    return {
      name: `bun ${versions["bun"]}`,
      program: execPath,
      command: ["run", SOURCE],
      flags: ["run", SOURCE],
    };
  }
  return {
    name: `node ${versions.node}`,
    program: execPath,
    command: [SOURCE],
    flags: ["--expose-gc", SOURCE],
  };
}

/** Machine, such as `2 cores, AMD EPYC 7B13`. */
export function machine(): string {
  const cores = cpus();
  return `${cores.length} cores, ${cores[0]?.model.trim() ?? "unknown"}`;
}
