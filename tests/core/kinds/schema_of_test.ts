import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { UntypedObject } from "@coracle/operator/client";
import { crdManifest, defineKind } from "@coracle/operator/crd";
import { schemaOf, type TypeName } from "@coracle/operator/kinds";
import { loadPatterns } from "../../../dev/apiserver/cel/pattern.ts";
import { createCauses } from "../../../dev/apiserver/crd/definition_rules/crd_rules.ts";
import { partOfRounds } from "../../support/part_of_rounds.ts";
import { typeSchemas } from "../../../core/kinds/type_schemas.ts";

/** Greatest size of a definition with one type, of the 1.5 MB that etcd takes. */
const LIMIT_BYTES = 256 * 1024;

const NAMES = Object.keys(JSON.parse(typeSchemas())) as TypeName[];

/** A kind with a list of a type. */
function kindWith(name: TypeName) {
  return defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Holder",
    spec: z.object({ list: z.array(z.unknown().meta(schemaOf(name))) }),
  });
}

test("schemaOf() gives schemas of all types that a definition may contain", async () => {
  await loadPatterns();
  assert(NAMES.length > 400, `only ${NAMES.length} types`);
  const step = Math.round(NAMES.length / partOfRounds(NAMES.length));
  for (const name of NAMES.filter((_, at) => at % step === 0)) {
    const manifest = crdManifest(kindWith(name));
    const status = { storedVersions: ["v1"] };
    const causes = createCauses({ ...manifest, status } as UntypedObject);
    assert.deepEqual(causes, [], name);
    const text = JSON.stringify(manifest);
    assert(text.length < LIMIT_BYTES, `${name}: ${text.length} bytes`);
    assert.doesNotMatch(text, /"(?:\$ref|description)":"/, name);
  }
});

test("schemaOf() gives quantities, ports and times as they may be written", () => {
  assert.deepEqual(schemaOf("Time"), { type: "string", format: "date-time" });
  assert.deepEqual(schemaOf("IntOrString"), {
    "x-kubernetes-int-or-string": true,
  });
  const { pattern, ...rest } = schemaOf("Quantity");
  assert.deepEqual(rest, { "x-kubernetes-int-or-string": true });
  const regexp = new RegExp(String(pattern));
  for (const quantity of ["1", "100m", "1.5Gi", "-2e3", ".5", "1E", "3E-2"]) {
    assert.match(quantity, regexp);
  }
  for (const text of ["", "1GiB", "m", "1 Gi", "e3"]) {
    assert.doesNotMatch(text, regexp);
  }
});

test("schemaOf() keeps unknown fields where a type contains itself", () => {
  const { properties } = schemaOf("JSONSchemaProps") as {
    properties: Record<string, unknown>;
  };
  assert.deepEqual(properties["not"], {
    "x-kubernetes-preserve-unknown-fields": true,
  });
});

test("schemaOf() names the type that is nearest to an unknown one", () => {
  assert.throws(() => schemaOf("PodTemplatSpec" as TypeName), {
    name: "RangeError",
    message:
      'Cannot find the schema of a type: @coracle/operator/kinds has no such type, did you mean "PodTemplateSpec"?: received "PodTemplatSpec"',
  });
  assert.throws(() => schemaOf("toString" as TypeName), RangeError);
});
