import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { KeyTable } from "../../../../core/cache/store/key_table.ts";

/** Finds the slot of a key as a store does: by comparing the proposed slots. */
function find(
  table: KeyTable,
  hash: number,
  isWanted: (slot: number) => boolean,
): number {
  let slot = table.first(hash);
  while (slot >= 0 && !isWanted(slot)) slot = table.next();
  return slot;
}

test("KeyTable equals a Map, with colliding hashes", () => {
  const history = fc.array(
    fc.tuple(fc.nat(400), fc.boolean()),
    { maxLength: 1_500, size: "max" },
  );
  const spread = fc.constantFrom(1, 0x100, 0x01000000, 2654435761);
  const reserved = fc.constantFrom(0, 20, 3_000, 10_000, 100_000);
  fc.assert(
    fc.property(history, spread, reserved, (history, spread, reserved) => {
      const hashOf = (slot: number) => Math.imul(slot >> 2, spread) >>> 0;
      const table = new KeyTable(hashOf);
      table.reserve(reserved);
      const present = new Set<number>();
      for (const [slot, add] of history) {
        if (add && !present.has(slot)) {
          table.add(hashOf(slot), slot);
          present.add(slot);
        } else if (!add && present.delete(slot)) {
          table.remove(hashOf(slot), slot);
        }
      }
      for (let slot = 0; slot <= 400; slot++) {
        const found = find(table, hashOf(slot), (other) => other === slot);
        assert.equal(found, present.has(slot) ? slot : -1);
      }
    }),
    { numRuns: 60 },
  );
});

test("KeyTable takes at most nine bytes per key for a hundred thousand keys", () => {
  const hashes = Array.from(
    { length: 100_000 },
    (_, i) => Math.imul(i + 1, 2654435761) >>> 0,
  );
  const table = new KeyTable((slot) => hashes[slot] ?? 0);
  hashes.forEach((hash, slot) => table.add(hash, slot));
  hashes.forEach((hash, slot) => {
    assert.equal(find(table, hash, (other) => other === slot), slot);
  });
  assert.ok(table.allocatedBytes <= 9.5 * hashes.length);
  hashes.forEach((hash, slot) => {
    if (slot % 3 > 0) table.remove(hash, slot);
  });
  hashes.forEach((hash, slot) => {
    const found = find(table, hash, (other) => other === slot);
    assert.equal(found, slot % 3 > 0 ? -1 : slot);
  });
});

test("KeyTable stays small if ten thousand keys have the same hash", () => {
  const table = new KeyTable(() => 0x12345678);
  for (let slot = 0; slot < 10_000; slot++) table.add(0x12345678, slot);
  assert.ok(table.allocatedBytes < 2 * 1024 * 1024);
  assert.equal(find(table, 0x12345678, (slot) => slot === 9_999), 9_999);
});

test("KeyTable moves no key while there are as many as were reserved", () => {
  for (const keys of [10, 3_000, 4_000, 100_000]) {
    const table = new KeyTable(() => assert.fail("A key was moved"));
    table.reserve(keys);
    const { allocatedBytes } = table;
    for (let slot = 0; slot < keys; slot++) {
      table.add(Math.imul(slot, 2654435761) >>> 0, slot);
    }
    assert.equal(table.allocatedBytes, allocatedBytes);
    assert.ok(allocatedBytes <= Math.max(64, 12 * keys), `of ${keys}`);
    table.reserve(10 * keys);
    assert.equal(table.allocatedBytes, allocatedBytes);
  }
});
