/**
 * Runs everything that must hold before a change is kept, one step after the
 * other, and ends with one line that counts over all of them.
 *
 * A few tests that fail are run once more, alone: those that pass then depend on
 * how busy the machine is. They are told as flaky, with what went wrong, and do
 * not count as failed.
 *
 * `npm test` runs all steps but those on demand; `npm test -- node bun` only
 * those two; `npm test -- all cluster` all and one more; and
 * `npm test -- node tests/core/queue` one folder of one step.
 *
 * @module
 */

import { globSync, readFileSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import process from "node:process";
import { startControlPlane } from "./cluster/control_plane.ts";
import { killAll, PROJECT, runCommand } from "./support/child_process.ts";
import type { FailedTest, TestReport } from "./support/junit_report.ts";
import { readJunitReport } from "./support/junit_report.ts";

type Runtime = "node" | "deno" | "bun";

/** One thing to run. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** Which test files the command gets; without, it counts as one test. */
  readonly files?: (() => readonly string[]) | undefined;
  /** Who writes the report about them. */
  readonly report?: Runtime | undefined;
  /** Runs against a real control plane, and only when it is named. */
  readonly cluster?: boolean | undefined;
  /** Milliseconds after which it is killed and has failed. */
  readonly limit: number;
}

const MINUTE = 60_000;
/** What makes many short processes start sooner, and not too many at once. */
const QUICKLY: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(PROJECT, ".cache/node"),
  DENO_JOBS: "2",
};
/** When more tests than these fail, it is not because the machine is busy. */
const MOST_FLAKY = 5;
const ENTRY_POINTS: readonly string[] = [
  "mod.ts",
  "core/mod.ts",
  "sources/mod.ts",
  "workflows/mod.ts",
  "core/kinds/mod.ts",
  "core/crd/mod.ts",
  "apiserver/mod.ts",
  "testing/mod.ts",
  "cli/mod.ts",
];

const TESTS = "{tests,examples}/**/*_test.ts";
const SHIPPED =
  "{mod.ts,{core,sources,workflows,apiserver,testing,cli}/**/*.ts}";
const PACKAGE = "tests/package/**/*_test.ts";
/** What holds against a real control plane, too. */
const ON_CLUSTER =
  "tests/{scenarios,transcripts,core/cache,cluster}/**/*_test.ts";

const STEPS: readonly Step[] = [
  check("format", ["deno", "fmt", "--check"]),
  check("lint", ["deno", "lint"]),
  check("types-tsc", ["npm", "run", "-s", "check:tsc"]),
  check("types-deno", ["deno", "check", "--quiet", "--doc", "."]),
  check("docs", ["deno", "doc", "--lint", ...ENTRY_POINTS]),
  check("build", ["npm", "run", "-s", "build"]),
  tests("node", everywhere),
  tests("deno", everywhere),
  tests("bun", everywhere),
  {
    ...tests("deno", () => files(SHIPPED)),
    name: "examples",
    command: ["deno", "test", "-A", "--doc", "--no-check"],
  },
  { ...tests("node", () => files(PACKAGE)), name: "package" },
  {
    ...tests("node", () => files(ON_CLUSTER).filter(knowsTheSwitch)),
    name: "cluster",
    limit: 25 * MINUTE,
    cluster: true,
  },
];

function check(name: string, command: readonly string[]): Step {
  return { name, command, limit: 3 * MINUTE };
}

function tests(runtime: Runtime, files: () => readonly string[]): Step {
  const command = {
    // Most of them wait for something now and then: more than one at a time. A
    // file that never ends must not take the others along.
    node: [
      "node",
      "--test",
      "--test-reporter=junit",
      "--test-concurrency=3",
      `--test-timeout=${5 * MINUTE}`,
    ],
    deno: ["deno", "test", "-A", "--no-check", "--parallel"],
    bun: ["bun", "test", "--timeout=60000"],
  }[runtime];
  return { name: runtime, command, files, report: runtime, limit: 12 * MINUTE };
}

/** Whether a test file runs against the real control plane it is given. */
function knowsTheSwitch(file: string): boolean {
  const text = readFileSync(file, "utf8");
  return /ON_REAL_CLUSTER|ScenarioCluster|kubectlTest|[tT]estCluster|scenario\(/
    .test(text);
}

function files(pattern: string): readonly string[] {
  return globSync(pattern).map((file) => file.replaceAll("\\", "/")).toSorted();
}

/** The tests of every runtime; those of the package need to run only once. */
function everywhere(): readonly string[] {
  const once = new Set([
    ...files(PACKAGE),
    ...files("tests/cluster/**/*_test.ts"),
  ]);
  return files(TESTS).filter((file) => !once.has(file));
}

/** The files of a step, or those of them that lie below one of some paths. */
function chosenFiles(step: Step, only: readonly string[]): readonly string[] {
  return step.files?.().filter((file) =>
    only.length === 0 ||
    only.some((path) => file === path || file.startsWith(`${path}/`))
  ) ?? [];
}

/** Runs a step, against a real control plane where it asks for one. */
async function runStep(
  step: Step,
  only: readonly string[],
): Promise<TestReport> {
  if (!step.cluster) return await runTwice(step, only);
  const plane = await startControlPlane();
  if (plane === undefined) {
    const why = "no KUBECONFIG, no KUBEBUILDER_ASSETS, no Go toolchain";
    return {
      passed: 0,
      failed: [],
      skipped: [`a real control plane (${why})`],
    };
  }
  print(`${step.name.padEnd(10)} against ${plane.origin}`);
  try {
    return await runTwice(step, only, {
      CORACLE_TEST_CLUSTER: "kubeconfig",
      KUBECONFIG: plane.kubeconfig,
    });
  } finally {
    await plane.stop();
  }
}

/** Runs a step, and what has failed in it once more. */
async function runTwice(
  step: Step,
  only: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<TestReport> {
  const first = await runCommandOf(step, only, { env });
  const { failed, passed } = first;
  const titles = failed.map((test) => test.name);
  if (
    step.report === undefined || failed.length === 0 ||
    failed.length > MOST_FLAKY || titles.includes(step.name)
  ) return first;
  const { passedNames } = await runCommandOf(step, only, { env, titles });
  const flaky = failed.filter(({ name }) => passedNames?.has(name));
  for (const { name, file, message } of flaky) {
    print(`  flaky: ${name}${fileText(file)}: failed, and passed alone`);
    print(message.replaceAll(/^/gm, "    "));
  }
  return {
    ...first,
    passed: passed + flaky.length,
    failed: failed.filter((test) => !flaky.includes(test)),
  };
}

async function runCommandOf(
  step: Step,
  only: readonly string[],
  { env, titles = [] }: {
    readonly env: Readonly<Record<string, string>>;
    /** Runs the tests of these names alone. */
    readonly titles?: readonly string[];
  },
): Promise<TestReport> {
  // Of this run alone: another one beside it has a report of its own.
  const report = `.cache/test/${step.name}.${process.pid}.xml`;
  await rm(report, { force: true });
  const command = [...step.command];
  if (step.report !== undefined) {
    const chosen = chosenFiles(step, only);
    if (chosen.length === 0) return { passed: 0, failed: [], skipped: [] };
    command.push(...reportFlags(step.report, report));
    if (titles.length > 0) command.push(titleFlag(step.report, titles));
    command.push(...chosen.map((file) => `./${file}`));
  }
  const { limit } = step;
  const { code, stdout, stderr } = await runCommand(command, {
    limit,
    env: { ...QUICKLY, ...env },
  });
  const output = stdout + stderr;
  await writeFile(`.cache/test/${step.name}.log`, output);
  if (step.report === undefined) {
    return code === 0
      ? { passed: 1, failed: [], skipped: [] }
      : { passed: 0, failed: [wholeStep(step, code, output)], skipped: [] };
  }
  const xml = await readFile(report, "utf8").catch(() => "");
  await rm(report, { force: true });
  const result = readJunitReport(xml);
  const { passed, failed, skipped } = result;
  if (code === 0 && passed + failed.length + skipped.length === 0) {
    return { ...result, failed: [wholeStep(step, code, output)] };
  }
  // A file that does not load, or a crash, is in the exit code only.
  return code === 0 || result.failed.length > 0
    ? result
    : { ...result, failed: [wholeStep(step, code, output)] };
}

function reportFlags(
  runtime: Runtime,
  file: string,
): readonly string[] {
  switch (runtime) {
    case "node":
      return [`--test-reporter-destination=${file}`];
    case "deno":
      return [`--junit-path=${file}`];
    case "bun":
      return ["--reporter=junit", `--reporter-outfile=${file}`];
  }
}

/** Makes a runtime run the tests of these names alone. */
function titleFlag(runtime: Runtime, titles: readonly string[]): string {
  const escaped = titles.map((title) =>
    title.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")
  );
  const pattern = `^(?:${escaped.join("|")})$`;
  return runtime === "deno"
    ? `--filter=/${pattern}/`
    : `--test-name-pattern=${pattern}`;
}

/** The end of what a step wrote, for one that failed as a whole. */
function wholeStep(step: Step, code: number, output: string): FailedTest {
  const lines = output.trimEnd().split("\n");
  const kept = lines.slice(-60).join("\n");
  const why = code === 0
    ? "It told of no test, though it had files to run."
    : code === 124
    ? `It took longer than ${step.limit / 1000} s and was ended.`
    : `It ended with exit code ${code}.`;
  return { name: step.name, file: "", message: `${why}\n${kept}` };
}

function print(line: string): void {
  // Takes the place of what a person is told meanwhile.
  const start = process.stdout.isTTY ? "\r\x1b[K" : "";
  process.stdout.write(`${start}${line}\n`);
}

/** Tells a person at a terminal what is under way: some of it takes minutes. */
function printBegin(step: Step): void {
  if (process.stdout.isTTY) process.stdout.write(`${step.name.padEnd(10)} …`);
}

/** Where a test is, behind its name. */
function fileText(file: string): string {
  const path = relative(PROJECT, file.replace(/^file:\/\//, ""));
  return file === "" ? "" : `  (${path})`;
}

function printReport(step: Step, report: TestReport, seconds: number): void {
  const { passed, failed, skipped } = report;
  print(
    `${step.name.padEnd(10)} ${passed} passed, ${failed.length} failed, ` +
      `${skipped.length} skipped  (${seconds.toFixed(1)} s)`,
  );
  for (const name of skipped) print(`  skipped: ${name}`);
  for (const test of failed) {
    print(`  FAILED: ${test.name}${fileText(test.file)}`);
    print(test.message.replaceAll(/^/gm, "    "));
  }
}

async function main(args: readonly string[]): Promise<number> {
  process.chdir(PROJECT);
  const defaults = STEPS.filter((step) => !step.cluster).map((s) => s.name);
  const only = args.filter((arg) => /[/.]/.test(arg)).map((path) =>
    path.replace(/\/+$/, "")
  );
  const names = args.filter((arg) => !/[/.]/.test(arg))
    .flatMap((arg) => arg === "all" ? defaults : [arg]);
  const unknown = names.filter((name) => !STEPS.some((s) => s.name === name));
  if (unknown.length > 0) {
    const known = STEPS.map((step) => step.name).join(", ");
    print(
      `Cannot run tests: a step is one of ${known}: received ${
        unknown.join(", ")
      }`,
    );
    return 2;
  }
  const chosen = names.length > 0 ? names : defaults;
  const steps = STEPS.filter((step) => chosen.includes(step.name));
  const stray = only.filter((path) =>
    !steps.some((step) => chosenFiles(step, [path]).length > 0)
  );
  if (stray.length > 0) {
    print(
      `Cannot run tests: none of the steps ${
        chosen.join(", ")
      } has tests there: received ${stray.join(", ")}`,
    );
    return 2;
  }
  await mkdir(".cache/test", { recursive: true });
  let passed = 0;
  let failed = 0;
  let skipped = 0;
  for (const step of steps) {
    const start = performance.now();
    printBegin(step);
    const report = await runStep(step, only);
    printReport(step, report, (performance.now() - start) / 1000);
    passed += report.passed;
    failed += report.failed.length;
    skipped += report.skipped.length;
  }
  print(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(130);
  });
}
process.exitCode = await main(process.argv.slice(2));
