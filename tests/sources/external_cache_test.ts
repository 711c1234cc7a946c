import assert from "node:assert/strict";
import { test } from "node:test";
import { ExternalCache } from "../../sources/external_cache.ts";
import { fc } from "../support/property.ts";

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
  assert.equal(cache.delete("unknown"), false);
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

test("ExternalCache reports what both filters accept, of its type and of all", () => {
  for (const [update, generic] of [[true, false], [false, true]]) {
    const cache = new ExternalCache<Item>({
      ...byId,
      filters: { update: () => update!, generic: () => generic! },
    });
    cache.replace("p", [item("a", 1)]);
    assert.equal(cache.replace("p", [item("a", 2)]), false);
  }
});

test("ExternalCache reports one change if any of many is accepted", () => {
  const cache = new ExternalCache<Item>({
    ...byId,
    filters: { generic: ({ id }) => id === "b" },
  });
  assert.equal(cache.replace("p", [item("a", 1), item("b", 1)]), true);
  assert.equal(cache.replace("p", [item("a", 2), item("b", 1)]), false);
  const removals = [() => cache.replace("p", []), () => cache.delete("p")];
  for (const remove of removals) {
    cache.replace("p", [item("b", 1), item("a", 2)]);
    assert.equal(remove(), true, "the first was accepted");
  }
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

test("ExternalCache reports what others changed or removed after an own write", () => {
  for (const fetched of [[item("a", 3)], []]) {
    const cache = new ExternalCache<Item>(byId);
    cache.replace("p", [item("a", 1)]);
    cache.ownWrite("p", item("a", 2));
    assert.equal(cache.replace("p", fetched), true);
    assert.deepEqual(cache.of("p"), fetched);
  }
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

test("ExternalCache keeps a resource that was pushed after our own deletion", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.replace("p", [item("a", 1)]);
  cache.ownDelete("p", item("a", 1));
  assert.equal(cache.put("p", item("a", 1)), true);
  assert.equal(cache.replace("p", [item("a", 1)]), false);
  assert.deepEqual(cache.of("p"), [item("a", 1)]);
});

test("ExternalCache reports what others created after our own deletion", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.replace("p", [item("a", 1)]);
  cache.ownDelete("p", item("a", 1));
  assert.equal(cache.replace("p", [item("a", 2)]), true);
  assert.deepEqual(cache.of("p"), [item("a", 2)]);
});

test("ExternalCache keeps own deletions while another resource is pushed", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.replace("p", [item("a", 1)]);
  cache.ownDelete("p", item("a", 1));
  cache.put("p", item("b", 1));
  assert.equal(cache.replace("p", [item("a", 1), item("b", 1)]), false);
  assert.deepEqual(cache.of("p"), [item("b", 1)]);
});

test("ExternalCache reports a change although later resources are unchanged", () => {
  const cache = new ExternalCache<Item>(byId);
  cache.replace("p", [item("a", 1), item("b", 1)]);
  assert.equal(cache.replace("p", [item("a", 2), item("b", 1)]), true);
});

test("ExternalCache forgets own deletions with their primary", () => {
  for (const forget of ["forget", "clear"] as const) {
    const cache = new ExternalCache<Item>(byId);
    cache.replace("p", [item("a", 1)]);
    cache.ownDelete("p", item("a", 1));
    cache[forget]("p");
    assert.equal(cache.replace("p", [item("a", 1)]), true, forget);
    assert.deepEqual(cache.of("p"), [item("a", 1)]);
  }
});

/** What happens between two fetches: own writes and deletions, one per id. */
const round = fc.record({
  own: fc.uniqueArray(
    fc.record({
      id: fc.constantFrom("a", "b", "c"),
      value: fc.option(fc.nat(3), { nil: undefined }),
    }),
    { selector: ({ id }) => id },
  ),
  /** Value that others give to an id, after the fetch that came too late. */
  foreign: fc.option(
    fc.record({ id: fc.constantFrom("a", "b", "c"), value: fc.nat(3) }),
    { nil: undefined },
  ),
});

test("ExternalCache shows own changes over a fetch from before, then what there is", () => {
  fc.assert(fc.property(fc.array(round, { maxLength: 6 }), (rounds) => {
    const cache = new ExternalCache<Item>(byId);
    const there = new Map<string, Item>();
    const shown = () => new Map(cache.of("p").map((one) => [one.id, one]));
    const sorted = (items: Iterable<Item>) =>
      [...items].sort((a, b) => a.id < b.id ? -1 : 1);
    for (const { own, foreign } of rounds) {
      const before = [...there.values()];
      for (const { id, value } of own) {
        const known = there.get(id);
        if (value !== undefined) {
          there.set(id, item(id, value));
          cache.ownWrite("p", item(id, value));
        } else if (known !== undefined) {
          there.delete(id);
          cache.ownDelete("p", known);
        }
      }
      assert.deepEqual(sorted(shown().values()), sorted(there.values()));
      cache.replace("p", before);
      assert.deepEqual(sorted(shown().values()), sorted(there.values()));
      if (foreign !== undefined) {
        there.set(foreign.id, item(foreign.id, foreign.value));
      }
      cache.replace("p", there.values());
      assert.deepEqual(sorted(shown().values()), sorted(there.values()));
      assert.equal(cache.replace("p", there.values()), false);
    }
    assert.deepEqual(cache.of("other"), []);
  }));
});

test("ExternalCache lists primaries that it knows only by a deletion", () => {
  const cache = new ExternalCache<string>();
  cache.ownDelete("a", "x");
  assert.deepEqual(cache.primaries(), ["a"]);
  cache.replace("a", []);
  assert.equal(cache.replace("a", ["x"]), true, "others have made it again");
});

test("ExternalCache asks the filter of deletions for what is gone", () => {
  const asked: string[] = [];
  const cache = new ExternalCache<string>({
    filters: {
      update: () => true,
      delete(resource) {
        asked.push(resource);
        return false;
      },
    },
  });
  cache.put("a", "x");
  assert.equal(cache.delete("a"), false);
  assert.deepEqual(asked, ["x"]);
});
