import assert from "node:assert/strict";
import { test } from "node:test";
import { type HeapNode, TimerHeap } from "../../../core/queue/timer_heap.ts";
import { fc } from "../../support/property.ts";

const steps = fc.array(
  fc.tuple(
    fc.nat({ max: 40 }),
    fc.oneof(fc.nat({ max: 20 }), fc.constant(Infinity)),
  ),
  { maxLength: 200, size: "max" },
);

test("TimerHeap has the earliest of the nodes first, whatever moved", () => {
  fc.assert(fc.property(steps, (steps) => {
    const heap = new TimerHeap<HeapNode>();
    const nodes = Array.from({ length: 41 }, () => ({ heapIndex: -1 }));
    const dues = new Map<HeapNode, number>();
    const check = () => {
      assert.equal(heap.size, dues.size);
      assert.equal(heap.firstDue, Math.min(Infinity, ...dues.values()));
      assert.equal(
        heap.first && dues.get(heap.first),
        [...dues.values()]
          .sort((a, b) => a - b)[0],
      );
    };
    const set = (node: HeapNode, due: number) => {
      heap.set(node, due);
      if (due === Infinity) dues.delete(node);
      else dues.set(node, due);
      assert.equal(node.heapIndex >= 0, due !== Infinity);
      check();
    };
    for (const [index, due] of steps) set(nodes[index]!, due);
    while (heap.first !== undefined) set(heap.first, Infinity);
  }));
});
