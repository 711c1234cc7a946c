import assert from "node:assert/strict";
import { test } from "node:test";
import { PagedInts } from "../../../../core/cache/store/paged_ints.ts";

test("PagedInts takes no memory if nothing is set, and little for few elements", () => {
  const ints = new PagedInts(-1);
  ints.set(100_000, -1);
  assert.equal(ints.allocatedBytes, 0);
  ints.set(3, 7);
  assert.equal(ints.allocatedBytes, 64);
  ints.set(100_000, 7);
  assert.equal(ints.allocatedBytes, 64 + 4 * 4096);
});
