import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@coracle/operator/workflows";
import { summarizeConditions } from "../../../workflows/conditions/reconcile_result.ts";

function condition(
  type: string,
  status: Condition["status"],
  observedGeneration = 1,
): Condition {
  return {
    type,
    status,
    reason: `${type}Reason`,
    message: `${type} message`,
    observedGeneration,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
}

const abnormal = ["Bad", "Worse"];

test("summarizeConditions orders conditions by severity [F28]", () => {
  const ranked = [
    condition("Bad", "True"),
    condition("Good", "False"),
    condition("Fine", "True"),
    condition("Worse", "False"),
    condition("Odd", "Unknown"),
  ];
  const statuses = ["False", "False", "True", "True", "Unknown"];
  for (const [index, worst] of ranked.entries()) {
    const list = ranked.slice(index).reverse();
    const summary = summarizeConditions(list, { target: "Ready", abnormal });
    assert.equal(summary?.reason, worst.reason);
    assert.equal(summary?.status, statuses[index]);
  }
});

test("summarizeConditions inverts when the target itself is abnormal [F28]", () => {
  const summary = summarizeConditions([condition("Fine", "True")], {
    target: "Bad",
    abnormal,
  });
  assert.equal(summary?.status, "False");
  const same = summarizeConditions([condition("Worse", "True")], {
    target: "Bad",
    abnormal,
  });
  assert.equal(same?.status, "True");
});

test("summarizeConditions can ignore what was observed of older generations [F29]", () => {
  const list = [condition("Bad", "True", 1), condition("Fine", "True", 2)];
  const summary = summarizeConditions(list, {
    target: "Ready",
    abnormal,
    latestGenerationOnly: true,
  });
  assert.equal(summary?.reason, "FineReason");
});

test("summarizeConditions ignores the target and needs a condition to merge [F30]", () => {
  assert.equal(summarizeConditions([], { target: "Ready" }), undefined);
  assert.equal(
    summarizeConditions([condition("Ready", "False")], { target: "Ready" }),
    undefined,
  );
  assert.equal(
    summarizeConditions([condition("A", "True")], {
      target: "Ready",
      of: ["B"],
    }),
    undefined,
  );
});

test("summarizeConditions lets the declared order decide among equals [F30]", () => {
  const list = [condition("A", "False"), condition("B", "False")];
  assert.equal(
    summarizeConditions(list, { target: "Ready" })?.reason,
    "AReason",
  );
  const declared = summarizeConditions(list, {
    target: "Ready",
    of: ["B", "A"],
  });
  assert.equal(declared?.reason, "BReason");
});

test("summarizeConditions counts the steps that are done [F30]", () => {
  const list = [condition("A", "True"), condition("B", "False")];
  const options = { of: ["A", "B"], stepCounter: true };
  assert.equal(
    summarizeConditions(list, { target: "Ready", ...options })?.message,
    "1 of 2 completed",
  );
  const strict = summarizeConditions([...list, condition("C", "True")], {
    target: "Ready",
    stepCounter: true,
    countOnlyIf: ["A", "B"],
  });
  assert.equal(strict?.message, "B message");
});

test("summarizeConditions takes the words of a condition without any as empty", () => {
  const foreign = [{ type: "Synced", status: "False" }] as Condition[];
  assert.deepEqual(summarizeConditions(foreign, { target: "Ready" }), {
    type: "Ready",
    status: "False",
    reason: "Unspecified",
    message: "",
  });
});
