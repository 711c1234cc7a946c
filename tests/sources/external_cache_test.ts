import assert from "node:assert/strict";
import { test } from "node:test";
import { ExternalCache } from "../../sources/external_cache.ts";

interface Item {
  readonly id: string;
  readonly value: number;
}

const item = (id: string, value: number): Item => ({ id, value });
const byId = { id: ({ id }: Item) => id };

test("ExternalCache reports additions, changes and removals, and nothing else", () => {
  const cache = new ExternalCache<Item>(byId);
  assert.equal(cache.replace("p", [item("a", 1)]), true);
  assert.equal(cache.replace("p", [item("a", 1)]), false);
  assert.equal(cache.replace("p", [item("a", 2)]), true);
  assert.equal(cache.replace("p", [item("a", 2), item("b", 1)]), true);
  assert.equal(cache.replace("p", [item("b", 1)]), true);
  assert.deepEqual(cache.of("p"), [item("b", 1)]);
  assert.equal(cache.delete("p", "x"), false);
  assert.equal(cache.delete("p"), true);
  assert.deepEqual(cache.of("p"), []);
});

test("ExternalCache asks the filters for what changed", () => {
  const cache = new ExternalCache<Item>({
    ...byId,
    filters: {
      add: ({ value }) => value > 1,
      update: (now, before) => now.value > before.value,
      delete: () => false,
    },
  });
  assert.equal(cache.replace("p", [item("a", 1)]), false);
  assert.equal(cache.replace("p", [item("a", 0)]), false);
  assert.equal(cache.replace("p", [item("a", 1)]), true);
  assert.equal(cache.replace("p", []), false);
});

test("ExternalCache reports one change if any of many is accepted", () => {
  const cache = new ExternalCache<Item>({
    ...byId,
    filters: { generic: ({ id }) => id === "b" },
  });
  assert.equal(cache.replace("p", [item("a", 1), item("b", 1)]), true);
  assert.equal(cache.replace("p", [item("a", 2), item("b", 1)]), false);
});

test("ExternalCache does not take a fetch for a change that confirms our own write", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.replace("p", [item("a", 1)]);
  cache.ownWrite("p", item("a", 2));
  assert.deepEqual(cache.of("p"), [item("a", 2)]);
  assert.equal(cache.replace("p", [item("a", 2)]), false);
});

test("ExternalCache ignores one fetch that returns the state before an own write", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.replace("p", [item("a", 1)]);
  cache.ownWrite("p", item("a", 2));
  assert.equal(cache.replace("p", [item("a", 1)]), false);
  assert.deepEqual(cache.of("p"), [item("a", 2)]);
  assert.equal(cache.replace("p", [item("a", 1)]), true, "the second is true");
});

test("ExternalCache keeps what we created over one fetch that lacks it", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.ownWrite("p", item("a", 1));
  assert.equal(cache.replace("p", []), false);
  assert.deepEqual(cache.of("p"), [item("a", 1)]);
  assert.equal(cache.replace("p", []), true);
});

test("ExternalCache ignores one fetch from before we deleted and created a resource", () => {
  for (const value of [1, 2]) {
    const cache = new ExternalCache<Item>(byId);
    cache.replace("p", [item("a", 1)]);
    cache.ownDelete("p", item("a", 1));
    cache.ownWrite("p", item("a", value));
    assert.equal(cache.replace("p", [item("a", 1)]), false);
    assert.deepEqual(cache.of("p"), [item("a", value)]);
    assert.equal(cache.replace("p", [item("a", value)]), false);
    assert.deepEqual(cache.of("p"), [item("a", value)]);
  }
});
