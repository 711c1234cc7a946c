import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Duration,
  durationText,
  milliseconds,
} from "@coracle/operator/client";

test("milliseconds accepts numbers and duration strings", () => {
  assert.equal(milliseconds(0), 0);
  assert.equal(milliseconds(1_500), 1_500);
  assert.equal(milliseconds("250ms"), 250);
  assert.equal(milliseconds("10s"), 10_000);
  assert.equal(milliseconds("0.5s"), 500);
  assert.equal(milliseconds("5m"), 300_000);
  assert.equal(milliseconds("1h"), 3_600_000);
  assert.equal(milliseconds("1h30m"), 5_400_000);
  assert.equal(milliseconds("7d"), 604_800_000);
  assert.equal(milliseconds("1d12h"), 129_600_000);
  assert.equal(milliseconds("0.5d"), 43_200_000);
});

test("Duration accepts numbers with units only; milliseconds takes any text", () => {
  const good: Duration[] = [
    5,
    "250ms",
    "1.5h",
    "1h30m",
    "1m30s",
    "1h2m3s",
    "7d",
    "1d2h3m",
  ];
  // @ts-expect-error: there is no such unit
  const parsecs: Duration = "10 parsecs";
  // @ts-expect-error: a unit is needed
  const bare: Duration = "10";
  // @ts-expect-error: a text of a field may be anything
  const field: Duration = "1s" as string;
  assert.ok([...good, field].every((duration) => milliseconds(duration) > 0));
  for (const bad of [parsecs, bare]) {
    assert.throws(() => milliseconds(bad), SyntaxError);
  }
});

test("milliseconds rejects an invalid duration and names the valid forms", () => {
  for (
    const text of ["", "10", "s", "-1s", "1 s", "1w", "1s ", "9".repeat(99)]
  ) {
    assert.throws(
      () => milliseconds(text, "retry.initial"),
      (error: Error) =>
        error instanceof SyntaxError &&
        error.message.includes('"retry.initial"') &&
        error.message.includes('"10s"'),
    );
  }
  for (const number of [-1, NaN, Infinity]) {
    assert.throws(() => milliseconds(number), RangeError);
  }
});

test("durationText is short and readable", () => {
  assert.equal(durationText(0), "0ms");
  assert.equal(durationText(999), "999ms");
  assert.equal(durationText(1_500), "1.5s");
  assert.equal(durationText(60_000), "1m");
  assert.equal(durationText(5_400_000), "1h30m");
  assert.equal(durationText(36_000_000), "10h");
  assert.equal(durationText(999.6), "1s");
  assert.equal(durationText(59_960), "1m");
  assert.equal(durationText(86_399_000), "1d");
  assert.equal(durationText(36 * 3_600_000), "1d12h");
  assert.equal(durationText(7 * 86_400_000), "7d");
});
