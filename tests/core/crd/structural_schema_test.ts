import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { StandardSchema } from "@coracle/operator/crd";
import { structuralSchemaOf } from "../../../core/crd/structural_schema.ts";

interface Case {
  readonly what: string;
  readonly schema: StandardSchema;
  /** The structural schema of the field; an optional field says so. */
  readonly gives: Record<string, unknown>;
  readonly optional?: boolean;
}

const KEEPS_UNKNOWN = { "x-kubernetes-preserve-unknown-fields": true };
const INT_OR_STRING = { "x-kubernetes-int-or-string": true };
const text = { type: "string" };

const CASES: readonly Case[] = [
  {
    what: "a default makes the field optional and is kept",
    schema: z.boolean().default(false),
    gives: { type: "boolean", default: false },
    optional: true,
  },
  {
    what: "an optional field is not required",
    schema: z.string().optional(),
    gives: text,
    optional: true,
  },
  {
    what: "null is allowed by nullable",
    schema: z.string().nullable(),
    gives: { ...text, nullable: true },
  },
  {
    what: "the description of the whole counts, not that of a part",
    schema: z.string().describe("part").nullable().describe("whole"),
    gives: { ...text, nullable: true, description: "whole" },
  },
  {
    what: "items that differ make a set, unless the schema says otherwise",
    schema: z.object({
      a: z.array(z.string()).meta({ uniqueItems: true }),
      b: z.array(z.string()).meta({
        uniqueItems: true,
        "x-kubernetes-list-type": "atomic",
      }),
    }),
    gives: {
      type: "object",
      properties: {
        a: { type: "array", items: text, "x-kubernetes-list-type": "set" },
        b: { type: "array", items: text, "x-kubernetes-list-type": "atomic" },
      },
      required: ["a", "b"],
    },
  },
  {
    what: "a nullable default of null is kept",
    schema: z.string().nullable().default(null),
    gives: { ...text, nullable: true, default: null },
    optional: true,
  },
  {
    what: "defaults of inner fields are filled in by an empty default",
    schema: z.object({ a: z.string().default("q") }).prefault({}),
    gives: {
      type: "object",
      properties: { a: { ...text, default: "q" } },
      default: {},
    },
    optional: true,
  },
  {
    what: "an enum keeps its values",
    schema: z.enum(["a", "b"]),
    gives: { ...text, enum: ["a", "b"] },
  },
  {
    what: "a nullable enum is checked only when there is a value",
    schema: z.enum(["a", "b"]).nullable(),
    gives: { ...text, nullable: true, allOf: [{ enum: ["a", "b"] }] },
  },
  {
    what: "a union of literals and null is a nullable enum",
    schema: z.union([z.literal("a"), z.literal("b"), z.null()]),
    gives: { ...text, nullable: true, allOf: [{ enum: ["a", "b"] }] },
  },
  {
    what: "a union of literals is an enum",
    schema: z.union([z.literal("a"), z.enum(["b", "c"])]),
    gives: { ...text, enum: ["a", "b", "c"] },
  },
  {
    what: "a union of true and false is a boolean",
    schema: z.union([z.literal(true), z.literal(false)]),
    gives: { type: "boolean" },
  },
  {
    what: "a union with null is nullable",
    schema: z.union([z.int(), z.null()]),
    gives: { type: "integer", nullable: true },
  },
  {
    what: "a union of an integer and a string is int-or-string",
    schema: z.union([z.int(), z.string()]),
    gives: INT_OR_STRING,
  },
  {
    what: "int-or-string keeps the conditions of both",
    schema: z.union([z.int().min(1), z.string().regex(/%$/)]),
    gives: { ...INT_OR_STRING, minimum: 1, pattern: "%$" },
  },
  {
    what: "listed strings beside an integer become a pattern",
    schema: z.union([z.int(), z.enum(["auto", "a.b"])]),
    gives: { ...INT_OR_STRING, pattern: "^(?:auto|a\\.b)$" },
  },
  {
    what: "literals of both kinds are an enum of int-or-string",
    schema: z.literal(["a", 1]),
    gives: { ...INT_OR_STRING, enum: ["a", 1] },
  },
  {
    what: "int-or-string by meta needs no union",
    schema: z.union([z.int(), z.string()]).meta({
      ...INT_OR_STRING,
      description: "a port",
    }),
    gives: { ...INT_OR_STRING, description: "a port" },
  },
  {
    what: "a union of strings keeps their conditions",
    schema: z.union([z.string().regex(/a/), z.string().max(3)]),
    gives: { ...text, anyOf: [{ pattern: "a" }, { maxLength: 3 }] },
  },
  {
    what: "a union with any string is any string",
    schema: z.union([z.string().regex(/a/), z.string()]),
    gives: text,
  },
  {
    what: "an integer has no bounds of doubles",
    schema: z.int(),
    gives: { type: "integer" },
  },
  {
    what: "an integer keeps the bounds that somebody wrote",
    schema: z.int().min(1).max(10),
    gives: { type: "integer", minimum: 1, maximum: 10 },
  },
  {
    what: "exclusive bounds and steps are kept",
    schema: z.number().gt(0).lt(1).multipleOf(0.25),
    gives: {
      type: "number",
      minimum: 0,
      exclusiveMinimum: true,
      maximum: 1,
      exclusiveMaximum: true,
      multipleOf: 0.25,
    },
  },
  {
    what: "lengths and a pattern are kept",
    schema: z.string().min(1).max(3).regex(/^a+$/),
    gives: { ...text, minLength: 1, maxLength: 3, pattern: "^a+$" },
  },
  {
    what: "several patterns must all hold",
    schema: z.string().startsWith("a").endsWith("b"),
    gives: { ...text, pattern: "^a.*", allOf: [{ pattern: ".*b$" }] },
  },
  {
    what: "a list keeps its size and items",
    schema: z.array(z.string()).min(1).max(3),
    gives: { type: "array", items: text, minItems: 1, maxItems: 3 },
  },
  {
    what: "a tuple of one type is a list of that length",
    schema: z.tuple([z.string(), z.string()]),
    gives: { type: "array", items: text, minItems: 2, maxItems: 2 },
  },
  {
    what: "a record is additionalProperties",
    schema: z.record(z.string(), z.int()),
    gives: { type: "object", additionalProperties: { type: "integer" } },
  },
  {
    what: "a record of known names is an object with these fields",
    schema: z.record(z.enum(["a", "b"]), z.int()),
    gives: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
  },
  {
    what: "a record of some of the known names requires none",
    schema: z.partialRecord(z.literal("a"), z.unknown()),
    gives: {
      type: "object",
      properties: { a: { ...KEEPS_UNKNOWN, nullable: true } },
    },
  },
  {
    what: "a record of anything keeps unknown fields",
    schema: z.record(z.string(), z.unknown()),
    gives: { type: "object", ...KEEPS_UNKNOWN },
  },
  {
    what: "a loose object keeps unknown fields",
    schema: z.looseObject({ a: z.string() }),
    gives: {
      type: "object",
      properties: { a: text },
      required: ["a"],
      ...KEEPS_UNKNOWN,
    },
  },
  {
    what: "a strict object is an object, since others are dropped",
    schema: z.strictObject({ a: z.string() }),
    gives: { type: "object", properties: { a: text }, required: ["a"] },
  },
  {
    what: "a value of any type keeps everything, null too",
    schema: z.unknown(),
    gives: { ...KEEPS_UNKNOWN, nullable: true },
  },
  {
    what: "an ISO date-time needs no pattern",
    schema: z.iso.datetime(),
    gives: { ...text, format: "date-time" },
  },
  {
    what: "an intersection of objects is one object",
    schema: z.intersection(
      z.object({ a: z.string() }),
      z.object({ a: z.string().max(3), b: z.int() }),
    ),
    gives: {
      type: "object",
      properties: {
        a: { ...text, maxLength: 3 },
        b: { type: "integer" },
      },
      required: ["a", "b"],
    },
  },
  {
    what: "extensions of Kubernetes are kept",
    schema: z.array(z.object({ name: z.string() })).meta({
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      "x-kubernetes-validations": [{ rule: "self.size() < 3" }],
    }),
    gives: {
      type: "array",
      items: {
        type: "object",
        properties: { name: text },
        required: ["name"],
      },
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      "x-kubernetes-validations": [{ rule: "self.size() < 3" }],
    },
  },
  {
    what: "a description is kept, words of no meaning here are dropped",
    schema: z.string().describe("a word").meta({ examples: ["x"], label: 1 }),
    gives: { ...text, description: "a word" },
  },
];

for (const { what, schema, gives, optional = false } of CASES) {
  test(`structuralSchemaOf(): ${what}`, () => {
    const { properties, required } = structuralSchemaOf(
      z.object({ field: schema as z.ZodType }),
      "spec",
    );
    assert.deepEqual(properties?.field, gives);
    assert.deepEqual(required, optional ? undefined : ["field"]);
  });
}

test("structuralSchemaOf() inlines shared schemas", () => {
  const shared = z.object({ a: z.string() }).meta({ id: "Shared" });
  const { properties } = structuralSchemaOf(
    z.object({ x: shared.describe("first"), y: shared }),
    "spec",
  );
  const written = { type: "object", properties: { a: text }, required: ["a"] };
  assert.deepEqual(properties?.y, written);
  assert.deepEqual(properties?.x, { ...written, description: "first" });
});
