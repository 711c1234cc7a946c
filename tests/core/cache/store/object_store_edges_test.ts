import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
import { cgroupMemoryLimit } from "../../../../core/cache/store/cgroup_limit.ts";
import { checkIndex } from "../../../../core/cache/store/object_indexes.ts";
import { ObjectStore } from "../../../../core/cache/store/object_store.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";
import { Widget } from "../../../support/fake_watch_call.ts";

/** A store with one object. */
function storeOf(name: string): ObjectStore<KubernetesObject> {
  const store = new ObjectStore<KubernetesObject>({ kind: Widget });
  const metadata = { name, uid: "1", resourceVersion: "1" };
  const text = JSON.stringify({ metadata });
  store.put(new EventScanner().scanObject(wholeRange(text)));
  return store;
}

test("ObjectStore knows what a list lacks, however many lists came before", () => {
  const store = storeOf("a");
  for (let lists = 0; lists < 600; lists++) {
    store.beginRelist();
    assert.deepEqual([...store.unseen("")], [{ name: "a" }], `${lists}`);
  }
});

test("ObjectStore finds a long name whose characters have several bytes", () => {
  const name = "€".repeat(150);
  const store = storeOf(name);
  assert.equal(store.has({ name }), true);
  assert.equal(store.has({ name: `${name}€` }), false);
});

test("checkIndex accepts exactly one way to index", () => {
  const both = { byLabel: "app", byOwner: true } as const;
  assert.throws(() => checkIndex("x", both), /must have one of/);
  assert.throws(() => checkIndex("x", {} as { byOwner: true }), TypeError);
  checkIndex("x", { byLabel: "app" });
});

test("cgroupMemoryLimit takes the least limit of all that apply", () => {
  const limitOf = (files: Readonly<Record<string, string>>) =>
    cgroupMemoryLimit((path) =>
      path === "/proc/self/cgroup" ? "0::/a/../b\n" : files[path]
    );
  const root = "/sys/fs/cgroup";
  assert.equal(limitOf({}), undefined);
  const inner = { [`${root}/a/b/memory.max`]: "300\n" };
  const outer = { [`${root}/a/memory.max`]: "200\n" };
  assert.equal(limitOf(inner), 300);
  assert.equal(limitOf({ ...inner, ...outer }), 200);
  assert.equal(limitOf({ ...inner, [`${root}/memory.max`]: "0" }), 300);
  assert.equal(limitOf({ [`${root}/a/b/memory.max`]: "max" }), undefined);
});
