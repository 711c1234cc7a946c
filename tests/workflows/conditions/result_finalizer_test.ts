import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Condition,
  findCondition,
  setCondition,
} from "../../../workflows/conditions/condition.ts";
import {
  finalizeResult,
  progressiveStatus,
} from "../../../workflows/conditions/reconcile_result.ts";

const moment = { now: 0, generation: 1 };
const options = { moment, succeeded: "all done" };
const success = { after: 60_000, success: true };
const retry = { after: 5_000, success: false };

function conditions(
  ...entries: readonly (readonly [string, Condition["status"]])[]
): Condition[] {
  let list: Condition[] = [];
  for (const [type, status] of entries) {
    list = setCondition(
      list,
      { type, status, reason: `${type}Reason` },
      moment,
    );
  }
  return list;
}

test("finalizeResult makes Ready False with the error unless it is False already [F20]", () => {
  const error = new Error("no route");
  for (const start of [[], conditions(["Ready", "True"])]) {
    const end = finalizeResult(start, { next: retry, error }, options);
    const ready = findCondition(end.conditions, "Ready");
    assert.deepEqual([ready?.status, ready?.reason, ready?.message], [
      "False",
      "Failed",
      "no route",
    ]);
    assert.equal(end.error, error);
  }
  const kept = finalizeResult(
    conditions(["Ready", "False"]),
    { next: retry, error },
    options,
  );
  assert.equal(findCondition(kept.conditions, "Ready")?.reason, "ReadyReason");
});

test("finalizeResult resolves Stalled beside Reconciling for Stalled [F21]", () => {
  const end = finalizeResult(
    conditions(["Stalled", "True"], ["Reconciling", "True"], ["Ready", "True"]),
    { next: { after: undefined, success: false } },
    options,
  );
  assert.equal(findCondition(end.conditions, "Reconciling"), undefined);
  const ready = findCondition(end.conditions, "Ready");
  assert.deepEqual([ready?.status, ready?.reason], ["False", "StalledReason"]);
  assert.equal(end.observed, true);
});

test("finalizeResult removes Stalled when a run was asked for [F22]", () => {
  for (const after of [0, 5_000]) {
    const end = finalizeResult(
      conditions(["Stalled", "True"]),
      { next: { after, success: false } },
      options,
    );
    assert.equal(findCondition(end.conditions, "Stalled"), undefined);
  }
});

test("finalizeResult tolerates a success that is not Ready only when event driven [F23]", () => {
  const start = conditions(["Ready", "False"]);
  const driven = finalizeResult(
    start,
    { next: { after: undefined, success: true } },
    { ...options, eventDriven: true },
  );
  assert.equal(driven.error, undefined);
  const polled = finalizeResult(start, { next: success }, options);
  assert.match(String(polled.error), /not Ready/);
});

test("finalizeResult makes Ready True after a success that nothing contradicts", () => {
  const end = finalizeResult([], { next: success }, options);
  const ready = findCondition(end.conditions, "Ready");
  assert.deepEqual([ready?.status, ready?.reason, ready?.message], [
    "True",
    "Succeeded",
    "all done",
  ]);
});

test("progressiveStatus makes Ready Unknown after drift or where it was not known", () => {
  const words = { reason: "Progressing", message: "new revision" };
  const known = conditions(["Ready", "True"], ["Stalled", "True"]);
  const kept = progressiveStatus(known, words, moment);
  assert.equal(findCondition(kept, "Ready")?.status, "True");
  assert.equal(findCondition(kept, "Stalled"), undefined);
  const drifted = progressiveStatus(known, { ...words, drift: true }, moment);
  assert.equal(findCondition(drifted, "Ready")?.status, "Unknown");
  const fresh = progressiveStatus([], words, moment);
  assert.equal(findCondition(fresh, "Ready")?.status, "Unknown");
});
