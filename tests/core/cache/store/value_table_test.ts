import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { ValueTable } from "../../../../core/cache/store/value_table.ts";

test("ValueTable equals a Map over any history, with any texts", () => {
  const value = fc.oneof(
    fc.constantFrom("", "a", "ä", "__proto__", "\ud800", "\udfff", "\ufffd"),
    fc.nat(30).map((n) => `c29eca6a-3e09-435e-b099-7088a19413${n}`),
    // Longer than a name, of the maximum length of a name, and one more.
    fc.constantFrom("x".repeat(1365), "€".repeat(1365), "€".repeat(1366)),
    fc.string({ unit: "binary" }),
  );
  const history = fc.array(fc.tuple(value, fc.boolean()), {
    maxLength: 150,
    size: "max",
  });
  fc.assert(
    fc.property(history, (history) => {
      const table = new ValueTable();
      const model = new Map<string, number>();
      for (const [value, add] of history) {
        const known = model.get(value);
        assert.equal(table.find(value), known ?? -1);
        if (add) {
          const number = table.enter(value);
          assert.equal(number, known ?? number);
          table.first.set(number, 0);
          model.set(value, number);
        } else if (known !== undefined) {
          table.remove(known);
          model.delete(value);
        }
      }
      assert.equal(new Set(model.values()).size, model.size);
      for (const [value, number] of model) {
        assert.equal(table.find(value), number);
      }
    }),
    { numRuns: 100 },
  );
});

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
