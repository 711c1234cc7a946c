import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "@coracle/operator/client";
import { ApplySetError } from "@coracle/operator/workflows";
import { hasPolicy } from "../../../workflows/apply/apply_set.ts";
import { objectChanges } from "../../../workflows/apply/change_set.ts";

function object(fields: object, metadata: object = {}) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "one", ...metadata },
    ...fields,
  };
}

test("Only labels, annotations and what the author can mean are compared", () => {
  const before = object({ status: { a: 1 } }, {
    resourceVersion: "1",
    managedFields: [],
    generation: 1,
  });
  assert.deepEqual(objectChanges(before, object({ status: { a: 2 } })), []);
  assert.deepEqual(
    objectChanges(before, object({}, { labels: { "a/b~c": "x" } })),
    [{ path: "/metadata/labels/a~1b~0c", after: "x" }],
  );
});

test("Differences are listed by field, and lists of another length as a whole", () => {
  const before = object({ spec: { list: [{ a: 1 }, { a: 2 }], other: [1] } });
  const after = object({ spec: { list: [{ a: 1 }, { a: 3 }], other: [] } });
  assert.deepEqual(objectChanges(before, after), [
    { path: "/spec/list/1/a", before: 2, after: 3 },
    { path: "/spec/other", before: [1], after: [] },
  ]);
  assert.deepEqual(
    objectChanges(
      undefined,
      object({ data: { a: "b" } }, { labels: { app: "c" } }),
    ),
    [
      { path: "/metadata/labels/app", after: "c" },
      { path: "/data", after: { a: "b" } },
    ],
  );
});

test("The values of a Secret are never shown", () => {
  const secret = (data: object | undefined, annotations: object = {}) => ({
    ...object({ type: "Opaque", data }, { annotations }),
    kind: "Secret",
  });
  const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
  const cases = [
    [undefined, secret({ password: "c2VjcmV0" })],
    [secret({ password: "b2xk" }), secret({ password: "c2VjcmV0" })],
    [secret({ old: "c2VjcmV0" }), secret(undefined)],
    [secret({}), secret({}, { [lastApplied]: "c2VjcmV0" })],
    [undefined, secret({}, { [lastApplied]: "c2VjcmV0" })],
    [undefined, { ...secret({}), stringData: { password: "c2VjcmV0" } }],
  ] as const;
  for (const [before, after] of cases) {
    const text = JSON.stringify(objectChanges(before, after));
    assert(text.includes("***"), text);
    assert(!text.includes("c2VjcmV0") && !text.includes("b2xk"), text);
  }
});

test("A masked value is where the Secret has one", () => {
  const secret = (data: object) => ({ ...object({ data }), kind: "Secret" });
  assert.deepEqual(
    objectChanges(secret({ a: "b", c: "d" }), secret({ e: "f" })),
    [
      { path: "/data/a", before: "*** (before)" },
      { path: "/data/c", before: "*** (before)" },
      { path: "/data/e", after: "*** (after)" },
    ],
  );
});

test("The values of a Secret of another group are shown", () => {
  const other = (value: string) => ({
    apiVersion: "test.dev/v1",
    kind: "Secret",
    metadata: { name: "a" },
    data: { k: value },
  });
  assert.deepEqual(objectChanges(other("1"), other("2")), [
    { path: "/data/k", before: "1", after: "2" },
  ]);
});

test("The error of a set names its object once, and a Secret's status alone", () => {
  const message = (kind: string, cause: unknown) =>
    new ApplySetError(cause, {
      reference: { apiVersion: "v1", kind, name: "a", namespace: "b" },
      changes: [],
    }).message;
  const refused = new ApiError("Cannot apply configmaps b/a: hunter2", {
    status: 500,
    reason: "",
  });
  assert.equal(
    message("ConfigMap", refused),
    "Cannot apply ConfigMap/b/a: hunter2",
  );
  assert.equal(
    message("Secret", refused),
    "Cannot apply Secret/b/a: the server refused it: 500",
  );
  assert.equal(
    message("Secret", new Error("hunter2")),
    "Cannot apply Secret/b/a: the server refused it: an error",
  );
});

test("A policy is that of an annotation, else of a label, in any case", () => {
  const owner = { group: "test.dev", name: "a" };
  const has = (metadata: object) =>
    hasPolicy({ metadata: { name: "a", ...metadata } }, owner, [
      "prune",
      "disabled",
    ]);
  const [off, on] = ["Disabled", "enabled"].map((value) => ({
    "test.dev/prune": value,
  }));
  assert.equal(has({ labels: off }), true);
  assert.equal(has({ annotations: off }), true);
  assert.equal(has({ annotations: on, labels: off }), false);
  assert.equal(has({ labels: { "other.dev/prune": "disabled" } }), false);
});
