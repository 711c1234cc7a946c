import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type LabelRequirement,
  type LabelSelector,
  matchesLabels,
} from "@coracle/operator/client";
import { fc } from "../../support/property.ts";
import {
  labelRequirement,
  labelRequirements,
  labelSelectorText,
  parseLabelSelector,
} from "../../../core/api/label_selector.ts";

function requirement(
  key: string,
  operator: LabelRequirement["operator"],
  ...values: string[]
): LabelRequirement {
  return { key, operator, values };
}

test("parseLabelSelector parses every form that Kubernetes supports", () => {
  const forms: readonly (readonly [string, readonly LabelRequirement[]])[] = [
    ["", []],
    ["  ", []],
    ["x=a", [requirement("x", "In", "a")]],
    ["x==a", [requirement("x", "In", "a")]],
    ["x!=a", [requirement("x", "NotIn", "a")]],
    ["x = a , y != b", [
      requirement("x", "In", "a"),
      requirement("y", "NotIn", "b"),
    ]],
    ["x", [requirement("x", "Exists")]],
    ["!x", [requirement("x", "DoesNotExist")]],
    ["! x,y", [requirement("x", "DoesNotExist"), requirement("y", "Exists")]],
    ["x in (a,b)", [requirement("x", "In", "a", "b")]],
    ["x in ( a , b )", [requirement("x", "In", "a", "b")]],
    ["x in (a,a)", [requirement("x", "In", "a")]],
    ["x notin (a)", [requirement("x", "NotIn", "a")]],
    ["x in (,a)", [requirement("x", "In", "", "a")]],
    ["x in (a,)", [requirement("x", "In", "a", "")]],
    ["x in (a,,b)", [requirement("x", "In", "a", "", "b")]],
    ["x=", [requirement("x", "In", "")]],
    ["x=,y", [requirement("x", "In", ""), requirement("y", "Exists")]],
    ["x>1,y<2", [requirement("x", "Gt", "1"), requirement("y", "Lt", "2")]],
    ["in in (in,notin)", [requirement("in", "In", "in", "notin")]],
    ["notin", [requirement("notin", "Exists")]],
    ["app.kubernetes.io/name=web", [
      requirement("app.kubernetes.io/name", "In", "web"),
    ]],
  ];
  for (const [text, expected] of forms) {
    assert.deepEqual(parseLabelSelector(text), expected, text);
  }
});

test("parseLabelSelector rejects the selectors that Kubernetes rejects", () => {
  const wrong = [
    ",",
    "x,",
    "x,,y",
    "=a",
    "x=a=b",
    "x in a",
    "x in (a",
    "x in ()",
    "x in (a b)",
    "!x=a",
    "!!x",
    "!",
    "x===a",
    "x=!a",
    "x>a",
    "x>-1",
    "x is a",
    "x=a b",
    "(x)",
    "x/y/z=a",
    "UPPER.io/x=a",
    "x=-a",
    `x=${"a".repeat(64)}`,
    "ü=a",
  ];
  for (const text of wrong) {
    assert.throws(() => parseLabelSelector(text), {
      name: "SyntaxError",
      message: /^Cannot read label selector "/,
    }, text);
  }
});

test("labelRequirements converts the selector of an object", () => {
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [
      { key: "tier", operator: "In" as const, values: ["front", "back"] },
      { key: "legacy", operator: "DoesNotExist" as const },
    ],
  };
  assert.equal(
    labelSelectorText(selector),
    "app=web,tier in (front,back),!legacy",
  );
  assert.throws(
    () => labelRequirements({ matchLabels: { "not a name": "x" } }),
    { name: "TypeError", message: /^Cannot select by label "not a name"/ },
  );
});

test("matchesLabels compares labels like Kubernetes", () => {
  const cases: readonly (readonly [string, Record<string, string>, boolean])[] =
    [
      ["", {}, true],
      ["x=a", { x: "a" }, true],
      ["x=a", { x: "b" }, false],
      ["x=a", {}, false],
      ["x!=a", {}, true],
      ["x!=a", { x: "a" }, false],
      ["x notin (a,b)", { x: "c" }, true],
      ["x in (a,b)", { x: "b" }, true],
      ["x", { x: "" }, true],
      ["!x", { x: "" }, false],
      ["x=", { x: "" }, true],
      ["x=", {}, false],
      ["x>9", { x: "10" }, true],
      ["x>9", { x: "9" }, false],
      ["x<9", { x: "abc" }, false],
      ["x<9", {}, false],
      ["x>9007199254740992", { x: "9007199254740993" }, true],
      ["x>1", { x: "9223372036854775808" }, false],
      ["constructor", {}, false],
      ["x=a,y=b", { x: "a" }, false],
    ];
  for (const [text, labels, expected] of cases) {
    const requirements = parseLabelSelector(text);
    assert.equal(matchesLabels(requirements, labels), expected, text);
  }
  assert.equal(matchesLabels(parseLabelSelector("!x"), undefined), true);
});

test("matchesLabels takes text and the selectors of specs", () => {
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [{ key: "tier", operator: "Exists" }],
  };
  const labels = { app: "web", tier: "front" };
  assert.equal(matchesLabels(selector, labels), true);
  assert.equal(matchesLabels(selector, { app: "web" }), false);
  assert.equal(matchesLabels("app=web,!tier", { app: "web" }), true);
  assert.equal(matchesLabels({}, undefined), true);
  assert.throws(
    () => matchesLabels({ app: "web" } as LabelSelector, labels),
    /app/,
  );
});

const NAME = fc.stringMatching(
  /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?$/,
);
const KEY = fc.oneof(
  NAME,
  fc.constantFrom("in", "notin"),
  NAME.map((name) => `example.io/${name}`),
);
const VALUE = fc.oneof(NAME, fc.constantFrom("", "in", "notin"));
const REQUIREMENT: fc.Arbitrary<LabelRequirement> = fc.oneof(
  fc.tuple(
    KEY,
    fc.constantFrom("In" as const, "NotIn" as const),
    fc.uniqueArray(VALUE, { minLength: 1, maxLength: 4 }),
  ).map(([key, operator, values]) => labelRequirement(key, operator, values)),
  fc.tuple(KEY, fc.constantFrom("Exists" as const, "DoesNotExist" as const))
    .map(([key, operator]) => labelRequirement(key, operator, [])),
  fc.tuple(KEY, fc.constantFrom("Gt" as const, "Lt" as const), fc.nat())
    .map(([key, operator, value]) =>
      labelRequirement(key, operator, [String(value)])
    ),
);

test("labelSelectorText can be parsed to the same requirements", () => {
  fc.assert(fc.property(fc.array(REQUIREMENT), (requirements) => {
    const text = labelSelectorText(requirements);
    assert.deepEqual(parseLabelSelector(text), requirements, text);
  }));
});

test("parseLabelSelector parses any text or throws a clear error", () => {
  const text = fc.string({
    unit: fc.constantFrom(..."ab=!(),<> \tin.-/ü"),
    maxLength: 12,
  });
  fc.assert(
    fc.property(text, (text) => {
      let requirements: LabelRequirement[];
      try {
        requirements = parseLabelSelector(text);
      } catch (error) {
        return assert.ok(error instanceof SyntaxError, String(error));
      }
      const printed = labelSelectorText(requirements);
      assert.deepEqual(parseLabelSelector(printed), requirements);
    }),
    { numRuns: 2_000 },
  );
});

test("A requirement and its opposite never match the same labels", () => {
  const labels = fc.dictionary(fc.constantFrom("a", "b"), VALUE);
  const values = fc.uniqueArray(VALUE, { minLength: 1 });
  fc.assert(fc.property(labels, values, (labels, values) => {
    for (const [yes, no] of [["In", "NotIn"], ["Exists", "DoesNotExist"]]) {
      const given = yes === "In" ? values : [];
      const holds = ([yes, no] as LabelRequirement["operator"][]).map(
        (operator) =>
          matchesLabels([labelRequirement("a", operator, given)], labels),
      );
      assert.notEqual(holds[0], holds[1], `${yes} ${no}`);
    }
  }));
});

test("Gt and Lt compare integers up to the largest of 64 bits, as Kubernetes does", () => {
  const largest = String(2n ** 63n - 1n);
  const matches = (value: string) =>
    matchesLabels([labelRequirement("a", "Gt", ["1"])], { a: value });
  assert.equal(matches(largest), true);
  assert.equal(matches(String(2n ** 63n)), false, "no integer");
  assert.equal(matches("2"), true);
  assert.equal(matches("1"), false);
  assert.equal(matches("2x"), false);
});
