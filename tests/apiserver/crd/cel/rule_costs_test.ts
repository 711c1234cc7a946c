import assert from "node:assert/strict";
import { test } from "node:test";
import type {
  OpenApiSchema,
  StatusCause,
  UntypedObject,
} from "@coracle/operator/core";
import type { ValidationRule } from "@coracle/operator/crd";
import { loadPatterns } from "../../../../dev/apiserver/cel/pattern.ts";
import { setCrdDefaults } from "../../../../dev/apiserver/crd/crd_lifecycle.ts";
import {
  createCauses,
  updateCauses,
} from "../../../../dev/apiserver/crd/definition_rules/crd_rules.ts";
import { causeTexts, recordedLines } from "../recorded_lines.ts";

/** Answer of kube-apiserver 1.37.2 to a schema. */
interface RecordedLimit {
  readonly name: string;
  readonly schema: OpenApiSchema;
  readonly causes: readonly StatusCause[];
}

/**
 * Cost of a rule on the items of a list in kube-apiserver 1.37.2. The list lengths
 * bring the factor between 1 and 1.5 where possible, because such factors are
 * reported with six digits.
 */
interface RecordedCost {
  readonly rule: ValidationRule;
  readonly self: OpenApiSchema;
  readonly maxItems: number;
  /** Factor by which the limit is exceeded; null if it is not. */
  readonly factor: string | null;
}

function definition(...schemas: readonly OpenApiSchema[]): UntypedObject {
  const crd = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "costs.cost.dev" },
    spec: {
      group: "cost.dev",
      scope: "Namespaced",
      names: {
        kind: "Cost",
        plural: "costs",
        singular: "cost",
        listKind: "CostList",
      },
      versions: schemas.map((openAPIV3Schema, index) => ({
        name: `v${index + 1}`,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema },
      })),
    },
    status: { storedVersions: ["v1"] },
  };
  setCrdDefaults(crd);
  return crd;
}

test("CRDs whose rules are too costly are rejected as recorded", async () => {
  await loadPatterns();
  const recorded = recordedLines<RecordedLimit>("../cel/data/cost_limits");
  for (const { name, schema, causes } of recorded) {
    const found = createCauses(definition(schema));
    assert.deepEqual(causeTexts(found), causeTexts(causes), name);
  }
});

test("Costs of rules are estimated as recorded", async () => {
  await loadPatterns();
  for (
    const { rule, self, maxItems, factor } of recordedLines<RecordedCost>(
      "../cel/data/rule_costs",
    )
  ) {
    const items = { ...self, "x-kubernetes-validations": [rule] };
    const found = createCauses(definition({
      type: "object",
      properties: { l: { type: "array", maxItems, items } },
    }));
    const told = found
      .map(({ message }) =>
        /^Forbidden: estimated rule cost .* factor of (.*) \(/.exec(
          message ?? "",
        )
          ?.[1]
      )
      .find((text) => text !== undefined);
    assert.equal(told ?? null, factor, rule.rule);
  }
});

function dear(description: string): OpenApiSchema {
  return {
    type: "object",
    properties: {
      spec: {
        type: "object",
        description,
        properties: { a: { type: "string" }, b: { type: "string" } },
        "x-kubernetes-validations": [{ rule: "self.a == self.b" }],
      },
      list: {
        type: "array",
        items: { type: "string" },
        maxItems: 4_000_000,
        "x-kubernetes-validations": [{ rule: "self.all(x, x != 'a')" }],
      },
    },
  };
}

test("An update ignores the rule costs of unchanged schemas", async () => {
  await loadPatterns();
  const live = definition(dear("old"));
  assert.equal(createCauses(live).length, 1);
  assert.deepEqual(updateCauses(definition(dear("old")), live), []);
  const changed = updateCauses(definition(dear("new")), live);
  assert.deepEqual(changed.map(({ reason, field }) => `${reason} ${field}`), [
    "FieldValueForbidden spec.validation.openAPIV3Schema.properties[list].x-kubernetes-validations[0].rule",
  ]);
});

test("Cost limits apply to each version separately", async () => {
  await loadPatterns();
  const live = definition(dear("one"), dear("two"));
  const fields = updateCauses(definition(dear("one"), dear("three")), live)
    .map(({ field }) => field);
  assert.deepEqual(fields, [
    "spec.versions[1].schema.openAPIV3Schema.properties[list].x-kubernetes-validations[0].rule",
  ]);
});
