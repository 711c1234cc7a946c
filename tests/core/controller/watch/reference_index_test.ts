import assert from "node:assert/strict";
import { test } from "node:test";
import { ReferenceIndex } from "../../../../core/controller/watch/reference_index.ts";
import { growthOf } from "../../../support/growth.ts";

test("ReferenceIndex finds the primaries of the present references", () => {
  const index = new ReferenceIndex();
  index.set("one", ["a", "b"]);
  index.set("two", ["b", "b"]);
  assert.deepEqual(index.primariesOf("a"), ["one"]);
  assert.deepEqual(index.primariesOf("b"), ["one", "two"]);
  index.set("one", ["a"]);
  assert.deepEqual(index.primariesOf("b"), ["two"]);
  index.clear();
  assert.deepEqual(index.primariesOf("a"), []);
});

test("ReferenceIndex keeps nothing of primaries and secondaries that are gone", async () => {
  const index = new ReferenceIndex();
  let round = 0;
  const found = await growthOf(5, () => {
    index.set(`primary ${++round}`, [`a ${round}`, "shared"]);
    index.set("stays", [`b ${round}`]);
    index.set(`primary ${round}`, []);
    return Promise.resolve();
  });
  assert.deepEqual(found, []);
});
