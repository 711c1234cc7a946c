import { Buffer } from "node:buffer";
import type { ResolvedKind } from "@coracle/operator/kinds";
import { mutableCopy } from "../core/json/prune.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { patchStatus } from "../core/controller/result.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { memoryCluster } from "./support/memory_cluster.ts";
import { MEASURED_ROUNDS, measureRounds } from "./support/run_rounds.ts";
import { median, peakRss, timeOf } from "./support/sampling.ts";

const OBJECTS = 1_000;

const WebPage: ResolvedKind = {
  group: "bench.coracle.dev",
  version: "v1",
  kind: "WebPage",
  plural: "webpages",
  scope: "Namespaced",
};

/** Custom resource of usual size, as in a list. */
function webPage(i: number, version: number = 1_000 + i): object {
  return {
    metadata: {
      name: `page-${i}`,
      namespace: `team-${i % 50}`,
      uid: `53f80bda-c36c-4e8d-999c-${String(i).padStart(12, "0")}`,
      resourceVersion: String(version),
      generation: 2,
      creationTimestamp: "2026-11-21T03:17:43Z",
      labels: { app: "web", team: `team-${i % 50}` },
    },
    spec: {
      title: `Page ${i}`,
      html: `<h1>Hello, ${i}</h1>`,
      replicas: 2,
      exposed: true,
    },
    status: {
      url: `https://page-${i}.example.com`,
      conditions: [{
        type: "Ready",
        status: "True",
        reason: "AllReady",
        message: "Everything is there",
        lastTransitionTime: "2026-11-21T03:17:50Z",
      }],
    },
  };
}

/** Fields of each object that a list has once. */
const apiOf = { apiVersion: "bench.coracle.dev/v1", kind: "WebPage" };

function list(): Buffer {
  return Buffer.from(JSON.stringify({
    kind: "WebPageList",
    apiVersion: "bench.coracle.dev/v1",
    metadata: { resourceVersion: "100000" },
    items: Array.from({ length: OBJECTS }, (_, i) => webPage(i)),
  }));
}

/** Stream of changes that stays empty. */
const silence: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
};

/**
 * Measures the reconciler's own copy of its primary, and of that the fields that
 * refuse to be read as the cache prunes them.
 */
function timeCopies(primaries: readonly object[]): readonly Measure[] {
  const plain = primaries.map((page) => JSON.parse(JSON.stringify(page)));
  const copyAll = (pages: readonly object[]) => () => pages.map(mutableCopy);
  const copy = timeOf(copyAll(primaries), OBJECTS);
  const without = timeOf(copyAll(plain), OBJECTS);
  return [
    { unit: "µs CPU/copy of the primary", value: copy },
    { unit: "µs CPU/pruned fields of the copy", value: copy - without },
  ];
}

/**
 * Subject: changes each object of a started operator, and waits for the patch of
 * its status before the next one. There is no network.
 */
async function changeToPatch(): Promise<readonly Measure[]> {
  const times: number[] = [];
  let version = 1_000_000;
  let changed = 0;
  let ended = Promise.withResolvers<void>();
  async function* changes(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < OBJECTS; i++) {
      await new Promise(setImmediate);
      const object = { ...apiOf, ...webPage(i, ++version) };
      const bytes = Buffer.from(JSON.stringify({ type: "MODIFIED", object }));
      ended = Promise.withResolvers();
      changed = performance.now();
      yield Buffer.concat([bytes, Buffer.from("\n")]);
      await ended.promise;
    }
    finished.resolve();
    await new Promise(() => {});
  }
  const finished = Promise.withResolvers<void>();
  const client = memoryCluster({
    kind: WebPage,
    list: list(),
    changes: changes(),
    patched() {
      times.push(1000 * (performance.now() - changed));
      const object = { ...apiOf, ...webPage(times.length - 1, ++version) };
      // The run ends with the answer, after this turn.
      setImmediate(ended.resolve);
      return Buffer.from(JSON.stringify(object));
    },
  });
  const operator = new Operator({
    client,
    logger: silentLogger,
    reconnect: { watchList: false },
  });
  operator.register(WebPage, {
    reconcile: ({ metadata }, { cause }) =>
      cause.type === "initial"
        ? undefined
        : patchStatus({ observed: metadata.resourceVersion }),
  }, { generationAware: false });
  await operator.start();
  await finished.promise;
  verify(
    times.length === OBJECTS,
    `each change must be written: ${times.length}`,
  );
  return [
    { unit: "µs/change to its PATCH", value: median(times.slice(OBJECTS / 2)) },
  ];
}

/**
 * Subject: runs every object of a started operator once per round, by
 * `trigger`.
 */
async function coracle(): Promise<readonly Measure[]> {
  let runs = 0;
  let done = () => {};
  const operator = new Operator({
    client: memoryCluster({ kind: WebPage, list: list(), changes: silence }),
    logger: silentLogger,
    reconnect: { watchList: false },
  });
  const controller = operator.register(WebPage, {
    reconcile(page) {
      verify(page.metadata.generation === 2, "the object must be there");
      if (++runs % OBJECTS === 0) done();
    },
  });
  const round = async (begin: () => unknown) => {
    const ended = new Promise<void>((resolve) => done = resolve);
    await begin();
    await ended;
    // The last runs have returned, but are not settled.
    await new Promise(setImmediate);
  };
  await round(() => operator.start());
  const keys = [...controller.primaries.keys()];
  const measures = await measureRounds(
    () =>
      round(() => {
        for (const key of keys) controller.trigger(key);
      }),
    OBJECTS,
  );
  verify(
    runs === OBJECTS * (1 + MEASURED_ROUNDS),
    `each trigger must make one run: ${runs}`,
  );
  const peak = peakRss();
  const primaries = keys.map((key) => controller.primaries.get(key) as object);
  return [...measures, ...timeCopies(primaries), peak];
}

export const bench: Bench = {
  name: "dispatch",
  what:
    `no-op runs of ${OBJECTS} cached objects, ten at a time; and a change, up to the patch that it causes`,
  rounds: 3,
  subjects: [
    { name: "coracle", run: coracle },
    { name: "coracle, one change at a time", run: changeToPatch },
  ],
};
