import assert from "node:assert/strict";
import { test } from "node:test";
import { SlotTable } from "../../../core/queue/slot_table.ts";

/** Fills an empty table with keys and empties it again. */
function burst(table: SlotTable, count: number): void {
  const slots: number[] = [];
  for (let i = 0; i < count; i++) {
    if (table.full) table.grow();
    slots.push(table.findOrMake(`default/key-${i}`));
  }
  assert.equal(table.size, count);
  assert.equal(new Set(slots).size, count);
  for (const slot of slots) table.recycle(slot);
  table.rewind();
}

test("SlotTable keeps its room for bursts that come again", () => {
  const table = new SlotTable();
  burst(table, 20_000);
  const { capacity } = table;
  burst(table, 15_000);
  burst(table, 20_000);
  assert.equal(table.capacity, capacity);
});

test("SlotTable gives its room back when bursts come no more", () => {
  const table = new SlotTable();
  burst(table, 100_000);
  const { capacity } = table;
  for (let i = 0; i < 3; i++) burst(table, 1);
  assert.equal(table.capacity, capacity / 8);
  for (let i = 0; i < 10; i++) burst(table, 1);
  assert(table.capacity <= 4_096, String(table.capacity));
  burst(table, 10_000);
});
