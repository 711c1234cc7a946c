/**
 * Runs specs that others wrote against the embedded API server, and compares the
 * results with those of a real control plane without nodes: Kubernetes' own
 * end-to-end suite and the suites of controller-runtime, built from their Go
 * modules.
 *
 * `npm run test:conformance` runs all that the real one passes.
 *
 * - `-- --suite e2e`: one suite; `-- --focus REGEX`: specs whose text matches.
 * - `-- --resume`: only specs without a result, or which exceeded the limit.
 * - `-- --failed`: only specs that did not pass in the last run.
 * - `-- --limit SECONDS`, `-- --workers N`: limit of a process, and how many run.
 * - `-- --report`: runs nothing and prints the results of the last run.
 * - `-- --record`: runs all candidates on the real control plane instead, and
 *   keeps their outcomes in `tests/conformance/SUITE-VERSION.txt`.
 * - `-- --json FILE`: writes the comparison.
 * - `-- --kubernetes 1.36`: another version than the newest with a list.
 *
 * Each outcome is written when its spec ends, so a run that is cut keeps what it
 * has; outcomes of the embedded server are in `.cache/conformance`.
 *
 * @module
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { startControlPlane } from "../cluster/control_plane.ts";
import { DEFAULT_KUBERNETES, releaseOf } from "../cluster/go_programs.ts";
import { killAll, PROJECT } from "../support/child_process.ts";
import { Program, runtimeCommand } from "../support/program.ts";
import type { Outcome, Spec, Suite } from "./suites.ts";
import { controllerRuntime, endToEnd } from "./suites.ts";
import { commandLine } from "../support/command_line.ts";

/** Newest versions whose outcomes on the real control plane are kept, by suite. */
const NEWEST_LISTS: Readonly<Record<Suite["name"], string>> = {
  e2e: "1.37",
  "controller-runtime": "1.36",
};

/** Seconds of a process: more than any time-out of a spec that passes. */
const LIMIT_S = 480;

/** A server that specs run on. */
interface Server {
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

async function startEmbedded(
  folder: string,
  { kubernetes, controllers }: {
    readonly kubernetes: string;
    readonly controllers: readonly string[];
  },
): Promise<Server> {
  const kubeconfig = join(folder, "kubeconfig");
  const program = new Program([
    ...runtimeCommand(),
    join(PROJECT, "tests", "conformance", "embedded_server.ts"),
    kubeconfig,
    kubernetes,
    controllers.join(","),
  ]);
  await program.says(/Serving on https:/, 60_000);
  return {
    kubeconfig,
    async stop() {
      await program.end();
    },
  };
}

/** The server of one worker, which is replaced after a failure. */
class ReplacedServer {
  readonly #start: () => Promise<Server>;
  /** Whether it is replaced after every unit. */
  readonly #always: boolean;
  #server: Server | undefined;

  constructor(start: () => Promise<Server>, always: boolean) {
    this.#start = start;
    this.#always = always;
  }

  async current(): Promise<Server> {
    return this.#server ??= await this.#start();
  }

  async ended(outcomes: readonly Outcome[]): Promise<void> {
    const failed = outcomes.some(({ state }) => state !== "passed");
    if (failed || this.#always) await this.stop();
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
  }
}

/** Outcomes of specs in a file, one per line: the state, the name, the failure. */
class OutcomeFile {
  readonly #file: string;
  readonly #outcomes: Map<string, Outcome> = new Map();
  #written: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.#file = file;
  }

  async read(): Promise<ReadonlyMap<string, Outcome>> {
    const text = await readFile(this.#file, "utf8").catch(() => "");
    for (const line of text.split("\n")) {
      const [state, name, failure] = line.split("\t");
      if (!state || !name) continue;
      this.#outcomes.set(name, {
        state: state as Outcome["state"],
        name,
        failure,
      });
    }
    return this.#outcomes;
  }

  forget(names: Iterable<string>): void {
    for (const name of names) this.#outcomes.delete(name);
  }

  /** Adds outcomes, and writes the file with all of them in order. */
  add(outcomes: readonly Outcome[], withFailures: boolean): Promise<void> {
    for (const one of outcomes) this.#outcomes.set(one.name, one);
    const lines = [...this.#outcomes.values()].map((
      { state, name, failure },
    ) => `${state}\t${name}${withFailures && failure ? `\t${failure}` : ""}\n`);
    this.#written = this.#written.then(async () => {
      await mkdir(dirname(this.#file), { recursive: true });
      const text = lines.toSorted((a, b) => order(a) < order(b) ? -1 : 1);
      await writeFile(this.#file, text.join(""));
    });
    return this.#written;
  }
}

/** What lines of outcomes are sorted by. */
function order(line: string): string {
  return line.slice(line.indexOf("\t"));
}

/** Which specs run, and how. */
interface Selection {
  readonly kubernetes: string;
  readonly focus: RegExp;
  readonly resume: boolean;
  readonly failed: boolean;
  readonly report: boolean;
  /** Milliseconds. */
  readonly limit: number;
  readonly workers: number;
}

/** Runs units a few at a time; on a shared server, serial specs run alone. */
async function runUnits(
  suite: Suite,
  specs: readonly Spec[],
  { limit, workers }: Selection,
  { shared, serverOf, ended }: {
    readonly shared: boolean;
    readonly serverOf: (
      folder: string,
    ) => Pick<ReplacedServer, "current" | "ended" | "stop">;
    readonly ended: (outcomes: readonly Outcome[]) => Promise<void>;
  },
): Promise<void> {
  const alone = (spec: Spec) => shared && spec.name.includes("[Serial]");
  const serial = suite.units(specs.filter(alone));
  const queue = [...suite.units(specs.filter((spec) => !alone(spec)))];
  const total = queue.length + serial.length;
  let done = 0;
  const work = async (units: (readonly Spec[])[]) => {
    if (units.length === 0) return;
    const folder = await mkdtemp(join(tmpdir(), "coracle-conformance-"));
    const server = serverOf(folder);
    try {
      for (let unit = units.shift(); unit; unit = units.shift()) {
        const { kubeconfig } = await server.current();
        const outcomes = await suite.run(unit, { kubeconfig, folder, limit });
        await ended(outcomes);
        await server.ended(outcomes);
        done++;
        if (process.stderr.isTTY) {
          process.stderr.write(`\r\x1b[K${suite.name} ${done}/${total}`);
        }
      }
    } finally {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    }
  };
  await Promise.all(Array.from({ length: workers }, () => work(queue)));
  await work([...serial]);
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
}

/** Outcomes on the real control plane, kept in the tree. */
function listFile(suite: Suite, kubernetes: string): string {
  const name = `${suite.name}-${kubernetes}.txt`;
  return join(PROJECT, "tests", "conformance", name);
}

/** Runs the candidates on the real control plane and keeps their outcomes. */
async function record(suite: Suite, selection: Selection): Promise<number> {
  const { kubernetes, focus, resume, failed } = selection;
  const file = new OutcomeFile(listFile(suite, kubernetes));
  const known = await file.read();
  const candidates = (await suite.candidates()).toSorted((a, b) =>
    rank(a) - rank(b)
  );
  const outcomesOf = ({ name }: Spec) =>
    [...known.values()].filter((one) =>
      suite.name === "e2e" ? one.name === name : one.name.startsWith(name)
    );
  // What the filter no longer takes leaves the list.
  const kept = new Set(candidates.flatMap(outcomesOf));
  file.forget([...known.values()].filter((one) => !kept.has(one)).map(nameOf));
  const specs = candidates.filter((spec) => {
    if (!focus.test(spec.name)) return false;
    const before = outcomesOf(spec);
    if (failed) return before.some(({ state }) => state !== "passed");
    if (!resume) file.forget(before.map(nameOf));
    return !resume || before.length === 0 ||
      before.some(({ state }) => state === "timedout");
  });
  // What passed once passes there, even if a busy machine fails it later.
  const passedBefore = new Set(
    [...known.values()].filter(({ state }) => state === "passed").map(nameOf),
  );
  const start = async () => {
    const plane = await startControlPlane({
      kubernetes,
      controllers: suite.controllers,
    });
    if (plane === undefined) {
      throw new Error("Cannot start the control plane: no Go toolchain");
    }
    return plane;
  };
  print(`${suite.name}: ${specs.length} candidates`);
  // Packages of controller-runtime expect a new control plane each.
  const plane = suite.isolated ? undefined : await start();
  try {
    await runUnits(suite, specs, selection, {
      shared: !suite.isolated,
      serverOf: () =>
        plane === undefined ? new ReplacedServer(start, suite.isolated) : {
          current: () => Promise.resolve(plane),
          ended: () => Promise.resolve(),
          stop: () => Promise.resolve(),
        },
      ended: (outcomes) =>
        file.add(outcomes.filter(({ name }) => !passedBefore.has(name)), false),
    });
    const all = [...known.values()];
    const passed = all.filter(({ state }) => state === "passed").length;
    print(`${suite.name}: ${passed} of ${all.length} pass there`);
    return 0;
  } finally {
    await plane?.stop();
  }
}

function nameOf({ name }: Spec): string {
  return name;
}

/** Specs of conformance run first. */
function rank({ name }: Spec): number {
  return name.includes("[Conformance]") ? 0 : 1;
}

/** Results of a suite on the embedded server. */
interface Comparison {
  readonly suite: string;
  readonly kubernetes: string;
  readonly asReal: number;
  readonly total: number;
  readonly differences: readonly Outcome[];
}

async function compare(
  suite: Suite,
  selection: Selection,
): Promise<Comparison> {
  const { kubernetes, focus, resume, failed, report } = selection;
  const real = await new OutcomeFile(listFile(suite, kubernetes)).read();
  if (real.size === 0) {
    throw new Error(
      `Cannot compare ${suite.name}: no list of ${kubernetes} is kept; --record writes it from the real control plane`,
    );
  }
  const specs = [...real.values()].filter(({ state, name }) =>
    state === "passed" && focus.test(name)
  );
  const file = new OutcomeFile(
    join(PROJECT, ".cache", "conformance", `${suite.name}-${kubernetes}.txt`),
  );
  const results = await file.read();
  const asked = report ? [] : specs.filter(({ name }) => {
    const state = results.get(name)?.state;
    if (failed) return state !== "passed";
    return !resume || state === undefined || state === "timedout";
  });
  file.forget(asked.map(({ name }) => name));
  await runUnits(
    suite,
    asked.toSorted((a, b) => rank(a) - rank(b)),
    selection,
    {
      shared: false,
      serverOf: (folder) =>
        new ReplacedServer(
          () =>
            startEmbedded(folder, {
              kubernetes,
              controllers: suite.controllers,
            }),
          suite.isolated,
        ),
      ended: (outcomes) => file.add(outcomes, true),
    },
  );
  const differences = specs.map(({ name }): Outcome =>
    results.get(name) ?? { name, state: "skipped", failure: "It did not run" }
  ).filter(({ state }) => state !== "passed");
  return {
    suite: suite.name,
    kubernetes,
    asReal: specs.length - differences.length,
    total: specs.length,
    differences,
  };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function missingGo(): number {
  print("Cannot build the suites: no Go toolchain is in the path");
  return 2;
}

async function main(): Promise<number> {
  const { values, integer } = commandLine("run specs", {
    suite: { type: "string" },
    focus: { type: "string", default: "" },
    json: { type: "string" },
    record: { type: "boolean", default: false },
    report: { type: "boolean", default: false },
    resume: { type: "boolean", default: false },
    failed: { type: "boolean", default: false },
    limit: { type: "string", default: String(LIMIT_S) },
    workers: { type: "string", default: "2" },
    kubernetes: { type: "string" },
  });
  const versionOf = (name: Suite["name"]) =>
    values.kubernetes ??
      (values.record ? DEFAULT_KUBERNETES : NEWEST_LISTS[name]);
  const all = [
    endToEnd(releaseOf(versionOf("e2e"))),
    controllerRuntime(
      releaseOf(versionOf("controller-runtime")).controllerRuntime,
    ),
  ];
  const suites = all.filter(({ name }) => name === (values.suite ?? name));
  if (suites.length === 0) {
    print(
      `Cannot run specs: a suite is one of ${
        all.map(({ name }) => name).join(", ")
      }: received ${values.suite}`,
    );
    return 2;
  }
  const numbers = {
    limit: integer("limit", 1),
    workers: integer("workers", 1),
  };
  for (const [name, value] of Object.entries(numbers)) {
    if (Number.isInteger(value) && value > 0) continue;
    print(
      `Cannot run specs: --${name} must be a positive integer: received ${
        values[name as "limit"]
      }`,
    );
    return 2;
  }
  const selectionOf = (name: Suite["name"]): Selection => ({
    ...values,
    kubernetes: versionOf(name),
    focus: new RegExp(values.focus),
    limit: numbers.limit * 1_000,
    workers: numbers.workers,
  });
  const results: Comparison[] = [];
  for (const suite of suites) {
    const selection = selectionOf(suite.name);
    if (!values.report && !await suite.build()) return missingGo();
    if (values.record) {
      const code = await record(suite, selection);
      if (code !== 0) return code;
      continue;
    }
    const result = await compare(suite, selection);
    results.push(result);
    for (const { name, state, failure } of result.differences) {
      print(`  ${name}\n    ${failure ?? state}`);
    }
    print(
      `${suite.name} ${result.kubernetes}: ${result.asReal} of ${result.total} as on the real one`,
    );
  }
  if (values.json) {
    await writeFile(values.json, `${JSON.stringify(results, null, 2)}\n`);
  }
  return results.every(({ differences }) => differences.length === 0) ? 0 : 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(130);
  });
}
process.exitCode = await main();
