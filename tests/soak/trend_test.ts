import assert from "node:assert/strict";
import { test } from "node:test";
import { floors, trend } from "./trend.ts";

test("trend distinguishes growth from noise", () => {
  assert.deepEqual(trend([1, 2, 3, 4, 5]), { mean: 3, growth: 4 });
  assert.deepEqual(trend([7, 7, 7]), { mean: 7, growth: 0 });
  const noise = Array.from({ length: 100 }, (_, index) => index % 2);
  assert.ok(Math.abs(trend(noise).growth) < 0.1);
});

test("floors shows a leak under bursts, and no burst", () => {
  const samples = Array.from({ length: 60 }, (_, index) => index % 4 ? 50 : 10);
  assert.deepEqual(floors(samples, 5), Array(12).fill(10));
  const leaking = samples.map((value, index) => value + index);
  assert.ok(trend(floors(leaking, 5)).growth > 50);
  assert.deepEqual(floors([3, 1, 2, 5, 4, 6, 0], 3), [1, 4]);
});
