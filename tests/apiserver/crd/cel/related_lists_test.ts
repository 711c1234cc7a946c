import assert from "node:assert/strict";
import { test } from "node:test";
import type { OpenApiSchema } from "@coracle/operator/core";
import { loadPatterns } from "../../../../dev/apiserver/cel/pattern.ts";
import { compileRules } from "../../../../dev/apiserver/crd/cel/rule_validator.ts";
import { recordedLines } from "../recorded_lines.ts";

/** Rule on an updated object, with the result of kube-apiserver 1.36.3. */
interface RecordedRule {
  readonly rule: string;
  readonly holds: boolean;
}

/** First line of the file: the update that all rules validate. */
interface RecordedUpdate {
  readonly properties: Readonly<Record<string, OpenApiSchema>>;
  readonly value: unknown;
  readonly old: unknown;
}

test("Lists of type set and map are compared and united as recorded", async () => {
  await loadPatterns();
  const [update, ...rules] = recordedLines<RecordedUpdate & RecordedRule>(
    "../cel/data/related_lists",
  );
  assert.ok(update);
  const { properties, value, old } = update;
  for (const { rule, holds } of rules) {
    const validator = compileRules({
      type: "object",
      properties: {
        spec: {
          type: "object",
          properties,
          "x-kubernetes-validations": [{ rule, message: "fails" }],
        },
      },
    }, true);
    const causes = validator?.validate({ spec: value }, { spec: old });
    const texts = causes?.map(({ message }) => message);
    const expected = holds ? [] : ["Invalid value: fails"];
    assert.deepEqual(texts, expected, rule);
  }
});

test("A union keeps the right one of two items with equal keys", async () => {
  await loadPatterns();
  const item: OpenApiSchema = {
    type: "object",
    properties: { key: { type: "string" }, size: { type: "integer" } },
  };
  const list: OpenApiSchema = {
    type: "array",
    items: item,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["key"],
  };
  const rule = "(oldSelf.list + self.list).map(x, x.size) == [3, 2, 4]";
  const validator = compileRules({
    type: "object",
    properties: { list },
    "x-kubernetes-validations": [{ rule }],
  }, true);
  const found = validator?.validate(
    { list: [{ key: "a", size: 3 }, { key: "c", size: 4 }] },
    { list: [{ key: "a", size: 1 }, { key: "b", size: 2 }] },
  );
  assert.deepEqual(found, []);
});
