import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Postings } from "../../../core/cache/postings.ts";

test("Postings equals a Map of sets over any history", () => {
  const history = fc.array(
    fc.tuple(
      fc.nat(30),
      fc.array(fc.constantFrom("a", "b", "c", "__proto__"), { maxLength: 3 }),
    ),
    { maxLength: 150, size: "max" },
  );
  fc.assert(
    fc.property(history, (history) => {
      const postings = new Postings();
      const model = new Map<number, Set<string>>();
      for (const [slot, values] of history) {
        if (values.length === 0) postings.remove(slot);
        else postings.set(slot, values);
        model.set(slot, new Set(values));
      }
      const known = new Set([...model.values()].flatMap((set) => [...set]));
      assert.deepEqual(new Set(postings.values()), known);
      for (const value of ["a", "b", "c", "__proto__"]) {
        const slots = [...model].filter(([, set]) => set.has(value))
          .map(([slot]) => slot).sort((a, b) => a - b);
        assert.deepEqual(postings.slots(value).sort((a, b) => a - b), slots);
      }
    }),
    { numRuns: 200 },
  );
});
