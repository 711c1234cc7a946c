import assert from "node:assert/strict";
import { test } from "node:test";
import { TimerHeap } from "../../../core/queue/timer_heap.ts";
import { fc } from "../../support/property.ts";

const steps = fc.array(
  fc.tuple(
    fc.nat({ max: 40 }),
    fc.oneof(fc.nat({ max: 20 }), fc.constant(Infinity)),
  ),
  { maxLength: 200, size: "max" },
);

test("TimerHeap has the earliest of the rows first, whatever moved", () => {
  fc.assert(fc.property(steps, (steps) => {
    const heapIndex = new Int32Array(41).fill(-1);
    const heap = new TimerHeap({ heapIndex });
    const dues = new Map<number, number>();
    const check = () => {
      assert.equal(heap.size, dues.size);
      assert.equal(heap.firstDue, Math.min(Infinity, ...dues.values()));
      assert.equal(
        dues.get(heap.first),
        [...dues.values()].sort((a, b) => a - b)[0],
      );
    };
    const set = (row: number, due: number) => {
      heap.set(row, due);
      if (due === Infinity) dues.delete(row);
      else dues.set(row, due);
      assert.equal(heapIndex[row]! >= 0, due !== Infinity);
      check();
    };
    for (const [row, due] of steps) set(row, due);
    while (heap.first >= 0) set(heap.first, Infinity);
  }));
});
