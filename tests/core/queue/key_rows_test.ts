import assert from "node:assert/strict";
import { test } from "node:test";
import { IDLE, KeyRows } from "../../../core/queue/key_rows.ts";
import { fc } from "../../support/property.ts";

test("KeyRows finds each key that was added and not removed, and no other", () => {
  const key = fc.nat(400).map((number) => `team/key-${number}`);
  const step = fc.tuple(fc.constantFrom("add", "add", "remove", "clear"), key);
  fc.assert(fc.property(fc.array(step, { maxLength: 1_500 }), (steps) => {
    const rows = new KeyRows();
    const model = new Map<string, number>();
    for (const [index, [name, key]] of steps.entries()) {
      const row = rows.find(key);
      assert.equal(row, model.get(key) ?? -1);
      if (name === "add") {
        const added = rows.findOrAdd(key);
        if (row >= 0) assert.equal(added, row);
        else {
          assert.ok(![...model.values()].includes(added));
          assert.deepEqual(
            [rows.states[added], rows.events[added], rows.timerAt[added]],
            [IDLE, 0, Infinity],
          );
          rows.events[added] = 7;
          rows.states[added] = 2;
          rows.timerAt[added] = 1;
        }
        assert.equal(rows.key(added), key);
        model.set(key, added);
      } else if (name === "remove" && row >= 0) {
        rows.remove(row);
        assert.equal(rows.key(row), undefined);
        model.delete(key);
      } else if (index % 50 === 0) {
        for (const row of rows.rows()) rows.remove(row);
        model.clear();
      }
      assert.equal(rows.size, model.size);
    }
    const used = [...rows.rows()].map((row) => rows.key(row)).toSorted();
    assert.deepEqual(used, [...model.keys()].toSorted());
  }));
});

test("KeyRows keeps the values of rows while it grows, and shrinks after a burst", () => {
  const rows = new KeyRows();
  const add = (count: number) => {
    for (let i = 0; i < count; i++) {
      const row = rows.findOrAdd(`default/key-${i}`);
      rows.addedAt[row] = i;
      rows.adds[row] = { i };
    }
    for (let i = 0; i < count; i++) {
      const row = rows.find(`default/key-${i}`);
      assert.equal(rows.addedAt[row], i);
      assert.deepEqual(rows.adds[row], { i });
    }
    for (const row of rows.rows()) rows.remove(row);
  };
  add(100_000);
  const { length } = rows.states;
  add(100_000);
  assert.equal(
    rows.states.length,
    length,
    "a burst that recurs finds its room",
  );
  for (let round = 0; round < 20; round++) add(10);
  assert.ok(rows.states.length <= 4_096, `${rows.states.length} rows`);
  add(5_000);
});

test("KeyRows takes equal time for keys that differ in one character of many", () => {
  // All keys have the same characters at even, or at odd positions.
  for (
    const make of [
      (i: number) => [...i.toString(2).padStart(16, "0")].join("x"),
      (i: number) => `y${[...i.toString(2).padStart(16, "0")].join("x")}`,
    ]
  ) {
    const rows = new KeyRows();
    for (let i = 0; i < 65_536; i++) rows.findOrAdd(make(i));
    const { hashes } = rows;
    const low = new Set<number>();
    for (const row of rows.rows()) low.add((hashes[row] as number) & 0x1ffff);
    // Of 65,536 keys in 131,072 places, some 51,600 are expected to be alone.
    assert.ok(low.size > 48_000, `${low.size} places`);
  }
});
