import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { test } from "node:test";
import {
  MemoryBudget,
  type ObjectKey,
  type UntypedObject,
} from "@coracle/operator/client";
import type {
  FetchObject,
  ObjectStore,
} from "../../../../core/cache/store/object_store.ts";
import { nextTurn } from "../../../../core/clock.ts";
import { pod, podStore, put, storedText } from "../../../support/pod_store.ts";

/** Text that hardly compresses, the same for the same number. */
function noise(number: number): string {
  return Array.from(
    { length: 8 },
    (_, i) => createHash("sha256").update(`${number}/${i}`).digest("base64"),
  ).join("");
}

test("ObjectStore demotes cold objects under a budget and still reads them", () => {
  const budget = new MemoryBudget("600KiB");
  const store = podStore({ budget });
  const of = (i: number) =>
    pod({
      name: `web-${i}`,
      namespace: `ns-${i % 7}`,
      version: i + 1,
      spec: { text: `text ${i} `.repeat(100), i },
    });
  for (let i = 0; i < 1000; i++) put(store, of(i));
  assert.ok(budget.settle());
  const { bytes, compressed, total } = store.usage();
  assert.ok(total <= budget.limit, JSON.stringify(store.usage()));
  assert.equal(total, budget.used);
  assert.equal(bytes.objects + compressed.objects, 1000);
  assert.ok(compressed.objects > 500);
  for (let i = 0; i < 1000; i += 13) {
    const { name, namespace } = of(i).metadata;
    assert.deepEqual(store.get({ name, namespace }), of(i));
  }
  assert.equal(store.list().length, 1000);
  store.close();
  assert.equal(budget.used, 0);
});

test("ObjectStore fetches an object of which only the key is stored", async () => {
  const budget = new MemoryBudget("120KiB");
  const of = (i: number, version = i + 1) =>
    pod({
      name: `web-${i}`,
      version,
      labels: { n: `${i % 5}` },
      spec: { text: noise(i) },
    });
  const fetched: string[] = [];
  let gone = "";
  const store = podStore({
    budget,
    indexes: { n: { byLabel: "n" } },
    fetch: async (key) => {
      await Promise.resolve();
      fetched.push(key.name);
      if (key.name === gone) return undefined;
      return Buffer.from(JSON.stringify(of(Number(key.name.slice(4)))));
    },
  });
  for (let i = 0; i < 500; i++) put(store, of(i));
  budget.settle();
  assert.ok(store.usage().keyOnly.objects > 300);
  assert.ok(store.usage().total <= budget.limit);
  assert.equal(store.keysByIndex("n", "3").length, 100);
  const [key] = [...store.keys()].filter((key) =>
    storedText(store, key) === undefined
  );
  assert.ok(key);
  assert.throws(() => store.get(key), /only its key is stored/);
  const number = Number(key.name.slice(4));
  const [one, two] = await Promise.all([store.read(key), store.read(key)]);
  assert.deepEqual(one, of(number));
  assert.equal(one, two);
  assert.equal(fetched.length, 1, "one fetch for both");
  assert.deepEqual(store.get(key), of(number), "it is among the decoded now");
  // A read does not change the outcome of the event of this version.
  assert.equal(put(store, of(number, number + 1)), "unchanged");
  assert.equal(put(store, of(number, 9999)), "updated");
  const rest = [...store.keys()].filter((key) =>
    storedText(store, key) === undefined
  );
  gone = rest.at(-1)?.name ?? "";
  assert.equal(await store.read({ name: gone }), undefined);
  assert.throws(() => store.addIndex("late", { byOwner: true }), RangeError);
});

test("ObjectStore fetches again if an event overtook the fetched state", async () => {
  const budget = new MemoryBudget(1);
  const of = (i: number, version: number) =>
    pod({ name: `web-${i}`, version, spec: { text: noise(i), version } });
  const change = (version: number) => {
    for (let i = 0; i < 100; i++) put(store, of(i, version));
    budget.settle();
  };
  const answers = [
    () => {
      change(2);
      return of(0, 1);
    },
    () => {
      // This time it stays stored, and no further response is needed.
      budget.limit = 1e9;
      change(3);
      return of(0, 2);
    },
  ];
  const store = podStore({
    budget,
    fetch: () =>
      Promise.resolve(Buffer.from(JSON.stringify(answers.shift()?.()))),
  });
  change(1);
  assert.equal(storedText(store, { name: "web-0" }), undefined);
  assert.deepEqual(await store.read({ name: "web-0" }), of(0, 3));
  assert.deepEqual(store.get({ name: "web-0" }), of(0, 3));
  assert.equal(answers.length, 0);
});

test("ObjectStore fails a read if the server keeps returning an older state", async () => {
  const of = (i: number, version: number) =>
    pod({ name: `web-${i}`, version, spec: { text: noise(i) } });
  const budget = new MemoryBudget(1);
  let fetches = 0;
  const store = podStore({
    budget,
    fetch: () => {
      fetches++;
      return Promise.resolve(Buffer.from(JSON.stringify(of(0, 1))));
    },
  });
  for (let i = 0; i < 100; i++) put(store, of(i, 2));
  budget.settle();
  await assert.rejects(
    store.read({ name: "web-0" }),
    /Cannot read web-0: the server must return a state at least as new as its watch delivered: received version 1$/,
  );
  assert.equal(fetches, 5);
});

test("ObjectStore reads an object again after a fetch of it has failed", async () => {
  const budget = new MemoryBudget(1);
  const of = (i: number) => pod({ name: `web-${i}`, spec: { text: noise(i) } });
  const answers = [
    () => Promise.reject(new Error("the server is away")),
    () => Promise.resolve(Buffer.from("{")),
    () => Promise.resolve(Buffer.from(JSON.stringify(of(0)))),
  ];
  const store = podStore({
    budget,
    fetch: () => answers.shift()?.() ?? Promise.resolve(undefined),
  });
  for (let i = 0; i < 100; i++) put(store, of(i));
  budget.settle();
  await assert.rejects(store.read({ name: "web-0" }), /the server is away/);
  await assert.rejects(store.read({ name: "web-0" }), SyntaxError);
  assert.deepEqual(await store.read({ name: "web-0" }), of(0));
  assert.equal(answers.length, 0);
});

test("ObjectStore does not keep a fetched object that was created again", async () => {
  const budget = new MemoryBudget(1);
  const of = (i: number) => pod({ name: `web-${i}`, spec: { text: noise(i) } });
  const next = pod({ name: "web-0", uid: "next", version: 2 });
  const store = podStore({
    budget,
    fetch: () => Promise.resolve(Buffer.from(JSON.stringify(next))),
  });
  for (let i = 0; i < 100; i++) put(store, of(i));
  budget.settle();
  budget.limit = "1GiB";
  assert.deepEqual(await store.read({ name: "web-0" }), next);
  assert.equal(
    store.find({ name: "web-0" }),
    undefined,
    "its event has not arrived",
  );
  assert.equal(store.resourceVersion({ name: "web-0" }), "1");
});

/** Store that keeps only the keys of its objects, with the answer of a server. */
function keysOnly(fetch: FetchObject): {
  readonly budget: MemoryBudget;
  readonly store: ObjectStore<UntypedObject>;
} {
  const budget = new MemoryBudget(1);
  const store = podStore({ budget, fetch });
  for (let i = 0; i < 48; i++) put(store, noisyPod(i));
  budget.settle();
  assert.equal(store.usage().keyOnly.objects, 48);
  return { budget, store };
}

function noisyPod(number: number): UntypedObject {
  return pod({ name: `web-${number}`, spec: { text: noise(number) } });
}

/** Answer with the object of a key. */
function answer({ name }: ObjectKey): Uint8Array {
  return Buffer.from(JSON.stringify(noisyPod(Number(name.slice(4)))));
}

test("ObjectStore removes its objects at its end, and uses no budget", () => {
  const budget = new MemoryBudget("1MiB");
  const stores = [podStore({ budget }), podStore({ budget })] as const;
  for (const store of stores) put(store, noisyPod(1));
  const [closed, other] = stores;
  closed.close();
  assert.equal(closed.size, 0);
  assert.equal(closed.usage().bytes.objects, 0);
  assert.equal(budget.used, other.usage().total);
});

test("ObjectStore frees its memory at its end, not object by object", () => {
  const charges: number[] = [];
  class RecordedBudget extends MemoryBudget {
    override charge(...usage: Parameters<MemoryBudget["charge"]>): void {
      charges.push(usage[1]);
      super.charge(...usage);
    }
  }
  const budget = new RecordedBudget("64KiB");
  const store = podStore({ budget });
  for (let i = 0; i < 64; i++) {
    put(store, pod({ name: `web-${i}`, spec: { text: noise(i).repeat(50) } }));
  }
  budget.settle();
  assert.ok(store.usage().compressed.objects > 32);
  charges.length = 0;
  store.addIndex("owner", { byOwner: true });
  charges.length = 0;
  const keys = store.keys();
  keys.next();
  store.close();
  assert.deepEqual(charges, []);
  assert.equal(budget.used, 0);
  assert.ok(keys.next().done);
  assert.equal(store.usage().compressed.objects, 0);
  // A write may end after it.
  put(store, noisyPod(1));
  assert.deepEqual(store.list(), [noisyPod(1)]);
});

test("ObjectStore fetches an object again after its last fetch failed", async () => {
  let fetches = 0;
  const { store } = keysOnly((key) => {
    if (++fetches === 1) return Promise.reject(new Error("no route"));
    return Promise.resolve(answer(key));
  });
  const key = { name: "web-1" };
  const reads = () => Promise.allSettled([store.read(key), store.read(key)]);
  const failed = (await reads()).map(({ status }) => status);
  assert.deepEqual(failed, ["rejected", "rejected"]);
  assert.equal(fetches, 1, "both share a fetch");
  assert.deepEqual(await store.read(key), noisyPod(1));
});

test("ObjectStore fetches at most 16 objects of a list at the same time", async () => {
  let open = 0;
  let most = 0;
  const { store } = keysOnly(async (key) => {
    most = Math.max(most, ++open);
    await nextTurn();
    open--;
    return answer(key);
  });
  const names = (await store.readList()).map(({ metadata }) => metadata.name);
  assert.deepEqual(names, [...store.keys()].map(({ name }) => name));
  assert.equal(names.length, 48);
  assert.equal(most, 16);
});

test("ObjectStore counts a fetched object in its budget", async () => {
  const { budget, store } = keysOnly((key) => Promise.resolve(answer(key)));
  budget.limit = "1GiB";
  const before = budget.used;
  await store.read({ name: "web-1" });
  const { decoded } = store.usage();
  assert.equal(decoded.objects, 1);
  assert.equal(budget.used - before, decoded.bytes);
});

test("ObjectStore keeps its size while objects change in any order", () => {
  const COUNT = 4_000;
  const budget = new MemoryBudget(1);
  const store = podStore({ budget });
  // As the Pods of a ReplicaSet, eight neighbours share most of their text.
  const of = (i: number, version: number) =>
    pod({
      name: `web-${i}`,
      version,
      spec: { text: noise(i >> 3).repeat(2), version },
    });
  for (let i = 0; i < COUNT; i++) put(store, of(i, i + 1));
  budget.settle();
  const before = store.usage().compressed.bytes;
  const version = (i: number) => COUNT + 1 + i;
  for (let i = 0; i < 2 * COUNT; i++) {
    put(store, of(i * 1_733 % COUNT, version(i)));
  }
  budget.settle();
  const { bytes, compressed } = store.usage();
  assert.ok(bytes.objects < 16, `${bytes.objects} are not compressed`);
  assert.ok(
    compressed.bytes < 1.5 * before,
    `${compressed.bytes} bytes in place of ${before}`,
  );
  for (let i = COUNT; i < 2 * COUNT; i += 97) {
    const expected = of(i * 1_733 % COUNT, version(i));
    assert.deepEqual(store.get(expected.metadata as ObjectKey), expected);
  }
});

test("ObjectStore drops objects without compressing them if keys fill the budget", () => {
  for (const isFull of [true, false]) {
    const budget = new MemoryBudget("1GiB");
    const store = podStore({ budget, fetch: () => Promise.reject() });
    for (let i = 0; i < 200; i++) put(store, noisyPod(i));
    budget.limit = isFull ? 1 : budget.used - 1;
    budget.settle(1);
    const { compressed, keyOnly } = store.usage();
    assert.equal(compressed.objects > 0, !isFull);
    assert.equal(keyOnly.objects > 0, isFull);
  }
});
