import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LatestMap } from "../../../core/controller/latest_map.ts";

test("LatestMap keeps the keys that were set last, up to its limit", () => {
  const operation = fc.record({
    name: fc.constantFrom("set", "set", "set", "delete", "clear"),
    key: fc.constantFrom(..."abcdefghij"),
  });
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 5 }),
    fc.array(operation, { maxLength: 200 }),
    (limit, operations) => {
      const map = new LatestMap<number>(limit);
      let model: [string, number][] = [];
      for (const [index, { name, key }] of operations.entries()) {
        if (name === "clear" && index % 10 === 0) {
          map.clear();
          model = [];
        } else {
          model = model.filter(([known]) => known !== key);
          if (name === "set") {
            map.set(key, index);
            model = [...model, [key, index] as [string, number]].slice(-limit);
          } else map.delete(key);
        }
        const expected = new Map(model);
        for (const known of "abcdefghij") {
          assert.equal(map.get(known), expected.get(known));
        }
        assert.equal(map.size, expected.size);
      }
    },
  ));
});
