import { readdirSync } from "node:fs";
import process from "node:process";
import { untyped } from "../core/api/kind.ts";
import { Client } from "../core/client/client.ts";
import { configFromText } from "../core/config/load_config.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { limitHeapGrowth } from "../core/operator/process_memory.ts";
import {
  type Bench,
  type Measure,
  type Subject,
  verify,
} from "./support/bench.ts";
import { manyKind } from "./support/many_kinds.ts";
import { cpuTime, memoryNow, peakOfStart } from "./support/sampling.ts";
import { startChildServer } from "./support/child_server.ts";

const MIB = 2 ** 20;

/** Load of a subject. */
interface Load {
  readonly kinds: number;
  /** Objects of each kind. */
  readonly objects: number;
  /** Version of HTTP that the server offers. */
  readonly http: 1 | 2;
  /** Whether one `watchKinds` follows them all, by their metadata. */
  readonly follows?: boolean;
  /** Budget of the caches; that of the operator by default. */
  readonly budget?: string;
}

/** Number of open descriptors. */
function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

/** Memory that is held, after a turn in which finalizers run. */
async function held() {
  memoryNow();
  await new Promise((resolve) => setTimeout(resolve, 100));
  return memoryNow();
}

/** Operator whose first runs, or events, it awaits. */
async function run(load: Load): Promise<readonly Measure[]> {
  const { kinds, objects, follows = false, budget } = load;
  limitHeapGrowth();
  const server = await startChildServer<string>(
    "kinds_server_process.ts",
    kinds,
    objects,
    load.http,
  );
  const client = new Client(await configFromText(server.ready));
  const operator = new Operator({
    client,
    logger: silentLogger,
    cache: { budget },
    syncTimeout: "10m",
  });
  await client.list(untyped(manyKind(0)), { limit: 1 });
  const before = await held();
  const open = descriptors();
  const [start, cpu] = [performance.now(), cpuTime()];
  let runs = 0;
  const all = Promise.withResolvers<void>();
  const reconcile = () => {
    if (++runs === kinds * objects) all.resolve();
  };
  if (follows) operator.watchKinds({ groups: [manyKind(0).group] }, reconcile);
  for (let index = 0; index < kinds && !follows; index++) {
    operator.register(untyped(manyKind(index)), { reconcile });
  }
  await operator.start();
  const synced = [performance.now() - start, cpuTime() - cpu] as const;
  if (objects > 0) await all.promise;
  const reconciled = cpuTime() - cpu;
  verify(runs === kinds * objects, "each object must run once");
  const after = await held();
  const peak = peakOfStart(after.rss);
  // The connection of the first read was open before.
  const sockets = descriptors() - open + 1;
  await operator.stop();
  await client.close();
  await server.stop();
  const grown = after.heap + after.external - before.heap - before.external;
  return [
    { unit: "MiB RSS", value: after.rss / MIB },
    { unit: "sockets", value: sockets },
    { unit: "s CPU to sync", value: synced[1] / 1e6 },
    { unit: "s to sync", value: synced[0] / 1e3 },
    { unit: "s CPU to the last run", value: reconciled / 1e6 },
    { unit: "KiB/kind", value: grown / kinds / 1024 },
    ...peak,
  ];
}

function subject(load: Load): Subject {
  const { kinds, objects, http, follows = false, budget } = load;
  const version = http === 1 ? "1.1" : "2";
  return {
    name: `${kinds} kinds of ${objects}, HTTP/${version}${
      follows ? ", watchKinds" : budget === undefined ? "" : `, ${budget}`
    }`,
    run: () => run(load),
    settings: `limitHeapGrowth(), ${
      follows ? "watchKinds with a handler" : "a controller a kind"
    }, ${budget ?? "no"} budget, objects of 1 KB`,
  };
}

export const bench: Bench = {
  name: "kinds",
  what: "an operator of many kinds, idle after its start; the server beside it",
  rounds: 3,
  subjects: process.platform === "linux"
    ? [
      subject({ kinds: 300, objects: 20, http: 1 }),
      subject({ kinds: 300, objects: 20, http: 2 }),
      subject({ kinds: 1_000, objects: 0, http: 2 }),
      subject({ kinds: 1_000, objects: 100, http: 2 }),
      subject({ kinds: 1_000, objects: 100, http: 2, budget: "32MiB" }),
      subject({ kinds: 1_000, objects: 100, http: 2, follows: true }),
    ]
    : [],
};
