import assert from "node:assert/strict";
import { test } from "node:test";
import { Deployment, Pod, PodDisruptionBudget } from "@coracle/operator/kinds";
import {
  type WorkloadFixture,
  workloadTest,
} from "../../support/workload_case.ts";

const key = { namespace: "default", name: "web" };
const labels = { app: "web" };

/** Evicts a pod; returns the status code of the answer. */
async function evict(
  { client }: WorkloadFixture,
  pod: Pod | undefined,
): Promise<number> {
  const { name = "" } = pod?.metadata ?? {};
  const response = await client.request({
    method: "POST",
    path: `/api/v1/namespaces/default/pods/${name}/eviction`,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name, namespace: "default" },
    }),
  }).catch((error: { code?: number; status?: { code?: number } }) => error);
  return Number(
    (response as { status?: unknown }).status ??
      (response as { code?: unknown }).code,
  );
}

test(
  "a disruption budget permits as many evictions as it has spare pods",
  workloadTest({ simulate: true }, async (fixture) => {
    const { client, clock } = fixture;
    await client.create(PodDisruptionBudget, {
      metadata: key,
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    });
    await client.create(Deployment, {
      metadata: key,
      spec: {
        replicas: 3,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "c", image: "i" }] },
        },
      },
    });
    const budget = async () => {
      const { status } = await client.get(PodDisruptionBudget, key);
      const { currentHealthy, desiredHealthy, disruptionsAllowed } = status ??
        {};
      return [currentHealthy, desiredHealthy, disruptionsAllowed];
    };
    await clock.advance(100);
    assert.deepEqual(await budget(), [0, 2, 0]);
    await clock.advance(1_000);
    assert.deepEqual(await budget(), [3, 2, 1]);
    const { items: [first, second] } = await client.list(Pod);
    assert.equal(await evict(fixture, first), 201);
    assert.equal(await evict(fixture, second), 429);
    await clock.advance(3_000);
    assert.deepEqual(await budget(), [3, 2, 1]);
  }),
);

test(
  "the condition of a disruption budget is that of its newest generation",
  workloadTest({ simulate: true }, async ({ client, clock }) => {
    await client.create(PodDisruptionBudget, {
      metadata: key,
      spec: { minAvailable: 1, selector: { matchLabels: labels } },
    });
    await clock.advance(1_000);
    const [before] = (await client.get(PodDisruptionBudget, key)).status
      ?.conditions ?? [];
    assert.equal(before?.observedGeneration, 1);
    await client.patch(PodDisruptionBudget, key, { spec: { minAvailable: 2 } });
    await clock.advance(1_000);
    const [after] = (await client.get(PodDisruptionBudget, key)).status
      ?.conditions ?? [];
    assert.deepEqual(after, { ...before, observedGeneration: 2 });
  }),
);
