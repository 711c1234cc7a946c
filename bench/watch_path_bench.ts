import process from "node:process";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ResolvedKind } from "@coracle/operator/kinds";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { memoryCluster } from "./support/memory_cluster.ts";
import { MemoryWatch } from "./support/memory_watch.ts";
import { loadRival } from "./support/rival.ts";
import { collectGarbage, cpuTime, peakRss } from "./support/sampling.ts";

const OBJECTS = 2_000;
const EVENTS = 16_000;
/** Number of rounds of events before the measured one: V8 compiles until then. */
const WARM_UP = 3;
/** Number of events, small enough that no garbage collection occurs. */
const GARBAGE_EVENTS = 250;
const GARBAGE_TRIES = 8;
const ALL = (WARM_UP + 1) * EVENTS + GARBAGE_EVENTS * GARBAGE_TRIES;

const Pod: ResolvedKind = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  scope: "Namespaced",
};

/** Stream that delivers chunks on request. */
class Feed implements AsyncIterable<Uint8Array> {
  #chunks: Iterator<Uint8Array> = [].values();
  #wake: () => void = () => {};
  #rested: () => void = () => {};

  /**
   * Delivers chunks.
   *
   * @returns Resolves when more are requested.
   */
  async give(chunks: Iterable<Uint8Array>): Promise<void> {
    this.#chunks = chunks[Symbol.iterator]();
    const rested = new Promise<void>((resolve) => this.#rested = resolve);
    this.#wake();
    await rested;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const { done, value } = this.#chunks.next();
      if (!done) yield value;
      else {
        this.#rested();
        await new Promise<void>((resolve) => this.#wake = resolve);
      }
    }
  }
}

/** Consumer of the events of a feed. */
interface Taker {
  /** Resolves when all events are processed. */
  settled(events: number): Promise<void>;
  /** Version of a cached Pod; undefined if it is not cached. */
  version(key: { namespace: string; name: string }): string | undefined;
  /** Additional measures. */
  measures?(): readonly Measure[];
}

type StartTaker = (watch: MemoryWatch, feed: Feed) => Promise<Taker>;

async function measure(
  start: StartTaker,
  generationEvery: number,
): Promise<readonly Measure[]> {
  const watch = new MemoryWatch({
    objects: OBJECTS,
    events: ALL,
    generationEvery,
  });
  const feed = new Feed();
  const taker = await start(watch, feed);
  let given = 0;
  const take = async (events: number) => {
    const chunks = [...watch.chunks(given, given += events)];
    const heap = process.memoryUsage().heapUsed;
    const cpu = cpuTime();
    await feed.give(chunks);
    await taker.settled(given);
    return {
      cpu: (cpuTime() - cpu) / events,
      garbage: (process.memoryUsage().heapUsed - heap) / events,
    };
  };
  for (let round = 0; round < WARM_UP; round++) await take(EVENTS);
  const { cpu } = await take(EVENTS);
  let garbage = Infinity;
  for (let i = 0; i < GARBAGE_TRIES; i++) {
    collectGarbage();
    const left = (await take(GARBAGE_EVENTS)).garbage;
    if (left >= 0) garbage = Math.min(garbage, left);
  }
  const newest = taker.version(watch.key(given - 1));
  verify(
    newest === undefined || newest === watch.version(given),
    `the last Pod must equal the last event: ${newest}`,
  );
  return [
    { unit: "µs CPU/event", value: cpu },
    { unit: "B garbage/event", value: garbage },
    ...taker.measures?.() ?? [],
    peakRss(),
  ];
}

/** Subject: an operator whose reconciler does nothing. */
const coracle: StartTaker = async (watch, feed) => {
  let runs = 0;
  let before = 0;
  const operator = new Operator({
    client: memoryCluster({ kind: Pod, list: watch.list, changes: feed }),
    logger: silentLogger,
    reconnect: { watchList: false },
  });
  const controller = operator.register(Pod, {
    reconcile() {
      runs++;
    },
  }, { cache: { prune: ["metadata.managedFields"] } });
  const idle = () => new Promise((resolve) => setImmediate(resolve));
  const settled = async () => {
    do {
      before = runs;
      await idle();
    } while (runs > before);
  };
  await operator.start();
  while (runs < OBJECTS) await idle();
  await settled();
  const first = runs;
  return {
    settled,
    version: (key) => controller.primaries.get(key)?.metadata.resourceVersion,
    measures: () => [{ unit: "runs/event", value: (runs - first) / ALL }],
  };
};

/** Part of client-node that is used. */
interface ClientNode {
  readonly ListWatch: new (
    path: string,
    watch: unknown,
    list: () => Promise<unknown>,
    autoStart: boolean,
  ) => {
    on(event: string, callback: (object: unknown) => void): void;
    start(): Promise<void>;
    get(name: string, namespace: string): {
      metadata: { resourceVersion: string };
    } | undefined;
  };
}

/**
 * Subject client-node: its cache with a callback that counts, fed as by its
 * `Watch`: by the lines of a stream, each parsed.
 */
const clientNode: StartTaker = async (memory, feed) => {
  const { ListWatch } = await loadRival<ClientNode>("@kubernetes/client-node");
  const watch = {
    watch(
      _path: string,
      _query: unknown,
      callback: (type: string, object: unknown, event: unknown) => void,
    ) {
      const lines = createInterface(Readable.from(feed));
      lines.on("line", (line) => {
        const data = JSON.parse(line.toString());
        callback(data.type, data.object, data);
      });
      return Promise.resolve({ abort() {} });
    },
  };
  const list = () => Promise.resolve(JSON.parse(memory.list.toString()));
  const informer = new ListWatch("/api/v1/pods", watch, list, false);
  let changes = 0;
  informer.on("update", () => changes++);
  await informer.start();
  return {
    async settled(events) {
      while (changes < events) await new Promise(setImmediate);
    },
    version: ({ name, namespace }) =>
      informer.get(name, namespace)?.metadata.resourceVersion,
  };
};

/**
 * Subject: parses each line and keeps nothing; lines are split as in Coracle.
 */
const jsonParse: StartTaker = async (_memory, feed) => {
  const { LineSplitter } = await import("../core/json/line_splitter.ts");
  const { rangeText } = await import("../core/json/byte_range.ts");
  let events = 0;
  const read = async () => {
    const splitter = new LineSplitter();
    for await (const chunk of feed) {
      splitter.push(chunk);
      while (splitter.next()) {
        if (JSON.parse(rangeText(splitter)).type === "MODIFIED") events++;
      }
    }
  };
  void read();
  return {
    settled: (given) => {
      verify(events === given, "each line must be parsed");
      return Promise.resolve();
    },
    version: () => undefined,
  };
};

/**
 * Subject: the least that a run needs. Each line is scanned; of 1 in 20 the object
 * is parsed. Nothing is kept.
 */
const scanAlone: StartTaker = async (_memory, feed) => {
  const { LineSplitter } = await import("../core/json/line_splitter.ts");
  const { EventScanner } = await import("../core/json/event_scanner.ts");
  const { parseRange } = await import("../core/json/byte_range.ts");
  const scanner = new EventScanner();
  let events = 0;
  const read = async () => {
    const splitter = new LineSplitter();
    for await (const chunk of feed) {
      splitter.push(chunk);
      while (splitter.next()) {
        const type = scanner.scan(splitter);
        if (++events % 20 === 0) parseRange(scanner.header);
        verify(type === "MODIFIED", "each event must be a change");
      }
    }
  };
  void read();
  return {
    settled: (given) => {
      verify(events === given, "each line must be scanned");
      return Promise.resolve();
    },
    version: () => undefined,
  };
};

export const bench: Bench = {
  name: "watch-path",
  what:
    `changes of ${OBJECTS} Pods, as bytes in memory: kept, filtered, queued and run`,
  rounds: 3,
  subjects: [
    {
      name: "coracle, 1 in 20 changes a spec",
      run: () => measure(coracle, 20),
    },
    { name: "coracle, none does", run: () => measure(coracle, Infinity) },
    { name: "coracle, each does", run: () => measure(coracle, 1) },
    { name: "client-node", rival: true, run: () => measure(clientNode, 20) },
    {
      name: "JSON.parse alone",
      rival: true,
      run: () => measure(jsonParse, 20),
    },
    {
      name: "scan alone, 1 in 20 parsed",
      rival: true,
      run: () => measure(scanAlone, 20),
    },
  ],
};
