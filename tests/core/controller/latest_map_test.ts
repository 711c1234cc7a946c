import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import fc from "fast-check";
import { LatestMap } from "../../../core/controller/latest_map.ts";

test("LatestMap keeps the keys that were set last, and at most two generations", () => {
  const operation = fc.record({
    name: fc.constantFrom("set", "set", "set", "delete", "clear"),
    key: fc.constantFrom(..."abcdefghijkl"),
  });
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 5 }),
    fc.array(operation, { maxLength: 200 }),
    (limit, operations) => {
      const map = new LatestMap<number>(limit);
      /** All keys that were set, the latest last; deleted ones have no value. */
      const model = new Map<string, number | undefined>();
      for (const [index, { name, key }] of operations.entries()) {
        if (name === "clear" && index % 10 === 0) {
          map.clear();
          model.clear();
        } else if (name === "set") {
          model.delete(key);
          model.set(key, index);
          map.set(key, index);
        } else {
          if (model.has(key)) model.set(key, undefined);
          map.delete(key);
        }
        for (const [key, value] of [...model].slice(-limit)) {
          assert.equal(map.get(key), value);
        }
        const kept = map.entries();
        for (const [key, value] of kept) {
          assert.equal(value, model.get(key));
          assert.equal(map.get(key), value);
        }
        assert.equal(new Set(kept.map(([key]) => key)).size, kept.length);
        assert.equal(map.size, kept.length);
        assert.ok(map.size <= 2 * limit);
      }
    },
  ));
});

test("LatestMap releases values that were replaced", () => {
  const map = new LatestMap<readonly number[]>(100);
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 60_000; i++) {
    map.set(`key-${i % 10}`, new Array<number>(1_000).fill(i));
  }
  const mebibytes = (process.memoryUsage().heapUsed - before) / 2 ** 20;
  assert.ok(mebibytes < 100, `${mebibytes} MiB of 458 MiB are still held`);
});
