import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { type KubernetesObject, noMetrics } from "@coracle/operator/client";
import { parseShardSelector } from "../../../../core/api/shard_selector.ts";
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
import { Widget } from "../../../support/fake_watch_call.ts";
import { shardSelector } from "../../../support/shard_selector.ts";

/** Subscription that counts how often the history restarted. */
class CountedSubscription extends Subscription<KubernetesObject> {
  restarts = 0;
  readonly versions: string[] = [];

  override progressed(resourceVersion: string): void {
    this.versions.push(resourceVersion);
  }

  override restarted(): void {
    this.restarts++;
  }
}

function header(
  name: string,
  resourceVersion: string,
  uid = name,
): ObjectHeader {
  const metadata = { namespace: "default", name, uid, resourceVersion };
  return new EventScanner().scanObject(
    wholeRange(JSON.stringify({ metadata })),
  );
}

/** A writer with its store. */
function createWriter(
  { selectsFields = false, metadataOnly = false, shard = "" } = {},
) {
  const clock = new VirtualClock();
  const store = new ObjectStore<KubernetesObject>({ kind: Widget });
  const subscriptions = new Subscriptions<KubernetesObject>(clock);
  const writer = new StoreWriter<KubernetesObject>({
    kind: Widget,
    store,
    subscriptions,
    slice: new TimeSlice(clock),
    metrics: new InformerMetrics(noMetrics, "Widget"),
    metadataOnly,
    labels: [],
    selectsFields,
    shard: shard === "" ? undefined : parseShardSelector(shard),
  });
  const events: string[] = [];
  const subscription = new CountedSubscription((event) => {
    const { type, key, initial, relist } = event;
    events.push(
      [type, key, initial && "initial", relist && "relist"]
        .filter((part) => part !== false).join(" "),
    );
  }, {
    name: "test",
    store,
    writer,
    onRemove() {},
    onError() {},
    slice: new TimeSlice(clock),
    clock,
    onSlow() {},
  });
  subscriptions.all = [subscription];
  return { events, store, subscription, writer };
}

test("StoreWriter reports each version that a state or a bookmark reaches", async () => {
  const { subscription, writer } = createWriter();
  writer.init();
  await writer.initDone("5");
  writer.bookmark("7");
  assert.deepEqual(subscription.versions, ["5", "7"]);
});

test("StoreWriter keeps only the objects of its shard, from whatever source", async () => {
  const { store, writer } = createWriter({
    shard: shardSelector({ index: 0, count: 2 }),
  });
  const names = Array.from({ length: 20 }, (_, i) => `${i * 7_919}-widget`);
  writer.init();
  for (const name of names) writer.initApply(header(name, "1"));
  await writer.initDone("1");
  const listed = store.size;
  assert.ok(listed > 0 && listed < 20, `${listed} of 20`);
  for (const name of names) writer.apply(header(name, "2"));
  assert.equal(store.size, listed);
  for (const name of names) writer.ownWrite(header(name, "3"), undefined);
  assert.equal(store.size, listed);
});

test("StoreWriter reads the metadata of a response alone if it keeps no more", () => {
  const response = {
    ...{ apiVersion: "example.dev/v1", kind: "Widget" },
    metadata: { namespace: "default", name: "a", resourceVersion: "1" },
    spec: { size: 1 },
  };
  for (const metadataOnly of [false, true]) {
    const { writer } = createWriter({ metadataOnly });
    const found = writer.scan(response);
    assert.equal(found.keyText, "default/a");
    const { bytes, end, start } = found;
    const text = new TextDecoder().decode(bytes.subarray(start, end));
    assert.equal(text.includes("spec"), !metadataOnly);
  }
});

test("StoreWriter adds no own write that a field selector may leave out", async () => {
  for (const selectsFields of [false, true]) {
    const { store, writer } = createWriter({ selectsFields });
    writer.init();
    await writer.initDone("1");
    writer.ownWrite(header("a", "9"), undefined);
    assert.equal(store.size, selectsFields ? 0 : 1);
  }
});

test("StoreWriter gives the state before an own write as a copy", async () => {
  const { store, writer } = createWriter();
  const b = { namespace: "default", name: "b" };
  writer.init();
  writer.initApply(header("a", "1"));
  writer.initApply(header("b", "2"));
  await writer.initDone("2");
  const { before } = writer.ownWrite(header("a", "9"), undefined) ?? {};
  assert.equal(store.header(b)?.resourceVersion, "2");
  assert.equal(before?.keyText, "default/a");
  assert.equal(before?.resourceVersion, "1");
});

test("StoreWriter marks events of the first state, and of a relist", async () => {
  const { events, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "1", "one"));
  writer.initApply(header("a", "2", "two"));
  await writer.initDone("2");
  writer.apply(header("a", "3", "three"));
  writer.init();
  writer.initApply(header("b", "4"));
  await writer.initDone("4");
  assert.deepEqual(events, [
    "added default/a initial",
    "deleted default/a",
    "added default/a initial",
    "deleted default/a",
    "added default/a",
    "added default/b relist",
    "deleted default/a relist",
  ]);
});

test("A deletion within an unfinished state does not count as seen", async () => {
  const { store, subscription, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "1"));
  writer.delete(header("b", "10"));
  const outcome = writer.ownWrite(header("a", "9"), undefined);
  assert.equal(outcome?.seen, "");
  assert.equal(store.resourceVersion({ namespace: "default", name: "a" }), "9");
  // The stream breaks; the state is read again, from a server that lags.
  writer.init();
  writer.initApply(header("a", "1"));
  await writer.initDone("8");
  assert.equal(subscription.restarts, 0);
  assert.equal(store.resourceVersion({ namespace: "default", name: "a" }), "9");
});

test("An own write within an unfinished state outlasts an older state", async () => {
  const { store, writer } = createWriter();
  const key = { namespace: "default", name: "a" };
  writer.init();
  writer.initApply(header("a", "1"));
  writer.ownWrite(header("a", "9"), undefined);
  writer.initApply(header("a", "9"));
  // The stream breaks; the state is read again, from a server that lags.
  writer.init();
  writer.initApply(header("a", "1"));
  assert.equal(store.resourceVersion(key), "9");
  await writer.initDone("8");
  writer.apply(header("a", "9"));
  assert.equal(store.resourceVersion(key), "9");
  writer.apply(header("a", "10"));
  assert.equal(store.resourceVersion(key), "10");
});

test("A late response to an own write does not keep a deleted object", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "1"));
  // The stream breaks and "a" is deleted, before its creation is answered.
  writer.init();
  writer.ownWrite(header("a", "1"), undefined);
  await writer.initDone("2");
  assert.equal(store.has({ namespace: "default", name: "a" }), false);
});

test("A stale response to an own write does not keep a deleted object", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "2"));
  writer.init();
  writer.ownWrite(header("a", "1"), undefined);
  await writer.initDone("3");
  assert.equal(store.has({ namespace: "default", name: "a" }), false);
});

test("A response of a recreated object is not cached if its fields may not match", async () => {
  const { store, writer } = createWriter({ selectsFields: true });
  writer.init();
  writer.initApply(header("a", "1", "first"));
  await writer.initDone("1");
  writer.ownWrite(header("a", "3", "second"), undefined);
  // The server sends the deletion of the first object, and of the second nothing.
  writer.delete(header("a", "2", "first"));
  assert.equal(store.has({ namespace: "default", name: "a" }), false);
});

test("An own write during one list does not remove its object after the next", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.ownWrite(header("a", "9"), undefined);
  await writer.initDone("8");
  writer.bookmark("10");
  writer.init();
  writer.initApply(header("a", "9"));
  await writer.initDone("11");
  assert.equal(store.has({ namespace: "default", name: "a" }), true);
});

test("A second restart of the server's history is noticed as well", async () => {
  const { store, subscription, writer } = createWriter();
  const read = async (version: string) => {
    writer.init();
    writer.initApply(header("a", version));
    await writer.initDone(version);
  };
  await read("9");
  for (let restarts = 1; restarts <= 2; restarts++) {
    // The state is read again, since known versions may mean other states.
    await assert.rejects(read("5"), /history restarted/);
    await read("5");
    assert.equal(subscription.restarts, restarts);
    await read("9");
    assert.equal(
      store.resourceVersion({ namespace: "default", name: "a" }),
      "9",
    );
  }
});

test("An event of a former object does not replace an own write of the next", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "1", "first"));
  await writer.initDone("1");
  writer.ownWrite(header("a", "5", "second"), undefined);
  writer.apply(header("a", "3", "first"));
  assert.equal(
    store.header({ namespace: "default", name: "a" })?.uid,
    "second",
  );
});

test("A deletion of a former history does not hide own writes of the next", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.delete(header("b", "10"));
  await writer.initDone("10");
  writer.init();
  await assert.rejects(writer.initDone("5"), /history restarted/);
  writer.init();
  await writer.initDone("5");
  writer.ownWrite(header("a", "6"), undefined);
  assert.equal(store.has({ namespace: "default", name: "a" }), true);
});

test("A deletion before an own write counts if a field selector decides", async () => {
  const { store, writer } = createWriter({ selectsFields: true });
  writer.init();
  writer.initApply(header("a", "1"));
  await writer.initDone("1");
  // Another client made it not match at 2, and so does not our write at 3: the
  // server sends nothing about it after this.
  writer.ownWrite(header("a", "3"), undefined);
  writer.delete(header("a", "2"));
  assert.equal(store.has({ namespace: "default", name: "a" }), false);
  // It matches again.
  writer.apply(header("a", "4"));
  assert.equal(store.resourceVersion({ namespace: "default", name: "a" }), "4");
});

test("An own write during a list keeps its object, which the list lacks", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.ownWrite(header("a", "9"), undefined);
  await writer.initDone("8");
  assert.equal(store.has({ namespace: "default", name: "a" }), true);
});

test("An own write during a list that has passed it keeps no deleted object", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "1"));
  await writer.initDone("1");
  writer.init();
  writer.ownWrite(header("a", "5"), undefined);
  await writer.initDone("8"); // "a" was deleted at 7
  assert.equal(store.has({ namespace: "default", name: "a" }), false);
});

test("A bookmark from before an own write does not let an older list replace it", async () => {
  const { store, writer } = createWriter();
  writer.init();
  writer.initApply(header("a", "1"));
  await writer.initDone("1");
  writer.ownWrite(header("a", "9"), undefined);
  writer.bookmark("5");
  writer.init();
  writer.initApply(header("a", "3"));
  await writer.initDone("8");
  assert.equal(store.resourceVersion({ namespace: "default", name: "a" }), "9");
});
