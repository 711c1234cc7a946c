import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { checkStatus, defineKind } from "@coracle/operator/crd";
import { conditionedStatus } from "@coracle/operator/workflows";

const names = { group: "example.com", version: "v1", kind: "Bucket" };
const spec = z.object({});

const Bucket = defineKind({
  ...names,
  spec,
  status: conditionedStatus(z.strictObject({ url: z.url() })),
});

const READY = {
  type: "Ready",
  status: "True",
  reason: "Made",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
};

test("conditionedStatus declares conditions as Kubernetes' own kinds do", () => {
  const { properties } = Bucket.versions[0]!.schema.openAPIV3Schema;
  const status = properties!["status"]!;
  assert.equal(status.required, undefined);
  assert.deepEqual(Object.keys(status.properties!).sort(), [
    "conditions",
    "lastHandledForceAt",
    "lastHandledReconcileAt",
    "observedGeneration",
    "url",
  ]);
  const conditions = status.properties!["conditions"]!;
  assert.deepEqual(conditions["x-kubernetes-list-map-keys"], ["type"]);
  assert.deepEqual(conditions.items?.required?.toSorted(), [
    "lastTransitionTime",
    "message",
    "reason",
    "status",
    "type",
  ]);
});

test("conditionedStatus accepts its own and the user's fields, and an empty status", async () => {
  await checkStatus(Bucket, {});
  await checkStatus(Bucket, { conditions: [READY], observedGeneration: 1 });
  await checkStatus(Bucket, { conditions: [], url: "https://example.com/" });
  const plain = defineKind({ ...names, spec, status: conditionedStatus() });
  await checkStatus(plain, { conditions: [READY] });
});

test("conditionedStatus lets the user's fields be absent, but not parts of them", async () => {
  const origin = z.object({ host: z.string() });
  const status = conditionedStatus(z.object({ origin }));
  const kind = defineKind({ ...names, spec, status });
  await checkStatus(kind, {});
  await assert.rejects(checkStatus(kind, { origin: {} }), /origin\.host/);
});

test("conditionedStatus names what is wrong with a status", async () => {
  const wrong: readonly (readonly [status: object, where: RegExp])[] = [
    [{ url: "here" }, /status\.url: /],
    [{ uri: "https://example.com/" }, /uri/],
    [{ conditions: READY }, /status\.conditions: Expected an array/],
    [{ conditions: [null] }, /status\.conditions\[0\]: Expected an object/],
    [
      { conditions: [{ type: "Ready", status: "True" }] },
      /conditions\[0\]\.reason: Expected a string; .*lastTransitionTime/,
    ],
    [
      { conditions: [{ ...READY, status: "Yes" }] },
      /conditions\[0\]\.status: Expected True, False or Unknown/,
    ],
    [
      { conditions: [{ ...READY, reason: "" }] },
      /conditions\[0\]\.reason: Expected a non-empty string/,
    ],
    [
      { conditions: [READY, READY] },
      /conditions\[1\]\.type: Expected each type once/,
    ],
  ];
  for (const [status, where] of wrong) {
    await assert.rejects(checkStatus(Bucket, status), { message: where });
  }
});

test("conditionedStatus refuses what is no schema", () => {
  for (const extra of [5, "url", null, { url: "string" }]) {
    assert.throws(() => conditionedStatus(extra as never), {
      name: "TypeError",
      message:
        `Cannot read the schema of the other fields of a status: it must be a Standard Schema with JSON Schema output, as those of zod 4.2 and later: received ${typeof extra}`,
    });
  }
});
