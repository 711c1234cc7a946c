import assert from "node:assert/strict";
import { test } from "node:test";
import { augmentStatus } from "@coracle/operator/workflows";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const LATER = NOW + 60_000;

function deployment(status: object) {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web" },
    spec: { replicas: 1 },
    status,
  };
}

test("augmentStatus sets Reconciling while an object is in progress", () => {
  const first = augmentStatus(deployment({ replicas: 0 }), { now: NOW });
  assert.deepEqual(first.status.conditions, [{
    type: "Reconciling",
    status: "True",
    reason: "LessReplicas",
    message: "replicas: 0/1",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  }]);
  const next = augmentStatus(first, { now: LATER });
  assert.equal(
    next.status.conditions[0]?.lastTransitionTime,
    "2026-01-01T00:00:00Z",
    "its status has not changed",
  );
});

test("augmentStatus sets Stalled if an object has failed, and neither if current", () => {
  const reason = "ProgressDeadlineExceeded";
  const progressing = { type: "Progressing", status: "False", reason };
  const failed = augmentStatus(deployment({ conditions: [progressing] }));
  assert.deepEqual(
    failed.status.conditions.map(({ type }) => type),
    ["Stalled", "Progressing"],
  );
  const pod = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "web" },
    data: { a: "b" },
  };
  const current = augmentStatus(pod);
  assert.deepEqual(current.status.conditions, []);
  const conditions = ["Reconciling", "Stalled", "Other"].map((type) => ({
    type,
    status: "False",
    reason: "Old",
  }));
  const others = augmentStatus({ ...pod, status: { conditions } });
  assert.deepEqual(others.status.conditions.map(({ type }) => type), ["Other"]);
  assert.deepEqual(current.data, { a: "b" });
});

test("augmentStatus leaves the object that it is given as it is", () => {
  const object = deployment({ replicas: 0 });
  augmentStatus(object);
  assert.deepEqual(object.status, { replicas: 0 });
});

test("augmentStatus judges the age of a pod by the given time", () => {
  const conditions = [
    { type: "PodScheduled", status: "False", reason: "Unschedulable" },
  ];
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", creationTimestamp: "2026-01-01T00:00:00Z" },
    status: { phase: "Pending", conditions },
  };
  const types = [1_000, 16_000].map((age) =>
    augmentStatus(pod, { now: NOW + age }).status.conditions[0]?.type
  );
  assert.deepEqual(types, ["Reconciling", "Stalled"]);
});

test("augmentStatus replaces the other condition, and renews one that was False", () => {
  const old = (type: string, status: string) => ({
    type,
    status,
    reason: "Old",
    message: "",
    lastTransitionTime: "2025-01-01T00:00:00Z",
  });
  const conditions = [old("Reconciling", "False"), old("Stalled", "False")];
  const { status } = augmentStatus(deployment({ replicas: 0, conditions }), {
    now: NOW,
  });
  assert.deepEqual(
    status.conditions.map(({ type, lastTransitionTime }) =>
      `${type} ${lastTransitionTime}`
    ),
    ["Reconciling 2026-01-01T00:00:00Z"],
  );
});

test("augmentStatus sets nothing for an object that is being deleted", () => {
  const { metadata, ...rest } = deployment({});
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const object = { ...rest, metadata: { ...metadata, deletionTimestamp } };
  assert.deepEqual(augmentStatus(object).status.conditions, []);
});

test("augmentStatus keeps the other fields of a status", () => {
  const { status } = augmentStatus(deployment({ replicas: 0 }), { now: NOW });
  assert.equal((status as { replicas?: number }).replicas, 0);
});
