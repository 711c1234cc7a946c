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

test("LatestMap says that it has forgotten keys, until it is empty", () => {
  const map = new LatestMap<number>(2);
  const keys = ["a", "b", "c", "d"];
  for (const key of keys) {
    map.set(key, 1);
    assert.equal(map.hasForgotten, false, key);
  }
  map.set("a", 2);
  map.set("e", 1);
  assert.equal(map.get("b"), undefined);
  assert.equal(map.hasForgotten, true);
  for (const key of ["a", "c", "d"]) map.delete(key);
  assert.equal(map.hasForgotten, true);
  map.delete("e");
  assert.equal(map.hasForgotten, false);
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

test("LatestMap with a sample keeps some of any number of keys that are set in turn", () => {
  for (const count of [50, 1_000, 20_000]) {
    const map = new LatestMap<number>(10, 20);
    const found: number[] = [];
    for (let pass = 0; pass < 20; pass++) {
      let kept = 0;
      for (let i = 0; i < count; i++) {
        if (map.get(`key-${i}`) === pass - 1) kept++;
        map.set(`key-${i}`, pass);
      }
      found.push(kept);
    }
    for (const kept of found.slice(1)) {
      assert.ok(kept > 0 && kept <= 2 * 10 + 2 * 20, `${kept} of ${count}`);
    }
  }
});

test("LatestMap with a sample gives the last value of a key, or none after delete", () => {
  const map = new LatestMap<number>(2, 2);
  const last = new Map<string, number>();
  fc.assert(fc.property(
    fc.array(fc.tuple(fc.constantFrom(..."abcdefghijklmn"), fc.boolean())),
    (steps) => {
      for (const [index, [key, isSet]] of steps.entries()) {
        if (isSet) map.set(key, index);
        else map.delete(key);
        last.delete(key);
        if (isSet) last.set(key, index);
        for (const key of "abcdefghijklmn") {
          const found = map.get(key);
          if (found !== undefined) assert.equal(found, last.get(key));
        }
      }
    },
  ));
});

test("LatestMap with a sample samples more again when few keys are set", () => {
  const map = new LatestMap<number>(5, 20);
  const pass = (count: number, value: number) => {
    let kept = 0;
    for (let i = 0; i < count; i++) {
      if (map.get(`key-${i}`) !== undefined) kept++;
      map.set(`key-${i}`, value);
    }
    return kept;
  };
  for (let value = 0; value < 3; value++) pass(20_000, value);
  let kept = 0;
  for (let value = 0; value < 100_000 && kept < 18; value++) {
    kept = pass(18, value);
  }
  assert.equal(kept, 18);
});
