import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  ApiError,
  type Client,
  type EventOptions,
  MetricsRegistry,
  noMetrics,
  silentLogger,
} from "@coracle/operator/core";
import {
  ConfigMap,
  Event,
  type KubernetesObject,
} from "@coracle/operator/kinds";
import { EventRecorder } from "../../../core/controller/event_recorder.ts";
import { abortable } from "../../../core/signals.ts";

const OBJECT: KubernetesObject = {
  metadata: { namespace: "default", name: "engine", uid: "uid-1" },
};

/** Calls a function with a recorder of events about one object. */
async function withRecorder(
  body: (parts: {
    readonly clock: VirtualClock;
    readonly record: (
      message: string,
      options?: EventOptions & {
        readonly uid?: string;
        readonly name?: string;
      },
    ) => Promise<void>;
    readonly events: () => Promise<readonly Event[]>;
  }) => Promise<void>,
): Promise<void> {
  const clock = new VirtualClock();
  const server = await ApiServer.start({ port: false });
  const recorder = new EventRecorder({
    client: server.client,
    clock,
    log: silentLogger,
    metrics: noMetrics,
    controller: "engines",
    instance: "replica-1",
  });
  try {
    await body({
      clock,
      async record(message, parts = {}) {
        const { uid = "uid-1", name = "engine", ...options } = parts;
        const object = { metadata: { ...OBJECT.metadata, uid, name } };
        const event = { type: "Warning", reason: "Overheated" } as const;
        recorder.record(object, ConfigMap, { ...event, message, options });
        await recorder.flush();
      },
      events: async () => {
        const options = { namespace: "default" };
        return (await server.client.list(Event, options)).items;
      },
    });
  } finally {
    await server.stop();
  }
}

test("EventRecorder counts repetitions, and keeps the newest message of a key [L41]", () =>
  withRecorder(async ({ record, events }) => {
    await record("90 degrees");
    await record("90 degrees");
    await record("95 degrees");
    assert.deepEqual(
      (await events()).map(({ message, count }) => [message, count]).sort(),
      [["90 degrees", 2], ["95 degrees", 1]],
    );
    await record("96 degrees", { key: "heat" });
    await record("97 degrees", { key: "heat" });
    const keyed = (await events()).find(({ count, message }) =>
      count === 2 && message === "97 degrees"
    );
    assert.ok(keyed, "the key is the event, in its newest words");
  }));

test("EventRecorder drops repetitions that are too early, unless the labels differ [L41]", () =>
  withRecorder(async ({ clock, record, events }) => {
    const every: EventOptions = { key: "heat", every: "30m" };
    await record("one", every);
    await clock.advance(29 * 60_000);
    await record("two", every);
    const only = async () => (await events())[0]!;
    assert.equal((await only()).message, "one");
    assert.equal((await only()).count, 1);
    await record("three", { ...every, repeats: () => false });
    assert.equal((await only()).message, "three");
    await clock.advance(30 * 60_000);
    await record("four", every);
    assert.equal((await only()).count, 3);
    await clock.advance(29 * 60_000);
    await record("five", every);
    assert.equal((await only()).message, "four", "it counts from the last one");
  }));

test("EventRecorder keeps or replaces the labels of an Event [L41]", () =>
  withRecorder(async ({ record, events }) => {
    const seen: unknown[] = [];
    const repeats = (labels: object) => {
      seen.push({ ...labels });
      return false;
    };
    const options = { key: "heat", every: "1h", repeats } as const;
    const labels = async () => (await events())[0]!.metadata.labels;
    await record("one", { ...options, labels: { a: "b" } });
    assert.deepEqual(await labels(), { a: "b" });
    await record("two", options);
    assert.deepEqual(await labels(), { a: "b" });
    await record("three", { ...options, labels: { c: "d" } });
    assert.deepEqual(await labels(), { c: "d" });
    assert.deepEqual(seen, [{ a: "b" }, { a: "b" }]);
  }));

test("EventRecorder writes an event once for each UID [L41]", () =>
  withRecorder(async ({ record, events }) => {
    await record("started", { once: true });
    await record("started", { once: true });
    assert.equal((await events())[0]?.count, 1);
    await record("started", { once: true, uid: "uid-2" });
    assert.equal((await events()).length, 2);
  }));

test("EventRecorder writes events that repeat before the write once, with a count [L41]", async () => {
  const server = await ApiServer.start({ port: false });
  const recorder = new EventRecorder({
    client: server.client,
    clock: new VirtualClock(),
    log: silentLogger,
    metrics: noMetrics,
    controller: "engines",
    instance: "replica-1",
  });
  const type = "Warning";
  for (const message of ["95 degrees", "96 degrees", "97 degrees"]) {
    const options = { key: "heat" };
    recorder.record(OBJECT, ConfigMap, {
      type,
      reason: "Overheated",
      message,
      options,
    });
  }
  await recorder.flush();
  const { items } = await server.client.list(Event, { namespace: "default" });
  assert.deepEqual(
    items.map(({ message, count }) => [message, count]),
    [["97 degrees", 3]],
  );
  const { reason, reportingComponent, reportingInstance, source } = items[0]!;
  assert.deepEqual([reason, reportingComponent, reportingInstance, source], [
    "Overheated",
    "engines",
    "replica-1",
    { component: "engines" },
  ]);
  assert.deepEqual(items[0]!.involvedObject, {
    apiVersion: "v1",
    kind: "ConfigMap",
    ...OBJECT.metadata,
  });
  await server.stop();
});

test("EventRecorder keeps the first and last time of an event that waits [L41]", async () => {
  const clock = new VirtualClock();
  const answered = Promise.withResolvers<undefined>();
  const created: Event[] = [];
  const recorder = new EventRecorder({
    client: {
      find: () => answered.promise,
      create: (_kind: unknown, event: Event) => {
        created.push(event);
        return Promise.resolve(event);
      },
    } as unknown as Client,
    clock,
    log: silentLogger,
    metrics: noMetrics,
    controller: "engines",
    instance: "replica-1",
  });
  const record = (message: string) =>
    recorder.record(OBJECT, ConfigMap, {
      type: "Warning",
      reason: "Overheated",
      message,
    });
  record("95 degrees");
  await clock.settle();
  record("96 degrees");
  await clock.advance(60_000);
  record("96 degrees");
  answered.resolve(undefined);
  await recorder.flush();
  record("97 degrees");
  await recorder.close();
  record("98 degrees");
  await recorder.flush();
  assert.deepEqual(
    created.map(({ count, firstTimestamp, lastTimestamp }) => [
      count,
      Date.parse(`${lastTimestamp}`) - Date.parse(`${firstTimestamp}`),
    ]),
    [[1, 0], [2, 60_000], [1, 0]],
  );
  assert.equal(clock.pendingTimers, 0);
});

test("EventRecorder drops new events while 256 others wait, and counts known ones", async () => {
  const answer = Promise.withResolvers<undefined>();
  const created: (number | undefined)[] = [];
  const metrics = new MetricsRegistry();
  const warnings: string[] = [];
  const recorder = new EventRecorder({
    client: {
      find: () => answer.promise,
      create: (_kind: unknown, { count }: Event) =>
        Promise.resolve(created.push(count)),
    } as unknown as Client,
    clock: new VirtualClock(),
    log: { ...silentLogger, warn: (message) => warnings.push(message) },
    metrics,
    controller: "engines",
    instance: "replica-1",
  });
  for (const number of [...Array(300).keys(), 0, 299]) {
    const object = { metadata: { ...OBJECT.metadata, uid: `uid-${number}` } };
    recorder.record(object, ConfigMap, {
      type: "Normal",
      reason: "Hot",
      message: `${number} degrees`,
    });
  }
  const dropped = (count: number) =>
    metrics.text().includes(
      `coracle_events_dropped_total{controller="engines"} ${count}\n`,
    );
  assert.ok(dropped(45), metrics.text());
  assert.deepEqual(warnings, ["Events are dropped: too many wait"]);
  answer.resolve(undefined);
  await recorder.flush();
  assert.deepEqual(created, [2, ...Array(255).fill(1)]);
});

test("EventRecorder writes 25 events about an object at once, then one in 5 minutes", () =>
  withRecorder(async ({ clock, record, events }) => {
    for (let number = 0; number < 100; number++) {
      await record(`${number} degrees`);
      // What is ignored on purpose costs nothing.
      await record("started", { once: true });
    }
    assert.equal((await events()).length, 25);
    await record("another object", { uid: "uid-2" });
    assert.equal((await events()).length, 26);
    for (let minute = 0; minute < 15; minute++) {
      await clock.advance(60_000);
      await record(`minute ${minute}`);
    }
    assert.equal((await events()).length, 29);
  }));

test("EventRecorder creates an event again that expires before its count is written", async () => {
  const created: (number | undefined)[] = [];
  const recorder = new EventRecorder({
    client: {
      find: () => Promise.resolve({ metadata: {}, count: 7 }),
      create: (_kind: unknown, { count }: Event) =>
        Promise.resolve(created.push(count)),
      patch: () =>
        Promise.reject(
          new ApiError("Cannot patch: it has expired", {
            status: 404,
            reason: "NotFound",
          }),
        ),
    } as unknown as Client,
    clock: new VirtualClock(),
    log: silentLogger,
    metrics: noMetrics,
    controller: "engines",
    instance: "replica-1",
  });
  recorder.record(OBJECT, ConfigMap, {
    type: "Normal",
    reason: "Hot",
    message: "97 degrees",
  });
  await recorder.flush();
  assert.deepEqual(created, [1]);
});

test("EventRecorder closes when the write that it gives up has ended", async () => {
  const clock = new VirtualClock();
  const ended = Promise.withResolvers<never>();
  const recorder = new EventRecorder({
    // The request ends some time after its abort.
    client: { find: () => ended.promise } as unknown as Client,
    clock,
    log: silentLogger,
    metrics: noMetrics,
    controller: "engines",
    instance: "replica-1",
  });
  recorder.record(OBJECT, ConfigMap, {
    type: "Normal",
    reason: "Hot",
    message: "97 degrees",
  });
  let closed = false;
  const closing = recorder.close().then(() => closed = true);
  await clock.advance(60_000);
  assert.equal(closed, false);
  ended.reject(new Error("aborted"));
  await closing;
  assert.equal(clock.pendingTimers, 0);
});

test("EventRecorder drops an event that the server forbids, without failing [L41]", async () => {
  const warnings: string[] = [];
  const metrics = new MetricsRegistry();
  const dropped = (count: number) =>
    metrics.text().includes(
      `coracle_events_dropped_total{controller="engines"} ${count}\n`,
    );
  const forbidden = new ApiError("Cannot create: the namespace ends", {
    status: 403,
    reason: "Forbidden",
  });
  const recorder = new EventRecorder({
    client: {
      find: () => Promise.resolve(undefined),
      create: () => Promise.reject(forbidden),
    } as unknown as Client,
    clock: new VirtualClock(),
    log: { ...silentLogger, warn: (message) => warnings.push(message) },
    metrics,
    controller: "engines",
    instance: "replica-1",
  });
  assert.ok(dropped(0), "an alert sees no growth of a new series");
  recorder.record(OBJECT, ConfigMap, {
    type: "Normal",
    reason: "Started",
    message: "unheard",
  });
  await recorder.flush();
  assert.deepEqual(warnings, ["Cannot write an Event"]);
  assert.ok(dropped(1), metrics.text());
});

test("EventRecorder counts up an event that another replica creates meanwhile [L41]", async () => {
  const patches: unknown[] = [];
  const recorder = new EventRecorder({
    client: {
      find: () => Promise.resolve(undefined),
      create: () =>
        Promise.reject(
          new ApiError("Cannot create: it exists", {
            status: 409,
            reason: "AlreadyExists",
          }),
        ),
      patch: (_kind: unknown, _key: unknown, { count }: Event) =>
        Promise.resolve(patches.push(count)),
    } as unknown as Client,
    clock: new VirtualClock(),
    log: silentLogger,
    metrics: noMetrics,
    controller: "engines",
    instance: "replica-1",
  });
  recorder.record(OBJECT, ConfigMap, {
    type: "Normal",
    reason: "Started",
    message: "twice",
  });
  await recorder.flush();
  assert.deepEqual(patches, [2]);
});

test("EventRecorder counts the events that it has no time to write when it closes", async () => {
  const clock = new VirtualClock();
  const metrics = new MetricsRegistry();
  const recorder = new EventRecorder({
    client: {
      find: (
        _kind: unknown,
        _key: unknown,
        { signal }: { signal: AbortSignal },
      ) => abortable(new Promise(() => {}), signal),
    } as unknown as Client,
    clock,
    log: silentLogger,
    metrics,
    controller: "engines",
    instance: "replica-1",
  });
  for (const message of ["one", "two", "three"]) {
    const event = { type: "Normal", reason: "Hot", message } as const;
    recorder.record(OBJECT, ConfigMap, event);
  }
  const closing = recorder.close();
  await clock.advance(5_000);
  await closing;
  assert.match(metrics.text(), /events_dropped_total\{.*\} 3\n/);
});

test("EventRecorder cuts a long text between characters, and keeps a valid name", () =>
  withRecorder(async ({ record, events }) => {
    const families = "👨‍👩‍👧".repeat(200); // Each has eight code units.
    await record(`x${families}`);
    await record("short 👩‍🚀");
    // A single character that is longer than the limit is cut within it.
    await record(`e${"\u0301".repeat(2_000)}`);
    const messages = (await events()).map(({ message }) => message).sort();
    assert.deepEqual(messages, [
      `e${"\u0301".repeat(1_023)}`,
      "short 👩‍🚀",
      `x${"👨‍👩‍👧".repeat(127)}`,
    ]);
    const name = `${"a".repeat(218)}-.b`;
    await record("named", { name });
    const named = (await events()).find(({ message }) => message === "named");
    assert.match(named?.metadata.name ?? "", /^a{218}\.[0-9a-f]{32}$/);
  }));
