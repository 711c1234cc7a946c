/**
 * Cost of the recording of runs. Two operators in one process, one with a recording,
 * write the status of each of a thousand objects in turn, without a network, so that
 * the difference of a few microseconds is seen. The time is that of the processor
 * and includes the threads that collect garbage, compress and write. A round has
 * thousands of runs, as one collection of garbage more or less costs as much as
 * hundreds of runs.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { OperatorOptions } from "@coracle/operator/core";
import { Client } from "../core/client/client.ts";
import { WholeBody } from "../core/client/transport/chunk_queue.ts";
import { patchStatus } from "../core/controller/result.ts";
import { silentLogger } from "../core/logger.ts";
import { readRecording } from "../dev/testing/replay/read_recording.ts";
import { Operator } from "../core/operator/operator.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { Greeting } from "./support/greeting.ts";
import { cpuTime, median } from "./support/sampling.ts";

const OBJECTS = 1_000;
/** Number of runs of each object in a round. */
const REPEATS = 3;
/** Pairs of rounds that warm up, and that are measured. */
const WARM_UP = 8;
const SAMPLES = 60;
/** Time in which what was recorded is written, in milliseconds. */
const FLUSHED_MS = 1_300;
/** Time in which what a round has begun ends, in milliseconds. */
const SETTLED_MS = 20;

const RESOURCES = {
  ...{ kind: "APIResourceList", groupVersion: "bench.coracle.dev/v1" },
  resources: [{
    ...{ name: "greetings", kind: "Greeting", namespaced: true },
    verbs: ["get", "list", "patch", "watch"],
  }],
};

let version = 1_000;

function greeting(name: string, text: string): object {
  return {
    apiVersion: "bench.coracle.dev/v1",
    kind: "Greeting",
    metadata: {
      ...{ name, namespace: "bench", generation: 1 },
      uid: `53f80bda-c36c-4e8d-999c-${name.slice(1).padStart(12, "0")}`,
      resourceVersion: String(++version),
      creationTimestamp: "2026-11-21T03:17:43Z",
      managedFields: [{
        ...{ manager: "coracle", operation: "Update", subresource: "status" },
        ...{ apiVersion: "bench.coracle.dev/v1", fieldsType: "FieldsV1" },
        time: "2026-11-21T03:17:43Z",
        fieldsV1: { "f:status": { "f:text": {} } },
      }],
    },
    spec: { name },
    status: { text },
  };
}

/** Operator without a network, and a round in which its objects run. */
async function started(record?: OperatorOptions["record"]) {
  const answer = (value: unknown) => ({
    status: 200,
    headers: {},
    body: new WholeBody(Buffer.from(JSON.stringify(value))),
    cancel: () => Promise.resolve(),
  });
  const silence = { next: () => new Promise<never>(() => {}) };
  const client = new Client({
    transport: {
      send({ method, path, body }) {
        if (method === "PATCH") {
          const name = /greetings\/(g\d+)/.exec(path)?.[1] ?? "";
          const { status: { text } } = JSON.parse(String(body));
          return Promise.resolve(answer(greeting(name, text)));
        }
        if (path.includes("watch=true")) {
          return Promise.resolve({
            ...answer({}),
            body: { [Symbol.asyncIterator]: () => silence },
          });
        }
        if (!path.includes("greetings")) {
          return Promise.resolve(answer(RESOURCES));
        }
        return Promise.resolve(answer({
          ...{ kind: "GreetingList", apiVersion: "bench.coracle.dev/v1" },
          metadata: { resourceVersion: "1" },
          items: Array.from(
            { length: OBJECTS },
            (_, index) => greeting(`g${index}`, "none"),
          ),
        }));
      },
      close: () => Promise.resolve(),
    },
  }, { retry: false });
  let runs = 0;
  let done = () => {};
  const operator = new Operator({
    ...{ client, logger: silentLogger, record },
    reconnect: { watchList: false },
  });
  const controller = operator.register(Greeting, {
    reconcile() {
      if (++runs % OBJECTS === 0) done();
      return patchStatus({ text: `Hello, ${runs}.` });
    },
  });
  const first = new Promise<void>((resolve) => done = resolve);
  await operator.start();
  await first;
  const keys = [...controller.primaries.keys()];
  return {
    operator,
    /** Takes a round, and waits after it; returns the time of a run. */
    async round(wait = SETTLED_MS): Promise<number> {
      const before = cpuTime();
      for (let repeat = 0; repeat < REPEATS; repeat++) {
        const ended = new Promise<void>((resolve) => done = resolve);
        for (const key of keys) controller.trigger(key);
        await ended;
      }
      await sleep(wait);
      return (cpuTime() - before) / (REPEATS * OBJECTS);
    },
  };
}

/** Subject: the median of the differences of pairs of rounds. */
async function coracle(): Promise<readonly Measure[]> {
  const path = join(tmpdir(), `coracle-record-${process.pid}`);
  const plain = await started();
  const recorded = await started({ path });
  const costs: number[] = [];
  const without: number[] = [];
  try {
    for (let round = -WARM_UP; round < SAMPLES; round++) {
      // The order alternates, as the second of two finds warm caches.
      const isFirst = round % 2 === 0;
      // What the other one follows at once would write in the time of that one.
      const early = isFirst ? await recorded.round(FLUSHED_MS) : undefined;
      const a = await plain.round();
      const b = early ?? await recorded.round();
      if (round < 0) continue;
      without.push(a);
      costs.push(b - a);
    }
    await plain.operator.stop();
    await recorded.operator.stop();
    const { processes: [process], missing } = await readRecording(path);
    verify(
      missing === 0 &&
        process?.runs.length ===
          OBJECTS * (REPEATS * (WARM_UP + SAMPLES) + 1),
      `each run must be recorded: ${process?.runs.length}`,
    );
  } finally {
    rmSync(path, { force: true });
  }
  return [
    { unit: "µs CPU/run for the recording", value: median(costs) },
    { unit: "µs CPU/run without it", value: median(without) },
  ];
}

export const bench: Bench = {
  name: "record",
  what: `runs of ${OBJECTS} objects that write a status, without a network`,
  rounds: 3,
  subjects: [{ name: "coracle", run: coracle }],
};
