import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema, StatusCause } from "@coracle/operator/core";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import { Correlation } from "../../../dev/apiserver/crd/schema/correlation.ts";
import { setSchemaDefaults } from "../../../dev/apiserver/crd/schema/defaulting.ts";
import { listTypeCauses } from "../../../dev/apiserver/crd/schema/list_types.ts";
import {
  pruneNulls,
  pruneUnknown,
} from "../../../dev/apiserver/crd/schema/pruning.ts";
import { findingCauses } from "../../../dev/apiserver/crd/schema/schema_findings.ts";
import { validateSchema } from "../../../dev/apiserver/crd/schema/schema_validator.ts";
import { causeTexts, recordedLines } from "./recorded_lines.ts";

interface RecordedObject {
  readonly schema: OpenApiSchema;
  readonly value: unknown;
  /** Value after pruning and defaulting. */
  readonly stored: unknown;
  readonly unknown: readonly string[];
  readonly causes: readonly StatusCause[];
}

test("Custom resources are pruned, defaulted and validated as recorded", async () => {
  await loadPatterns();
  for (const recorded of recordedLines<RecordedObject>("objects")) {
    const schema: OpenApiSchema = {
      type: "object",
      properties: { spec: recorded.schema },
    };
    const object: Record<string, unknown> = {
      apiVersion: "a/v1",
      kind: "A",
      spec: structuredClone(recorded.value),
    };
    const unknown = pruneUnknown(object, schema);
    pruneNulls(object, schema);
    setSchemaDefaults(object, schema);
    const where = JSON.stringify([recorded.schema, recorded.value]);
    assert.deepEqual(unknown, recorded.unknown, where);
    assert.deepEqual(object.spec, recorded.stored, where);
    const causes = [
      ...findingCauses(validateSchema(object, schema), ""),
      ...listTypeCauses(object, schema),
    ];
    assert.deepEqual(causeTexts(causes), causeTexts(recorded.causes), where);
  }
});

test("Numbers in violations are written as Go writes floats and integers", () => {
  const cases: [OpenApiSchema, number, string][] = [
    [{ maximum: 5 }, 6, "6: n in body should be less than or equal to 5"],
    [
      { maximum: 5 },
      1_234_567.5,
      "1.2345675e+06: n in body should be less than or equal to 5",
    ],
    [
      { maximum: 5 },
      1e20,
      "1e+20: n in body should be less than or equal to 5",
    ],
    [
      { minimum: 12_345_678 },
      0.00001,
      "1e-05: n in body should be greater than or equal to 1.2345678e+07",
    ],
    [
      { minimum: 12_345_678 },
      1,
      "1: n in body should be greater than or equal to 12345678",
    ],
    [
      { multipleOf: 0.00001 },
      0.000015,
      "1.5e-05: n in body should be a multiple of 1e-05",
    ],
  ];
  for (const [limits, n, message] of cases) {
    const schema = {
      type: "object",
      properties: { n: { type: "number", ...limits } },
    } as const;
    const [cause] = findingCauses(validateSchema({ n }, schema), "");
    assert.equal(cause?.message, `Invalid value: ${message}`);
  }
});

test("A double at the limit of the integers of 64 bits is out of range", () => {
  const schema = {
    type: "object",
    properties: { n: { type: "integer", format: "int64" } },
  } as const;
  const count = (n: unknown) =>
    findingCauses(validateSchema({ n }, schema), "").length;
  assert.deepEqual([-(2n ** 63n), -(2 ** 63), 2 ** 63].map(count), [0, 2, 2]);
});

const LIST: OpenApiSchema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 3 },
    parts: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["id"],
      items: {
        type: "object",
        properties: {
          id: { type: "string" },
          size: { type: "integer", maximum: 5 },
        },
      },
    },
    tags: { type: "array", items: { type: "string", maxLength: 2 } },
  },
};

function wrongFields(value: unknown, old: unknown): string[] {
  const correlation = new Correlation(value, old, LIST);
  return validateSchema(value, LIST, correlation).map(({ name }) => name)
    .sort();
}

test("validateSchema() accepts unchanged invalid values on update", () => {
  const old = {
    name: "long name",
    parts: [{ id: "a", size: 9 }, { id: "b", size: 9 }],
    tags: ["long", "x"],
  };
  assert.deepEqual(wrongFields(structuredClone(old), old), []);
  assert.deepEqual(wrongFields({ ...old, name: "other name" }, old), ["name"]);
});

test("validateSchema() correlates items of a map list at any index", () => {
  const old = { parts: [{ id: "a", size: 9 }, { id: "b", size: 9 }] };
  const moved = {
    parts: [{ id: "new", size: 9 }, { id: "b", size: 9 }, { id: "a", size: 8 }],
  };
  assert.deepEqual(wrongFields(moved, old), ["parts[0].size", "parts[2].size"]);
});

test("validateSchema() validates all items of a changed atomic list", () => {
  const old = { tags: ["long", "x"] };
  assert.deepEqual(wrongFields({ tags: ["long", "y"] }, old), ["tags[0]"]);
});

test("Pruning and defaulting treat __proto__ as an ordinary field", () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string","default":"x"}}}',
  ) as OpenApiSchema;
  const value = JSON.parse('{"constructor":1}') as Record<string, unknown>;
  pruneUnknown(value, schema);
  setSchemaDefaults(value, schema);
  assert.deepEqual(Object.entries(value), [["__proto__", "x"]]);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
});
