import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { ownerAmong, staticShard } from "../../../core/controller/shard.ts";

const keys = Array.from({ length: 2_000 }, (_, n) => `namespace-${n % 7}/${n}`);

test("staticShard assigns every object to exactly one shard, evenly", () => {
  for (const count of [1, 2, 3, 8]) {
    const parts = Array.from(
      { length: count },
      (_, index) => staticShard({ index, count }),
    );
    const sizes = parts.map((part) =>
      keys.filter((key) => part.owns(key)).length
    );
    for (const key of keys) {
      assert.equal(parts.filter((part) => part.owns(key)).length, 1);
    }
    for (const size of sizes) {
      assert.ok(size > keys.length / count * 0.8, sizes.join());
    }
  }
});

test("staticShard rejects an index that is not below the count", () => {
  for (const [index, count] of [[-1, 2], [2, 2], [0, 0], [0.5, 2]]) {
    const shard = { index: index as number, count: count as number };
    assert.throws(() => staticShard(shard), RangeError);
  }
});

test("ownerAmong does not depend on the order of the members", () => {
  fc.assert(fc.property(
    fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 8 }),
    fc.string(),
    (members, key) => {
      const owner = ownerAmong(key, members);
      assert.ok(members.includes(owner));
      assert.equal(ownerAmong(key, members.toReversed()), owner);
    },
  ));
});

test("ownerAmong reassigns few objects and distributes them evenly", () => {
  const three = ["a", "b", "c"];
  const four = [...three, "d"];
  const moved = keys.filter((key) =>
    ownerAmong(key, three) !== ownerAmong(key, four)
  );
  for (const key of moved) assert.equal(ownerAmong(key, four), "d");
  assert.ok(Math.abs(moved.length / keys.length - 1 / 4) < 0.05);
  for (const member of four) {
    const share = keys.filter((key) => ownerAmong(key, four) === member).length;
    assert.ok(Math.abs(share / keys.length - 1 / 4) < 0.05, member);
  }
});
