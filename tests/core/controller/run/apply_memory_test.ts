import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "@coracle/operator/kinds";
import {
  ApplyMemory,
  type RememberedApply,
} from "../../../../core/controller/run/apply_memory.ts";

interface Web extends KubernetesObject {
  spec?: object;
  status?: object;
}

const INTENT = { metadata: { name: "web" }, spec: { replicas: 2 } };

function stored(version: string, changes: Partial<Web> = {}): Web {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: "web",
      uid: "1",
      resourceVersion: version,
      generation: 1,
    },
    spec: { replicas: 2, paused: false },
    ...changes,
  };
}

function apply(
  cached: Web,
  changes: Partial<RememberedApply> = {},
): RememberedApply {
  return { id: "web", intent: INTENT, subresource: false, cached, ...changes };
}

function learned(cached: Web = stored("5")): ApplyMemory {
  const memory = new ApplyMemory();
  memory.learn(apply(cached), stored("5"));
  return memory;
}

test("ApplyMemory is empty at first", () => {
  assert.equal(new ApplyMemory().isNeedless(apply(stored("5"))), false);
});

test("ApplyMemory skips the same apply to the same object", () => {
  const memory = learned();
  assert.equal(memory.isNeedless(apply(stored("5"))), true);
  const other = { ...INTENT, spec: { replicas: 3 } };
  assert.equal(memory.isNeedless(apply(stored("5"), { intent: other })), false);
  assert.equal(memory.isNeedless(apply(stored("5"), { id: "other" })), false);
});

test("ApplyMemory ignores changes of parts that the apply cannot change", () => {
  const memory = learned();
  const running = stored("6", { status: { readyReplicas: 2 } });
  assert.equal(memory.isNeedless(apply(running)), true);
  const { apiVersion, kind, ...rest } = stored("7");
  // Items of a list lack these two fields, which a cache adds in front.
  const listed = { kind, apiVersion, ...rest } as Web;
  assert.equal(memory.isNeedless(apply(listed)), true);
});

test("ApplyMemory does not skip objects that were changed, marked or created again", () => {
  const changes: readonly Web[] = [
    stored("6", { spec: { replicas: 3, paused: false } }),
    stored("6", { metadata: { name: "web", uid: "2", resourceVersion: "6" } }),
    stored("6", {
      metadata: {
        ...stored("6").metadata,
        deletionTimestamp: "2026-01-01T00:00:00Z",
      },
    }),
  ];
  for (const changed of changes) {
    assert.equal(learned().isNeedless(apply(changed)), false);
  }
});

test("ApplyMemory only trusts the resourceVersion if the cache is partial", () => {
  const partial = stored("5", { spec: { paused: false } });
  const memory = learned(partial);
  assert.equal(memory.isNeedless(apply(partial)), true);
  const touched = stored("6", { spec: { paused: false } });
  assert.equal(memory.isNeedless(apply(touched)), false);
});

test("ApplyMemory remembers an apply of the status beside one of the rest", () => {
  const memory = learned();
  const intent = { metadata: { name: "web" }, status: { ready: true } };
  const answer = stored("6", { status: { ready: true } });
  const status = { intent, subresource: true };
  memory.learn(apply(answer, status), answer);
  assert.equal(memory.isNeedless(apply(answer)), true);
  memory.forget({ id: "web", subresource: false });
  assert.equal(memory.isNeedless(apply(answer)), false);
  assert.equal(memory.isNeedless(apply(answer, status)), true);
});

test("ApplyMemory handles the status and the rest of an object separately", () => {
  const memory = new ApplyMemory();
  const intent = { metadata: { name: "web" }, status: { ready: true } };
  const status = { intent, subresource: true };
  const answer = stored("5", { status: { ready: true } });
  memory.learn(apply(answer, status), answer);
  const scaled = stored("6", { status: { ready: true }, spec: {} });
  assert.equal(memory.isNeedless(apply(scaled, status)), true);
  const { metadata } = stored("7");
  const changes: readonly Partial<Web>[] = [
    { status: { ready: false } },
    { metadata: { ...metadata, uid: "2" } },
    { metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } },
  ];
  for (const change of changes) {
    const reset = stored("7", { status: { ready: true }, ...change });
    assert.equal(memory.isNeedless(apply(reset, status)), false);
  }
  assert.equal(memory.isNeedless(apply(scaled)), false, "never applied");
});

test("ApplyMemory trusts no object without a resourceVersion", () => {
  const memory = new ApplyMemory();
  memory.learn(apply(stored("")), stored(""));
  assert.equal(memory.isNeedless(apply(stored(""))), false);
});

test("ApplyMemory compares a status that is applied with the rest", () => {
  const intent = { ...INTENT, status: { ready: true } };
  const memory = new ApplyMemory();
  const answer = stored("5", { status: { ready: true } });
  memory.learn(apply(answer, { intent }), answer);
  const same = stored("6", { status: { ready: true } });
  assert.equal(memory.isNeedless(apply(same, { intent })), true);
  const reset = stored("7", { status: { ready: false } });
  assert.equal(memory.isNeedless(apply(reset, { intent })), false);
});
