import assert from "node:assert/strict";
import { test } from "node:test";
import { planText, readPlan } from "../../../testing/check/plan.ts";
import { fc } from "../../support/property.ts";

const parameter = fc.oneof(
  fc.integer(),
  fc.string({ minLength: 1, unit: "grapheme" }),
  fc.constantFrom("1", "-2.5", "spec/a~1b", "a+b,c=d:e/f"),
);
const plan = fc.record({
  scenario: fc.string({ minLength: 1, unit: "grapheme" }),
  perturbations: fc.array(
    fc.tuple(
      fc.stringMatching(/^[a-z]{1,8}$/),
      fc.dictionary(fc.stringMatching(/^[a-zA-Z]{1,6}$/), parameter, {
        maxKeys: 4,
      }),
    ).map(([name, parameters]) => {
      const { do: _, ...rest } = parameters;
      return { ...rest, do: name };
    }),
    { maxLength: 3 },
  ).filter((all) => all.length !== 1 || all[0]?.do !== "none"),
});

test("A plan is read from its text as it was", () => {
  fc.assert(fc.property(plan, (plan) => {
    assert.deepEqual(
      readPlan(planText(plan)),
      JSON.parse(JSON.stringify(plan)),
    );
  }));
  assert.equal(
    planText({
      scenario: "life",
      perturbations: [{ do: "crash", write: 3, place: "before" }],
    }),
    "life/crash:write=3,place=before",
  );
  assert.deepEqual(readPlan("life/none").perturbations, []);
});

test("A text that is no plan is refused with the form of a plan", () => {
  for (
    const text of [
      "",
      "life",
      "life/",
      "life/Crash",
      "life/crash:write",
      "a/%/b",
    ]
  ) {
    assert.throws(() => readPlan(text), {
      name: "RangeError",
      message: /^Cannot read the plan: it must read SCENARIO\/KIND/,
    });
  }
});
