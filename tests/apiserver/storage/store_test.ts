import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { fc } from "../../support/property.ts";
import { Store } from "../../../dev/apiserver/storage/store.ts";
import { plainDefinition } from "../support/plain_kinds.ts";

const definition = plainDefinition({ plural: "widgets", kind: "Widget" });

function widget(namespace: string, name: string, value = 0): UntypedObject {
  return {
    kind: "Widget",
    apiVersion: "v1",
    metadata: { namespace, name, uid: `${namespace}-${name}` },
    value,
  };
}

/** What a collection shows, as `namespace/name=value@revision`. */
function shown(store: Store, range: { namespace?: string; revision?: number }) {
  return store.collectionOf(definition).scan(range).map((object) =>
    `${object.key}=${object.parse().value}@${object.revision}`
  );
}

test("Store lists every past revision as it was", () => {
  const step = fc.record({
    namespace: fc.constantFrom("a", "a-b", "b"),
    name: fc.constantFrom("x", "y", "z"),
    remove: fc.boolean(),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const store = new Store();
    const collection = store.collectionOf(definition);
    const past: { revision: number; shown: string[] }[] = [];
    for (const [value, { namespace, name, remove }] of steps.entries()) {
      const existing = collection.get(`${namespace}/${name}`);
      if (!remove) store.put(definition, widget(namespace, name, value));
      else if (existing) store.delete(existing);
      past.push({ revision: store.revision, shown: shown(store, {}) });
    }
    for (const { revision, shown: before } of past) {
      assert.deepEqual(shown(store, { revision }), before);
      assert.deepEqual(
        shown(store, { revision, namespace: "a" }),
        before.filter((text) => text.startsWith("a/")),
      );
    }
  }));
});

test("Store finds the objects of a manager as a scan does, after any writes", () => {
  const uid = fc.constantFrom("m", "n", undefined);
  const step = fc.record({
    namespace: fc.constantFrom("a", "a-b"),
    name: fc.constantFrom("x", "y", "z"),
    remove: fc.boolean(),
    uid,
    reads: fc.boolean(),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const store = new Store();
    const collection = store.collectionOf(definition);
    for (const { namespace, name, remove, uid, reads } of steps) {
      const existing = collection.get(`${namespace}/${name}`);
      const object = widget(namespace, name);
      const owner = { apiVersion: "v1", kind: "Owner", name: "o" };
      object.metadata.ownerReferences = [
        { ...owner, uid: "other" },
        ...uid === undefined ? [] : [{ ...owner, uid, controller: true }],
      ];
      if (!remove) store.put(definition, object);
      else if (existing) store.delete(existing);
      if (!reads) continue;
      for (const managers of [["m"], [undefined], ["n", undefined]]) {
        assert.deepEqual(
          collection.managedBy(namespace, managers),
          collection.scan({ namespace }).filter(({ manager }) =>
            managers.includes(manager)
          ),
        );
      }
    }
  }));
});

test("Store goes on from any revision of another one, which stays as it is", () => {
  const source = new Store();
  const past: string[][] = [];
  for (const [value, name] of ["x", "y", "x", "z"].entries()) {
    source.put(definition, widget("a", name, value));
    past[source.revision] = shown(source, {});
  }
  source.delete(source.collectionOf(definition).get("a/x")!);
  const last = shown(source, {});
  for (let revision = 2; revision <= 5; revision++) {
    assert(source.knows(revision));
    const store = new Store();
    store.resumeFrom(source, revision);
    assert.equal(store.revision, revision);
    assert.deepEqual(shown(store, {}), past[revision]);
    store.put(definition, widget("a", "w"));
    assert.equal(store.revision, revision + 1);
    for (let earlier = 2; earlier <= revision; earlier++) {
      assert.deepEqual(shown(store, { revision: earlier }), past[earlier]);
    }
    const { history } = store.collectionOf(definition);
    const changes = history.since(1).map((change) => change.revision);
    assert.deepEqual(changes, [2, 3, 4, 5, 6].slice(0, revision));
    assert.equal(history.watchFloor, 1);
  }
  assert.deepEqual(shown(source, {}), last);
  source.compact();
  assert.deepEqual([5, 6].map((revision) => source.knows(revision)), [
    false,
    true,
  ]);
});

test("Store keeps objects whose changes have left the history byte for byte", () => {
  const step = fc.record({
    name: fc.constantFrom("x", "y", "z"),
    remove: fc.boolean(),
    text: fc.string({ unit: "binary", maxLength: 4 }),
    times: fc.integer({ min: 0, max: 2_000 }),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
    const store = new Store({ history: { changes: 2, bytes: 2 ** 20 } });
    const collection = store.collectionOf(definition);
    const bytes = new Map<string, Uint8Array>();
    for (const { name, remove, text, times } of steps) {
      const existing = collection.get(`a/${name}`);
      if (!remove) {
        const body = { ...widget("a", name), text: text.repeat(times) };
        bytes.set(name, store.put(definition, body).bytes.slice());
      } else if (existing) {
        store.delete(existing);
        bytes.delete(name);
      }
      for (const [kept, before] of bytes) {
        const object = collection.get(`a/${kept}`);
        assert.ok(object);
        assert.deepEqual(new Uint8Array(object.bytes), before);
        assert.equal(object.size, before.length);
        assert.equal(object.parse().metadata.name, kept);
      }
      assert.equal(collection.size, bytes.size);
    }
  }));
});

test("Store holds many unchanged objects in less memory than their bytes", () => {
  const store = new Store({ history: { changes: 10, bytes: 2 ** 20 } });
  const text = "abcdefgh".repeat(8_192);
  const before = process.memoryUsage().arrayBuffers;
  const count = 4_000;
  for (let i = 0; i < count; i++) {
    store.put(definition, { ...widget("a", String(i)), text });
  }
  const grown = process.memoryUsage().arrayBuffers - before;
  assert.equal(store.size, count);
  // Some dozens of MiB of garbage of the compression may not be collected so far.
  assert.ok(grown < count * text.length / 2, `grew by ${grown} bytes`);
});

test("Store numbers writes consecutively and notifies listeners of each", () => {
  const store = new Store();
  const seen: string[] = [];
  store.listen(({ type, revision, object, previous }) =>
    seen.push(`${type} ${revision} ${object.key} ${previous?.revision}`)
  );
  const first = store.put(definition, widget("a", "x"));
  const second = store.put(definition, widget("a", "x", 1));
  const last = store.delete(second);
  assert.deepEqual(seen, [
    "ADDED 2 a/x undefined",
    "MODIFIED 3 a/x 2",
    "DELETED 4 a/x 3",
  ]);
  assert.equal(first.parse().metadata.resourceVersion, "2");
  assert.equal(last.parse().metadata.resourceVersion, "4");
  assert.equal(last.parse().value, 1);
  assert.equal(store.size, 0);
});

test("Store rejects a change that the journal cannot write", () => {
  const store = new Store({
    journal: {
      append() {
        throw new Error("disk full");
      },
    },
  });
  assert.throws(() => store.put(definition, widget("a", "x")), /disk full/);
  assert.equal(store.revision, 1);
  assert.equal(store.size, 0);
});

test("History discards changes beyond its limits and reports its floor", () => {
  const store = new Store({ history: { changes: 3, bytes: 1 << 20 } });
  for (let value = 0; value < 6; value++) {
    store.put(definition, widget("a", "x", value));
  }
  const { history } = store.collectionOf(definition);
  assert.equal(history.watchFloor, 4);
  assert.equal(history.listFloor, 4);
  assert.deepEqual(history.since(4).map(({ revision }) => revision), [5, 6, 7]);
  store.compact();
  assert.equal(history.watchFloor, 7);
  assert.deepEqual(history.since(7), []);
});

test("History limits the bytes of deleted objects", () => {
  const store = new Store({ history: { changes: 1_000, bytes: 10_000 } });
  const large = "x".repeat(3_000);
  for (let value = 0; value < 20; value++) {
    store.put(definition, { ...widget("a", "x", value), large });
  }
  const { history } = store.collectionOf(definition);
  assert.ok(history.since(history.watchFloor).length <= 4);
});

test("StoredObject reads selectable fields of the storage version as text", () => {
  const store = new Store();
  const stored = store.put(definition, {
    ...widget("a", "x"),
    spec: { color: "red" },
  });
  assert.equal(stored.field("spec.color"), "red");
  assert.equal(stored.field("metadata.name"), "x");
  assert.equal(stored.field("metadata.namespace"), "a");
  assert.equal(stored.field("spec.size"), "");
});
