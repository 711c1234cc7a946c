import assert from "node:assert/strict";
import { test } from "node:test";
import {
  planText,
  readPlan,
  worldPlan,
} from "../../../dev/testing/check/plan.ts";
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

test("A plan keeps to characters that shells and addresses leave alone", () => {
  assert.equal(
    planText({ scenario: "a*(b)'!", perturbations: [{ do: "late", x: "1" }] }),
    "a%2a%28b%29%27%21/late:x=%31",
  );
});

test("A plan is read with blanks around it, fractions and odd parameters", () => {
  assert.deepEqual(readPlan(" life/clock:ms=-2.5,do=x,,a=%31\n"), {
    scenario: "life",
    perturbations: [{ do: "clock", ms: -2.5, a: "1" }],
  });
});

test("The world gives a plan twenty minutes, and the time of its throttling", () => {
  const aftermath = (text: string) =>
    worldPlan(readPlan(`life/${text}`).perturbations).aftermath;
  assert.equal(aftermath("none"), 1_200_000);
  assert.equal(aftermath("clock:write=1,ms=5"), 1_200_000);
  assert.equal(aftermath("throttle:write=1,ms=5"), 1_200_005);
});

test("The world tells changes of others and jumps from its perturbations", () => {
  const object = "step=1,apiVersion=v1,kind=Pod,name=a";
  const { perturbations } = readPlan(
    `life/delete:${object}+annotate:${object}+edit:${object},field=a+clock:step=2,ms=3+clock:write=2,ms=3+upgrade:step=4`,
  );
  const target = { apiVersion: "v1", kind: "Pod", name: "a" };
  assert.partialDeepStrictEqual(worldPlan(perturbations), {
    perturbations: [{ do: "clock", write: 2, ms: 3 }],
    foreign: ["delete" as const, "annotate" as const, { field: "a" }].map(
      (change) => ({ step: 1, target, change }),
    ),
    jumps: [{ step: 2, ms: 3 }],
    upgradeAfter: 4,
    choices: undefined,
  });
  for (const text of ["constructor", "crash:write=1", "late:write=1"]) {
    assert.throws(
      () => worldPlan(readPlan(`life/${text}`).perturbations),
      /^(RangeError|TypeError): Cannot/,
      text,
    );
  }
});
