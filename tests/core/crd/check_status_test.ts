import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { untyped } from "@coracle/operator/client";
import { checkStatus, defineKind } from "@coracle/operator/crd";
import {
  checkStatusPatch,
  objectSchemaOf,
  statusSchemaOf,
} from "../../../core/crd/check_status.ts";

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

const Room = defineKind({
  group: "sample.coracle.dev",
  version: "v2",
  kind: "Room",
  spec: z.object({}),
  status: z.object({
    phase: z.string(),
    seats: z.int().optional(),
    lamps: z.array(z.object({ lit: z.boolean().optional() })).optional(),
    labels: z.record(z.string(), z.object({ at: z.int().optional() }))
      .optional(),
    place: z.object({ row: z.int(), seat: z.int() }).optional(),
    any: z.looseObject({ known: z.string().optional() }).optional(),
  }),
  versions: [{ name: "v1", spec: z.object({ old: z.string().optional() }) }],
  storageVersion: "v1",
});

/** Message of the error of a patch of the status; "" if it is accepted. */
function refusal(patch: object, current?: object): string {
  try {
    assert.equal(checkStatusPatch(Room, patch, current), undefined);
    return "";
  } catch (error) {
    return (error as Error).message.replace(/^.*: received /, "");
  }
}

test("checkStatusPatch() checks what a patch makes of the present status", () => {
  assert.equal(refusal({ seats: 2 }, { phase: "Open" }), "");
  assert.match(refusal({ phase: null }, { phase: "Open" }), /^status\.phase: /);
  assert.match(refusal({ seats: "2" }, { phase: "Open" }), /^status\.seats: /);
  const place = { row: 1, seat: 2 };
  assert.equal(refusal({ place: { row: 3 } }, { phase: "Open", place }), "");
  assert.match(
    refusal({ place: { seat: null } }, { phase: "Open", place }),
    /^status\.place\.seat: /,
  );
  // Fields that the patch leaves alone are not its concern, if they are there.
  assert.equal(refusal({ seats: 2 }, { phase: 5 }), "");
  assert.match(refusal({ seats: 2 }, {}), /^status\.phase: /);
  // Without the present status, the fields that the result keeps are unknown.
  assert.equal(refusal({ seats: 2 }), "");
});

test("checkStatusPatch() names fields that are not in the schema, at any depth", () => {
  const phase = "Open";
  assert.equal(
    refusal({ phase, seat: 2 }),
    'status.seat: there is no such field, did you mean "seats"?',
  );
  assert.match(
    refusal({ phase, lamps: [{}, { lit: true, x: 1 }] }),
    /^status\.lamps\[1\]\.x: there is no such field$/,
  );
  assert.match(
    refusal({ phase, labels: { a: { at: 1, b: 2 } } }),
    /^status\.labels\.a\.b: /,
  );
  assert.equal(refusal({ phase, any: { other: { deep: 1 } } }), "");
  assert.match(refusal({ phase, toString: 1 }), /^status\.toString: /);
  const both = refusal({ phase: 1, seat: 2 });
  assert.match(both, /^status\.phase: .*; status\.seat: there is/);
});

test("checkStatusPatch() names five problems, and counts the others", () => {
  const many = (count: number) =>
    refusal({
      phase: "Open",
      ...Object.fromEntries(
        Array.from({ length: count }, (_, index) => [`unknown${index}`, 1]),
      ),
    });
  assert.equal(many(5).match(/there is no such field/g)?.length, 5);
  assert.doesNotMatch(many(5), / more$/);
  assert.equal(many(7).match(/there is no such field/g)?.length, 5);
  assert.match(many(7), / and 2 more$/);
});

test("checkStatusPatch() waits for a schema that checks asynchronously", async () => {
  const Slow = defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Slow",
    spec: z.object({}),
    status: z.object({
      name: z.string().refine((name) => Promise.resolve(name !== "bad")),
    }),
  });
  await checkStatusPatch(Slow, { name: "good" }, {});
  await assert.rejects(
    async () => await checkStatusPatch(Slow, { name: "bad" }, {}),
    /^TypeError: Cannot write the status of Slow: /,
  );
});

test("statusSchemaOf() is that of the version of the kind, not of the storage", () => {
  assert.equal(statusSchemaOf(Room)?.properties?.["seats"]?.type, "integer");
  const spec = objectSchemaOf(Room)?.properties?.["spec"];
  assert.equal(spec?.properties, undefined);
  const other = untyped({ group: "g.io", version: "v1", kind: "Other" });
  assert.equal(statusSchemaOf(other), undefined);
});
