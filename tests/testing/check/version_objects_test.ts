import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { defineKind } from "@coracle/operator/crd";
import { schemaOf } from "@coracle/operator/kinds";
import { versionObjects } from "../../../dev/testing/check/version_objects.ts";

test("versionObjects changes the fields near the top of a large kind first", async () => {
  const Nightly = defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Nightly",
    spec: z.object({
      template: z.custom<object>().meta(schemaOf("PodTemplateSpec")),
      hour: z.int(),
      zone: z.string().optional(),
    }),
  });
  const [{ objects = [] } = {}] = await versionObjects(Nightly);
  assert.ok(objects.length > 50 && objects.length <= 200, `${objects.length}`);
  const values = (field: string) =>
    new Set(objects.map(({ spec }) => Object(spec)[field]));
  assert.ok(values("hour").size > 1);
  assert.ok(values("zone").has(undefined) && values("zone").size > 1);
});
