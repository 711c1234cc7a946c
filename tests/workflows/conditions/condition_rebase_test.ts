import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Condition,
  ConditionConflictError,
} from "@coracle/operator/workflows";
import { fc } from "../../support/property.ts";
import { rebaseConditions } from "../../../workflows/conditions/shared_status.ts";

function ready(reason: string, lastTransitionTime = "t0"): Condition {
  return {
    type: "Ready",
    status: "True",
    reason,
    message: "",
    lastTransitionTime,
  };
}

/** Reasons of Ready, none where it is absent. */
type State = string | undefined;
type Case = readonly [
  before: State,
  after: State,
  latest: State,
  merged: State | "conflict",
];

// "C" is what a third party wrote.
const CASES: readonly Case[] = [
  [undefined, "B", undefined, "B"],
  [undefined, "B", "B", "B"],
  [undefined, "B", "C", "conflict"],
  ["A", "B", undefined, "conflict"],
  ["A", "B", "A", "B"],
  ["A", "B", "B", "B"],
  ["A", "B", "C", "conflict"],
  ["A", undefined, undefined, undefined],
  ["A", undefined, "A", undefined],
  ["A", undefined, "C", "conflict"],
  ["A", "A", "C", "C"],
  ["A", "A", undefined, undefined],
  [undefined, undefined, "C", "C"],
];

const list = (state: State) => state === undefined ? [] : [ready(state)];

for (const [before, after, latest, merged] of CASES) {
  const title = [before, after, latest].map((state) => state ?? "-").join(" ");
  test(`rebaseConditions merges ${title} to ${merged ?? "-"} [F32]`, () => {
    const merge = () =>
      rebaseConditions(list(before), list(after), { latest: list(latest) });
    if (merged === "conflict") assert.throws(merge, ConditionConflictError);
    else assert.equal(merge()[0]?.reason, merged);
  });
  test(`rebaseConditions lets the owner win in ${title} [F32]`, () => {
    const changed = before !== after;
    const wins = changed ? after : latest;
    for (const options of [{ owned: ["Ready"] }, { force: true }]) {
      const result = rebaseConditions(list(before), list(after), {
        latest: list(latest),
        ...options,
      });
      assert.equal(result[0]?.reason, wins);
    }
  });
}

test("rebaseConditions says what another writer did to a condition", () => {
  const cases = [["A", undefined, /deleted it/], ["A", "C", /changed it/], [
    undefined,
    "C",
    /added it/,
  ]] as const;
  for (const [before, latest, message] of cases) {
    const states = { latest: list(latest) };
    assert.throws(
      () => rebaseConditions(list(before), list("B"), states),
      message,
    );
  }
});

test("rebaseConditions keeps the transition time of an equal condition [F33]", () => {
  const merged = rebaseConditions([], [ready("B", "t1")], {
    latest: [ready("B", "t0")],
    owned: ["Ready"],
  });
  assert.equal(merged[0]?.lastTransitionTime, "t0");
});

test("rebaseConditions leaves conditions of others untouched [F34]", () => {
  const foreign: Condition = { ...ready("X"), type: "Foreign" };
  const merged = rebaseConditions([ready("A")], [ready("B")], {
    latest: [ready("A"), foreign],
  });
  assert.deepEqual(merged.map(({ type }) => type), ["Ready", "Foreign"]);
});

test("Whatever three lists hold, owned changes win and everything else stays as it is [F32]", () => {
  const list = fc.uniqueArray(
    fc.record({
      type: fc.constantFrom("A", "B", "C", "D"),
      reason: fc.constantFrom("x", "y", "z"),
    }),
    { selector: ({ type }) => type },
  ).map((found): Condition[] =>
    found.map(({ type, reason }) => ({ ...ready(reason), type }))
  );
  const reasonIn = (conditions: readonly Condition[], type: string) =>
    conditions.find((condition) => condition.type === type)?.reason;
  const types = ["A", "B", "C", "D"];
  fc.assert(
    fc.property(list, list, list, (before, after, latest) => {
      const merged = rebaseConditions(before, after, { latest, owned: types });
      for (const type of types) {
        const isOurs = reasonIn(before, type) !== reasonIn(after, type);
        assert.equal(
          reasonIn(merged, type),
          reasonIn(isOurs ? after : latest, type),
        );
      }
      const again = { latest: merged, owned: types };
      assert.deepEqual(rebaseConditions(before, after, again), merged);
    }),
  );
});

test("rebaseConditions takes a new generation of the same condition", () => {
  const of = (
    observedGeneration: number,
  ) => [{ ...ready("A"), observedGeneration }];
  const merged = rebaseConditions(of(1), of(2), { latest: of(1) });
  assert.deepEqual(merged, of(2));
});
