/**
 * Runs specs that others wrote against the embedded API server, and compares the
 * results with those of a real control plane without nodes: Kubernetes' own
 * end-to-end suite and the suites of controller-runtime, built from their Go
 * modules.
 *
 * `npm run test:conformance` runs all; `-- --suite e2e` one suite;
 * `-- --focus REGEX` the specs whose text matches; `-- --json FILE` writes the
 * results. `-- --record` runs them on the real control plane instead, and keeps
 * the list of those that pass (with `--focus`, of those that match). `-- --kubernetes 1.35` selects a version.
 *
 * @module
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { startControlPlane } from "../cluster/control_plane.ts";
import { DEFAULT_KUBERNETES, releaseOf } from "../cluster/go_programs.ts";
import { killAll, PROJECT } from "../support/child_process.ts";
import { coracle, Program } from "../support/program.ts";
import type { Outcome, Spec, Suite } from "./suites.ts";
import { controllerRuntime, endToEnd } from "./suites.ts";

/** Processes of specs at a time. */
const WORKERS = 2;

/** A server that specs run on. */
interface Server {
  readonly kubeconfig: string;
  stop(): Promise<void>;
}

async function startEmbedded(folder: string): Promise<Server> {
  const kubeconfig = join(folder, "kubeconfig");
  const program = new Program(
    coracle("apiserver", "--port=0", `--kubeconfig=${kubeconfig}`),
  );
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
  readonly #folder: string;
  #server: Server | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async current(): Promise<Server> {
    return this.#server ??= await startEmbedded(this.#folder);
  }

  async ended(outcomes: readonly Outcome[]): Promise<void> {
    if (outcomes.some(({ passed }) => !passed)) await this.stop();
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
  }
}

/** Runs units a few at a time; specs that are serial have the servers alone. */
async function runUnits(
  suite: Suite,
  specs: readonly Spec[],
  serverOf: (
    folder: string,
  ) => Pick<ReplacedServer, "current" | "ended" | "stop">,
  shared = false,
): Promise<readonly Outcome[]> {
  const alone = (spec: Spec) =>
    shared && (spec.name.includes("[Serial]") || suite.name !== "e2e");
  const serial = suite.units(specs.filter(alone));
  const queue = [...suite.units(specs.filter((spec) => !alone(spec)))];
  const outcomes: Outcome[] = [];
  const total = queue.length + serial.length;
  let done = 0;
  const work = async (units: (readonly Spec[])[]) => {
    const folder = await mkdtemp(join(tmpdir(), "coracle-conformance-"));
    const server = serverOf(folder);
    try {
      for (let unit = units.shift(); unit; unit = units.shift()) {
        const { kubeconfig } = await server.current();
        const ended = await suite.run(unit, { kubeconfig, folder });
        await server.ended(ended);
        outcomes.push(...ended);
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
  await Promise.all(Array.from({ length: WORKERS }, () => work(queue)));
  await work([...serial]);
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  return outcomes;
}

function listFile(suite: Suite, kubernetes: string): string {
  return join(
    PROJECT,
    "tests",
    "conformance",
    `${suite.name}-${kubernetes}.txt`,
  );
}

/** Runs the candidates on the real control plane and keeps those that pass. */
async function record(
  suite: Suite,
  kubernetes: string,
  focus: RegExp,
): Promise<number> {
  const plane = await startControlPlane({ kubernetes, controllers: ["*"] });
  if (plane === undefined) return missingGo();
  try {
    const specs = (await suite.candidates()).filter(({ name }) =>
      focus.test(name)
    );
    print(`${suite.name}: ${specs.length} candidates on ${plane.origin}`);
    const outcomes = await runUnits(suite, specs, () => ({
      current: () => Promise.resolve(plane),
      ended: () => Promise.resolve(),
      stop: () => Promise.resolve(),
    }), true);
    const passed = outcomes.filter((one) => one.passed).map((one) => one.name);
    const file = listFile(suite, kubernetes);
    const before = (await readFile(file, "utf8").catch(() => "")).split("\n");
    const others = before.filter((name) => name && !focus.test(name));
    const names = [...new Set([...others, ...passed])].toSorted();
    await writeFile(file, `${names.join("\n")}\n`);
    print(`${suite.name}: ${passed.length} of ${outcomes.length} pass there`);
    return 0;
  } finally {
    await plane.stop();
  }
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
  kubernetes: string,
  focus: RegExp,
): Promise<Comparison> {
  const text = await readFile(listFile(suite, kubernetes), "utf8").catch(() => {
    throw new Error(
      `Cannot compare ${suite.name}: no list of ${kubernetes} is kept; --record writes it from the real control plane`,
    );
  });
  const names = text.split("\n").filter((name) => name && focus.test(name));
  const specs = names.map((name) => ({ name }));
  const outcomes = new Map(
    (await runUnits(suite, specs, (folder) => new ReplacedServer(folder)))
      .map((one) => [one.name, one]),
  );
  const differences = names.map((name) =>
    outcomes.get(name) ?? { name, passed: false, failure: "It did not run" }
  ).filter(({ passed }) => !passed);
  return {
    suite: suite.name,
    kubernetes,
    asReal: names.length - differences.length,
    total: names.length,
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
  const { values } = parseArgs({
    options: {
      suite: { type: "string" },
      focus: { type: "string", default: "" },
      json: { type: "string" },
      record: { type: "boolean", default: false },
      kubernetes: { type: "string", default: DEFAULT_KUBERNETES },
    },
  });
  const { kubernetes } = values;
  const release = releaseOf(kubernetes);
  const all = [endToEnd(release), controllerRuntime(release.controllerRuntime)];
  const suites = all.filter(({ name }) => name === (values.suite ?? name));
  if (suites.length === 0) {
    print(
      `Cannot run specs: a suite is one of ${
        all.map(({ name }) => name).join(", ")
      }: received ${values.suite}`,
    );
    return 2;
  }
  const focus = new RegExp(values.focus);
  const results: Comparison[] = [];
  for (const suite of suites) {
    if (!await suite.build()) return missingGo();
    if (values.record) {
      const code = await record(suite, kubernetes, focus);
      if (code !== 0) return code;
      continue;
    }
    const result = await compare(suite, kubernetes, focus);
    results.push(result);
    for (const { name, failure } of result.differences) {
      print(`  ${name}\n    ${failure}`);
    }
    print(
      `${suite.name} ${kubernetes}: ${result.asReal} of ${result.total} as on the real one`,
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
