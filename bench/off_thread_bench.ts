/**
 * Whether ingest should run in a worker thread.
 *
 * It should not, by `npm run bench -- --only off-thread` on two cores with Node
 * 24: with a worker that owns socket and TLS, the main thread falls from 23 to
 * 11 µs per Pod and the process rises from 35 to 39, and a sync takes as long
 * as before, within the spread. The rest is the store, which has to be where it
 * is read. At 1,000 changes a second one per cent of the main thread could be
 * saved.
 *
 * @module
 */
import process from "node:process";
import { Worker } from "node:worker_threads";
import { untyped } from "../core/api/kind.ts";
import { ObjectStore } from "../core/cache/store/object_store.ts";
import { EventScanner } from "../core/json/event_scanner.ts";
import { LineSplitter } from "../core/json/line_splitter.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { podChunks, type PodStreamAddress } from "./support/pod_chunks.ts";
import { startPodServer } from "./support/pod_server.ts";

const OBJECTS = 50_000;
const Pod = untyped({ group: "", version: "v1", kind: "Pod" });

/** Consumer of a chunk; returns whether all Pods are complete. */
type Take = (chunk: Uint8Array) => boolean;
/**
 * Producer of chunks; runs until the consumer is done, and returns a function
 * that ends it.
 */
type Receive = (
  address: PodStreamAddress,
  take: Take,
) => Promise<() => unknown>;

const sameThread: Receive = async (address, take) => {
  for await (const chunk of podChunks(address)) if (take(chunk)) break;
  return () => {};
};

const worker: Receive = async (address, take) => {
  const file = new URL("./support/receiving_worker.ts", import.meta.url);
  const { url, authority } = address;
  const receiver = new Worker(file, { workerData: { url, authority } });
  await new Promise<void>((resolve) =>
    receiver.on("message", (chunk: Uint8Array) => {
      if (take(chunk)) resolve();
    })
  );
  return () => receiver.terminate();
};

/** Processor time of all threads and of this one, in microseconds. */
function cpuTimes(): { readonly all: number; readonly main: number } {
  const sum = ({ user, system }: NodeJS.CpuUsage) => user + system;
  const main = process.threadCpuUsage?.();
  return {
    all: sum(process.cpuUsage()),
    main: main === undefined ? NaN : sum(main),
  };
}

async function measure(receive: Receive): Promise<readonly Measure[]> {
  const server = await startPodServer({
    objects: OBJECTS,
    events: 0,
    scheme: "https",
  });
  const store = new ObjectStore({
    kind: Pod,
    prune: ["metadata.managedFields"],
  });
  const splitter = new LineSplitter();
  const scanner = new EventScanner();
  const take: Take = (chunk) => {
    splitter.push(chunk);
    while (splitter.next()) {
      if (scanner.scan(splitter) === "ADDED") store.put(scanner.header);
    }
    return store.size === OBJECTS;
  };
  const before = cpuTimes();
  const start = performance.now();
  const end = await receive(server, take);
  const wall = performance.now() - start;
  const after = cpuTimes();
  verify(store.size === OBJECTS, "every Pod must be there");
  await end();
  await server.stop();
  const main = (after.main - before.main) / OBJECTS;
  return [
    { unit: "µs CPU/object", value: (after.all - before.all) / OBJECTS },
    { unit: "µs/object", value: 1000 * wall / OBJECTS },
    ...(Number.isNaN(main)
      ? []
      : [{ unit: "µs CPU of the main thread/object", value: main }]),
  ];
}

export const bench: Bench = {
  name: "off-thread",
  what: `${OBJECTS} Pods over TLS, received by the main thread or by a worker`,
  rounds: 3,
  subjects: [
    { name: "same thread", run: () => measure(sameThread) },
    { name: "worker", run: () => measure(worker) },
  ],
};
