/**
 * Runs everything that must hold before a change is kept, and ends with one line
 * that counts over all of it. Processes of all steps share a few places, which
 * the earlier step takes first, so that no processor is idle at the end of a
 * step. Those of the real control plane, which mostly wait, have their own.
 *
 * A test that fails once fails; one that does not end fails by the limit of its
 * runtime. A process that is stuck is killed, and its file and test are reported.
 *
 * `npm test` runs all steps but those on demand; `npm test -- node bun` only
 * those two; `npm test -- all cluster` all and one more; and
 * `npm test -- node tests/core/queue` one folder of one step. Deno and Bun run
 * the tests whose subject depends on a runtime, and property tests take a
 * quarter of their rounds; with `--matrix` or a named folder it is all of them.
 * `FC_SEED=N` gives all property tests their seed, which is random otherwise.
 *
 * Each step says its time and its seconds of processors. With `--profile` each
 * file has its own process, and the end lists files and folders by their seconds.
 *
 * @module
 */

import { globSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import process from "node:process";
import {
  buildControlPlane,
  type ControlPlane,
  startControlPlane,
} from "./cluster/control_plane.ts";
import { Leftovers } from "./cluster/leftovers.ts";
import { chromiumPath } from "./support/chromium.ts";
import { goTool } from "./support/go_tool.ts";
import type { CommandOptions, CommandResult } from "./support/child_process.ts";
import { killAll, PROJECT, runCommand } from "./support/child_process.ts";
import type { FailedTest, TestReport } from "./support/junit_report.ts";
import { readJunitReport } from "./support/junit_report.ts";
import { commandLine } from "./support/command_line.ts";
import { needsOwnProcess } from "./support/own_process.ts";
import { Places } from "./support/places.ts";
import { takeSeconds, timed } from "./support/processor_time.ts";

type Runtime = "node" | "deno" | "bun";

/** One check of the project. */
interface Step {
  readonly name: string;
  readonly command: readonly string[];
  /** Module that imports the files, which are its arguments. */
  readonly entry?: string | undefined;
  /** Files that the command is given; a step without is one check. */
  readonly files?: (() => readonly string[]) | undefined;
  /** Files that run when no folder is named, if these are not all. */
  readonly usual?: (() => readonly string[]) | undefined;
  /** Runtime whose report is read. */
  readonly report?: Runtime | undefined;
  /** Processes at a time. */
  readonly workers: number;
  /** Step whose results it uses, and which must have ended. */
  readonly uses?: string | undefined;
  /** Files per process. */
  readonly batch: number;
  /** Whether it runs only when it is named. */
  readonly onDemand?: boolean | undefined;
  /** Whether it needs a real control plane. */
  readonly cluster?: boolean | undefined;
  /** Whether it waits most of the time, so that the next steps run beside it. */
  readonly beside?: boolean | undefined;
  /** Whether it needs Chromium. */
  readonly browser?: boolean | undefined;
  /** Milliseconds after which a process is killed and has failed. */
  readonly limit: number;
  /** Milliseconds without output after which a process is stuck and is killed. */
  readonly silence?: number | undefined;
}

const MINUTE_MS = 60_000;
/** Milliseconds after which a single test has failed. */
const TEST_LIMIT_MS = 90_000;
/** Processes at a time: most tests wait for a part of their time. */
const PLACES = Math.min(availableParallelism(), 8) + 3;
/** Milliseconds without a test that starts or ends: the process is stuck. */
const SILENCE_MS = TEST_LIMIT_MS + 15_000;
/** The same on a real cluster, where some tests set a longer limit. */
const CLUSTER_SILENCE_MS = 260_000;
/**
 * Real control planes at a time. Each runs one test file at a time, so that no
 * test meets the objects of another: most wait, as until a namespace is gone.
 */
const CONTROL_PLANES = 4;
const {
  values: {
    kubernetes: KUBERNETES,
    matrix: MATRIX = false,
    profile: PROFILE = false,
  },
  positionals: ARGUMENTS,
} = commandLine(
  "run tests",
  {
    kubernetes: { type: "string" },
    matrix: { type: "boolean" },
    profile: { type: "boolean" },
  },
  "steps, folders",
);
/** Whether the arguments name a folder or a file. */
const IS_PART = ARGUMENTS.some((argument) => /[/.]/.test(argument));
/** Seed of all property tests of this run. */
const SEED = process.env["FC_SEED"] ?? String(Date.now() % 2 ** 31);
/** Environment of all tests: short processes start sooner with a cache. */
const ENVIRONMENT: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: join(PROJECT, ".cache/node"),
  TEST_LIMIT_MS: String(TEST_LIMIT_MS),
  FC_SEED: SEED,
  ...MATRIX ? { TEST_MATRIX: "1" } : {},
  FC_ROUNDS: process.env["FC_ROUNDS"] ?? (MATRIX || IS_PART ? "1" : "0.25"),
};
/** How Node runs test files in one process. */
const IN_ONE_PROCESS = [
  // Short-lived objects of many tests cost less than by the small default.
  "--min-semi-space-size=32",
  "--max-semi-space-size=64",
  "./tests/support/node_batch.ts",
];
/** How Node runs one file and finds the test of an error that nothing handles. */
const FOLLOWED = ["--import=./tests/support/started_tests.ts"];
/** Entry points whose every field has a doc; fields of built-in kinds need none. */
const ENTRY_POINTS: readonly string[] = [
  "mod.ts",
  "core/client/mod.ts",
  "core/mod.ts",
  "sources/mod.ts",
  "workflows/mod.ts",
  "core/crd/mod.ts",
  "dev/mod.ts",
  "dev/apiserver/mod.ts",
  "dev/cli/mod.ts",
];

const TESTS = "{tests,examples}/**/*_test.ts";
/**
 * Tests whose subject depends on a runtime: sockets, streams, processes, files,
 * cryptography, clocks, loaders and the processes of the command line; property
 * tests of scanner, store and queue; and the scenarios. Replicas that are frozen
 * and killed are those of the leader only: shards use the same leases. Of kubectl,
 * which is the same program on each, those that show how it reaches the server.
 */
const BY_RUNTIME: readonly string[] = [
  "tests/create/*_test.ts",
  "tests/scenarios/!(sharding_process)_test.ts",
  "tests/scenarios/webpage/**/*_test.ts",
  "tests/scenarios/kubectl/{discover,wait}_test.ts",
  "tests/cli/{apiserver_command,check_workers,changed_files,dev_command,dev_watch,embedded_server,main_process,main,newly_required,operator_module,serving,uncaught_errors,why_command}_test.ts",
  "tests/cli/{envtest,window}/**/*_test.ts",
  "tests/core/{clock,error_text,logger,node_http,pace,signals}_test.ts",
  "tests/core/admission/{certificates,file_certificates,webhook_listener}_test.ts",
  "tests/core/client/{authenticate_stream,client_server,cluster,decompression,host,hostile_answers}_test.ts",
  "tests/core/client/{pods,transport}/**/*_test.ts",
  "tests/core/config/**/*_test.ts",
  "tests/core/json/{event_scanner,json_cursor,line_splitter,list_scanner,structure_engine}_test.ts",
  "tests/core/cache/informer/informer_faults_test.ts",
  "tests/core/cache/snapshot/**/*_test.ts",
  "tests/core/cache/store/{memory_pressure,object_store_property,page_codec}_test.ts",
  "tests/core/cache/watch/response_reader_test.ts",
  "tests/core/queue/scheduling_queue_model_test.ts",
  "tests/core/controller/run/failed_import_test.ts",
  "tests/core/operator/{deno_permissions,heap_growth,operator_config,operator,probe_server,process_memory,shutdown,unawaited_requests}_test.ts",
  "tests/sources/{webhook,websocket}_source_test.ts",
  "tests/workflows/conditions/notifier_test.ts",
  "tests/apiserver/{http,faults}/**/*_test.ts",
  "tests/apiserver/{server,admission/webhooks}_test.ts",
  "tests/testing/{module_identity,open_fetches,test_cluster_kubeconfig,test_cluster,virtual_clock}_test.ts",
  "tests/testing/check/{fresh_modules,http,operator_source,replaced_modules,world_clock,world_globals,world_http,world}_test.ts",
];
const SHIPPED = "{mod.ts,{core,sources,workflows,dev}/**/*.ts}";
const PACKAGE = "tests/package/**/*_test.ts";
/** Tests with Helm and actionlint, which are built from their Go modules. */
const DEPLOY = "tests/deploy/**/*_test.ts";
/** From an empty folder to a deployed chart, as the site says. */
const WALK = "tests/walk/**/*_test.ts";
/** Tests in Chromium. */
const IN_BROWSER = "tests/browser/**/*_test.ts";
/** Tests that pass against a real control plane, too. */
const ON_CLUSTER =
  "tests/{scenarios,transcripts,core/cache,cluster,deploy}/**/*_test.ts";

const STEPS: readonly Step[] = [
  check("format", ["deno", "fmt", "--check"]),
  check("lint", ["deno", "lint"]),
  // What users import and the code of README and guides, as in a user's project
  // in Deno. The tests add only code that the other compiler has checked.
  check("types-deno", [
    "deno",
    "check",
    "--quiet",
    "--config=deno.docs.json",
    "--doc",
    ...MATRIX ? ["."] : ["mod.ts", "core", "sources", "workflows", "dev"],
    "README.md",
    ...files("docs/**/*.md"),
  ]),
  // It reads what the last run has found of files that have not changed.
  check("types-tsc", [
    ...["npm", "run", "-s", "check:tsc", "--"],
    ...["--incremental", "--tsBuildInfoFile", ".cache/types.tsbuildinfo"],
  ]),
  check("docs", ["deno", "doc", "--lint", ...ENTRY_POINTS]),
  check("build", ["npm", "run", "-s", "build"]),
  // Some of its tests run compilers, and set a longer limit: they begin early.
  {
    ...tests("node", () => files(PACKAGE)),
    name: "package",
    uses: "build",
    silence: undefined,
  },
  {
    ...tests("deno", () => files(SHIPPED)),
    name: "examples",
    entry: "./tests/support/doc_examples.ts",
    workers: 1,
    batch: Infinity,
    silence: undefined,
  },
  { ...tests("deno", everywhere), usual: byRuntime },
  { ...tests("bun", everywhere), usual: byRuntime },
  // A process loads the packages once, which takes more than most files. The last
  // processes are short, so that no processor is idle at the end.
  { ...tests("node", everywhere), batch: 64 },
  {
    ...tests("node", () => files(ON_CLUSTER).filter(canRunOnCluster)),
    name: "cluster",
    onDemand: true,
    cluster: true,
    beside: true,
    workers: CONTROL_PLANES,
    silence: CLUSTER_SILENCE_MS,
  },
  {
    ...tests("node", () => files(DEPLOY)),
    name: "deploy",
    uses: "build",
    onDemand: true,
    limit: 30 * MINUTE_MS,
    silence: undefined,
  },
  {
    ...tests("node", () => files(WALK)),
    name: "walk",
    uses: "build",
    workers: 1,
    onDemand: true,
    cluster: true,
    limit: 30 * MINUTE_MS,
    silence: undefined,
  },
  {
    ...tests("node", () => files(IN_BROWSER)),
    name: "browser",
    uses: "build",
    workers: 1,
    onDemand: true,
    browser: true,
  },
];

function check(name: string, command: readonly string[]): Step {
  return { name, command, workers: 1, batch: 1, limit: 6 * MINUTE_MS };
}

function tests(runtime: Runtime, files: () => readonly string[]): Step {
  const common = {
    name: runtime,
    files,
    report: runtime,
    limit: 6 * MINUTE_MS,
    silence: SILENCE_MS,
  };
  switch (runtime) {
    case "node":
      return {
        ...common,
        command: [
          "node",
          `--test-timeout=${TEST_LIMIT_MS}`,
          "--test-reporter=junit",
        ],
        workers: PLACES,
        batch: 1,
      };
    case "deno":
      return {
        ...common,
        command: ["deno", "test", "-A", "--no-check"],
        entry: "./tests/support/deno_batch.ts",
        workers: PLACES,
        batch: 64,
      };
    case "bun":
      return {
        ...common,
        command: ["bun", "test", `--timeout=${TEST_LIMIT_MS}`],
        workers: PLACES,
        batch: 64,
      };
  }
}

/** Whether a test file uses a real control plane when there is one. */
function canRunOnCluster(file: string): boolean {
  const text = readFileSync(file, "utf8");
  return /ON_REAL_CLUSTER|ScenarioCluster|kubectlTest|[tT]estCluster|scenario\(/
    .test(text);
}

function files(pattern: string): readonly string[] {
  return globSync(pattern).map((file) => file.replaceAll("\\", "/")).toSorted();
}

/** Tests of every runtime; those of the package run only on one. */
function everywhere(): readonly string[] {
  const once = new Set([
    ...files(PACKAGE),
    ...files(DEPLOY),
    ...files("tests/cluster/**/*_test.ts"),
    ...files(IN_BROWSER),
    ...files(WALK),
  ]);
  return files(TESTS).filter((file) => !once.has(file));
}

/** Tests of every runtime that run on each of them without being named. */
function byRuntime(): readonly string[] {
  if (MATRIX) return everywhere();
  const chosen = BY_RUNTIME.flatMap((pattern) => {
    const found = files(pattern);
    if (found.length > 0) return found;
    throw new Error(`Cannot run tests: no file matches: received ${pattern}`);
  });
  return [...new Set(chosen)];
}

/** Groups files into those that may share a process. */
function batchesOf(
  { batch, report, entry }: Step,
  files: readonly string[],
): (readonly string[])[] {
  const isAlone = (file: string) =>
    (report === "node" || entry !== undefined) && file.endsWith("_test.ts") &&
    needsOwnProcess(readFileSync(file, "utf8"));
  if (PROFILE) return files.map((file) => [file]);
  const shared = files.filter((file) => !isAlone(file));
  const batches: (readonly string[])[] = [];
  // Those that check operators have a process of their own.
  const isCheck = (file: string) => file.startsWith("tests/check/");
  for (const check of [true, false]) {
    const group = shared.filter((file) => isCheck(file) === check);
    for (let at = 0; at < group.length; at += batch) {
      batches.push(group.slice(at, at + batch));
    }
  }
  // Those that run whole operators take long: they begin early.
  const isShort = (files: readonly string[]) =>
    !files.some((file) =>
      /^(?:examples|tests\/(?:check|scenarios|testing))\//.test(file)
    );
  batches.sort((one, other) => Number(isShort(one)) - Number(isShort(other)));
  batches.push(...files.filter(isAlone).map((file) => [file]));
  return batches;
}

/** Files of a step: the usual ones, or those at or below the given paths. */
function chosenFiles(step: Step, only: readonly string[]): readonly string[] {
  if (only.length === 0) return (step.usual ?? step.files)?.() ?? [];
  return step.files?.().filter((file) =>
    only.some((path) => file === path || file.startsWith(`${path}/`))
  ) ?? [];
}

/** Does work of a step when there is a place for it. */
type Take = <T>(work: () => Promise<T>) => Promise<T>;

/** Runs a step, against a real control plane where it needs one. */
async function runStep(
  step: Step,
  only: readonly string[],
  { take, built }: {
    readonly take: Take;
    readonly built: Promise<unknown> | undefined;
  },
): Promise<TestReport> {
  if (step.browser && chromiumPath() === undefined) {
    const why = "no chromium in the path, no CHROMIUM in the environment";
    return { passed: 0, failed: [], skipped: [`a browser (${why})`] };
  }
  if (!step.cluster) return await runFiles(step, only, take);
  await built;
  const planes: ControlPlane[] = [];
  const places: Place[] = [];
  try {
    // The cluster of a user is only one, and others may work in it.
    const wanted = process.env["KUBECONFIG"] ? 1 : step.workers;
    for (let count = 0; count < wanted; count++) {
      const plane = await startControlPlane({ kubernetes: KUBERNETES });
      if (plane === undefined) {
        const why = "no KUBECONFIG, no KUBEBUILDER_ASSETS, no Go toolchain";
        return {
          passed: 0,
          failed: [],
          skipped: [`a real control plane (${why})`],
        };
      }
      planes.push(plane);
      print(`${step.name.padEnd(10)} against ${plane.origin}`);
    }
    for (const { kubeconfig, callers = "", pid } of planes) {
      const env = {
        CORACLE_TEST_CLUSTER: "kubeconfig",
        CORACLE_TEST_CALLERS: callers,
        KUBECONFIG: kubeconfig,
      };
      const leftovers = pid === undefined
        ? undefined
        : await Leftovers.of(kubeconfig);
      places.push({ env, leftovers });
    }
    return await runFiles(step, only, take, places);
  } finally {
    for (const { leftovers } of places) await leftovers?.close();
    for (const plane of planes) await plane.stop();
  }
}

/** Test files of one process. */
interface Batch {
  readonly files: readonly string[];
  /** Whether they have failed without a report of each test. */
  readonly isAgain?: boolean;
}

/** Where a step runs one process at a time. */
interface Place {
  readonly env: Readonly<Record<string, string>>;
  /** What files leave in the cluster, if only they make objects there. */
  readonly leftovers?: Leftovers | undefined;
}

/** Runs the files of a step in batches, one at a time in each place. */
async function runFiles(
  step: Step,
  only: readonly string[],
  take: Take,
  places: readonly Place[] = Array.from(
    { length: step.workers },
    () => ({ env: {} }),
  ),
): Promise<TestReport> {
  if (step.files === undefined) return await take(() => runCheck(step));
  const chosen = chosenFiles(step, only);
  const waiting: Batch[] = batchesOf(step, chosen).map((files) => ({ files }));
  const reports: TestReport[] = [];
  const log: string[] = [];
  await Promise.all(places.map(async ({ env, leftovers }, worker) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const batch = next;
      const ended = await take(() => runBatch(step, batch, { env, worker }));
      log.push(ended.output);
      reports.push(ended.report);
      if (leftovers) reports.push(await leftovers.reportOf(batch.files));
      // Each file that could not be reported runs alone. The batch has failed.
      waiting.unshift(...ended.again);
    }
  }));
  await writeFile(`.cache/test/${step.name}.log`, log.join(""));
  return {
    passed: reports.reduce((sum, { passed }) => sum + passed, 0),
    failed: reports.flatMap(({ failed }) => failed),
    skipped: reports.flatMap(({ skipped }) => skipped),
  };
}

/** Runs the command of a step that has no test files. */
async function runCheck(step: Step): Promise<TestReport> {
  const { limit, command } = step;
  const options = { limit, env: ENVIRONMENT };
  const result = await runCosted(step, "", command, options);
  const output = result.stdout + result.stderr;
  await writeFile(`.cache/test/${step.name}.log`, output);
  const why = whyFailed(result.code, step);
  return why === undefined
    ? { passed: 1, failed: [], skipped: [] }
    : { passed: 0, failed: [whole(step.name, why, output)], skipped: [] };
}

/** What a process of a step cost, by its only file or its first. */
interface Cost {
  readonly step: string;
  readonly file: string;
  readonly seconds: number;
  /** Seconds of processors, of all processes that it started and waited for. */
  readonly processors: number;
}

const costs: Cost[] = [];

/**
 * Runs a command to its end, and notes what it cost. What it leaves in the folder for
 * temporary files is removed, also if it was killed.
 */
async function runCosted(
  step: Step,
  file: string,
  command: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  const times = `.cache/test/${step.name}.${process.pid}.${costs.length}.times`;
  const folder = await mkdtemp(join(tmpdir(), "coracle-test-"));
  const env = { ...options.env, TMPDIR: folder, TEMP: folder, TMP: folder };
  const start = performance.now();
  const result = await runCommand(timed(command, times), { ...options, env })
    .finally(() =>
      rm(folder, { recursive: true, force: true, maxRetries: 10 })
    );
  const seconds = (performance.now() - start) / 1000;
  const processors = await takeSeconds(times);
  costs.push({ step: step.name, file, seconds, processors });
  return result;
}

/** Lists what files and folders cost, the most expensive first. */
function printCosts(): void {
  const list = (title: string, keyOf: (cost: Cost) => string) => {
    const sums = new Map<string, { processors: number; seconds: number }>();
    for (const cost of costs) {
      const sum = sums.get(keyOf(cost)) ?? { processors: 0, seconds: 0 };
      sum.processors += cost.processors;
      sum.seconds += cost.seconds;
      sums.set(keyOf(cost), sum);
    }
    print(`\nSeconds of processors, seconds, ${title}:`);
    const sorted = [...sums].toSorted(([, a], [, b]) =>
      b.processors - a.processors
    );
    for (const [key, { processors, seconds }] of sorted) {
      const numbers = [processors, seconds].map((value) =>
        value.toFixed(1).padStart(7)
      );
      print(`${numbers.join("")}  ${key}`);
    }
  };
  list("folder", ({ step, file }) => `${step} ${file && dirname(file)}`);
  list("file", ({ step, file }) => `${step} ${file}`);
}

/** Result of one process that ran test files. */
interface EndedBatch {
  readonly report: TestReport;
  /** Files to run one by one, since the report does not have all their tests. */
  readonly again: readonly Batch[];
  readonly output: string;
}

/** Runs a few test files in one process. */
async function runBatch(
  step: Step,
  { files: batch, isAgain = false }: Batch,
  { env, worker }: {
    readonly env: Readonly<Record<string, string>>;
    readonly worker: number;
  },
): Promise<EndedBatch> {
  const isFirst = step.report === "node" && !isAgain;
  // The runner may run twice at the same time.
  const path = `.cache/test/${step.name}.${process.pid}.${worker}.xml`;
  await rm(path, { force: true });
  const command = [
    ...step.command,
    ...reportFlags(step.report ?? "node", path),
    ...(step.report !== "node" ? [] : isFirst ? IN_ONE_PROCESS : FOLLOWED),
    ...(step.entry === undefined ? [] : [step.entry, "--"]),
    ...batch.map((file) => `./${file}`),
  ];
  const ended = await runCosted(step, batch[0] ?? "", command, {
    limit: step.limit * Math.min(batch.length, 4),
    silence: step.silence,
    env: { ...ENVIRONMENT, ...env },
  });
  const { code } = ended;
  const output = ended.stdout + ended.stderr;
  const xml = await readFile(path, "utf8").catch(() => "");
  await rm(path, { force: true });
  const report = withFiles(readJunitReport(xml), batch);
  const { passed, failed, skipped } = report;
  const count = passed + failed.length + skipped.length;
  const why = whyFailed(code, step) ??
    (count === 0 ? "It reported no test" : undefined);
  // A file that does not load, and a crash, are in the exit code only.
  if (why === undefined || (failed.length > 0 && code !== 124)) {
    return { report, again: [], output };
  }
  const name = batch.length === 1
    ? batch[0] ?? ""
    : `${batch[0]} and ${batch.length - 1} more files`;
  const failure = whole(name, why, output);
  return {
    report: { passed: 0, skipped: [], failed: [...failed, failure] },
    // One that is stuck would be so again, and only Node can tell more of one file.
    again: batch.length > 1 || isFirst && code !== 124
      ? batch.map((file) => ({ files: [file], isAgain: true }))
      : [],
    output,
  };
}

/** Adds the file of each failed test where the report does not have it. */
function withFiles(report: TestReport, batch: readonly string[]): TestReport {
  const failed = report.failed.map((test) => {
    const [, file, name] = /^(\S+_test\.ts): (.*)$/s.exec(test.name) ?? [];
    if (file && name) return { ...test, file, name };
    return batch.length === 1 ? { ...test, file: batch[0] ?? "" } : test;
  });
  return { ...report, failed };
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

/** Why a process has failed as a whole; undefined if it has not. */
function whyFailed(code: number, step: Step): string | undefined {
  if (code === 0) return undefined;
  if (code !== 124) return `It ended with exit code ${code}`;
  return step.files === undefined
    ? `It was killed after ${step.limit / 1000} s`
    : `It was stuck and was killed: no test started or ended for ${
      (step.silence ?? step.limit) / 1000
    } s`;
}

/** A failure that no test reported, with the end of the output. */
function whole(name: string, why: string, output: string): FailedTest {
  const started = [...output.matchAll(/^test started: (.*)$/gm)].at(-1)?.[1];
  const lines = output.trimEnd().split("\n").filter((line) =>
    !line.startsWith("test started: ")
  );
  const last = started === undefined ? "" : `\nLast test started: ${started}`;
  return {
    name,
    file: "",
    message: `${why}${last}\n${lines.slice(-60).join("\n")}`,
  };
}

/** How to run a failed property again; undefined if the test is not a property. */
function repeatCommand(step: Step, test: FailedTest): string | undefined {
  const [, seed, path] = /seed: (-?\d+), path: "([\d:]+)"/.exec(test.message) ??
    [];
  if (seed === undefined) return undefined;
  const replay = /replayPath="([^"]+)"/.exec(test.message)?.[1];
  const pattern = `^${test.name.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`
    .replaceAll("'", ".");
  const command = {
    node: `node --test-name-pattern='${pattern}'`,
    deno: `deno test -A --no-check --filter='/${pattern}/'`,
    bun: `bun test --test-name-pattern='${pattern}'`,
  }[step.report ?? "node"];
  const variables = `FC_SEED=${seed} FC_PATH=${path}` +
    (replay === undefined ? "" : ` FC_REPLAY_PATH='${replay}'`);
  return `${variables} ${command} ./${relativePath(test.file)}`;
}

function print(line: string): void {
  // Replaces the progress that a terminal shows.
  const start = process.stdout.isTTY ? "\r\x1b[K" : "";
  process.stdout.write(`${start}${line}\n`);
}

/** Shows the running step at a terminal: some steps take minutes. */
function printBegin(step: Step): void {
  if (process.stdout.isTTY) process.stdout.write(`${step.name.padEnd(10)} …`);
}

/** Path of a file from the root of the project. */
function relativePath(file: string): string {
  return relative(PROJECT, resolve(PROJECT, file.replace(/^file:\/\//, "")));
}

function printReport(step: Step, report: TestReport, seconds: number): void {
  const { passed, failed, skipped } = report;
  const processors = costs.filter((cost) => cost.step === step.name)
    .reduce((sum, cost) => sum + cost.processors, 0);
  print(
    `${step.name.padEnd(10)} ${passed} passed, ${failed.length} failed, ` +
      `${skipped.length} skipped  (${seconds.toFixed(1)} s, ` +
      `${processors.toFixed(1)} s of processors)`,
  );
  for (const name of skipped) print(`  skipped: ${name}`);
  for (const test of failed) {
    const file = test.file === "" ? "" : `  (${relativePath(test.file)})`;
    print(`  FAILED: ${test.name}${file}`);
    print(test.message.replaceAll(/^/gm, "    "));
    const repeat = repeatCommand(step, test);
    if (repeat !== undefined) print(`    Again: ${repeat}`);
  }
}

async function main(args: readonly string[]): Promise<number> {
  process.chdir(PROJECT);
  const defaults = STEPS.filter((step) => !step.onDemand).map((s) => s.name);
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
  // The other tests leave a processor idle now and then. The step of the cluster
  // builds again if this fails, and reports why.
  const built = steps.some(({ cluster }) => cluster)
    ? buildControlPlane(KUBERNETES).then(() => goTool("helm")).catch(() => {})
    : undefined;
  const places = new Places(PLACES);
  const run = async (step: Step, rank: number, uses?: Promise<void>) => {
    await uses;
    const own = step.beside ? new Places(step.workers) : places;
    let start: number | undefined;
    const take: Take = (work) =>
      own.take(rank, () => {
        if (start === undefined) printBegin(step);
        start ??= performance.now();
        return work();
      });
    const report = await runStep(step, only, { take, built }).catch(
      (error) => ({
        passed: 0,
        failed: [whole(step.name, String(error), "")],
        skipped: [],
      }),
    );
    const end = performance.now();
    printReport(step, report, (end - (start ?? end)) / 1000);
    passed += report.passed;
    failed += report.failed.length;
    skipped += report.skipped.length;
  };
  const ended = new Map<string, Promise<void>>();
  for (const [rank, step] of steps.entries()) {
    ended.set(step.name, run(step, rank, ended.get(step.uses ?? "")));
  }
  await Promise.all(ended.values());
  if (PROFILE) printCosts();
  if (failed > 0) print(`Seed of the property tests: FC_SEED=${SEED}`);
  print(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(130);
  });
}
process.exitCode = await main(ARGUMENTS);
