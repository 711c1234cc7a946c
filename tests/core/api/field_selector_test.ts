import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldRequirement } from "@coracle/operator/client";
import { fc } from "../../support/property.ts";
import {
  fieldSelectorText,
  matchesFields,
  parseFieldSelector,
} from "../../../core/api/field_selector.ts";

test("parseFieldSelector parses every form that Kubernetes supports", () => {
  const forms: readonly (readonly [string, readonly FieldRequirement[]])[] = [
    ["", []],
    [",,", []],
    ["a=1", [{ field: "a", operator: "=", value: "1" }]],
    ["a==1", [{ field: "a", operator: "=", value: "1" }]],
    ["a!=1", [{ field: "a", operator: "!=", value: "1" }]],
    ["a=", [{ field: "a", operator: "=", value: "" }]],
    ["a=1,b.c!=2", [
      { field: "a", operator: "=", value: "1" },
      { field: "b.c", operator: "!=", value: "2" },
    ]],
    ["a=x\\,y\\=z\\\\", [{ field: "a", operator: "=", value: "x,y=z\\" }]],
  ];
  for (const [text, expected] of forms) {
    assert.deepEqual(parseFieldSelector(text), expected, text);
  }
});

test("parseFieldSelector rejects the selectors that Kubernetes rejects", () => {
  for (const text of ["a", "a,b=1", "a=1=2", "a=\\x", "a=1\\"]) {
    assert.throws(() => parseFieldSelector(text), {
      name: "SyntaxError",
      message: /^Cannot read field selector "/,
    }, text);
  }
});

test("fieldSelectorText formats names and values that can be parsed again", () => {
  assert.equal(
    fieldSelectorText({ "metadata.name": "web", "spec.nodeName": "a,b" }),
    "metadata.name=web,spec.nodeName=a\\,b",
  );
  const requirement: fc.Arbitrary<FieldRequirement> = fc.record({
    field: fc.stringMatching(/^[a-z]+(\.[a-z]+)*$/),
    operator: fc.constantFrom("=" as const, "!=" as const),
    value: fc.string({ unit: fc.constantFrom(..."a=,\\! ") }),
  }, { noNullPrototype: true });
  fc.assert(fc.property(fc.array(requirement), (requirements) => {
    const text = fieldSelectorText(requirements);
    assert.deepEqual(parseFieldSelector(text), requirements, text);
  }));
});

test("matchesFields treats an unset field as empty", () => {
  const object: Record<string, string> = { "metadata.name": "web" };
  const read = (field: string) => object[field] ?? "";
  const matches = (text: string) =>
    matchesFields(parseFieldSelector(text), read);
  assert.equal(matches("metadata.name=web"), true);
  assert.equal(matches("metadata.name!=web"), false);
  assert.equal(matches("metadata.name=web,spec.nodeName="), true);
  assert.equal(matches("spec.nodeName!=n1"), true);
});
