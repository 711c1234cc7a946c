import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { HeldObjects } from "../../../core/controller/record/held_objects.ts";

test("held objects: one of a long run stays as it is while others come and go", () => {
  const held = new HeldObjects();
  const json = (number: number) => `{"number":${number}}`.padEnd(2_000);
  const taken = (number: number) => {
    const { bytes, start, end } = held.take(number) ?? assert.fail();
    const record = Buffer.from(bytes.subarray(start, end));
    assert.equal(record.readUInt32LE(0), number);
    return record.toString("utf8", 4);
  };
  held.add(0, json(0));
  for (let number = 1; number < 1_000; number++) {
    held.add(number, Buffer.from(json(number)));
    if (number > 3) assert.equal(taken(number - 3), json(number - 3));
  }
  assert.equal(taken(0), json(0));
  assert.equal(taken(999), json(999));
  assert.equal(held.take(0), undefined);
  assert.equal(held.has(998), true);
});

test("held objects: the memory of many is given back when none is left", () => {
  const held = new HeldObjects();
  held.add(0, "x".repeat(4 * 1024 * 1024));
  held.take(0);
  held.add(1, "{}");
  const { bytes = new Uint8Array() } = held.take(1) ?? {};
  assert.ok(bytes.length < 1024 * 1024, String(bytes.length));
});
