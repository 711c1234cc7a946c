import assert from "node:assert/strict";
import { test } from "node:test";
import { type Condition, lintStatus } from "@coracle/operator/workflows";

interface Shape {
  readonly generation?: number;
  readonly observed?: number;
  readonly [type: string]:
    | Condition["status"]
    | Partial<Condition>
    | number
    | undefined;
}

function rules(
  shape: Shape,
  options: Parameters<typeof lintStatus>[1] = {},
): string[] {
  const { generation = 1, observed = 1, ...rest } = shape;
  const conditions = Object.entries(rest).map(([type, value]): Condition => ({
    type,
    status: "True",
    reason: "Same",
    message: "",
    observedGeneration: 1,
    lastTransitionTime: "2026-01-01T00:00:00Z",
    ...(typeof value === "string"
      ? { status: value as Condition["status"] }
      : value as Partial<Condition>),
  }));
  return lintStatus({
    metadata: { name: "web", generation },
    status: { observedGeneration: observed, conditions },
  }, { abnormal: ["Bad"], ...options }).map(({ rule, message }) => {
    assert.match(message, /^[A-Zo]/, rule);
    return rule;
  });
}

test("lintStatus finds nothing wrong with a status that is right [F38]", () => {
  assert.deepEqual(rules({ Ready: "True" }), []);
  assert.deepEqual(rules({ Ready: "False", Reconciling: "True" }), []);
  assert.deepEqual(rules({ Ready: "False", Stalled: "True" }), []);
  assert.deepEqual(
    rules({ Ready: "Unknown", Reconciling: "True" }, { inProgress: true }),
    [],
  );
});

const WRONG:
  readonly (readonly [string, Shape, Parameters<typeof lintStatus>[1]?])[] = [
    ["FAIL 1", { Ready: "True", Bad: "True" }],
    ["FAIL 2", {}],
    ["FAIL 3", { Ready: "Unknown", Reconciling: "True" }],
    ["FAIL 4", { Ready: "Unknown", Stalled: "True" }],
    ["FAIL 5", { Ready: "False", Reconciling: "True", Stalled: "False" }],
    ["FAIL 6", { Ready: "False", observed: 2 }],
    ["FAIL 7", { Ready: "True", generation: 2 }],
    ["FAIL 8", { Ready: "True", generation: 2, observed: 2 }],
    ["FAIL 8", {
      Ready: { observedGeneration: 2 },
      Other: { observedGeneration: 1 },
      generation: 2,
      observed: 2,
    }],
    ["FAIL 9", { Ready: "True", observed: 0 }],
    ["FAIL 9", {
      Ready: { observedGeneration: 2 },
      Other: { observedGeneration: 1 },
      generation: 2,
      observed: 2,
    }],
    ["FAIL 11", { Ready: "Unknown" }, { inProgress: true }],
    ["FAIL 2", {}, { inProgress: true }],
    ["FAIL 4", { Stalled: "True", Ready: "True" }, { inProgress: true }],
    ["WARN 1", { Ready: "True", Bad: "False" }],
    ["WARN 2", { Ready: "False", Bad: { reason: "Other" } }],
    ["WARN 3", { Ready: "True", Reconciling: "False" }],
    ["WARN 4", { Ready: "True", Stalled: "False" }],
    ["WARN 5", { Ready: { status: "False", observedGeneration: undefined } }],
  ];

for (const [rule, shape, options] of WRONG) {
  const when = options?.inProgress ? " in progress" : "";
  test(`lintStatus finds ${rule}${when} in ${JSON.stringify(shape)} [F38]`, () => {
    assert.ok(
      rules(shape, options).includes(rule),
      rules(shape, options).join(),
    );
  });
}
