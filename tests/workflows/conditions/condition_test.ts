import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Condition,
  findCondition,
  isReady,
  removeCondition,
  setCondition,
} from "@coracle/operator/workflows";
import {
  conditionsIn,
  isReconciling,
  limitMessage,
  markAs,
  MAX_MESSAGE_LENGTH,
  sameState,
} from "../../../workflows/conditions/condition.ts";

const first = { now: Date.parse("2026-01-01T00:00:00.900Z"), generation: 1 };
const later = { now: Date.parse("2026-01-02T00:00:00Z"), generation: 2 };

function types(conditions: readonly Condition[]): string[] {
  return conditions.map(({ type }) => type);
}

test("setCondition keeps the transition time while nothing changes but the generation [F24]", () => {
  const words = { type: "Ready", status: "True", reason: "Up" } as const;
  const before = setCondition([], words, first);
  const after = setCondition(before, words, later);
  assert.equal(after[0]?.lastTransitionTime, "2026-01-01T00:00:00Z");
  assert.equal(after[0]?.observedGeneration, 2);
});

test("setCondition moves the transition time with status, reason or message [F24]", () => {
  const words = { type: "Ready", status: "True", reason: "Up" } as const;
  for (
    const change of [{ status: "False" }, { reason: "New" }, { message: "m" }]
  ) {
    const before = setCondition([], words, first);
    const after = setCondition(
      before,
      { ...words, ...change } as typeof words,
      later,
    );
    assert.equal(after[0]?.lastTransitionTime, "2026-01-02T00:00:00Z");
    assert.equal(before[0]?.reason, "Up", "the old list is left alone");
  }
});

test("setCondition gives a time to a condition that others wrote without one", () => {
  const ready = { type: "Ready", status: "True", reason: "Up" } as const;
  for (const transition of ["any", "status"] as const) {
    const [set] = setCondition([{ ...ready } as Condition], ready, {
      now: 60_000,
      transition,
    });
    assert.equal(set?.lastTransitionTime, "1970-01-01T00:01:00Z");
  }
});

test("setCondition moves the transition time with the status alone, if asked", () => {
  const words = { type: "Ready", status: "True", reason: "Up" } as const;
  const before = setCondition([], words, first);
  const moment = { ...later, transition: "status" } as const;
  const [same] = setCondition(before, { ...words, message: "m" }, moment);
  assert.equal(same?.lastTransitionTime, "2026-01-01T00:00:00Z");
  assert.equal(same?.message, "m");
  const [changed] = setCondition(before, { ...words, status: "False" }, moment);
  assert.equal(changed?.lastTransitionTime, "2026-01-02T00:00:00Z");
});

test("setCondition orders Stalled, Reconciling, Ready, newer generations, then types [F25]", () => {
  let list: Condition[] = [];
  const put = (type: string, generation: number) => {
    list = setCondition(list, { type, status: "True", reason: "R" }, {
      now: 0,
      generation,
    });
  };
  for (const type of ["B", "E", "A", "F", "D"]) put(type, 1);
  put("C", 2);
  put("Ready", 1);
  put("Reconciling", 1);
  put("Stalled", 1);
  assert.deepEqual(types(list), [
    "Stalled",
    "Reconciling",
    "Ready",
    "C",
    "A",
    "B",
    "D",
    "E",
    "F",
  ]);
});

test("setCondition names the time that it lacks", () => {
  const up = { type: "Up", status: "True", reason: "Up" } as const;
  assert.throws(
    () => setCondition([], up, undefined as never),
    /setCondition\(\): "moment" must be an object: received nothing$/,
  );
  assert.throws(
    () => setCondition([], up, {} as never),
    /setCondition\(\): "moment\.now" must be a number: received nothing$/,
  );
});

test("markAs sets Reconciling or Stalled and removes the other [F26]", () => {
  const words = { reason: "R", message: "" };
  const stalled = markAs([], { ...words, type: "Stalled" }, first);
  assert.equal(findCondition(stalled, "Stalled")?.status, "True");
  assert.equal(findCondition(stalled, "Reconciling"), undefined);
  const reconciling = markAs(
    stalled,
    { ...words, type: "Reconciling" },
    first,
  );
  assert.deepEqual(types(reconciling), ["Reconciling"]);
  assert.equal(isReconciling(reconciling), true);
  const again = markAs(reconciling, { ...words, type: "Stalled" }, first);
  assert.deepEqual(types(again), ["Stalled"]);
});

test("limitMessage cuts to the limit, ending in three dots, between characters [F27]", () => {
  const cut = limitMessage("x".repeat(MAX_MESSAGE_LENGTH + 1));
  assert.equal(cut.length, MAX_MESSAGE_LENGTH);
  assert.ok(cut.endsWith("x..."));
  const whole = "x".repeat(MAX_MESSAGE_LENGTH);
  assert.equal(limitMessage(whole), whole);
  const faces = "😀".repeat(MAX_MESSAGE_LENGTH);
  assert.equal(limitMessage(faces), faces, "the limit counts code points");
  const points = Array.from(limitMessage(`${faces}😀`));
  assert.equal(points.length, MAX_MESSAGE_LENGTH);
  assert.equal(points.at(-4), "😀");
});

test("isReady needs Ready without Reconciling or Stalled", () => {
  const ready = setCondition(
    [],
    { type: "Ready", status: "True", reason: "Up" },
    first,
  );
  assert.equal(isReady(ready), true);
  const words = { reason: "R", message: "" };
  for (const type of ["Reconciling", "Stalled"] as const) {
    assert.equal(isReady(markAs(ready, { ...words, type }, first)), false);
  }
});

test("isReconciling needs Reconciling without Stalled", () => {
  const words = { status: "True", reason: "R" } as const;
  const list = setCondition([], { ...words, type: "Reconciling" }, first);
  assert.equal(isReconciling(list), true);
  const both = setCondition(list, { ...words, type: "Stalled" }, first);
  assert.equal(isReconciling(both), false);
});

test("conditionsIn leaves out damaged entries, and repeated types", () => {
  const ready = { type: "Ready", status: "True" };
  const again = { ...ready, status: "False" };
  const conditions = [null, 5, { type: 5 }, ready, again];
  assert.deepEqual(conditionsIn({ conditions }), [ready]);
});

test("Functions of conditions take a status that has none yet", () => {
  const { status }: { status?: { conditions?: Condition[] } } = {};
  const none = status?.conditions;
  assert.equal(findCondition(none, "Ready"), undefined);
  assert.equal(isReady(none), false);
  assert.deepEqual(removeCondition(none, "Ready"), []);
  const ready = { type: "Ready", status: "True", reason: "Up" } as const;
  assert.equal(setCondition(none, ready, { now: 0 }).length, 1);
});

test("a message has at most the 32,768 characters that definitions allow", () => {
  assert.equal(MAX_MESSAGE_LENGTH, 32_768);
});

test("sameState takes a message that is absent as empty", () => {
  const [condition] = setCondition([], {
    type: "Ready",
    status: "True",
    reason: "Done",
  }, { now: 0 });
  const { message: _, ...foreign } = condition!;
  assert.equal(sameState(foreign as Condition, condition!), true);
  const other = { ...condition!, message: "x" };
  assert.equal(sameState(foreign as Condition, other), false);
});
