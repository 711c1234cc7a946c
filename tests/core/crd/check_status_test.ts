import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { untyped } from "../../../core/api/kind.ts";
import { checkStatus } from "../../../core/crd/check_status.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";

const Lamp = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Lamp",
  spec: z.object({}),
  status: z.object({
    lit: z.boolean(),
    since: z.iso.datetime().nullable().optional(),
    history: z.array(z.object({ at: z.iso.datetime() })).optional(),
  }),
});

test("checkStatus() accepts a valid status with dates as texts", async () => {
  const since = "2024-01-01T00:00:00Z";
  await checkStatus(Lamp, { lit: true, since, history: [{ at: since }] });
  await checkStatus(Lamp, { lit: true, since: null });
});

test("checkStatus() names the paths of invalid values", async () => {
  await assert.rejects(
    checkStatus(Lamp, { lit: "yes", history: [{ at: "yesterday" }] }),
    (error: unknown) =>
      error instanceof TypeError &&
      /status of Lamp.*status\.lit: .*status\.history\[0\]\.at: /.test(
        error.message,
      ),
  );
});

test("checkStatus() accepts unknown fields only where the server keeps them", async () => {
  const Free = defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Free",
    spec: z.object({}),
    status: z.object({
      free: z.looseObject({ known: z.string().optional() }).optional(),
      list: z.array(z.object({ known: z.string().optional() }))
        .meta({ "x-kubernetes-preserve-unknown-fields": true }).optional(),
      plain: z.object({ known: z.string().optional() }).optional(),
      embedded: z.object({
        metadata: z.object({ name: z.string().max(9) }).optional(),
      }).meta({ "x-kubernetes-embedded-resource": true }).optional(),
    }),
  });
  const identity = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a", labels: {} },
  };
  const list = [{ other: 1 }];
  await checkStatus(Free, { free: { other: 1 }, list, embedded: identity });
  for (const part of ["plain", "embedded"]) {
    await assert.rejects(
      checkStatus(Free, { [part]: { other: 1 } }),
      new RegExp(`status\\.${part}\\.other: there is no such field`),
    );
  }
  await assert.rejects(
    checkStatus(Free, { plain: { kind: "Pod" } }),
    /status\.plain\.kind: there is no such field/,
  );
});

test("checkStatus() accepts any status without a schema", async () => {
  const other = untyped({ group: "g.io", version: "v1", kind: "Other" });
  await checkStatus(other, { any: 1 });
});
