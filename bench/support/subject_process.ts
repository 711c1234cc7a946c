import { readdirSync } from "node:fs";
import process from "node:process";
import { join } from "node:path";
import { PROJECT, runCommand } from "../../tests/support/child_process.ts";
import type { Measure, Prepared } from "./bench.ts";
import { currentRuntime } from "./runtime.ts";

const SUBJECT_LIMIT_MS = 10 * 60_000;

/** Subject and the environment in which it runs. */
export interface SubjectProcess {
  readonly bench: string;
  readonly subject: string;
  /** Shared resources of its bench, if any. */
  readonly prepared: Prepared | undefined;
  /** Folder of a checkout. Defaults to that of this file. */
  readonly checkout?: string | undefined;
  /** Command of the runtime. Defaults to the program of this process. */
  readonly command?: readonly string[] | undefined;
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
  const { bench, subject, prepared, checkout = PROJECT, command } = options;
  const args = [bench, subject];
  const stdout = await runFile(checkout, args, prepared?.env, command);
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
}

/** Runs `run_subject.ts`; returns its output. */
async function runFile(
  checkout: string,
  args: readonly string[],
  env: Prepared["env"] = {},
  command: readonly string[] = [currentRuntime().program],
): Promise<string> {
  const { flags } = currentRuntime();
  const file = join(checkout, "bench", "support", "run_subject.ts");
  const { NODE_OPTIONS, BUN_OPTIONS } = process.env;
  const { code, stdout, stderr } = await runCommand(
    [...command, ...flags, file, ...args],
    {
      cwd: checkout,
      limit: SUBJECT_LIMIT_MS,
      env: {
        NODE_OPTIONS,
        BUN_OPTIONS,
        NODE_COMPILE_CACHE: join(checkout, ".cache", "node"),
        ...env,
      },
    },
  );
  if (code === 124) {
    throw new Error(
      `Cannot measure ${args.join(" ")}: it ran longer than ${
        SUBJECT_LIMIT_MS / 60_000
      } minutes: ${stderr}`,
    );
  }
  if (code !== 0) {
    throw new Error(
      `Cannot measure ${args.join(" ")}: it ended with code ${code}: ${stderr}`,
    );
  }
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
