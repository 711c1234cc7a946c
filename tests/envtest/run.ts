/**
 * Runs projects in other languages on the embedded API server, unchanged: the
 * CronJob of kubebuilder's tutorial with its envtest suites (Go), and samples for
 * Rust and Java.
 *
 * `npm run test:envtest` runs all whose toolchain is there; `-- --sample go` one;
 * `-- --real` the Go project on etcd and kube-apiserver built from their Go modules
 * as well; `-- --measure` compares start, a hundred small tests, and memory of the
 * two, in one run, with those of a server that answers at once.
 *
 * @module
 */
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import {
  buildPrograms,
  DEFAULT_KUBERNETES,
  programsFolder,
  releaseOf,
} from "../cluster/go_programs.ts";
import { killAll, PROJECT, runCommand } from "../support/child_process.ts";
import { commandLine } from "../support/command_line.ts";

/** Limit of one command in milliseconds; the first build downloads modules. */
const LIMIT_MS = 20 * 60_000;

/** Project in another language. */
interface Sample {
  readonly folder: string;
  /** Command that shows whether the toolchain is there. */
  readonly toolchain: readonly string[];
  /** Commands before the test, with the same folder. */
  readonly prepare: readonly (readonly string[])[];
  readonly test: readonly string[];
}

const SAMPLES: Readonly<Record<string, Sample>> = {
  go: {
    folder: "cronjob",
    toolchain: ["go", "version"],
    prepare: [
      words(
        "go tool controller-gen object crd:maxDescLen=0 paths=./api/... output:crd:dir=config/crd",
      ),
      words(
        "go tool controller-gen webhook paths=./webhook/... output:webhook:dir=config/webhook",
      ),
    ],
    test: words("go test -count=1 ./..."),
  },
  rust: {
    folder: "rust",
    toolchain: ["cargo", "--version"],
    prepare: [],
    test: words("cargo test --locked"),
  },
  java: {
    folder: "java",
    toolchain: ["mvn", "--version"],
    prepare: [],
    test: words("mvn -q -B -ntp test"),
  },
};

function words(text: string): readonly string[] {
  return text.split(" ");
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Runs a command in the folder of a sample; prints its output if it fails. */
async function run(
  { folder }: Sample,
  command: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly passed: boolean; readonly seconds: number }> {
  const started = performance.now();
  const { code, stdout, stderr } = await runCommand(command, {
    cwd: join(PROJECT, "tests", "envtest", folder),
    // Programs that the sample starts are not those of this project.
    env: { ...env, NODE_OPTIONS: process.env["NODE_OPTIONS"] },
    limit: LIMIT_MS,
  });
  if (code !== 0) print(`${command.join(" ")}\n${stdout}${stderr}`);
  return {
    passed: code === 0,
    seconds: (performance.now() - started) / 1_000,
  };
}

/** Writes the programs of envtest, which run the built package or the sources. */
async function writeAssets(folder: string, built: boolean): Promise<string> {
  const assets = join(folder, "assets");
  const sources = [process.execPath, "--conditions=@coracle/source"];
  const command = built
    ? [process.execPath, join(PROJECT, "dev", "dist", "cli", "bin.js")]
    : [...sources, join(PROJECT, "dev", "cli", "bin.ts")];
  if (built) await must([...sources, join(PROJECT, "tools", "build.ts")]);
  await must([...command, "envtest", assets]);
  return assets;
}

async function must(command: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await runCommand(command);
  if (code !== 0) throw new Error(stdout + stderr);
}

/** Control planes for KUBEBUILDER_ASSETS, by name. */
async function controlPlanes(
  folder: string,
  { real, measure }: { readonly real: boolean; readonly measure: boolean },
): Promise<Readonly<Record<string, string>>> {
  const embedded = await writeAssets(folder, measure);
  if (!real && !measure) return { embedded };
  const release = releaseOf(DEFAULT_KUBERNETES);
  await buildPrograms(release, ["etcd", "kube-apiserver"]);
  const planes = { embedded, real: programsFolder(release) };
  return measure
    ? { ...planes, instant: await instantAssets(folder, embedded) }
    : planes;
}

/** Programs of envtest whose etcd runs the server that answers at once. */
async function instantAssets(
  folder: string,
  embedded: string,
): Promise<string> {
  const assets = join(folder, "instant");
  const server = join(folder, "instant_server.mjs");
  const source = join(PROJECT, "tests", "envtest", "instant_server.ts");
  await must([
    ...["esbuild", source, "--bundle", "--platform=node", "--format=esm"],
    ...["--log-level=warning", `--outfile=${server}`],
  ]);
  await cp(embedded, assets, { recursive: true });
  const script = await readFile(join(assets, "etcd"), "utf8");
  await writeFile(
    join(assets, "etcd"),
    script.replace(/\S+\/cli\/envtest\/etcd\.js/, server),
  );
  return assets;
}

/** Runs a sample; undefined if its toolchain is missing. */
async function runSample(
  name: string,
  sample: Sample,
  planes: Readonly<Record<string, string>>,
): Promise<boolean | undefined> {
  if ((await runCommand(sample.toolchain)).code !== 0) {
    print(`${name}: skipped, since ${sample.toolchain[0]} is not in the path`);
    return undefined;
  }
  for (const command of sample.prepare) {
    if (!(await run(sample, command)).passed) return false;
  }
  let passed = true;
  for (const [plane, assets] of Object.entries(planes)) {
    const result = await run(sample, sample.test, environment(assets));
    print(
      `${name} on the ${plane} control plane: ${
        result.passed ? "passed" : "FAILED"
      } (${result.seconds.toFixed(1)} s)`,
    );
    passed &&= result.passed;
  }
  return passed;
}

function environment(assets: string): Record<string, string> {
  return {
    KUBEBUILDER_ASSETS: assets,
    // The command with which samples start a server of their own.
    CORACLE: [
      process.execPath,
      "--conditions=@coracle/source",
      join(PROJECT, "dev", "cli", "bin.ts"),
    ].join(" "),
  };
}

/** What one run of the hundred tests measured. */
interface Measured {
  readonly startMs: number;
  readonly testsMs: number;
  readonly stopMs: number;
  readonly residentKiB: number;
  readonly anonymousKiB: number;
  readonly cpuMs: number;
}

/** Control planes that are compared, in the order of the columns. */
const PLANES = ["embedded", "real", "instant"];

/** Compares the control planes, alternating. */
async function measure(
  folder: string,
  planes: Readonly<Record<string, string>>,
): Promise<boolean> {
  const sample = SAMPLES["go"];
  if (sample === undefined) return false;
  const binary = join(folder, "hundred.test");
  const built = await run(sample, [
    ...words("go test -c -o"),
    binary,
    "./hundred",
  ]);
  if (!built.passed) return false;
  const rounds = 3;
  const results = new Map<string, Measured[]>();
  for (let round = 0; round < rounds; round++) {
    for (const [plane, assets] of Object.entries(planes)) {
      const file = join(folder, `${plane}.json`);
      const { passed } = await run(sample, [binary], {
        KUBEBUILDER_ASSETS: assets,
        MEASURED_FILE: file,
      });
      if (!passed) return false;
      const one = JSON.parse(await readFile(file, "utf8")) as Measured;
      results.set(plane, [...results.get(plane) ?? [], one]);
    }
  }
  const rows:
    readonly (readonly [string, (one: Measured) => number, string])[] = [
      ["start to green /healthz", ({ startMs }) => startMs, "ms"],
      ["100 tests", ({ testsMs }) => testsMs, "ms"],
      ["stop", ({ stopMs }) => stopMs, "ms"],
      ["whole suite", (one) => one.startMs + one.testsMs + one.stopMs, "ms"],
      ["CPU time of its processes", ({ cpuMs }) => cpuMs, "ms"],
      ["memory (RSS) after it", (one) => one.residentKiB / 1_024, "MiB"],
      ["without program files", (one) => one.anonymousKiB / 1_024, "MiB"],
    ];
  print(`Medians of ${rounds} runs each, alternating:`);
  for (const [name, value, unit] of rows) {
    const [embedded = NaN, real = NaN, instant = NaN] = PLANES.map((plane) =>
      median((results.get(plane) ?? []).map(value))
    );
    const cell = (one: number) => `${one.toFixed(0)} ${unit}`.padStart(11);
    const ratio = (one: number) => `1/${(real / one).toFixed(1)}`;
    print(
      `  ${name.padEnd(24)} ${cell(embedded)} embedded ${ratio(embedded)} ${
        cell(instant)
      } instant ${ratio(instant)} ${cell(real)} real`,
    );
  }
  return true;
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[values.length >> 1];
}

async function main(): Promise<number> {
  const { values } = commandLine("run samples", {
    sample: { type: "string" },
    real: { type: "boolean", default: false },
    measure: { type: "boolean", default: false },
  });
  const wanted = values.sample ?? (values.measure ? "go" : undefined);
  const samples = Object.entries(SAMPLES)
    .filter(([name]) => name === (wanted ?? name));
  if (samples.length === 0) {
    print(
      `Cannot run samples: one is ${
        Object.keys(SAMPLES).join(", ")
      }: received ${wanted}`,
    );
    return 2;
  }
  const hasGo = (await runCommand(["go", "version"])).code === 0;
  if ((values.real || values.measure) && !hasGo) {
    print("Cannot build the real control plane: go is not in the path");
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), "coracle-envtest-run-"));
  try {
    const planes = await controlPlanes(folder, values);
    if (values.measure) return await measure(folder, planes) ? 0 : 1;
    let ran = 0;
    let failed = 0;
    for (const [name, sample] of samples) {
      const { embedded = "" } = planes;
      const passed = await runSample(
        name,
        sample,
        name === "go" ? planes : { embedded },
      );
      if (passed !== undefined) ran++;
      if (passed === false) failed++;
    }
    return failed > 0 ? 1 : ran === 0 ? 2 : 0;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    killAll();
    process.exit(130);
  });
}
process.exitCode = await main();
