import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../../core/api/object.ts";
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

test("ApplyMemory knows nothing at first", () => {
  assert.equal(new ApplyMemory().isNeedless(apply(stored("5"))), false);
});

test("ApplyMemory finds the same apply to the same object needless", () => {
  const memory = learned();
  assert.equal(memory.isNeedless(apply(stored("5"))), true);
  const other = { ...INTENT, spec: { replicas: 3 } };
  assert.equal(memory.isNeedless(apply(stored("5"), { intent: other })), false);
  assert.equal(memory.isNeedless(apply(stored("5"), { id: "other" })), false);
});

test("ApplyMemory looks past changes that the apply does not concern", () => {
  const memory = learned();
  const running = stored("6", { status: { readyReplicas: 2 } });
  assert.equal(memory.isNeedless(apply(running)), true);
  const { apiVersion, kind, ...rest } = stored("7");
  // Items of a list lack these two, and a cache puts them in front.
  const listed = { kind, apiVersion, ...rest } as Web;
  assert.equal(memory.isNeedless(apply(listed)), true);
});

test("ApplyMemory applies again what others changed, marked or made anew", () => {
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

test("ApplyMemory trusts the resourceVersion alone where the cache is partial", () => {
  const partial = stored("5", { spec: { paused: false } });
  const memory = learned(partial);
  assert.equal(memory.isNeedless(apply(partial)), true);
  const touched = stored("6", { spec: { paused: false } });
  assert.equal(memory.isNeedless(apply(touched)), false);
});

test("ApplyMemory keeps the status apart from the rest", () => {
  const memory = new ApplyMemory();
  const intent = { metadata: { name: "web" }, status: { ready: true } };
  const status = { intent, subresource: true };
  const answer = stored("5", { status: { ready: true } });
  memory.learn(apply(answer, status), answer);
  const scaled = stored("6", { status: { ready: true }, spec: {} });
  assert.equal(memory.isNeedless(apply(scaled, status)), true);
  const reset = stored("7", { status: { ready: false } });
  assert.equal(memory.isNeedless(apply(reset, status)), false);
  assert.equal(memory.isNeedless(apply(scaled)), false, "never applied");
});
