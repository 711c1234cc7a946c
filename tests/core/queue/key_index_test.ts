import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../support/property.ts";
import { KeyIndex } from "../../../core/queue/key_index.ts";

test("KeyIndex finds what a Map finds, through growth and removal", () => {
  const key = fc.integer({ min: 0, max: 300 }).map((n) => `namespace/${n}`);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.boolean(), key), { maxLength: 1_000, size: "max" }),
      (steps) => {
        const index = new KeyIndex();
        const model = new Map<string, number>();
        const free: number[] = [];
        for (const [add, name] of steps) {
          const slot = model.get(name);
          assert.equal(index.find(name), slot ?? -1);
          if (add) {
            const spare = free.at(-1) ?? model.size;
            const given = index.findOrSet(name, spare);
            assert.equal(given, slot ?? spare);
            if (slot === undefined) {
              model.set(name, given);
              free.pop();
            }
          } else if (slot !== undefined) {
            index.delete(slot);
            model.delete(name);
            free.push(slot);
          }
          assert.equal(index.size, model.size);
        }
        assert.deepEqual([...index.keys()].sort(), [...model.keys()].sort());
        for (const [name, slot] of model) assert.equal(index.key(slot), name);
      },
    ),
    { numRuns: 100 },
  );
});

test("KeyIndex works on when it has shrunk, once it is empty", () => {
  const index = new KeyIndex();
  for (let round = 0; round < 5; round++) {
    const count = 1_000 >> round;
    for (let slot = 0; slot < count; slot++) {
      assert.equal(index.findOrSet(`key-${slot}`, slot), slot);
    }
    assert.equal(index.find(`key-${count}`), -1);
    for (let slot = 0; slot < count; slot++) index.delete(slot);
    assert.equal(index.size, 0);
    assert.equal(index.find("key-1"), -1);
    index.shrink();
  }
});
