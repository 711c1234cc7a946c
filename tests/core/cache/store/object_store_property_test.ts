import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  keyText,
  MemoryBudget,
  type ObjectKey,
  type UntypedObject,
} from "@coracle/operator/client";
import { fc } from "../../../support/property.ts";
import { keyOf } from "../../../../core/api/object_key.ts";
import type { ObjectStore } from "../../../../core/cache/store/object_store.ts";
import { wholeRange } from "../../../../core/json/byte_range.ts";
import { EventScanner } from "../../../../core/json/event_scanner.ts";
import { podStore, storedText } from "../../../support/pod_store.ts";

const scanner = new EventScanner();

/** Step of a history. */
interface Step {
  readonly do: "put" | "delete" | "read" | "relist" | "budget" | "list";
  readonly key: number;
  readonly size: number;
  readonly version: number;
}

const STEPS: fc.Arbitrary<Step[]> = fc.array(
  fc.record<Step>({
    do: fc.constantFrom(
      "put",
      "put",
      "put",
      "put",
      "delete",
      "read",
      "read",
      "relist",
      "budget",
      "list",
    ),
    key: fc.nat(60),
    size: fc.oneof(fc.nat(40), fc.nat(3000)),
    version: fc.integer({ min: 1, max: 3 }),
  }),
  { minLength: 20, maxLength: 300, size: "max" },
);

function keyFor(number: number): ObjectKey {
  return number % 4 === 0
    ? { name: `web-${number >> 1}` }
    : { name: `web-${number >> 1}`, namespace: `ns-${number % 4}` };
}

/** UID of a new object: most are UUIDs, which compressed pages leave out. */
function uidOf(number: number, version: number): string {
  const digits = (number * 1_000_003 + version).toString(16);
  return number % 3 === 0
    ? `u${version}`
    : `${digits.padStart(8, "0")}-61d8-4f5c-a0f2-f2b2fd5a0a0a`;
}

/** Store and a plain Map with the same history. */
class History {
  readonly budget: MemoryBudget;
  readonly store: ObjectStore<UntypedObject>;
  readonly bounded: boolean;
  readonly model: Map<string, UntypedObject> = new Map();
  #clock = 10;

  constructor(budget: string, bounded: boolean) {
    this.budget = new MemoryBudget(budget);
    this.bounded = bounded;
    this.store = podStore({
      budget: this.budget,
      indexes: {
        size: { byFunction: (pod) => [String(pod["size"])] },
        n: { byLabel: "n" },
      },
      // The Map is the server, too.
      fetch: bounded
        ? (key) => Promise.resolve(encoded(this.model.get(keyText(key))))
        : undefined,
    });
  }

  async run(step: Step): Promise<void> {
    const { store, model, budget } = this;
    const key = keyFor(step.key);
    const text = keyText(key);
    switch (step.do) {
      case "put":
        this.#put(step, key);
        break;
      case "delete":
        assert.equal(
          store.delete(key).outcome,
          model.delete(text) ? "deleted" : "absent",
        );
        break;
      case "read":
        assert.deepEqual(await store.read(key), model.get(text));
        break;
      case "relist":
        store.beginRelist();
        for (const [text, object] of model) {
          if (text.length % 3 === step.version) model.delete(text);
          else put(store, object);
        }
        for (const key of store.unseen(String(this.#clock))) store.delete(key);
        break;
      case "budget":
        // With less than the keys need, all bodies are dropped.
        budget.limit = this.bounded
          ? 1 + 8 * step.size
          : `${20 + step.size}KiB`;
        if (step.version > 1) budget.settle();
        break;
      case "list":
        assert.deepEqual(
          store.keysByIndex("n", `${step.key}`).map(keyText).sort(),
          this.#keysWhere((object) =>
            object.metadata.labels?.["n"] === `${step.key}`
          ),
        );
    }
    assert.equal(store.size, model.size);
  }

  /** @returns How many objects had only their key kept. */
  async check(): Promise<number> {
    const { store, model } = this;
    assert.deepEqual(
      [...store.keys()].map(keyText).sort(),
      [...model.keys()].sort(),
    );
    for (let size = 0; size < 10; size++) {
      assert.deepEqual(
        store.keysByIndex("size", String(size)).map(keyText).sort(),
        this.#keysWhere((object) => object["size"] === size),
      );
    }
    const { bytes, compressed, keyOnly } = store.usage();
    assert.equal(
      bytes.objects + compressed.objects + keyOnly.objects,
      model.size,
    );
    for (const object of model.values()) {
      const { uid, resourceVersion } = object.metadata;
      const key = keyOf(object);
      assert.equal(store.resourceVersion(key), resourceVersion);
      const header = store.header(key);
      assert.equal(header?.uid, uid);
      assert.equal(header?.isPartial, storedText(store, key) === undefined);
      assert.deepEqual(await store.read(key), object, keyText(key));
    }
    store.close();
    assert.equal(this.budget.used, 0);
    return keyOnly.objects;
  }

  #put(step: Step, key: ObjectKey): void {
    const { model } = this;
    const text = keyText(key);
    const version = this.#clock += step.version === 1 ? 0 : step.version;
    const known = model.get(text);
    const object = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        ...key,
        uid: known?.metadata.uid ?? uidOf(step.key, version),
        resourceVersion: String(version),
        labels: { n: `${step.key}` },
      },
      size: step.size % 10,
      body: `${text} `.repeat(step.size / 8),
    };
    const same = known?.metadata.resourceVersion === String(version);
    assert.equal(
      put(this.store, object),
      known === undefined ? "added" : same ? "unchanged" : "updated",
    );
    if (!same) model.set(text, object);
  }

  #keysWhere(accepts: (object: UntypedObject) => boolean): string[] {
    return [...this.model.values()].filter(accepts)
      .map((object) => keyText(keyOf(object))).sort();
  }
}

function encoded(object: UntypedObject | undefined): Uint8Array | undefined {
  return object && Buffer.from(JSON.stringify(object));
}

function put(
  store: ObjectStore<UntypedObject>,
  object: UntypedObject,
): string {
  const bytes = Buffer.from(JSON.stringify(object));
  const { outcome } = store.put(scanner.scanObject(wholeRange(bytes)));
  bytes.fill("#"); // the store has made its own copy
  return outcome;
}

const CASES = [
  { what: "as bytes", budget: "1MiB", bounded: false },
  { what: "compressed", budget: "40KiB", bounded: false },
  { what: "with keys alone", budget: "1", bounded: true },
];

for (const { what, budget, bounded } of CASES) {
  test(`ObjectStore equals a plain Map over any history, ${what}`, async () => {
    let givenUp = 0;
    await fc.assert(
      fc.asyncProperty(STEPS, async (steps) => {
        const history = new History(budget, bounded);
        for (const step of steps) await history.run(step);
        givenUp += await history.check();
      }),
      { numRuns: 200 },
    );
    assert.equal(givenUp > 0, bounded);
  });
}

/** Values of an index: empty, too long to be packed, and not well-formed. */
const ODD_VALUES = [
  ...["", "a", "b", "ä", "__proto__", "\ud800", "\udfff", "\ufffd"],
  ...["x".repeat(1365), "€".repeat(1365), "€".repeat(1366)],
];

test("ObjectStore finds objects by all values of an index, over any history", () => {
  const value = fc.oneof(
    fc.constantFrom("a", "b", "c"),
    fc.constantFrom(...ODD_VALUES),
    fc.nat(30).map((n) => `c29eca6a-3e09-435e-b099-7088a19413${n}`),
    fc.string({ unit: "binary" }),
  );
  const change = fc.option(fc.array(value, { maxLength: 3 }));
  const history = fc.array(fc.tuple(fc.nat(9), change), {
    maxLength: 150,
    size: "max",
  });
  fc.assert(
    fc.property(history, (history) => {
      const store = podStore({
        indexes: { odd: { byFunction: (pod) => pod["odd"] as string[] } },
      });
      const model = new Map<string, readonly string[]>();
      for (const [at, [number, odd]] of history.entries()) {
        const metadata = { name: `web-${number}`, namespace: "default" };
        if (odd === null) {
          store.delete(metadata);
          model.delete(metadata.name);
          continue;
        }
        model.set(metadata.name, odd);
        put(store, {
          apiVersion: "v1",
          kind: "Pod",
          metadata: { ...metadata, resourceVersion: `${at + 1}` },
          odd,
        });
      }
      for (const value of new Set(history.flatMap(([, odd]) => odd ?? []))) {
        assert.deepEqual(
          store.keysByIndex("odd", value).map(({ name }) => name).sort(),
          [...model.keys()].filter((name) => model.get(name)?.includes(value))
            .sort(),
        );
      }
      store.close();
    }),
    { numRuns: 200 },
  );
});

/** Change of many objects: they get these odd values, or are deleted. */
interface Wave {
  readonly from: number;
  readonly count: number;
  readonly stride: number;
  readonly values: readonly string[] | undefined;
}

const WAVES: fc.Arbitrary<Wave[]> = fc.array(
  fc.record<Wave>({
    from: fc.nat(20_000),
    count: fc.integer({ min: 500, max: 3_000 }),
    stride: fc.constantFrom(1, 2, 7),
    values: fc.option(
      fc.array(fc.constantFrom(...ODD_VALUES), { maxLength: 3 }),
      { nil: undefined, freq: 3 },
    ),
  }),
  { minLength: 8, maxLength: 12 },
);

test("ObjectStore finds each of thousands of objects, by any value of an index", () => {
  fc.assert(
    fc.property(WAVES, (waves) => {
      const store = podStore({
        budget: new MemoryBudget("64MiB"),
        indexes: {
          odd: { byFunction: (pod) => pod["odd"] as string[] },
          own: { byFunction: ({ metadata }) => [`of ${metadata.name}`] },
          eight: { byFunction: (pod) => [`${pod["number"] as number >> 3}`] },
        },
      });
      const model = new Map<number, readonly string[]>();
      for (const [at, { from, count, stride, values }] of waves.entries()) {
        for (let index = 0; index < count; index++) {
          const number = from + index * stride;
          const metadata = { name: `web-${number}`, namespace: "default" };
          if (values === undefined) {
            const outcome = model.delete(number) ? "deleted" : "absent";
            assert.equal(store.delete(metadata).outcome, outcome);
            continue;
          }
          const odd = [...values, ...number % 5 === 0 ? ["b"] : []];
          const outcome = model.has(number) ? "updated" : "added";
          model.set(number, odd);
          const object = {
            apiVersion: "v1",
            kind: "Pod",
            metadata: { ...metadata, resourceVersion: `${at + 1}` },
            number,
            odd,
          };
          assert.equal(put(store, object), outcome);
        }
      }
      assert.equal(store.size, model.size);
      const found = (index: string, value: string) =>
        store.keysByIndex(index, value).map(({ name }) => name).sort();
      const names = (where: (odd: readonly string[], at: number) => boolean) =>
        [...model].filter(([number, odd]) => where(odd, number))
          .map(([number]) => `web-${number}`).sort();
      for (const value of ODD_VALUES) {
        const expected = names((odd) => odd.includes(value));
        assert.deepEqual(found("odd", value), expected);
      }
      for (let number = 0; number < 45_000; number += 3) {
        const own = model.has(number) ? [`web-${number}`] : [];
        assert.deepEqual(found("own", `of web-${number}`), own);
      }
      const [some = 0] = model.keys();
      assert.deepEqual(
        found("eight", `${some >> 3}`),
        names((_odd, number) => number >> 3 === some >> 3),
      );
      store.close();
    }),
    { numRuns: 8 },
  );
});
