import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusCause } from "@coracle/operator/core";
import { builtinOpenApiDefinitions } from "../../../dev/apiserver/builtin/go_types.ts";
import { RuleText } from "../../../dev/apiserver/validation/rules/rule_text.ts";
import { Scope } from "../../../dev/apiserver/validation/rules/scope.ts";
import { RULES } from "../../../dev/apiserver/crd/definition_rules/crd_rules.ts";
import { OPTIONS } from "../../../dev/apiserver/request/query_options.ts";
import { LIFECYCLE_RULES } from "../../../dev/apiserver/builtin/lifecycle/lifecycle.ts";
import { METADATA } from "../../../dev/apiserver/validation/object_meta.ts";
import { TYPED_RULES } from "../../../dev/apiserver/builtin/typed_defaults.ts";
import { FUNCTIONS } from "../../../dev/apiserver/builtin/validation/rule_functions.ts";
import { validationLine } from "../../../dev/apiserver/validation/rules/rule_words.ts";
import { VALIDATION_RULES } from "../../../dev/apiserver/builtin/validation/typed_validation.ts";
import { FieldPath } from "../../../dev/apiserver/validation/field_path.ts";

/** Violations of a struct by a block of rules, as `field: message`. */
function violations(rules: string, value: unknown, live?: unknown): string[] {
  const causes: StatusCause[] = [];
  const text = new RuleText({
    text: `\nblock\n  ${rules.replaceAll("\n", "\n  ")}\n`,
    compileLine: validationLine,
    functions: FUNCTIONS,
  });
  const scope = new Scope(value, new FieldPath("o", causes));
  text.get("block")?.(scope.set("$live", live));
  return causes.map(({ field, message }) => `${field}: ${message}`);
}

interface RuleCase {
  readonly what: string;
  readonly rules: string;
  readonly value: unknown;
  readonly live?: unknown;
  readonly found: readonly string[];
}

const CASES: readonly RuleCase[] = [
  {
    what: "elif and else take the first branch that holds",
    rules:
      "each list\n  if . == 1: missing a\n  elif . < 3: missing b\n  else: missing c",
    value: { list: [1, 2, 3] },
    found: [
      "o.list[0].a: Required value",
      "o.list[1].b: Required value",
      "o.list[2].c: Required value",
    ],
  },
  {
    what: "each walks lists in lists and counts them as one for unique",
    rules: "each a.b\n  unique name",
    value: { a: [{ b: [{ name: "x" }] }, { b: [{ name: "x" }, {}, {}] }] },
    found: ['o.a[1].b[0].name: Duplicate value: "x"'],
  },
  {
    what: "every reports at the struct of the list",
    rules: "every map\n  invalid at[%($key)] = .: why",
    value: { map: { k: 1 } },
    found: ["o.at[k]: Invalid value: 1: why"],
  },
  {
    what: "a caret reads and reports in the enclosing struct",
    rules: "each list\n  if ^name == .: invalid ^name: is %(.)",
    value: { name: "x", list: ["y", "x"] },
    found: ['o.name: Invalid value: "x": is x'],
  },
  {
    what: "stop ends the rules of an item only",
    rules: "each list\n  if . == 1: stop\n  missing .\nmissing end",
    value: { list: [1, 2] },
    found: ["o.list[1]: Required value", "o.end: Required value"],
  },
  {
    what: "at enters a struct that is absent",
    rules: "at spec\n  name required: why",
    value: {},
    found: ["o.spec.name: Required value: why"],
  },
  {
    what: "is checks empty text, with a question mark it does not",
    rules: "a is label?\nb is label?\nc is label!\nd is network",
    value: { a: "", b: "-", d: "" },
    found: [
      "o.b: Invalid value: \"-\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "o.c: Required value",
      'o.d: Invalid value: "": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
  },
  {
    what: "immutable and unchanged compare with the live object",
    rules: "immutable a b\nunchanged c: may not change",
    value: { a: 1, b: { x: 1 }, c: [2] },
    live: { a: 2, b: { x: 1 }, c: [3] },
    found: [
      "o.a: Invalid value: 1: field is immutable",
      "o.c: Forbidden: may not change",
    ],
  },
];

for (const { what, rules, value, live, found } of CASES) {
  test(`rules: ${what}`, () => {
    assert.deepEqual(violations(rules, value, live), found);
  });
}

test("rules of all built-in kinds compile and name definitions that exist", () => {
  const definitions = builtinOpenApiDefinitions();
  const rules = [
    VALIDATION_RULES,
    TYPED_RULES,
    LIFECYCLE_RULES,
    RULES,
    METADATA,
    OPTIONS,
  ];
  for (const text of rules) text.compileAll();
  for (const name of rules.flatMap(({ names }) => names)) {
    assert.ok(rules.some((text) => text.get(name)), name);
    const definition = name.replace(/^after /, "");
    if (!/\.v\d/.test(definition)) continue;
    const found = definitions[`io.k8s.api.${definition}`] ??
      definitions[`io.k8s.${definition}`];
    assert.ok(found, name);
  }
});

test("a rule with a syntax error says where", () => {
  assert.throws(
    () => violations("if a ==: missing b", {}),
    /Cannot parse a rule: unexpected missing b in if a ==/,
  );
});
