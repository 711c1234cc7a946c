import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema } from "@coracle/operator/core";
import { findingCauses } from "../../../dev/apiserver/crd/schema/schema_findings.ts";
import { validateSchema } from "../../../dev/apiserver/crd/schema/schema_validator.ts";
import {
  readWrittenJson,
  takeFloats,
} from "../../../dev/apiserver/exact_json.ts";

const HALVES: OpenApiSchema = {
  type: "number",
  multipleOf: 0.5,
  minimum: 0.5,
  maximum: 1e10,
};

/** Violations that kube-apiserver 1.37 reports, by the number as it is written. */
const CASES: Readonly<Record<string, string | undefined>> = {
  "5.0": undefined,
  "1e3": undefined,
  "5": "Invalid value: 0: factor MultipleOf declared for n must be positive: 0",
  "0.0": "Invalid value: 0: n in body should be greater than or equal to 0.5",
  "1e11":
    "Invalid value: 1e+11: n in body should be less than or equal to 1e+10",
};

function violations(schema: OpenApiSchema, text: string): unknown[] {
  const object = readWrittenJson(text);
  takeFloats(object);
  return findingCauses(validateSchema(object, schema), "spec")
    .map(({ message }) => message);
}

for (const [number, message] of Object.entries(CASES)) {
  test(`A number is compared with fractions as Go reads it: ${number}`, () => {
    const expected = message === undefined ? [] : [message];
    const object: OpenApiSchema = { type: "object", properties: { n: HALVES } };
    assert.deepEqual(violations(object, `{"n":${number}}`), expected);
    const list: OpenApiSchema = { type: "array", items: HALVES };
    assert.deepEqual(
      violations(list, `[${number}]`),
      expected.map((text) => text.replace(/\bn (?=in|must)/, "[0] ")),
    );
  });
}
