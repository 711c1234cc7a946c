import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { Postings } from "../../../../core/cache/store/postings.ts";

/** Short values, and one that is not well-formed. */
const VALUES = ["a", "b", "c", "__proto__", "\ud800"];

test("Postings equals a Map of sets over any history", () => {
  const history = fc.array(
    fc.tuple(
      fc.oneof(fc.nat(30), fc.nat(10_000)),
      fc.array(fc.constantFrom(...VALUES), { maxLength: 3 }),
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
      for (const value of VALUES) {
        const slots = [...model].filter(([, set]) => set.has(value))
          .map(([slot]) => slot).sort((a, b) => a - b);
        assert.deepEqual(postings.slots(value).sort((a, b) => a - b), slots);
      }
    }),
    { numRuns: 200 },
  );
});

test("Postings takes about 20 bytes per object if eight share a value", () => {
  const postings = new Postings();
  const owner = (slot: number) =>
    `c29eca6a-3e09-435e-b099-${`${slot >> 3}`.padStart(12, "0")}`;
  for (let slot = 0; slot < 80_000; slot++) postings.set(slot, [owner(slot)]);
  const each = postings.allocatedBytes / 80_000;
  assert.ok(each < 22, `${each} bytes`);
  assert.deepEqual(
    postings.slots(owner(4242)).sort(),
    Array.from({ length: 8 }, (_, i) => (4242 & ~7) + i),
  );
});
