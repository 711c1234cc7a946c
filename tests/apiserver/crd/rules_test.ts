import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema, StatusCause } from "@coracle/operator/core";
import type { ValidationRule } from "@coracle/operator/crd";
import { INT } from "../../../dev/apiserver/cel/cel_type.ts";
import { Environment } from "../../../dev/apiserver/cel/environment.ts";
import { Correlation } from "../../../dev/apiserver/crd/schema/correlation.ts";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import {
  compileRules,
  type RuleValidator,
} from "../../../dev/apiserver/crd/cel/rule_validator.ts";
import { causeTexts, recordedLines } from "./recorded_lines.ts";

interface RecordedRules {
  readonly properties: Readonly<Record<string, OpenApiSchema>>;
  readonly value: unknown;
  readonly old: unknown;
  readonly rule: string;
  readonly causes: readonly StatusCause[];
}

async function validator(schema: OpenApiSchema): Promise<RuleValidator> {
  await loadPatterns();
  const compiled = compileRules(schema, true);
  assert.ok(compiled);
  return compiled;
}

/** Schema of an object whose spec has the given properties and rules. */
function withRules(
  properties: Readonly<Record<string, OpenApiSchema>>,
  ...rules: readonly ValidationRule[]
): OpenApiSchema {
  return {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties,
        "x-kubernetes-validations": rules,
      },
    },
  };
}

const NUMBERS: Readonly<Record<string, OpenApiSchema>> = {
  min: { type: "integer" },
  max: { type: "integer" },
};

test("CEL rules pass and fail as recorded", async () => {
  const [first, ...rules] = recordedLines<RecordedRules>("rules");
  assert.ok(first);
  for (const { rule, causes } of rules) {
    const rules = await validator(withRules(first.properties, { rule }));
    const object = { apiVersion: "a/v1", kind: "A", spec: first.value };
    const found = rules.validate(object, { ...object, spec: first.old });
    assert.deepEqual(causeTexts(found), causeTexts(causes), rule);
  }
});

test("A failed rule is reported with its message, reason and field", async () => {
  const rules = await validator(withRules(NUMBERS, {
    rule: "self.min <= self.max",
    message: "min must not exceed max",
    reason: "FieldValueForbidden",
    fieldPath: ".min",
  }));
  assert.deepEqual(rules.validate({ spec: { min: 2, max: 1 } }, undefined), [{
    reason: "FieldValueForbidden",
    message: "Forbidden: min must not exceed max",
    field: "spec.min",
  }]);
});

test("A message expression sets the message unless it fails", async () => {
  const rules = await validator(withRules(
    NUMBERS,
    {
      rule: "self.min > 5",
      messageExpression: "'min is ' + string(self.min)",
    },
    {
      rule: "self.min > 6",
      message: "too small",
      messageExpression: "string(1 / (self.min - self.min))",
    },
  ));
  assert.deepEqual(
    rules.validate({ spec: { min: 2 } }, undefined).map((one) => one.message),
    [
      "Invalid value: min is 2",
      "Invalid value: too small",
    ],
  );
});

test("A transition rule runs only if there is an old value", async () => {
  const rules = await validator(withRules(NUMBERS, {
    rule: "self.max >= oldSelf.max",
    message: "max may only grow",
  }));
  const value = { spec: { max: 1 } };
  assert.deepEqual(rules.validate(value, undefined), []);
  assert.equal(rules.validate(value, { spec: { max: 2 } }).length, 1);
  assert.deepEqual(rules.validate(value, { spec: { max: 1 } }), []);
});

test("A rule with optionalOldSelf runs on create, too", async () => {
  const rules = await validator(withRules(NUMBERS, {
    rule: "oldSelf.hasValue() || self.min == 0",
    optionalOldSelf: true,
    message: "min begins at zero",
  }));
  assert.equal(rules.validate({ spec: { min: 1 } }, undefined).length, 1);
  const value = { spec: { min: 1 } };
  assert.deepEqual(rules.validate(value, { spec: { min: 0 } }), []);
});

test("Rules on items of a map list see the old item with the same keys", async () => {
  const rules = await validator({
    type: "object",
    properties: {
      list: {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        items: {
          type: "object",
          properties: { k: { type: "string" }, v: { type: "integer" } },
          "x-kubernetes-validations": [{ rule: "self.v >= oldSelf.v" }],
        },
      },
    },
  });
  const old = { list: [{ k: "a", v: 1 }, { k: "b", v: 5 }] };
  const next = {
    list: [{ k: "b", v: 4 }, { k: "new", v: 0 }, { k: "a", v: 1 }],
  };
  assert.deepEqual(
    rules.validate(next, old).map(({ field }) => field),
    ["list[0]"],
  );
});

test("Rules are not enforced for unchanged values on update", async () => {
  const schema = withRules(NUMBERS, { rule: "self.min > 5", message: "small" });
  const rules = await validator(schema);
  const old = { metadata: { name: "a" }, spec: { min: 1, max: 1 } };
  const renamed = { ...old, metadata: { name: "b" } };
  const warnings: string[] = [];
  assert.deepEqual(
    rules.validate(renamed, old, {
      correlation: new Correlation(renamed, old, schema),
      warn: (text) => warnings.push(text),
    }),
    [],
  );
  assert.deepEqual(warnings, ["spec: Invalid value: small"]);
  const changed = { ...old, spec: { min: 1, max: 2 } };
  const correlation = new Correlation(changed, old, schema);
  assert.equal(rules.validate(changed, old, { correlation }).length, 1);
});

test("The cost of an evaluation is limited, and ends the validation", async () => {
  const rules = await validator(withRules(
    { list: { type: "array", items: { type: "integer" } } },
    { rule: "self.list.all(x, self.list.all(y, y == x))" },
    { rule: "false", message: "not reached" },
  ));
  const messages = (length: number) =>
    rules.validate({ spec: { list: Array(length).fill(20) } }, undefined)
      .map((one) => one.message);
  assert.deepEqual(messages(725), [
    `Invalid value: "object": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: self.list.all(x, self.list.all(y, y == x))`,
  ]);
  assert.deepEqual(messages(250), ["Invalid value: not reached"]);
});

test("Expressions that cannot be parsed are syntax errors as of cel-go", async () => {
  await loadPatterns();
  const environment = new Environment({ variables: { self: INT } });
  const wrong: [rule: string, why: string][] = [
    ["self = 42", "1:6: Syntax error: token recognition error at: '= '"],
    ["self == 1 2", "1:11: Syntax error: extraneous input '2' expecting <EOF>"],
    ["(self", "1:6: Syntax error: missing ')' at '<EOF>'"],
    ["self ==", "1:8: Syntax error: mismatched input '<EOF>' expecting {'[',"],
  ];
  for (const [rule, why] of wrong) {
    const compiled = environment.compile(rule);
    const text = "error" in compiled ? compiled.error : "";
    assert.ok(text.includes(`ERROR: <input>:${why}`), text);
  }
});
