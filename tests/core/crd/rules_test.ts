import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import {
  crdManifest,
  defineKind,
  immutable,
  rule,
  type ValidationRule,
} from "@coracle/operator/crd";

const base = {
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Pool",
  spec: z.object({
    min: z.int(),
    max: z.int(),
    class: z.string().optional(),
    "dash-ed": z.boolean().optional(),
    tags: z.record(z.string(), z.object({ weight: z.int() })).optional(),
    items: z.array(z.object({ name: z.string() })).optional(),
    any: z.unknown(),
  }),
} as const;

function rulesOf(rules: readonly ValidationRule[]): unknown {
  const [version] = crdManifest(defineKind({ ...base, rules })).spec.versions;
  return version?.schema.openAPIV3Schema["x-kubernetes-validations"];
}

test("rule() becomes a rule of the definition, without its twin", () => {
  const spread = rule("self.spec.max >= self.spec.min", {
    message: "max must not be below min",
    fieldPath: ".spec.max",
    reason: "FieldValueForbidden",
    twin: ({ spec }: { spec: { min: number; max: number } }) =>
      spec.max >= spec.min,
  });
  assert.deepEqual(rulesOf([spread]), [{
    rule: "self.spec.max >= self.spec.min",
    message: "max must not be below min",
    fieldPath: ".spec.max",
    reason: "FieldValueForbidden",
  }]);
});

test("immutable() compares a field that may be absent, on both sides", () => {
  assert.deepEqual(rulesOf([immutable(".spec.class")]), [{
    rule:
      "(has(self.spec) && has(self.spec.class)) == (has(oldSelf.spec) && has(oldSelf.spec.class)) && (!(has(self.spec) && has(self.spec.class)) || self.spec.class == oldSelf.spec.class)",
    message: "spec.class is immutable",
    fieldPath: ".spec.class",
  }]);
  assert.deepEqual({ ...immutable(undefined, { message: "stays" }) }, {
    rule: "self == oldSelf",
    message: "stays",
  });
  for (const path of ["spec.class", ".spec.items[0]", "", 5]) {
    assert.throws(() => immutable(path as string), /'path' must be such as/);
  }
  assert.throws(() => rule(5 as never), /the expression must be CEL/);
});

for (
  const [text, message] of [
    ["self.spec.mx > 1", /no field "mx" for a rule, did you mean "max"\?/],
    ["oldSelf.spec.min.low == 1", /no field "low"/],
    ["self.?spec.?klass == oldSelf.?spec.?klass", /mean "class"/],
    ["self.metadata.labels.size() > 0", /no field "labels"/],
    ["self.status.ready", /no field "status"/],
    ["self.spec.tags.first.size > 1", /no field "size"/],
    ["self.spec.items.name == 'a'", /no field "name"/],
    ["(self.spec.min > 1", /'\)' is missing/],
    ["self.spec.min > 1)", /'\)' closes nothing/],
    ["self.spec.class == 'a", /a text has no closing '/],
    ['self.spec.class == "a\\"', /a text has no closing "/],
  ] as const
) {
  test(`defineKind() refuses the rule ${text}`, () => {
    assert.throws(() => rulesOf([rule(text)]), message);
  });
}

test("defineKind() takes rules whose paths only look wrong", () => {
  for (
    const text of [
      "self.spec.min in [1, 2] // self.spec.nope",
      "self.spec.class.matches(r'\\d+(') || \"self.spec.nope'\" != ''",
      "self.spec.tags.first.weight > 1 && self.spec.tags.size() < 3",
      "self.spec.items.all(item, item.name != self.metadata.name)",
      "has(self.spec.dash__dash__ed)",
      "self.spec.any.deep.er == 1",
      "self.spec.min + self . spec . max > 2 && {'self.x': 1}.size() == 1",
      "'''it's''' != self.spec.class",
    ]
  ) rulesOf([rule(text)]);
  const optional = rule("oldSelf.hasValue() || self.spec.min == 0", {
    optionalOldSelf: true,
  });
  rulesOf([optional]);
});

test("defineKind() refuses options of a rule that contradict it", () => {
  assert.throws(
    () => rulesOf([rule("self.spec.min > 1", { optionalOldSelf: true })]),
    /'optionalOldSelf' is for rules that use oldSelf/,
  );
  assert.throws(
    () => rulesOf([rule("self.spec.min > 1", { fieldPath: ".spec.mim" })]),
    /no field "mim" for a rule, did you mean "min"\?: received 'fieldPath'/,
  );
  assert.throws(
    () => rulesOf([rule("true", { reason: "Wrong" as never })]),
    /"reason" must be one of/,
  );
});

test("defineKind() checks the rules of fields by their own schema", () => {
  const define = (...rules: unknown[]) =>
    defineKind({
      ...base,
      spec: z.object({
        window: z.object({ from: z.int() }).meta({
          "x-kubernetes-validations": rules,
        }),
      }),
    });
  define(rule("self.from > 1"), immutable());
  assert.throws(
    () => define(rule("self.spec.window.from > 1")),
    /Pool v1, spec\.window: there is no field "spec"/,
  );
  assert.throws(() => define({ message: "no rule" }), /has no text 'rule'/);
});
