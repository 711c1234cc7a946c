/**
 * Runs an operator for minutes against a server with changing objects and random
 * faults, and fails when it loses a change, counts wrong or leaks:
 *
 * ```sh
 * npm run soak -- --minutes 10 --objects 100 --changes 20 --seed 1
 * npm run soak -- --minutes 30 --objects 50000 --changes 200 --charts charts
 * npm run soak -- --minutes 5 --http 1 --proxy
 * ```
 *
 * `--changes` is their number a second; `--http` the version of HTTP of the
 * watches; `--proxy` puts a proxy between that cuts, delays and freezes
 * connections and closes idle ones; `--charts` draws memory, handles and lag of
 * the event loop over the time after the warm-up.
 *
 * @module
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Client } from "../../core/client/client.ts";
import { sleep, systemClock as clock } from "../../core/clock.ts";
import { MetricsRegistry } from "../../core/operator/metrics_registry.ts";
import { curveChart } from "../../bench/support/curve_chart.ts";
import { until } from "../support/until.ts";
import { Random } from "./random.ts";
import { SoakedOperator } from "./soaked_operator.ts";
import { floors, type Trend, trend } from "./trend.ts";
import { commandLine } from "../support/command_line.ts";
import { Witness } from "./witness.ts";

const MEBIBYTE = 2 ** 20;
/** Share of the duration before the first sample. */
const WARM_UP = 0.2;
const SAMPLES = 60;
/** Number of samples; the lowest of them counts. */
const NEIGHBOURS = 5;
const LAG_RESOLUTION_MS = 10;
/** Longest time until a watch that falls silent before its first bookmark ends. */
const LONGEST_STALL_MS = 200_000;

const { values, positive, integer } = commandLine("soak", {
  minutes: { type: "string", default: "10" },
  // So few that the run history of each object is full before the first sample:
  // filling it is not a leak.
  objects: { type: "string", default: "100" },
  changes: { type: "string", default: "20" },
  seed: { type: "string", default: "1" },
  http: { type: "string", default: "2" },
  proxy: { type: "boolean", default: false },
  charts: { type: "string" },
});
const duration = positive("minutes") * 60_000;
const [objects, changesPerSecond] = [
  integer("objects", 1),
  positive("changes"),
];
const seed = integer("seed");
const { charts, http } = values;
if (http !== "1" && http !== "2") {
  throw new RangeError(`Cannot soak: --http must be 1 or 2: received ${http}`);
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Starts the server process and reads its output. */
async function startServer(kubeconfig: string) {
  const child = spawn(process.execPath, [
    "--conditions=@coracle/source",
    fileURLToPath(new URL("./soak_server.ts", import.meta.url)),
    kubeconfig,
    String(objects),
    String(seed),
    String(changesPerSecond),
    http,
    values.proxy ? "proxy" : "direct",
  ], { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => output += text);
  const says = (pattern: RegExp) =>
    until(`the server says ${pattern}`, () => pattern.exec(output), {
      within: 300_000,
    });
  await says(/ready/);
  return { child, says };
}

/** Resources that may leak, at one moment. */
interface Sample {
  readonly heap: number;
  readonly external: number;
  readonly handles: number;
  /** 99th percentile of the delays of the event loop, in milliseconds. */
  readonly lag: number;
}

const loopDelay = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
loopDelay.enable();

async function sample(): Promise<Sample> {
  const lag = loopDelay.percentile(99) / 1e6 - LAG_RESOLUTION_MS;
  collectGarbage();
  await new Promise(setImmediate); // Finalizers run after a collection.
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo().length;
  loopDelay.reset(); // The collections above are no delays of the operator.
  return { heap: heapUsed, external, handles, lag };
}

/** What must stay flat: it may grow by a share of its mean and a constant. */
const MEASURES: readonly {
  readonly what: string;
  readonly file: string;
  readonly read: (sample: Sample) => number;
  readonly share: number;
  readonly more: number;
}[] = [
  {
    what: "Heap in MiB",
    file: "heap.svg",
    read: ({ heap }) => heap / MEBIBYTE,
    share: 0.05,
    more: 1,
  },
  {
    what: "External memory in MiB",
    file: "external.svg",
    read: ({ external }) => external / MEBIBYTE,
    share: 0.05,
    more: 1,
  },
  {
    what: "Handles",
    file: "handles.svg",
    read: ({ handles }) => handles,
    share: 0.1,
    more: 2,
  },
  {
    what: "Event-loop lag (p99) in ms",
    file: "lag.svg",
    read: ({ lag }) => lag,
    share: 0.2,
    more: 5,
  },
];

/** Whether a resource grows by at most a share of its mean plus a constant. */
function isFlat(
  what: string,
  { mean, growth }: Trend,
  allowed: { readonly share: number; readonly more: number },
): boolean {
  const limit = mean * allowed.share + allowed.more;
  process.stdout.write(
    `${what}: mean ${mean.toFixed(1)}, growth ${growth.toFixed(2)} ` +
      `(at most ${limit.toFixed(2)})\n`,
  );
  return growth <= limit;
}

/** Waits until the operator has done everything; fails with what is left. */
async function done(): Promise<void> {
  const begun = clock.now();
  let left: string | undefined;
  try {
    await until("all is done", async () => {
      left = await soaked.undone(truth) ?? await witness.unknown(truth);
      return left === undefined;
    }, { within: LONGEST_STALL_MS + 120_000, every: 500 });
  } catch (error) {
    const health = JSON.stringify(soaked.operator.health());
    throw new Error(`${(error as Error).message}: ${left}: ${health}`);
  }
  const seconds = ((clock.now() - begun) / 1_000).toFixed(1);
  process.stdout.write(`All was done ${seconds} s after the last change.\n`);
}

const folder = await mkdtemp(join(tmpdir(), "soak-"));
// Also when the soak fails or is killed: its server ends with its input.
process.once("exit", () => rmSync(folder, { recursive: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => process.exit(128 + constants.signals[signal]));
}
const kubeconfig = join(folder, "kubeconfig");
const { child, says } = await startServer(kubeconfig);
const random = new Random(seed + 1);
const metrics = new MetricsRegistry();
const client = await Client.load({
  kubeconfig,
  metrics,
  clock,
  random: random.next,
});
const truth = await Client.load({ kubeconfig });
const soaked = new SoakedOperator({ client, metrics, clock, random });
const witnessClient = await Client.load({ kubeconfig, clock });
const witness = new Witness(witnessClient);
await Promise.all([soaked.operator.start(), witness.start()]);

process.stderr.write(
  `Soaking ${objects} objects for ${values.minutes} minutes with ${changesPerSecond} changes a second over HTTP/${http}, seed ${seed}…\n`,
);

if (charts !== undefined) await mkdir(charts, { recursive: true });
const samples: Sample[] = [];
await sleep(duration * WARM_UP, { clock });
loopDelay.reset();
for (let count = 0; count < SAMPLES; count++) {
  await sleep(duration * (1 - WARM_UP) / SAMPLES, { clock });
  samples.push(await sample());
  const memory = Math.round(process.memoryUsage.rss() / MEBIBYTE);
  process.stderr.write(
    `${count + 1}/${SAMPLES}: RSS ${memory} MiB, ${witness.summary}\n`,
  );
}

child.stdin.write("rest\n");
const [changes] = await says(/\d+ changes .*/);
await done();
await soaked.check(truth);
witness.check();
process.stdout.write(
  `${changes}; ${soaked.summary}\nWitness: ${witness.summary}\n`,
);
process.stdout.write("No change was lost, and the metrics are right.\n");
await Promise.all([soaked.operator.stop(), witness.stop()]);
await Promise.all([client, truth, witnessClient].map((each) => each.close()));
const ended = once(child, "exit");
child.stdin.end();
await ended;

const grown: string[] = [];
for (const { what, file, read, share, more } of MEASURES) {
  const values = samples.map(read);
  const found = trend(floors(values, NEIGHBOURS));
  if (charts !== undefined) {
    const curve = values.map((value, index) =>
      [duration / 1_000 * (index + 1) / SAMPLES, value] as const
    );
    const limit = {
      value: Math.ceil(found.mean * (1 + share) + more),
      name: "limit",
    };
    await writeFile(
      join(charts, file),
      curveChart(curve, { title: what, limit }),
    );
  }
  if (!isFlat(what, found, { share, more })) grown.push(what);
}
assert.deepEqual(grown, [], "All must be flat");
