import assert from "node:assert/strict";
import { test } from "node:test";
import { microTimestamp, timestamp } from "../../../core/api/timestamp.ts";

test("timestamp writes UTC to the second and cuts the rest off", () => {
  assert.equal(timestamp(1_999), "1970-01-01T00:00:01Z");
});

test("microTimestamp writes six digits of a second", () => {
  assert.equal(microTimestamp(1_999), "1970-01-01T00:00:01.999000Z");
});

test("timestamp refuses what is no moment", () => {
  assert.throws(() => timestamp(NaN), RangeError);
});
