import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { PagedInts } from "../../../../core/cache/store/paged_ints.ts";

test("PagedInts equals a Map over any history, with a default elsewhere", () => {
  const place = fc.oneof(fc.nat(40), fc.nat(20_000));
  const history = fc.array(fc.tuple(place, fc.integer()), { maxLength: 100 });
  fc.assert(
    fc.property(history, fc.integer(), (history, rest) => {
      const ints = new PagedInts(rest);
      const model = new Map<number, number>();
      for (const [place, value] of history) {
        ints.set(place, value);
        model.set(place, value);
        for (const near of [place - 1, place, place + 1, 2 * place, 30_000]) {
          if (near < 0) continue;
          assert.equal(ints.get(near), model.get(near) ?? rest);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("PagedInts takes no memory if nothing is set, and little for few elements", () => {
  const ints = new PagedInts(-1);
  ints.set(100_000, -1);
  assert.equal(ints.allocatedBytes, 0);
  ints.set(3, 7);
  assert.equal(ints.allocatedBytes, 64);
  ints.set(100_000, 7);
  assert.equal(ints.allocatedBytes, 64 + 4 * 4096);
});
