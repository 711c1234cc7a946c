import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import process from "node:process";
import { join } from "node:path";
import { promisify } from "node:util";
import { PROJECT } from "../../tests/support/child_process.ts";
import type { Measure, Prepared } from "./bench.ts";
import { currentRuntime } from "./runtime.ts";

const SUBJECT_TIMEOUT_MS = 10 * 60_000;
const OUTPUT_BYTES = 16 * 1024 * 1024;

/** Subject and the environment in which it runs. */
export interface SubjectProcess {
  readonly bench: string;
  readonly subject: string;
  /** Shared resources of its bench, if any. */
  readonly prepared: Prepared | undefined;
  /** Folder of a checkout. Defaults to that of this file. */
  readonly checkout?: string | undefined;
}

/**
 * Fills Node's compile cache for a bench; otherwise the first process would
 * have the type stripper in memory, and later ones and installed packages would
 * not.
 */
export async function compileSubjects(bench: string): Promise<void> {
  await runFile(PROJECT, [bench], {});
}

/**
 * Runs one subject in a fresh process.
 *
 * @throws {Error} If it fails; the message has its output.
 */
export async function runSubject(
  options: SubjectProcess,
): Promise<readonly Measure[]> {
  const { bench, subject, prepared, checkout = PROJECT } = options;
  const stdout = await runFile(checkout, [bench, subject], prepared?.env);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

/** Runs `run_subject.ts`; returns its output. */
async function runFile(
  checkout: string,
  args: readonly string[],
  env: Prepared["env"] = {},
): Promise<string> {
  const { program, flags } = currentRuntime();
  const file = join(checkout, "bench", "support", "run_subject.ts");
  const { stdout } = await promisify(execFile)(
    program,
    [...flags, file, ...args],
    {
      cwd: checkout,
      timeout: SUBJECT_TIMEOUT_MS,
      maxBuffer: OUTPUT_BYTES,
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(checkout, ".cache", "node"),
        ...env,
      },
    },
  );
  return stdout;
}

/**
 * Names of all benches, or the requested ones.
 *
 * @throws {RangeError} If a requested one does not exist.
 */
export function benchNames(only: readonly string[]): string[] {
  const all = readdirSync(join(PROJECT, "bench"))
    .filter((file) => file.endsWith("_bench.ts"))
    .map((file) => file.slice(0, -"_bench.ts".length).replaceAll("_", "-"))
    .sort();
  const unknown = only.find((name) => !all.includes(name));
  if (unknown !== undefined) {
    throw new RangeError(
      `Cannot run benchmarks: there are ${all.join(", ")}: received ${unknown}`,
    );
  }
  return only.length === 0 ? all : all.filter((name) => only.includes(name));
}
