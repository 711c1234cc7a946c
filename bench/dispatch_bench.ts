import { Buffer } from "node:buffer";
import type { ResolvedKind } from "@coracle/operator/kinds";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { memoryCluster } from "./support/memory_cluster.ts";
import { MEASURED_ROUNDS, measureRounds } from "./support/run_rounds.ts";
import { peakRss } from "./support/sampling.ts";

const OBJECTS = 1_000;

const WebPage: ResolvedKind = {
  group: "bench.coracle.dev",
  version: "v1",
  kind: "WebPage",
  plural: "webpages",
  scope: "Namespaced",
};

/** Custom resource of usual size, as in a list. */
function webPage(i: number): object {
  return {
    metadata: {
      name: `page-${i}`,
      namespace: `team-${i % 50}`,
      uid: `53f80bda-c36c-4e8d-999c-${String(i).padStart(12, "0")}`,
      resourceVersion: String(1_000 + i),
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
  return [...measures, peakRss()];
}

export const bench: Bench = {
  name: "dispatch",
  what: `no-op runs of ${OBJECTS} cached objects, ten at a time`,
  rounds: 3,
  subjects: [{ name: "coracle", run: coracle }],
};
