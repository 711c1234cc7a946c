import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "../../../workflows/conditions/condition.ts";
import {
  aggregateConditions,
  mirrorCondition,
  summarizeConditions,
} from "../../../workflows/conditions/condition_merge.ts";

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
    const summary = summarizeConditions(list, "Ready", { abnormal });
    assert.equal(summary?.reason, worst.reason);
    assert.equal(summary?.status, statuses[index]);
  }
});

test("summarizeConditions inverts when the target itself is abnormal [F28]", () => {
  const summary = summarizeConditions([condition("Fine", "True")], "Bad", {
    abnormal,
  });
  assert.equal(summary?.status, "False");
  const same = summarizeConditions([condition("Worse", "True")], "Bad", {
    abnormal,
  });
  assert.equal(same?.status, "True");
});

test("summarizeConditions can ignore what was observed of older generations [F29]", () => {
  const list = [condition("Bad", "True", 1), condition("Fine", "True", 2)];
  const summary = summarizeConditions(list, "Ready", {
    abnormal,
    latestGenerationOnly: true,
  });
  assert.equal(summary?.reason, "FineReason");
});

test("summarizeConditions ignores the target and needs a condition to merge [F30]", () => {
  assert.equal(summarizeConditions([], "Ready"), undefined);
  assert.equal(
    summarizeConditions([condition("Ready", "False")], "Ready"),
    undefined,
  );
  assert.equal(
    summarizeConditions([condition("A", "True")], "Ready", { of: ["B"] }),
    undefined,
  );
});

test("summarizeConditions lets the declared order decide among equals [F30]", () => {
  const list = [condition("A", "False"), condition("B", "False")];
  assert.equal(summarizeConditions(list, "Ready")?.reason, "AReason");
  const declared = summarizeConditions(list, "Ready", { of: ["B", "A"] });
  assert.equal(declared?.reason, "BReason");
});

test("summarizeConditions counts the steps that are done [F30]", () => {
  const list = [condition("A", "True"), condition("B", "False")];
  const options = { of: ["A", "B"], stepCounter: true };
  assert.equal(
    summarizeConditions(list, "Ready", options)?.message,
    "1 of 2 completed",
  );
  const strict = summarizeConditions(
    [...list, condition("C", "True")],
    "Ready",
    {
      stepCounter: true,
      countOnlyIf: ["A", "B"],
    },
  );
  assert.equal(strict?.message, "B message");
});

test("aggregateConditions takes the top group over several objects [F31]", () => {
  const sources = [
    { kind: "Pod", name: "b", conditions: [condition("Ready", "False")] },
    { kind: "Pod", name: "a", conditions: [condition("Ready", "False")] },
    { kind: "Pod", name: "c", conditions: [condition("Ready", "True")] },
  ];
  const merged = aggregateConditions(sources, "Ready", {
    counter: true,
    sourceReference: true,
  });
  assert.deepEqual(merged, {
    type: "Ready",
    status: "False",
    reason: "ReadyReason @ Pod/a",
    message: "2 of 3 Ready",
  });
});

test("mirrorCondition copies Ready, a fallback, or nothing [F31]", () => {
  const source = { name: "a", conditions: [condition("Ready", "True")] };
  assert.equal(mirrorCondition(source, "SourceReady")?.reason, "ReadyReason");
  const empty = { name: "a", conditions: [] };
  assert.equal(mirrorCondition(empty, "SourceReady"), undefined);
  assert.deepEqual(
    mirrorCondition(empty, "SourceReady", {
      otherwise: { status: "False", reason: "Missing" },
    }),
    { type: "SourceReady", status: "False", reason: "Missing" },
  );
});
