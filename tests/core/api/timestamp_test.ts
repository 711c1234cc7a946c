import assert from "node:assert/strict";
import { test } from "node:test";
import { microTimestamp, timestamp } from "@coracle/operator/client";

test("timestamp formats UTC and truncates to seconds", () => {
  assert.equal(timestamp(1_999), "1970-01-01T00:00:01Z");
});

test("microTimestamp formats six fractional digits", () => {
  assert.equal(microTimestamp(1_999), "1970-01-01T00:00:01.999000Z");
});

test("timestamp rejects an invalid date", () => {
  assert.throws(() => timestamp(NaN), RangeError);
});
