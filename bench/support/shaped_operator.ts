import process from "node:process";
import { untyped } from "../../core/api/kind.ts";
import { Client } from "../../core/client/client.ts";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { watch } from "../../core/controller/watch/watch_source.ts";
import { silentLogger } from "../../core/logger.ts";
import type { OperatorCacheOptions } from "../../core/operator/operator_options.ts";
import { Operator } from "../../core/operator/operator.ts";
import { limitHeapGrowth } from "../../core/operator/process_memory.ts";
import { type Measure, verify } from "./bench.ts";
import { cpuTime, memoryNow, peakOfStart } from "./sampling.ts";
import { type Shape, SHAPES } from "./shapes.ts";
import { startChildServer } from "./child_server.ts";

const MIB = 2 ** 20;
/** Objects of each kind that are read and compared. */
const READS = 100;
/** Time between two samples of the peak while syncing, in milliseconds. */
const SAMPLE_MS = 50;

/** JSON of an object without managedFields, which caches leave out by default. */
function withoutManagers(object: unknown): string {
  return JSON.stringify(
    object,
    (key, value) => key === "managedFields" ? undefined : value,
  );
}

/**
 * Measures an operator of the first kind of some shapes, which owns the others: all
 * objects run once and stay readable, each as the server has it.
 *
 * @param objects Number of objects of each kind.
 */
export async function followShapes(
  name: keyof typeof SHAPES,
  objects: number,
  cache?: OperatorCacheOptions,
): Promise<readonly Measure[]> {
  limitHeapGrowth();
  const shapes: readonly Shape[] = SHAPES[name];
  const [first, ...owned] = shapes.map(({ kind }) => untyped(kind));
  const server = await startChildServer<string>(
    "shapes_server_process.ts",
    name,
    objects,
  );
  const transport = await openHttpTransport({ server: server.ready });
  const operator = new Operator({
    client: new Client({ transport }),
    logger: silentLogger,
    syncTimeout: "10m",
    ...(cache && { cache }),
  });
  let runs = 0;
  const ran = Promise.withResolvers<void>();
  const sources = owned.map((kind) => watch(kind));
  const controller = operator.register(first!, {
    reconcile() {
      if (++runs === objects) ran.resolve();
    },
  }, { sources });
  const cpu = cpuTime();
  let highest = 0;
  const look = () => {
    highest = Math.max(highest, process.memoryUsage.rss());
  };
  const timer = setInterval(look, SAMPLE_MS);
  await operator.start();
  clearInterval(timer);
  look();
  const synced = cpuTime() - cpu;
  await ran.promise;
  for (let at = 0; at < READS; at++) {
    const number = Math.floor(at * objects / READS);
    for (const [of, { text }] of shapes.entries()) {
      const wanted = JSON.parse(text(number));
      const { namespace, name } = wanted.metadata;
      const key = { namespace, name };
      const found = of === 0
        ? await controller.primaries.read(key)
        : await sources[of - 1]?.get?.(key);
      const isSame = withoutManagers(found) === withoutManagers(wanted);
      verify(isSame, `${wanted.kind} ${name} must be as the server has it`);
    }
  }
  const { rss } = memoryNow();
  const peak = peakOfStart(rss);
  const all = objects * shapes.length;
  await operator.stop();
  await transport.close();
  await server.stop();
  return [
    { unit: "MiB RSS", value: rss / MIB },
    { unit: "MiB highest RSS while syncing", value: highest / MIB },
    { unit: "µs CPU/object to sync", value: synced / all },
    ...peak,
  ];
}
