import assert from "node:assert/strict";
import { test } from "node:test";
import { Failed } from "@coracle/operator/workflows";
import { errorReport } from "../../../workflows/phases/error_report.ts";

function chain(length: number): Error {
  let error: Error = new TypeError("level 0");
  for (let level = 1; level < length; level++) {
    error = new Error(`level ${level}`, { cause: error });
  }
  return error;
}

test("errorReport includes an error with two of its causes [L45]", () => {
  assert.deepEqual(errorReport(chain(2)), {
    reason: "Error",
    message: "level 1 -> level 0",
    causes: [{ type: "TypeError", message: "level 0" }],
  });
  assert.equal(errorReport(chain(9)).causes?.length, 2);
  assert.equal(errorReport(chain(9)).message, "level 8 -> level 7 -> level 6");
  assert.equal(errorReport(chain(9), { maxCauses: 0 }).causes, undefined);
  assert.deepEqual(errorReport("plain text"), {
    reason: "Error",
    message: "plain text",
  });
});

test("errorReport takes the reason of an outcome, and no secrets of a URL [L45]", () => {
  const error = new Failed("NoRoute", "GET https://host/x?token=abc failed");
  assert.deepEqual(errorReport(error), {
    reason: "NoRoute",
    message: "GET https://host/x failed",
  });
});

test("errorReport cuts every field to its limit [L45]", () => {
  const error = new Error("m".repeat(5_000), {
    cause: new Error("c".repeat(5_000)),
  });
  for (const maxLength of [0, 2, 100, 2_048]) {
    const report = errorReport(error, { maxLength, stack: true });
    assert.ok(report.message.length <= maxLength);
    assert.ok(report.causes![0]!.message.length <= maxLength);
    assert.ok(report.causes![0]!.type.length <= maxLength);
    assert.ok(report.stack!.length <= maxLength);
  }
  assert.ok(errorReport(error).message.endsWith("..."));
  assert.equal(errorReport(error).stack, undefined, "it is off by default");
});

test("errorReport gives the labels whose patterns match it or a cause [L45]", () => {
  const error = new Error("cannot submit", {
    cause: new Error("the job manager is missing"),
  });
  const labels = {
    "job manager is missing": /.*missing.*/g,
    "cannot submit": /^cannot/,
    other: /quota/,
  };
  for (let again = 0; again < 2; again++) {
    assert.deepEqual(errorReport(error, { labels }).labels, [
      "job manager is missing",
      "cannot submit",
    ]);
  }
  assert.equal(errorReport(new Error("x"), { labels }).labels, undefined);
});

test("errorReport survives a chain that is a circle [L45]", () => {
  const error = new Error("a");
  error.cause = error;
  assert.equal(errorReport(error).causes?.length, 2);
});

test("errorReport labels also by causes that it leaves out, and cuts to three", () => {
  const labels = { deep: /^level 0$/ };
  assert.deepEqual(errorReport(chain(9), { labels }).labels, ["deep"]);
  assert.equal(errorReport("abcdef", { maxLength: 3 }).message, "abc");
  assert.equal(errorReport("abcdef", { maxLength: 4 }).message, "a...");
});
