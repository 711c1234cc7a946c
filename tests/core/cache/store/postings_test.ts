import assert from "node:assert/strict";
import { test } from "node:test";
import { Postings } from "../../../../core/cache/store/postings.ts";

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

test("Postings takes no more memory for values that are replaced often", () => {
  const postings = new Postings();
  const replace = () => {
    for (let slot = 0; slot < 1_000; slot++) {
      postings.set(slot, [`a-${slot % 10}`, `b-${slot % 7}`]);
    }
  };
  replace();
  const held = postings.allocatedBytes;
  for (let round = 0; round < 20; round++) replace();
  const { allocatedBytes } = postings;
  assert.ok(allocatedBytes < 1.5 * held, `${allocatedBytes} of ${held}`);
});
