import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { keyText, untyped } from "@coracle/operator/client";
import { parseApiVersion } from "../../../../core/api/kind.ts";
import { ObjectStore } from "../../../../core/cache/store/object_store.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";
import { pod, podStore, put, storedText } from "../../../support/pod_store.ts";

const scanner = new EventScanner();

test("ObjectStore returns the objects put, frozen and decoded once", () => {
  const store = podStore();
  const object = pod({
    name: "web",
    namespace: "a",
    spec: { list: [{ x: 1 }] },
  });
  assert.equal(put(store, object), "added");
  const key = { name: "web", namespace: "a" };
  const read = store.get(key);
  assert.deepEqual(read, object);
  assert.ok(Object.isFrozen(read));
  assert.ok(Object.isFrozen((read?.["spec"] as { list: unknown[] }).list[0]));
  assert.equal(store.get(key), read);
  assert.deepEqual(JSON.parse(storedText(store, key) ?? ""), object);
  assert.equal(store.header(key)?.name, "web");
});

test("ObjectStore restores apiVersion and kind of items of a list", () => {
  const store = podStore();
  const full = pod({ name: "web", labels: { a: "b" } });
  const { apiVersion: _, kind: __, ...item } = full;
  put(store, item);
  assert.deepEqual(store.get({ name: "web" }), full);
  assert.deepEqual(Object.keys(store.get({ name: "web" }) ?? {}).slice(0, 2), [
    "apiVersion",
    "kind",
  ]);
  put(store, { ...item, kind: "Pod", metadata: { name: "x" } });
  assert.equal(store.get({ name: "x" })?.apiVersion, "v1");
  const deployment = new ObjectStore({
    kind: untyped({ group: "apps", version: "v1", kind: "Deployment" }),
    prune: ["metadata.managedFields"],
  });
  deployment.put(
    scanner.scanObject(
      wholeRange(' { "metadata":{"managedFields":[{}],"name":"d"}}'),
    ),
  );
  assert.deepEqual({ ...deployment.get({ name: "d" }) }, {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "d" },
  });
});

test("ObjectStore distinguishes added, updated, unchanged, stale and recreated", () => {
  const store = podStore();
  const at = (version: number | string, uid = "u") =>
    put(store, pod({ name: "web", version, uid, spec: `${version}${uid}` }));
  assert.equal(at(9), "added");
  assert.equal(at(9), "unchanged");
  assert.equal(at(10), "updated");
  assert.equal(at(9), "stale");
  assert.equal(at("9007199254740993"), "updated");
  assert.equal(at("9007199254740992"), "stale");
  assert.equal(at("18446744073709551616000"), "updated");
  assert.equal(at(7), "stale");
  assert.equal(
    put(store, pod({ name: "web", version: 7 }), { force: true }),
    "updated",
  );
  assert.equal(store.resourceVersion({ name: "web" }), "7");
  assert.equal(at(8, "other"), "recreated");
  assert.equal(store.resourceVersion({ name: "web" }), "7");
  assert.equal(store.delete({ name: "web" }).outcome, "deleted");
  assert.equal(at(6, "other"), "added");
  assert.equal(store.header({ name: "web" })?.uid, "other");
  assert.equal(store.get({ name: "web" })?.metadata.uid, "other");
});

test("ObjectStore rewrites another state of the same version when asked to", () => {
  const store = podStore({ prune: ["metadata.managedFields"] });
  const at = (spec: number, rewrite: boolean) =>
    put(store, pod({ name: "web", version: 9, spec }), { rewrite });
  assert.equal(at(1, false), "added");
  assert.equal(at(2, false), "unchanged");
  assert.equal(at(1, true), "unchanged");
  assert.equal(at(2, true), "updated");
  assert.equal(store.get({ name: "web" })?.["spec"], 2);
});

test("ObjectStore returns slot and previous state of a change when asked to", () => {
  const store = podStore();
  const scan = (version: number) =>
    scanner.scanObject(
      wholeRange(JSON.stringify(pod({ name: "web", version }))),
    );
  const previous = () => {
    const { bytes, start, end } = change.previous ?? assert.fail();
    return JSON.parse(Buffer.from(bytes).toString("utf8", start, end)).metadata
      .resourceVersion;
  };
  put(store, pod({ name: "other" }));
  let change = store.put(scan(1), { keepPrevious: true });
  const { slot } = change;
  assert.equal(change.previous, undefined);
  assert.equal(store.headerAt(slot).name, "web");
  change = store.put(scan(2), { keepPrevious: true });
  assert.equal(change.slot, slot);
  assert.equal(previous(), "1");
  assert.equal(store.put(scan(3)).previous, undefined);
  change = store.delete({ name: "web" }, { keepPrevious: true });
  assert.equal(change.slot, slot);
  assert.equal(previous(), "3");
  change = store.delete({ name: "web" }, { keepPrevious: true });
  assert.deepEqual({ ...change }, {
    outcome: "absent",
    slot: -1,
    previous: undefined,
  });
});

test("ObjectStore never treats an object without a version as unchanged", () => {
  const store = podStore();
  const object = { metadata: { name: "web" }, spec: 1 };
  assert.equal(put(store, object), "added");
  assert.equal(put(store, { ...object, spec: 2 }), "updated");
  assert.equal(store.get({ name: "web" })?.["spec"], 2);
});

test("ObjectStore rejects an object without a name", () => {
  assert.throws(() => put(podStore(), { metadata: {} }), TypeError);
  assert.throws(() => put(podStore(), { metadata: { name: "" } }), TypeError);
});

test("ObjectStore finds names with escapes and non-ASCII characters", () => {
  const store = podStore();
  const text = '{"metadata":{"name":"\\u0061\\u00e9€","namespace":"\\u006e"}}';
  store.put(scanner.scanObject(wholeRange(text)));
  const key = { name: "aé€", namespace: "n" };
  assert.ok(store.has(key));
  assert.ok(store.has(scanner.scanObject(wholeRange(text))));
  assert.deepEqual([...store.keys()], [{ namespace: "n", name: "aé€" }]);
  assert.ok(!store.has({ name: "aé€" }));
});

test("ObjectStore returns the objects that a relist did not show, unless newer", () => {
  const store = podStore();
  for (
    const [name, version] of [["a", 5], ["b", 6], ["c", 12], ["d", 10]] as const
  ) {
    put(store, pod({ name, version }));
  }
  store.beginRelist();
  assert.equal(put(store, pod({ name: "a", version: 5 })), "unchanged");
  const removed: string[] = [];
  for (const key of store.unseen("10")) {
    removed.push(`${key.name}@${store.get(key)?.metadata.resourceVersion}`);
    store.delete(key);
  }
  assert.deepEqual(removed, ["b@6", "d@10"]);
  assert.deepEqual([...store.keys()].map(keyText).sort(), ["a", "c"]);
});

test("ObjectStore keeps what a relist has shown before the store grew in it", () => {
  const store = podStore();
  const names = Array.from({ length: 200 }, (_, i) => `pod-${i}`);
  for (const name of names.slice(0, 60)) put(store, pod({ name }));
  store.beginRelist();
  for (const name of names.slice(1)) put(store, pod({ name }));
  assert.deepEqual([...store.unseen("9")], [{ name: "pod-0" }]);
});

test("ObjectStore distinguishes hundreds of relists", () => {
  const store = podStore();
  put(store, pod({ name: "old" }));
  put(store, pod({ name: "kept" }));
  for (let i = 0; i < 255; i++) {
    store.beginRelist(); // given up: nothing is swept
    put(store, pod({ name: "kept" }));
  }
  store.beginRelist();
  put(store, pod({ name: "kept" }));
  assert.deepEqual([...store.unseen("9")], [{ name: "old" }]);
});

test("ObjectStore lists all objects or those of a namespace", () => {
  const store = podStore();
  put(store, pod({ name: "a", namespace: "x", labels: { app: "web" } }));
  put(store, pod({ name: "b", namespace: "x", labels: { app: "db" } }));
  put(store, pod({ name: "c", namespace: "y", labels: { app: "web" } }));
  put(store, pod({ name: "d" }));
  const names = (namespace?: string) =>
    store.list(namespace).map(({ metadata }) => metadata.name).join();
  assert.equal(names(), "a,b,c,d");
  assert.equal(names("x"), "a,b");
  assert.equal(names(""), "d");
});

test("ObjectStore updates indexes by label, annotation, owner and function", () => {
  const errors: string[] = [];
  const store = podStore({
    indexes: {
      app: { byLabel: "app" },
      owner: { byOwner: true },
      size: {
        byFunction: ({ spec }) => {
          if (spec === "bad") throw new Error("bad spec");
          return spec === undefined ? [] : [`size-${spec}`, "any", "any"];
        },
      },
    },
    onIndexError: (index, error) => errors.push(`${index}: ${error}`),
  });
  const names = (index: string, value: string) =>
    store.byIndex(index, value).map(({ metadata }) => metadata.name).sort()
      .join();
  put(
    store,
    pod({ name: "a", labels: { app: "web" }, owners: ["1", "2"], spec: 3 }),
  );
  put(store, pod({ name: "b", labels: { app: "web" }, owners: ["2"] }));
  assert.equal(names("app", "web"), "a,b");
  assert.equal(names("owner", "2"), "a,b");
  assert.equal(names("owner", "1"), "a");
  assert.equal(names("size", "any"), "a");
  put(
    store,
    pod({ name: "a", labels: { app: "db" }, version: 2, spec: "bad" }),
  );
  assert.equal(names("app", "web"), "b");
  assert.equal(names("app", "db"), "a");
  assert.equal(names("owner", "1"), "");
  assert.equal(names("size", "any"), "");
  assert.deepEqual(errors, ["size: Error: bad spec"]);
  store.addIndex("late", { byLabel: "app" });
  assert.deepEqual(store.keysByIndex("late", "db"), [{ name: "a" }]);
  store.delete({ name: "a" });
  assert.deepEqual(store.keysByIndex("late", "db"), []);
  assert.equal(names("owner", "1"), "");
  store.removeIndex("late");
});

test("ObjectStore shares indexes with equal definitions until the last is removed", () => {
  const store = podStore({ indexes: { app: { byLabel: "app" } } });
  for (let i = 0; i < 500; i++) {
    put(store, pod({ name: `${i}`, labels: { app: `app-${i >> 2}` } }));
  }
  const held = store.usage().index;
  store.addIndex("same", { byLabel: "app" });
  store.addIndex("third", { byLabel: "app" });
  assert.equal(store.usage().index, held);
  store.addIndex("other", { byLabel: "tier" });
  store.addIndex("again", { byAnnotation: "app" });
  assert.deepEqual(store.keysByIndex("other", "app-1"), []);
  assert.deepEqual(store.keysByIndex("again", "app-1"), []);
  store.removeIndex("app");
  store.addIndex("app", { byLabel: "tier" });
  put(store, pod({ name: "new", labels: { app: "app-1", tier: "front" } }));
  assert.equal(store.keysByIndex("same", "app-1").length, 5);
  assert.equal(store.keysByIndex("third", "app-1").length, 5);
  assert.deepEqual(store.keysByIndex("app", "front"), [{ name: "new" }]);
  const before = store.usage().index;
  store.removeIndex("same");
  assert.equal(store.usage().index, before);
  store.removeIndex("third");
  assert.ok(store.usage().index < before);
});

test("ObjectStore.getAt by read keeps nothing decoded, and takes what is", () => {
  const store = podStore({ prune: ["spec.secret"] });
  put(store, pod({ name: "a", spec: { secret: "x", open: "y" } }));
  const slot = store.slotOf({ name: "a" });
  const read = store.getAt(slot, "read");
  const spec = read?.["spec"] as { secret: string; open: string };
  assert.equal(spec.open, "y");
  assert.throws(() => spec.secret, /Cannot read "spec.secret"/);
  assert.equal(store.usage().decoded.objects, 0);
  const kept = store.getAt(slot);
  assert.deepEqual(kept, read);
  assert.equal(store.getAt(slot, "read"), kept);
});

test("ObjectStore prunes paths, and reading a pruned path throws", () => {
  const store = podStore({ prune: ["spec.secret", "metadata.managedFields"] });
  const object = pod({
    name: "a",
    spec: { secret: "x".repeat(1000), open: 1 },
  });
  put(store, object);
  const spec = store.get({ name: "a" })?.["spec"] as { secret: unknown };
  assert.throws(() => spec.secret, /Cannot read "spec.secret"/);
  assert.deepEqual({ ...spec }, { open: 1 });
  assert.ok((storedText(store, { name: "a" })?.length ?? 0) < 300);
});

test("ObjectStore keeps only the managed fields of some managers, of own writes, too", () => {
  const prune = ['metadata.managedFields[manager!="page"]'];
  const saved: number[] = [];
  for (const kind of ["deployments", "pods"]) {
    const [line = ""] = readFileSync(
      new URL(`../../../../bench/data/${kind}.ndjson`, import.meta.url),
      "utf8",
    ).split("\n");
    const object = JSON.parse(line);
    const foreign = object.metadata.managedFields;
    const own = { manager: "page", operation: "Apply", fieldsV1: {} };
    object.metadata.managedFields = [...foreign, own];
    const Kind = untyped({
      ...parseApiVersion(object.apiVersion),
      kind: object.kind,
    });
    const store = new ObjectStore({ kind: Kind, prune });
    store.put(scanner.scanObject(wholeRange(JSON.stringify(object))));
    const kept = storedText(store, object.metadata) ?? "";
    assert.equal(
      kept,
      JSON.stringify({
        ...object,
        metadata: { ...object.metadata, managedFields: [own] },
      }),
    );
    assert.deepEqual(store.get(object.metadata)?.metadata.managedFields, [own]);
    saved.push(JSON.stringify(object).length - kept.length);
    assert.equal(saved.at(-1), JSON.stringify(foreign).length - 1);
  }
  const [deployment = 0, pod = 0] = saved;
  assert.ok(deployment > 1000 && pod > 1000, `${saved}`);
});

test("ObjectStore reuses the memory of objects that are replaced or deleted", () => {
  const store = podStore({ indexes: { app: { byLabel: "app" } } });
  const fill = (round: number) => {
    for (let i = 0; i < 300; i++) {
      store.delete({ name: `web-${i}-${(round + 1) % 2}` });
    }
    for (let i = 0; i < 300; i++) {
      const name = `web-${i}-${round % 2}`;
      for (let state = 0; state < 3; state++) {
        const version = 3 * round + state + 1;
        // Each state has another length.
        const spec = "x".repeat(100 + 100 * state + i % 7);
        put(store, pod({ name, version, spec, labels: { app: name } }));
      }
    }
  };
  fill(0);
  fill(1);
  const { index, bytes } = store.usage();
  for (let round = 2; round < 12; round++) fill(round);
  const after = store.usage();
  assert.equal(after.bytes.objects, 300);
  assert.ok(after.index < 1.5 * index, `${after.index} of ${index} bytes`);
  assert.ok(
    after.bytes.bytes < 2.5 * bytes.bytes,
    `${after.bytes.bytes} of ${bytes.bytes} bytes`,
  );
});

test("ObjectStore enters the objects that it has in a new index", () => {
  const store = podStore();
  put(store, pod({ name: "web", labels: { app: "a" } }));
  store.addIndex("app", { byLabel: "app" });
  assert.deepEqual(
    store.byIndex("app", "a").map(({ metadata }) => metadata.name),
    ["web"],
  );
});
