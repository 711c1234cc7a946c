import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { StandardSchema } from "@coracle/operator/crd";
import { structuralSchemaOf } from "../../../core/crd/structural_schema.ts";

const INT_OR_STRING = { "x-kubernetes-int-or-string": true };
const text = { type: "string" };

test("structuralSchemaOf() accepts any Standard Schema library", () => {
  const draft2020 = (json: Record<string, unknown>): StandardSchema => ({
    "~standard": {
      version: 1,
      vendor: "handmade",
      validate: (value) => ({ value }),
      jsonSchema: { input: () => json },
    },
  });
  assert.deepEqual(
    structuralSchemaOf(
      draft2020({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: {
          mode: { const: "on" },
          level: { anyOf: [{ enum: ["a"], nullable: true }, { enum: ["b"] }] },
          port: { type: ["integer", "string", "null"], minimum: 1 },
          rate: { type: "number", exclusiveMinimum: 0 },
          names: {
            type: "array",
            items: { $ref: "#/$defs/Name" },
            uniqueItems: true,
          },
        },
        $defs: { Name: { type: "string", maxLength: 9 } },
      }),
      "spec",
    ).properties,
    {
      mode: { type: "string", enum: ["on"] },
      level: { type: "string", allOf: [{ enum: ["a", "b"] }], nullable: true },
      port: { ...INT_OR_STRING, nullable: true, minimum: 1 },
      rate: { type: "number", minimum: 0, exclusiveMinimum: true },
      names: {
        type: "array",
        items: { type: "string", maxLength: 9 },
        "x-kubernetes-list-type": "set",
      },
    },
  );
  assert.throws(
    () => structuralSchemaOf({} as StandardSchema, "spec"),
    /Cannot read the schema of spec: it must be a Standard Schema/,
  );
});

/** Standard Schema library that generates this JSON Schema. */
function written(schema: object): StandardSchema {
  const input = () => schema as Record<string, unknown>;
  return {
    "~standard": {
      version: 1,
      vendor: "written",
      validate: (value: unknown) => ({ value }),
      jsonSchema: { input },
    },
  };
}

/** The structural schema of one field. */
function fieldOf(field: object, definitions?: object): unknown {
  const schema = { type: "object", properties: { field }, $defs: definitions };
  return structuralSchemaOf(written(schema), "spec").properties?.field;
}

test("structuralSchemaOf() combines all members of an intersection", () => {
  const definitions = {
    Named: {
      type: "object",
      properties: { name: { type: "string", minLength: 1, maxLength: 9 } },
      required: ["name"],
      maxProperties: 9,
    },
  };
  assert.deepEqual(
    fieldOf({
      description: "outer",
      allOf: [
        { $ref: "#/$defs/Named" },
        {
          type: "object",
          description: "inner",
          properties: {
            name: { type: "string", minLength: 2, maxLength: 5, enum: ["ab"] },
            size: {
              allOf: [
                { type: "integer", minimum: 1, maximum: 9 },
                { type: "integer", minimum: 3, maximum: 7 },
              ],
            },
          },
          required: ["name", "size"],
          maxProperties: 4,
        },
      ],
    }, definitions),
    {
      type: "object",
      description: "outer",
      properties: {
        name: { ...text, minLength: 2, maxLength: 5, enum: ["ab"] },
        size: { type: "integer", minimum: 3, maximum: 7 },
      },
      required: ["name", "size"],
      maxProperties: 4,
    },
  );
  const named = { type: "object", properties: { again: text } };
  assert.deepEqual(
    fieldOf({
      allOf: [{ $ref: "#/$defs/Named" }],
      properties: { other: { allOf: [{ $ref: "#/$defs/Named" }] } },
    }, { Named: named }),
    {
      type: "object",
      properties: { again: text, other: named },
    },
    "a definition may be used again within",
  );
  assert.deepEqual(
    fieldOf({
      allOf: [
        { ...text, enum: ["a", "b", "c"], pattern: "^a" },
        { ...text, enum: ["b", "c", "d"], pattern: "a$" },
        { ...text, enum: ["c", "b"] },
      ],
    }),
    { ...text, enum: ["b", "c"], pattern: "^a", allOf: [{ pattern: "a$" }] },
  );
});

for (
  const [what, field, expected] of [
    [
      "an intersection of two types",
      { allOf: [{ type: "string" }, { type: "integer" }] },
      /spec\.field: an intersection gives it two values of 'type'/,
    ],
    [
      "an intersection that contains itself",
      { allOf: [{ $ref: "#/$defs/Loop" }] },
      /spec\.field: it refers to itself/,
    ],
    [
      "an intersection that contains itself further down",
      { allOf: [{ $ref: "#/$defs/Tree" }] },
      /spec\.field\.child.*: it refers to itself/,
    ],
    [
      "an intersection with what there is not",
      { allOf: [{ $ref: "#/$defs/None" }] },
      /spec\.field: there is no such definition/,
    ],
    [
      "what there is not",
      { $ref: "#/$defs/None" },
      /spec\.field: there is no such definition/,
    ],
    [
      "names with a pattern",
      { type: "object", patternProperties: { "^a": { type: "string" } } },
      /spec\.field: names have no pattern/,
    ],
    [
      "a tuple of several types",
      { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }] },
      /spec\.field: the items of a list have one type, so there are no tuples/,
    ],
    [
      "a union of listed integers and any string",
      { anyOf: [{ type: "integer", enum: [1] }, { type: "string" }] },
      /spec\.field: a union of listed integers and any string has none/,
    ],
    [
      "a union of two lengths",
      {
        anyOf: [
          { type: "string", minLength: 1 },
          { type: "integer" },
          { type: "string", minLength: 2 },
        ],
      },
      /spec\.field: /,
    ],
  ] as const
) {
  test(`structuralSchemaOf() rejects ${what}`, () => {
    const definitions = {
      Loop: { allOf: [{ $ref: "#/$defs/Loop" }] },
      Tree: {
        type: "object",
        properties: { child: { allOf: [{ $ref: "#/$defs/Tree" }] } },
      },
    };
    assert.throws(() => fieldOf(field, definitions), expected);
  });
}

test("structuralSchemaOf() keeps the flags of patterns of zod", () => {
  const schema = structuralSchemaOf(
    z.object({
      any: z.string().regex(/^abc$/i).describe("Letters."),
      lines: z.string().min(1).regex(/^a.b$/gmsu).optional(),
      both: z.string().regex(/x/i).regex(/y/),
      hex: z.stringFormat("hex", /^[\da-f]+$/i),
      plain: z.string().regex(/^a$/u),
    }),
    "spec",
  );
  const { any, lines, both, hex, plain } = schema.properties ?? {};
  assert.equal(any?.pattern, "(?i:^abc$)");
  assert.equal(lines?.pattern, "(?ms:^a.b$)");
  assert.deepEqual(both, {
    ...text,
    pattern: "(?i:x)",
    allOf: [{ pattern: "y" }],
  });
  assert.equal(hex?.pattern, "(?i:^[\\da-f]+$)");
  assert.equal(plain?.pattern, "^a$");
});
