import assert from "node:assert/strict";
import { test } from "node:test";
import { trend } from "./trend.ts";

test("trend distinguishes growth from noise", () => {
  assert.deepEqual(trend([1, 2, 3, 4, 5]), { mean: 3, growth: 4 });
  assert.deepEqual(trend([7, 7, 7]), { mean: 7, growth: 0 });
  const noise = Array.from({ length: 100 }, (_, index) => index % 2);
  assert.ok(Math.abs(trend(noise).growth) < 0.1);
});
