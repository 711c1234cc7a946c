import assert from "node:assert/strict";
import { test } from "node:test";
import { ValueTable } from "../../../../core/cache/store/value_table.ts";

test("ValueTable frees the space of removed values and reuses their numbers", () => {
  const table = new ValueTable();
  const name = (i: number) => `${i}`.padStart(36, "-");
  const enter = (i: number) => {
    const number = table.enter(name(i));
    table.first.set(number, i);
    return number;
  };
  for (let i = 0; i < 20_000; i++) enter(i);
  const held = table.allocatedBytes;
  assert.ok(held / 20_000 < 64, `${held / 20_000} bytes each`);
  for (let round = 1; round < 5; round++) {
    for (let i = 0; i < 20_000; i++) {
      table.remove(table.find(name(20_000 * (round - 1) + i)));
      assert.ok(enter(20_000 * round + i) < 20_001);
    }
  }
  assert.ok(table.allocatedBytes < 2 * held, `${table.allocatedBytes} bytes`);
  for (let i = 80_000; i < 100_000; i++) {
    assert.equal(table.first.get(table.find(name(i))), i);
  }
  assert.equal(table.find(name(79_999)), -1);
});
