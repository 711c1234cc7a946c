import assert from "node:assert/strict";
import { test } from "node:test";
import type { StandardSchema } from "@coracle/operator/crd";
import { structuralSchemaOf } from "../../../core/crd/structural_schema.ts";

/** Schema of another library, as it writes it in JSON Schema. */
function schemaOf(
  json: Record<string, unknown>,
  asked: (options: unknown) => void = () => {},
): StandardSchema {
  return {
    "~standard": {
      version: 1,
      vendor: "other",
      validate: (value) => ({ value }),
      jsonSchema: {
        input(options) {
          asked(options);
          return json;
        },
      },
    },
  };
}

function structural(json: Record<string, unknown>): object {
  return structuralSchemaOf(schemaOf(json), "spec");
}

const text = { type: "string" } as const;
const list = { type: "array", items: text } as const;
const map = { type: "object", additionalProperties: text } as const;
const refers = { $ref: "#/$defs/a" };

const CASES: readonly (readonly [
  string,
  Record<string, unknown>,
  Record<string, unknown>,
])[] = [
  [
    "an intersection requires what any of its parts requires",
    {
      type: "object",
      properties: { a: text, b: text },
      allOf: [{ required: ["a"] }, { required: ["b"] }],
    },
    {
      type: "object",
      properties: { a: text, b: text },
      required: ["a", "b"],
    },
  ],
  [
    "an integer or a string keeps the conditions of both",
    { "x-kubernetes-int-or-string": true, minimum: 1, maxLength: 3 },
    { "x-kubernetes-int-or-string": true, minimum: 1, maxLength: 3 },
  ],
  [
    "links to documentation are kept",
    { ...text, externalDocs: { url: "https://example.com" } },
    { ...text, externalDocs: { url: "https://example.com" } },
  ],
  [
    "an intersection has the narrower of two bounds of a list",
    {
      allOf: [{ ...list, minItems: 1, maxItems: 5 }, {
        minItems: 2,
        maxItems: 3,
      }],
    },
    { ...list, minItems: 2, maxItems: 3 },
  ],
  [
    "an intersection has the narrower of two bounds of a map",
    {
      allOf: [
        { ...map, minProperties: 1, maxProperties: 5 },
        { minProperties: 2, maxProperties: 3 },
      ],
    },
    { ...map, minProperties: 2, maxProperties: 3 },
  ],
  [
    "an intersection has the first of two formats",
    { allOf: [{ ...text, format: "date" }, { format: "uuid" }] },
    { ...text, format: "date" },
  ],
  [
    "an intersection has each of its patterns once",
    { allOf: [{ ...text, pattern: "a" }, { pattern: "b" }, { pattern: "b" }] },
    { ...text, pattern: "a", allOf: [{ pattern: "b" }] },
  ],
  [
    "an intersection combines a field that several members name",
    {
      allOf: [
        { type: "object", properties: { a: { ...text, minLength: 1 } } },
        { type: "object", properties: { a: { ...text, maxLength: 3 } } },
      ],
    },
    {
      type: "object",
      properties: { a: { ...text, minLength: 1, maxLength: 3 } },
    },
  ],
  [
    "an intersection keeps listed values beside its patterns",
    {
      allOf: [
        { ...text, nullable: true, enum: ["a"], pattern: "a" },
        { pattern: "b" },
      ],
    },
    {
      ...text,
      nullable: true,
      pattern: "a",
      allOf: [{ enum: ["a"] }, { pattern: "b" }],
    },
  ],
  [
    "a description beside a reference replaces that of the definition",
    {
      type: "object",
      properties: { a: { ...refers, description: "own" } },
      $defs: { a: { ...text, description: "shared" } },
    },
    { type: "object", properties: { a: { ...text, description: "own" } } },
  ],
  [
    "a definition may be referred to by several fields",
    {
      type: "object",
      properties: { a: refers, b: refers },
      $defs: { a: text },
    },
    { type: "object", properties: { a: text, b: text } },
  ],
  [
    "the description of a union replaces that of its only branch",
    { description: "whole", anyOf: [{ ...text, description: "part" }] },
    { ...text, description: "whole" },
  ],
  [
    "a union keeps the conditions beside it, and only those of its branches",
    {
      ...text,
      minLength: 1,
      anyOf: [{ ...text, pattern: "a", default: "a" }, {
        ...text,
        pattern: "b",
      }],
    },
    { ...text, minLength: 1, anyOf: [{ pattern: "a" }, { pattern: "b" }] },
  ],
  [
    "null among listed values makes a field nullable",
    { ...text, enum: ["a", null] },
    { ...text, nullable: true, allOf: [{ enum: ["a"] }] },
  ],
  ["other fields alone make an object", { additionalProperties: text }, map],
  ["items alone make a list", { items: text }, list],
  [
    "a bound is exclusive only where the schema says so",
    {
      type: "number",
      minimum: 1,
      exclusiveMinimum: false,
      exclusiveMaximum: 5,
    },
    { type: "number", minimum: 1, maximum: 5, exclusiveMaximum: true },
  ],
  [
    "no field is required by an empty list",
    { type: "object", properties: { a: text }, required: [] },
    { type: "object", properties: { a: text } },
  ],
  [
    "unknown fields are kept where any other is allowed",
    { type: "object", properties: { a: text }, additionalProperties: true },
    {
      type: "object",
      properties: { a: text },
      "x-kubernetes-preserve-unknown-fields": true,
    },
  ],
];

for (const [what, json, expected] of CASES) {
  test(`structuralSchemaOf(): ${what}`, () => {
    assert.deepEqual(structural(json), expected);
  });
}

test("structuralSchemaOf() refuses what no structural schema can express", () => {
  const refused: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [
      {
        type: "object",
        properties: { a: refers },
        $defs: { a: { $ref: "#/$defs/b" }, b: { items: refers } },
      },
      /the type contains itself/,
    ],
    [
      { allOf: [{ ...text, pattern: "a" }, { pattern: "(?=b)" }] },
      /regular expressions have no look-around/,
    ],
    [{ type: "array", items: [text, text] }, /there are no tuples/],
  ];
  for (const [json, message] of refused) {
    assert.throws(() => structural(json), message);
  }
});

test("structuralSchemaOf() passes the options of zod to zod alone", () => {
  const asked: unknown[] = [];
  structuralSchemaOf(schemaOf(text, (options) => asked.push(options)), "spec");
  assert.deepEqual(asked, [{ target: "openapi-3.0" }]);
});

test("structuralSchemaOf() shortens the value in an error after 160 characters", () => {
  const message = (length: number) => {
    // With quotes.
    const keyword = `x-kubernetes-${"a".repeat(length - 15)}`;
    try {
      structural({ ...text, [keyword]: 1 });
    } catch (error) {
      return (error as Error).message;
    }
    return "";
  };
  assert.match(message(160), /a"$/);
  assert.match(message(161), /a…$/);
});

test("structuralSchemaOf refuses a document that refers to itself, and two types", () => {
  assert.throws(
    () => structural({ type: "object", properties: { a: { $ref: "#" } } }),
    /for spec\.a: the type contains itself/,
  );
  const numbers = { ...map, additionalProperties: { type: "integer" } };
  assert.throws(
    () => structural({ allOf: [map, numbers] }),
    /gives it two values of 'additionalProperties'/,
  );
});
