import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject, OwnWrite } from "@coracle/operator/client";
import type { CurrentEvent } from "../../../../core/cache/informer/cache_event.ts";
import { StoreWriter } from "../../../../core/cache/informer/store_writer.ts";
import {
  Subscription,
  Subscriptions,
} from "../../../../core/cache/informer/subscriptions.ts";
import { ObjectStore } from "../../../../core/cache/store/object_store.ts";
import { TimeSlice } from "../../../../core/cache/watch/receive.ts";
import { InformerMetrics } from "../../../../core/cache/watch/watch_record.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";
import type { ObjectHeader } from "../../../../core/json/object_header.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { noMetrics } from "../../../../core/metrics.ts";
import { VirtualClock } from "../../../../dev/testing/virtual_clock.ts";
import { Widget } from "../../../support/fake_watch_call.ts";
import { growthOf } from "../../../support/growth.ts";
import { inTime } from "../../../support/in_time.ts";

function object(name: string, version: number): KubernetesObject {
  const resourceVersion = String(version);
  return {
    apiVersion: "example.dev/v1",
    kind: "Widget",
    metadata: { namespace: "default", name, uid: name, resourceVersion },
  };
}

function header(name: string, version: number): ObjectHeader {
  const text = JSON.stringify(object(name, version));
  return new EventScanner().scanObject(wholeRange(text));
}

/** A cache that the test fills, and a handler's subscription to it. */
class Cache {
  readonly clock = new VirtualClock();
  /** Slow handlers, with the number and time of their calls. */
  readonly slow: string[] = [];
  /** Last event of the handler, and the number of all. */
  last = "";
  events = 0;
  readonly #store = new ObjectStore<KubernetesObject>({ kind: Widget });
  readonly #subscriptions = new Subscriptions<KubernetesObject>(this.clock);
  readonly #slice = new TimeSlice(this.clock);
  readonly writer = new StoreWriter<KubernetesObject>({
    kind: Widget,
    store: this.#store,
    subscriptions: this.#subscriptions,
    slice: this.#slice,
    metrics: new InformerMetrics(noMetrics, "Widget"),
    metadataOnly: false,
    labels: [],
    selectsFields: false,
    shard: undefined,
  });
  readonly subscription = this.subscribe((line) => {
    this.last = line;
    this.events++;
  });
  /** Version that the server has reached. */
  version = 1_000;

  subscribe(
    handle: (
      line: string,
      event: CurrentEvent<KubernetesObject>,
    ) => unknown,
    onError: (error: unknown) => void = () => {},
  ): Subscription<KubernetesObject> {
    const subscription = new Subscription<KubernetesObject>(
      (event) => handle(`${event.type} ${event.key}`, event),
      {
        name: "test",
        store: this.#store,
        writer: this.writer,
        onRemove: (removed) => this.#subscriptions.delete(removed),
        onError: (_name, error) => onError(error),
        slice: this.#slice,
        clock: this.clock,
        onSlow: (name, calls, time) =>
          void this.slow.push(`${name}: ${calls} calls in ${time} ms`),
      },
    );
    this.#subscriptions.add(subscription);
    return subscription;
  }

  /** Reads a whole state: these objects in their versions. */
  async list(...objects: readonly (readonly [string, number])[]) {
    this.writer.init();
    for (const [name, version] of objects) {
      this.writer.initApply(header(name, version));
    }
    await this.writer.initDone(String(this.version));
  }

  /** Begins a write of an object. */
  begin(name: string): OwnWrite<KubernetesObject> {
    return this.subscription.beginWrite(`default/${name}`);
  }

  /** Writes an object; its echo has not arrived. */
  write(name: string): number {
    this.begin(name).succeed(object(name, ++this.version));
    return this.version;
  }
}

/** Ways in which the stream passes own writes, which ends their windows. */
const PASSES: readonly (readonly [
  string,
  (cache: Cache, name: string) => unknown,
])[] = [
  ["its echo", (cache, name) => {
    cache.writer.apply(header(name, cache.write(name)));
  }],
  ["a later state", (cache, name) => {
    cache.write(name);
    cache.writer.apply(header(name, ++cache.version));
  }],
  ["a bookmark", (cache, name) => {
    cache.writer.bookmark(String(cache.write(name)));
  }],
  ["its deletion", (cache, name) => {
    cache.write(name);
    cache.writer.delete(header(name, ++cache.version));
  }],
  ["its deletion amid another write", (cache, name) => {
    cache.write(name);
    const late = cache.begin(name);
    cache.writer.delete(header(name, ++cache.version));
    late.fail();
  }],
  ["a list with it", (cache, name) => cache.list([name, cache.write(name)])],
  ["a list without it", (cache, name) => {
    cache.write(name);
    return cache.list();
  }],
  ["the failures of others", (cache, name) => {
    const writes = [1, 2, 3].map(() => cache.begin(name));
    writes[1]?.succeed(object(name, ++cache.version));
    cache.writer.apply(header(name, cache.version));
    writes[0]?.fail();
    writes[2]?.fail();
    writes[2]?.fail();
  }],
  ["a state of an earlier history", async (cache, name) => {
    cache.write(name);
    cache.version -= 5;
    await assert.rejects(cache.list(), /history restarted/);
    await cache.list();
  }],
];

for (const [what, pass] of PASSES) {
  test(`Own writes that a stream passed leave nothing: ${what}`, async () => {
    const cache = new Cache();
    await cache.list();
    let number = 0;
    const found = await growthOf(5, async () => {
      await pass(cache, `a${number++}`);
      await cache.clock.settle();
    });
    // The objects themselves stay.
    const isStored = (line: string) => line.startsWith("core/cache/store/");
    assert.deepEqual(found.filter((line) => !isStored(line)), []);
    // What others write from now on is delivered at once.
    const before = cache.events;
    cache.writer.apply(header(`a${number - 1}`, cache.version += 10));
    assert.equal(cache.events, before + 1);
  });
}

test("The first list, too, may hide a foreign change in the echo of an own write", () => {
  const cache = new Cache();
  const lines: string[] = [];
  const subscription = cache.subscribe((line) => lines.push(line));
  cache.writer.init();
  const write = subscription.beginWrite("default/a");
  cache.writer.initApply(header("a", 5));
  write.succeed(object("a", 5));
  assert.deepEqual(lines, ["added default/a"]);
});

test("A foreign change is delivered that a write without effect shows first", async () => {
  for (const cached of [[], [["a", 5]]] as const) {
    const cache = new Cache();
    await cache.list(...cached);
    const before = cache.events;
    // The server has a state that the stream has not delivered so far.
    const version = ++cache.version;
    cache.begin("a").succeed(object("a", version), { base: `${version}` });
    assert.equal(cache.events, before + 1);
    cache.writer.apply(header("a", version));
    assert.equal(cache.events, before + 1);
  }
});

test("A released event has its own object's former state, write after write", async () => {
  const cache = new Cache();
  const states: unknown[] = [];
  const writer = cache.subscribe((line, event) => {
    if (!line.startsWith("updated")) return;
    // It must not get the memory of the write whose event is being handled.
    writer.beginWrite("default/other").fail();
    const { name, resourceVersion } = event.previousHeader ?? event.header;
    states.push([line, name, resourceVersion]);
  });
  await cache.list(["a", 1], ["b", 2], ["other", 3]);
  for (const name of ["a", "b", "a"]) {
    const write = writer.beginWrite(`default/${name}`);
    cache.writer.apply(header(name, ++cache.version));
    write.fail();
  }
  assert.deepEqual(states, [
    ["updated default/a", "a", "1"],
    ["updated default/b", "b", "2"],
    ["updated default/a", "a", "1001"],
  ]);
});

test("A handler that another one removes is not called any more", async () => {
  const cache = new Cache();
  await cache.list();
  const seen: string[] = [];
  cache.subscribe(() => second.remove());
  const second = cache.subscribe((line) => seen.push(line));
  cache.writer.apply(header("a", 2_000));
  assert.deepEqual(seen, []);
  assert.equal(cache.last, "added default/a");
});

test("A removed handler is not asked about events, and its sync has failed", async () => {
  const cache = new Cache();
  await cache.list();
  const { changed } = Subscription.prototype;
  let asked = 0;
  Subscription.prototype.changed = function (event) {
    asked++;
    changed.call(this, event);
  };
  try {
    for (let i = 0; i < 3; i++) {
      const handler = cache.subscribe(() => {});
      handler.remove();
      await inTime("its sync", assert.rejects(handler.synced));
      await cache.clock.settle();
      assert.equal(handler.hasSynced, false);
    }
    cache.writer.apply(header("a", 2_000));
    assert.equal(asked, 1);
  } finally {
    Subscription.prototype.changed = changed;
  }
});

test("A handler has synced when it has every object, whenever it was added", async () => {
  const names = Array.from({ length: 20 }, (_, i) => `a${i}`);
  for (const moment of ["before", "during", "after"]) {
    const cache = new Cache();
    const seen = new Set<string>();
    const add = () => cache.subscribe((line) => seen.add(line));
    let handler = moment === "before" ? add() : undefined;
    cache.writer.init();
    for (const name of names) cache.writer.initApply(header(name, 5));
    if (moment === "during") handler = add();
    await cache.writer.initDone("1000");
    handler ??= add();
    await inTime(`synced, added ${moment}`, handler.synced);
    assert.ok(handler.hasSynced);
    assert.equal(seen.size, names.length, moment);
  }
});

test("A change by others after an own write is delivered before the echo", async () => {
  const cache = new Cache();
  await cache.list(["a", 1]);
  cache.write("a");
  const { events } = cache;
  cache.writer.apply(header("a", ++cache.version));
  assert.deepEqual([cache.events, cache.last], [
    events + 1,
    "updated default/a",
  ]);
});

test("A handler gets what was there when it was added, and changes meanwhile once", async () => {
  const cache = new Cache();
  await cache.list(["a", 1], ["b", 2], ["c", 3]);
  const lines: string[] = [];
  const handler = cache.subscribe((line) => lines.push(line));
  cache.writer.apply(header("a", 1_000));
  cache.writer.apply(header("b", 1_001));
  cache.writer.apply(header("d", 1_002));
  await inTime("synced", handler.synced);
  assert.deepEqual(
    lines.toSorted(),
    ["a", "b", "c", "d"].map((name) => `added default/${name}`),
  );
});

test("A handler is not told that an object is deleted that it never had", async () => {
  const cache = new Cache();
  await cache.list(["a", 1], ["b", 2]);
  const lines: string[] = [];
  const handler = cache.subscribe((line) => lines.push(line));
  cache.writer.delete(header("b", 1_001));
  await inTime("synced", handler.synced);
  assert.deepEqual(lines, ["added default/a"]);
  cache.writer.delete(header("a", 1_002));
  assert.deepEqual(lines, ["added default/a", "deleted default/a"]);
});

test("A handler has not synced before the first state is complete", async () => {
  const cache = new Cache();
  const early = cache.subscribe(() => {});
  cache.writer.init();
  cache.writer.initApply(header("a", 1));
  const late = cache.subscribe(() => {});
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  assert.deepEqual([early.hasSynced, late.hasSynced], [false, false]);
  await cache.writer.initDone("1000");
  await inTime("synced", Promise.all([early.synced, late.synced]));
});

test("A write that ends after its handler was removed releases no event", async () => {
  const cache = new Cache();
  await cache.list(["a", 1]);
  const lines: string[] = [];
  const handler = cache.subscribe((line) => lines.push(line));
  await inTime("synced", handler.synced);
  lines.length = 0;
  const write = handler.beginWrite("default/a");
  cache.writer.apply(header("a", 1_001));
  assert.deepEqual(lines, [], "it is held back");
  handler.remove();
  write.fail();
  assert.deepEqual(lines, []);
});

test("What a handler throws or rejects with is reported, and not thrown", async () => {
  const cache = new Cache();
  const errors: unknown[] = [];
  cache.subscribe(() => {
    throw new Error("thrown");
  }, (error) => errors.push(error));
  cache.subscribe(
    () => Promise.reject(new Error("rejected")),
    (error) => errors.push(error),
  );
  await cache.list(["a", 5]);
  assert.deepEqual(errors.map(String), ["Error: thrown", "Error: rejected"]);
});

test("A handler whose calls hold up the sync is named with their time", async () => {
  const names = Array.from({ length: 400 }, (_, index) => `object-${index}`);
  for (
    const [took, expected] of [[10, ["test: 100 calls in 1000 ms"]], [
      0,
      [],
    ]] as const
  ) {
    const cache = new Cache();
    await cache.list(...names.map((name) => [name, 1] as const));
    let time = 0;
    cache.clock.now = () => time;
    const handler = cache.subscribe(() => time += took);
    await inTime("synced", handler.synced);
    assert.deepEqual(cache.slow, expected);
  }
});
