import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusCause, UntypedObject } from "@coracle/operator/core";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import { setCrdDefaults } from "../../../dev/apiserver/crd/crd_lifecycle.ts";
import {
  createCauses,
  updateCauses,
} from "../../../dev/apiserver/crd/definition_rules/crd_rules.ts";
import { causeTexts, recordedLines } from "./recorded_lines.ts";

interface RecordedDefinition {
  readonly name: string;
  readonly crd: UntypedObject;
  readonly causes: readonly StatusCause[];
}

test("CRDs are validated as recorded", async () => {
  await loadPatterns();
  for (
    const { name, crd, causes } of recordedLines<RecordedDefinition>(
      "definitions",
    )
  ) {
    setCrdDefaults(crd);
    assert.deepEqual(causeTexts(createCauses(crd)), causeTexts(causes), name);
  }
});

function definition(established: boolean): UntypedObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "things.a.dev" },
    spec: {
      group: "a.dev",
      scope: "Namespaced",
      names: {
        kind: "Thing",
        plural: "things",
        singular: "thing",
        listKind: "ThingList",
      },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object" } },
      }],
    },
    status: {
      storedVersions: ["v1"],
      conditions: [
        { type: "Established", status: established ? "True" : "False" },
      ],
    },
  };
}

function changed(
  live: UntypedObject,
  change: (spec: Record<string, unknown>) => void,
): UntypedObject {
  const copy = structuredClone(live);
  change(copy.spec as Record<string, unknown>);
  return copy;
}

test("updateCauses() rejects changed scope, kind, group or plural once established", () => {
  const live = definition(true);
  const next = changed(live, (spec) => {
    spec.scope = "Cluster";
    spec.group = "b.dev";
    spec.names = { ...spec.names as object, kind: "Other", plural: "others" };
  });
  assert.deepEqual(
    updateCauses(next, live).filter(({ message = "" }) =>
      message.endsWith("field is immutable")
    ).map(({ field }) => field),
    ["spec.scope", "spec.names.kind", "spec.group", "spec.names.plural"],
  );
});

test("updateCauses() allows a changed scope before the CRD is established", () => {
  const live = definition(false);
  const next = changed(live, (spec) => spec.scope = "Cluster");
  assert.deepEqual(updateCauses(next, live), []);
});

test("updateCauses() rejects the removal of stored versions", () => {
  const live = definition(true);
  const next = changed(live, (spec) => {
    const [version] = spec.versions as Record<string, unknown>[];
    spec.versions = [{ ...version, name: "v2" }];
  });
  next.status = { storedVersions: ["v1", "v2"] };
  assert.deepEqual(causeTexts(updateCauses(next, live)), [
    'FieldValueInvalid status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions',
  ]);
});

test("createCauses() requires fields of allOf, anyOf and not in the schema", async () => {
  await loadPatterns();
  const crd = definition(false);
  const { versions } = crd.spec as { versions: { schema: object }[] };
  const b = { type: "object", properties: { b: { type: "string" } } };
  versions[0]!.schema = {
    openAPIV3Schema: {
      type: "object",
      properties: {
        a: { type: "string" },
        list: { type: "array", items: b },
        // Only the schema at the root is checked.
        spec: { ...b, anyOf: [{ properties: { none: { minLength: 1 } } }] },
      },
      anyOf: [
        { properties: { a: { minLength: 1 } } },
        { properties: { none: { minLength: 1 } } },
      ],
      not: {
        allOf: [{
          properties: {
            list: { items: { properties: { c: { minLength: 1 } } } },
            a: { items: { minLength: 1 } },
          },
        }],
      },
    },
  };
  setCrdDefaults(crd);
  const at = "spec.validation.openAPIV3Schema";
  const inner = `${at}.not.allOf[0].properties`;
  const required = (path: string, where: string) =>
    `FieldValueRequired ${path}: Required value: because it is defined in ${where}`;
  assert.deepEqual(causeTexts(createCauses(crd)), [
    required(`${at}.properties[a].items`, `${inner}[a].items`),
    required(
      `${at}.properties[list].items.properties[c]`,
      `${inner}[list].items.properties[c]`,
    ),
    required(`${at}.properties[none]`, `${at}.anyOf[1].properties[none]`),
  ]);
});
