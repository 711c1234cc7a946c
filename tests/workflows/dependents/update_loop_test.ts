import assert from "node:assert/strict";
import { test } from "node:test";
import { UpdateLoopError } from "@coracle/operator/workflows";
import { UpdateLoops } from "../../../workflows/dependents/update_loop.ts";

/** Numbers of the attempts, from 1, that may write. */
function written(
  loops: UpdateLoops,
  attempts: number,
  { field = "spec", now = () => 0 }: {
    readonly field?: string;
    readonly now?: () => number;
  } = {},
): number[] {
  const numbers: number[] = [];
  for (let attempt = 1; attempt <= attempts; attempt++) {
    try {
      loops.beforeWrite("a", { what: "ConfigMap a", field, now: now() });
      numbers.push(attempt);
    } catch (error) {
      assert.ok(error instanceof UpdateLoopError);
      assert.equal(error.field, field);
    }
  }
  return numbers;
}

test("UpdateLoops leaves out twice as many runs after each write, up to 64", () => {
  assert.deepEqual(
    written(new UpdateLoops(), 262),
    [1, 2, 3, 4, 5, 6, 8, 12, 20, 36, 68, 132, 197, 262],
  );
});

test("UpdateLoops counts the writes of a field, and names it with their number", () => {
  const loops = new UpdateLoops();
  written(loops, 6);
  assert.throws(
    () =>
      loops.beforeWrite("a", { what: "ConfigMap a", field: "spec", now: 0 }),
    /^UpdateLoopError: Cannot keep ConfigMap a .*: received spec after 6 writes$/,
  );
  assert.deepEqual(written(loops, 1, { field: "data" }), [1]);
  assert.deepEqual(written(loops, 7), [1, 2, 3, 4, 5, 6]);
  assert.equal(loops.size, 1);
});

test("UpdateLoops allows a write five minutes after the last one", () => {
  const loops = new UpdateLoops();
  let now = 0;
  const clock = { now: () => now };
  written(loops, 12, clock);
  now = 299_999;
  assert.deepEqual(written(loops, 1, clock), []);
  now = 300_000;
  assert.deepEqual(written(loops, 1, clock), [1]);
  now = 599_999;
  assert.deepEqual(written(loops, 1, clock), []);
});

test("UpdateLoops does not count a write that failed", () => {
  const loops = new UpdateLoops();
  for (let run = 0; run < 20; run++) {
    assert.deepEqual(written(loops, 1), [1]);
    loops.failed("a");
    assert.equal(loops.size, 0);
  }
  written(loops, 6);
  loops.failed("a");
  assert.deepEqual(written(loops, 2), [1], "the sixth again, without a wait");
  loops.failed("b");
});

test("UpdateLoops forgets an object that has settled, or all", () => {
  const loops = new UpdateLoops();
  loops.beforeWrite("b", { what: "b", field: "spec", now: 0 });
  written(loops, 6);
  loops.settled("a");
  assert.equal(loops.size, 1);
  assert.deepEqual(written(loops, 7), [1, 2, 3, 4, 5, 6]);
  loops.settled(undefined);
  assert.equal(loops.size, 0);
});
