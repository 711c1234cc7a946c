import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema } from "@coracle/operator/core";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import { validateSchema } from "../../../dev/apiserver/crd/schema/schema_validator.ts";
import { textMatching } from "../../../dev/testing/check/pattern_text.ts";
import {
  changed,
  fittingValue,
  leafChanges,
} from "../../../dev/testing/check/schema_values.ts";
import { fc } from "../../support/property.ts";

await loadPatterns();

const scalar: fc.Arbitrary<OpenApiSchema> = fc.oneof(
  fc.constant({ type: "boolean" }),
  fc.record({
    type: fc.constantFrom("integer", "number"),
    minimum: fc.integer({ min: -50, max: 50 }),
    maximum: fc.integer({ min: 53, max: 500 }),
  }),
  fc.record({
    type: fc.constant("integer"),
    multipleOf: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({
    type: fc.constant("string"),
    minLength: fc.integer({ min: 0, max: 20 }),
    maxLength: fc.integer({ min: 20, max: 90 }),
  }),
  fc.record({
    type: fc.constant("string"),
    enum: fc.uniqueArray(fc.string(), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    type: fc.constant("string"),
    format: fc.constantFrom(
      "date-time",
      "date",
      "uri",
      "ipv4",
      "uuid",
      "email",
    ),
  }),
  fc.record({
    type: fc.constant("string"),
    pattern: fc.constantFrom(
      "^[a-z][a-z0-9-]{2,10}$",
      "^(\\d+)(ms|s|m|h)$",
      "^v\\d+\\.\\d+\\.\\d+$",
      "^[^/]+/[^:]+(:[\\w.-]+)?$",
    ),
  }),
  fc.constant({ "x-kubernetes-int-or-string": true }),
);

const { schema } = fc.letrec<{ schema: OpenApiSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tie("schema"), {
      minKeys: 1,
      maxKeys: 4,
    }).chain((properties) =>
      fc.subarray(Object.keys(properties)).map((required) => ({
        type: "object",
        properties,
        ...(required.length > 0 && { required }),
      }))
    ),
    fc.record({
      type: fc.constant("array"),
      items: tie("schema"),
      minItems: fc.integer({ min: 0, max: 2 }),
      maxItems: fc.integer({ min: 2, max: 4 }),
    }),
    fc.record({
      type: fc.constant("object"),
      additionalProperties: tie("schema"),
    }),
  ),
}));

test("Generated values and their changes fit their structural schema", () => {
  fc.assert(
    fc.property(schema, fc.boolean(), (schema, optional) => {
      const value = fittingValue(schema, { optional });
      assert.notEqual(value, undefined);
      assert.deepEqual(validateSchema(value, schema), []);
      for (const change of leafChanges(schema, value)) {
        const other = changed(value, change);
        if (other === undefined) continue;
        assert.deepEqual(validateSchema(other, schema), []);
        assert.notDeepEqual(other, value);
      }
    }),
    { numRuns: 300 },
  );
});

test("Each leaf of a value is changed, lists and maps grow and shrink", () => {
  const schema: OpenApiSchema = {
    type: "object",
    required: ["replicas"],
    properties: {
      replicas: { type: "integer", minimum: 1, maximum: 2 },
      mode: { type: "string", enum: ["fast", "safe"] },
      labels: { type: "object", additionalProperties: { type: "string" } },
      ports: { type: "array", items: { type: "integer" } },
    },
  };
  const value = { replicas: 1, mode: "fast", labels: { a: "b" }, ports: [80] };
  const results = leafChanges(schema, value).map((change) =>
    JSON.stringify(changed(value, change))
  );
  for (
    const expected of [
      { ...value, replicas: 2 },
      { ...value, mode: "safe" },
      { replicas: 1, labels: { a: "b" }, ports: [80] },
      { ...value, labels: {} },
      { ...value, ports: [] },
      { ...value, ports: [80, 2] },
    ]
  ) assert.ok(results.includes(JSON.stringify(expected)), results.join("\n"));
});

test("Texts match patterns of schemas, and unknown patterns give none", () => {
  for (
    const pattern of [
      "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
      "^(a|b){2}c+$",
      "^[A-Z_][A-Z0-9_]*$",
      "^\\d{4}-\\d{2}$",
      "^(?:https?|ftp)://[^\\s/]+/?$",
    ]
  ) {
    for (const variant of [0, 1, 2]) {
      assert.match(textMatching(pattern, variant) ?? "", new RegExp(pattern));
    }
  }
  assert.equal(textMatching("^(?=.*[A-Z])(?=.*\\d).{8}$", 0), undefined);
  assert.notEqual(textMatching("^[a-z]+$", 0), textMatching("^[a-z]+$", 1));
});

test("Texts take alternatives by their variant, and escapes in classes", () => {
  assert.equal(textMatching("^(a|b)$", 0), "a");
  assert.equal(textMatching("^(a|b)$", 1), "b");
  assert.equal(textMatching("^a{0}b$", 0), "b");
  assert.equal(textMatching("^[\\]a]b$", 0), "ab");
  assert.equal(textMatching("^a{3,}$", 0), "aaa");
});

test("A fitting value is the default, which stays as it is", () => {
  const schema = { type: "object", default: { a: [1] } };
  const value = fittingValue(schema);
  assert.deepEqual(value, { a: [1] });
  assert.notEqual(value, schema.default);
  assert.equal(fittingValue({ type: "string", default: "z" }), "z");
});

test("A fitting list or map has one optional item, within its bounds", () => {
  const items = { type: "string" };
  const list = (more: object, optional = true) =>
    fittingValue({ type: "array", items, ...more }, { optional });
  assert.deepEqual(list({}), ["a"]);
  assert.deepEqual(list({}, false), []);
  assert.deepEqual(list({ maxItems: 0 }), []);
  assert.deepEqual(list({ minItems: 2 }, false), ["a", "b"]);
  const map = (properties: object, minProperties: number) =>
    fittingValue({
      type: "object",
      properties: properties as Record<string, OpenApiSchema>,
      additionalProperties: items,
      minProperties,
    });
  const two = { x: { type: "integer" }, y: { type: "integer" } };
  assert.deepEqual(map(two, 3), { x: 1, y: 1, "key-1": "a" });
  // The key of a property is no further key.
  assert.deepEqual(map({ "key-1": { type: "integer" } }, 3), {
    "key-1": 1,
    "key-2": "a",
  });
});

test("The keys of a map of quantities are names of resources", () => {
  const schema = {
    type: "object",
    additionalProperties: { "x-kubernetes-int-or-string": true },
  };
  const value = fittingValue(schema);
  assert.deepEqual(value, { cpu: 1 });
  assert.deepEqual(
    leafChanges(schema, value).map(({ path, value }) => [path[0], value]),
    [["cpu", "50%"], ["cpu", 2], ["cpu", undefined], ["memory", 1]],
  );
});

test("A value of an enumeration is changed to each of the others", () => {
  const schema = { type: "string", enum: ["a", "b", "c", "d"] };
  assert.deepEqual(leafChanges(schema, "b").map(({ value }) => value), [
    "a",
    "c",
    "d",
  ]);
});

test("A number is changed to another one and, where it is valid, to zero", () => {
  const numbers = (value: number, minimum?: number) =>
    leafChanges(
      { type: "integer", ...minimum !== undefined && { minimum } },
      value,
    ).map((one) => one.value);
  assert.deepEqual(numbers(1), [2, 0]);
  assert.deepEqual(numbers(5), [1, 0]);
  assert.deepEqual(numbers(0), [1, 2]);
  assert.deepEqual(numbers(5, 1), [1, 2]);
});

/** Schemas that refuse the usual values. */
const NARROW: Readonly<Record<string, OpenApiSchema>> = {
  "a large minimum": { type: "integer", minimum: 5_000_000_000 },
  "a low maximum": { type: "integer", maximum: -5_000_000_000 },
  "a multiple": { type: "integer", minimum: 100, multipleOf: 7 },
  "an open interval": {
    type: "number",
    minimum: 0,
    maximum: 1,
    exclusiveMinimum: true,
    exclusiveMaximum: true,
  },
};

for (const [name, schema] of Object.entries(NARROW)) {
  test(`A generated number fits a narrow schema: ${name}`, () => {
    const value = fittingValue(schema);
    assert.notEqual(value, undefined);
    assert.deepEqual(validateSchema(value, schema), []);
  });
}

test("A generated embedded resource has a type and a name", () => {
  const schema: OpenApiSchema = {
    type: "object",
    "x-kubernetes-embedded-resource": true,
    "x-kubernetes-preserve-unknown-fields": true,
  };
  assert.deepEqual(fittingValue(schema), {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "sample" },
  });
});

test("Fields named like members of objects are generated and changed", () => {
  const names = ["constructor", "toString", "__proto__"];
  const flag: OpenApiSchema = { type: "boolean" };
  const schema: OpenApiSchema = {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, flag])),
  };
  const value = fittingValue(schema);
  assert.deepEqual(Object.entries(value as object).sort(), [
    ["__proto__", false],
    ["constructor", false],
    ["toString", false],
  ]);
  const added = leafChanges(schema, {}).map((change) => changed({}, change));
  assert.deepEqual(
    added.map((one) => Object.keys(one as object).join()).sort(),
    names.flatMap((name) => [name, name]).sort(),
  );
});
