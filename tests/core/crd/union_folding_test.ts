import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema } from "@coracle/operator/core";
import { foldUnion } from "../../../core/crd/union_folding.ts";

const CONTEXT = { path: "spec.port", root: {}, references: [] };
const fold = (...branches: readonly OpenApiSchema[]) =>
  foldUnion(branches, "anyOf", CONTEXT);
const INT_OR_STRING = { "x-kubernetes-int-or-string": true } as const;

test("foldUnion takes whole numbers in a list for integers, and no others", () => {
  const text: OpenApiSchema = { type: "string", enum: ["http"] };
  assert.deepEqual(
    fold({ type: "number", enum: [80, 443] }, text),
    { ...INT_OR_STRING, enum: [80, 443, "http"] },
  );
  for (
    const branch of [
      { type: "number", enum: [80, 1.5] },
      { type: "number" },
      { type: "boolean", enum: [true] },
    ] as readonly OpenApiSchema[]
  ) {
    assert.throws(
      () => fold(branch, text),
      /a value must have one type, and this is one of (number|boolean), string/,
    );
  }
});

test("foldUnion folds int-or-string with its parts, and lists of values", () => {
  assert.equal(
    fold(INT_OR_STRING, { type: "string" })["x-kubernetes-int-or-string"],
    true,
  );
  assert.deepEqual(
    fold({ type: "string", enum: ["a"] }, { type: "string", enum: ["b", "a"] }),
    { type: "string", enum: ["a", "b"] },
  );
  assert.deepEqual(
    fold({ type: "boolean", enum: [true] }, { type: "boolean", enum: [false] }),
    { type: "boolean" },
  );
  assert.deepEqual(fold({ type: "object" }), { type: "object" });
  assert.throws(
    () => fold({ type: "object" }, { type: "object", properties: {} }),
    /a union of objects has none/,
  );
  assert.throws(
    () => fold({ type: "array" }, { type: "array", maxItems: 1 }),
    /a value must have one type, and this is one of array/,
  );
});

test("foldUnion keeps a list of one boolean, and branches of oneOf without conditions", () => {
  const yes: OpenApiSchema = { type: "boolean", enum: [true] };
  assert.deepEqual(fold(yes, yes), yes);
  assert.deepEqual(fold(yes, { type: "boolean", enum: [false] }), {
    type: "boolean",
  });
  const branches: readonly OpenApiSchema[] = [
    { type: "string" },
    { type: "string", minLength: 3 },
  ];
  assert.deepEqual(fold(...branches), { type: "string" });
  assert.deepEqual(foldUnion(branches, "oneOf", CONTEXT), {
    type: "string",
    oneOf: [{}, { minLength: 3 }],
  });
});
