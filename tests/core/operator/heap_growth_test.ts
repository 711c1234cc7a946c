import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { getHeapSpaceStatistics } from "node:v8";
import { limitHeapGrowth } from "@coracle/operator/core";

function youngBytes(): number {
  const space = getHeapSpaceStatistics()
    .find(({ space_name }) => space_name === "new_space");
  return space?.space_size ?? NaN;
}

test("limitHeapGrowth keeps the young generation from growing, on Node", () => {
  const { deno, bun } = process.versions as Record<string, string | undefined>;
  const isNode = deno === undefined && bun === undefined;
  assert.equal(limitHeapGrowth(), isNode);
  if (!isNode) return;
  const before = youngBytes();
  // All of it lives on, for which V8 would make the space many times as large.
  const held = Array.from({ length: 300_000 }, (_, i) => ({ i, at: [i] }));
  const after = youngBytes();
  // The second half of the space is not in use before its first collection.
  assert.ok(after <= 2 * before, `${before} bytes, then ${after}`);
  assert.equal(held.length, 300_000);
});
