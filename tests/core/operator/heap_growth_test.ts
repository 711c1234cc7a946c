import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { getHeapSpaceStatistics } from "node:v8";
import { runInNewContext } from "node:vm";
import { limitHeapGrowth } from "@coracle/operator/core";

function youngBytes(): number {
  const space = getHeapSpaceStatistics()
    .find(({ space_name }) => space_name === "new_space");
  return space?.space_size ?? NaN;
}

/** Objects that live on, for which V8 makes the young generation many times as large. */
const lasting = () =>
  Array.from({ length: 300_000 }, (_, i) => ({ i, at: [i] }));

test("limitHeapGrowth takes the growth of the young generation back, on Node", () => {
  const { deno, bun } = process.versions as Record<string, string | undefined>;
  const isNode = deno === undefined && bun === undefined;
  let held = isNode ? lasting() : [];
  const grown = youngBytes();
  const hadGc = "gc" in globalThis;
  assert.equal(limitHeapGrowth(), isNode);
  if (!isNode) return;
  const before = youngBytes();
  assert.ok(before <= grown / 4, `${grown} bytes, then ${before}`);
  assert.equal("gc" in globalThis, hadGc);
  assert.equal(runInNewContext("typeof gc") === "function", hadGc);
  held = lasting();
  const after = youngBytes();
  // The second half of the space is not in use before its first collection.
  assert.ok(after <= 2 * before, `${before} bytes, then ${after}`);
  assert.equal(held.length, 300_000);
});
