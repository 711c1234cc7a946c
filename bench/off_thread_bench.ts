/**
 * Whether ingest should have a thread of its own.
 *
 * It should not, by `npm run bench -- --only off-thread` on two cores with Node
 * 24: a worker that has the socket and TLS takes the main thread from 23 to 11 µs
 * a Pod and the process from 35 to 39, and a sync takes as long as before, within
 * the spread. What stays is the store, which has to be where it is read. At 1,000
 * changes a second, one per cent of the main thread could be won.
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

/** Takes a chunk; tells whether all Pods are there. */
type Take = (chunk: Uint8Array) => boolean;
/** Gives chunks to take until that is enough; gives what ends it. */
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

/** Microseconds of processor time: of all threads, and of this one. */
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
