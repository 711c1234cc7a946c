/**
 * Runs an operator for minutes against a server with changing objects and random
 * faults, and fails when it loses a change, counts wrong or leaks:
 *
 * ```sh
 * npm run soak -- --minutes 10 --objects 100 --seed 1
 * ```
 *
 * @module
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Client } from "../../core/client/client.ts";
import { sleep, systemClock as clock } from "../../core/clock.ts";
import { MetricsRegistry } from "../../core/operator/metrics_registry.ts";
import { until } from "../support/until.ts";
import { Random } from "./random.ts";
import { SoakedOperator } from "./soaked_operator.ts";
import { type Trend, trend } from "./trend.ts";

const MEBIBYTE = 2 ** 20;
/** Share of the duration before the first sample. */
const WARM_UP = 0.2;
const SAMPLES = 60;

const values = readArguments();
const duration = positive("minutes") * 60_000;

positive("objects");

/** Reads the arguments; reports unknown ones and ends the process. */
function readArguments() {
  try {
    return parseArgs({
      options: {
        minutes: { type: "string", default: "10" },
        // So few that the run history of each object is full before the first
        // sample: filling it is not a leak.
        objects: { type: "string", default: "100" },
        seed: { type: "string", default: "1" },
      },
    }).values;
  } catch (error) {
    process.stderr.write(
      `Cannot soak: it takes --minutes N, --objects N and --seed N: received ${
        process.argv.slice(2).join(" ")
      } (${(error as Error).message})\n`,
    );
    process.exit(2);
  }
}

/** Reads a positive number from the arguments; ends the process if it is not one. */
function positive(name: "minutes" | "objects"): number {
  const value = Number(values[name]);
  if (value > 0 && value < Infinity) return value;
  process.stderr.write(
    `Cannot soak: --${name} must be a positive number: received "${
      values[name]
    }"\n`,
  );
  process.exit(2);
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Starts the server process and reads its output. */
async function startServer(kubeconfig: string) {
  const child = spawn(process.execPath, [
    "--conditions=@coracle/source",
    fileURLToPath(new URL("./soak_server.ts", import.meta.url)),
    kubeconfig,
    values.objects,
    values.seed,
  ], { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => output += text);
  const says = (pattern: RegExp) =>
    until(`the server says ${pattern}`, () => pattern.exec(output), {
      within: 120_000,
    });
  await says(/ready/);
  return { child, says };
}

/** Resources that may leak, at one moment. */
interface Sample {
  readonly heap: number;
  readonly external: number;
  readonly handles: number;
}

async function sample(): Promise<Sample> {
  collectGarbage();
  await new Promise(setImmediate); // Finalizers run after a collection.
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  const handles = process.getActiveResourcesInfo().length;
  return { heap: heapUsed, external, handles };
}

/** Fails if a resource grows by more than a share of its mean plus a constant. */
function checkFlat(
  what: string,
  { mean, growth }: Trend,
  allowed: { readonly share: number; readonly more: number },
): void {
  const limit = mean * allowed.share + allowed.more;
  process.stdout.write(
    `${what}: mean ${mean.toFixed(1)}, growth ${growth.toFixed(2)} ` +
      `(at most ${limit.toFixed(2)})\n`,
  );
  assert.ok(growth <= limit, `${what} must be flat`);
}

const folder = await mkdtemp(join(tmpdir(), "soak-"));
const kubeconfig = join(folder, "kubeconfig");
const { child, says } = await startServer(kubeconfig);
const random = new Random(Number(values.seed) + 1);
const metrics = new MetricsRegistry();
const client = await Client.load({
  kubeconfig,
  metrics,
  clock,
  random: random.next,
});
const truth = await Client.load({ kubeconfig });
const soaked = new SoakedOperator({ client, metrics, clock, random });
await soaked.operator.start();

process.stderr.write(
  `Soaking ${values.objects} objects for ${values.minutes} minutes, seed ${values.seed}…\n`,
);

const samples: Sample[] = [];
await sleep(duration * WARM_UP, { clock });
for (let count = 0; count < SAMPLES; count++) {
  await sleep(duration * (1 - WARM_UP) / SAMPLES, { clock });
  samples.push(await sample());
}

child.stdin.write("rest\n");
const [changes] = await says(/\d+ changes .*/);
await until("all is done", () => soaked.isDone(truth), {
  within: 120_000,
  every: 500,
});
await soaked.check(truth);
process.stdout.write(`${changes}; ${soaked.summary}\n`);
process.stdout.write("No change was lost, and the metrics are right.\n");
await soaked.operator.stop();
await Promise.all([client.close(), truth.close()]);
const ended = once(child, "exit");
child.stdin.end("end\n");
await ended;
await rm(folder, { recursive: true });

const of = (read: (sample: Sample) => number) => trend(samples.map(read));
checkFlat("Heap in MiB", of(({ heap }) => heap / MEBIBYTE), {
  share: 0.05,
  more: 1,
});
checkFlat("External memory in MiB", of(({ external }) => external / MEBIBYTE), {
  share: 0.05,
  more: 1,
});
checkFlat("Handles", of(({ handles }) => handles), { share: 0.1, more: 2 });
