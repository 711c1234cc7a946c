import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { Deployment, Pod, ReplicaSet } from "@coracle/operator/kinds";
import { fc } from "../../../support/property.ts";

const key = { namespace: "default", name: "web" };
const labels = { app: "web" };

const bound = fc.oneof(
  fc.integer({ min: 0, max: 4 }),
  fc.integer({ min: 0, max: 100 }).map((part) => `${part}%`),
);
const plan = fc.record({
  replicas: fc.integer({ min: 1, max: 8 }),
  maxSurge: bound,
  maxUnavailable: bound,
  minReadySeconds: fc.integer({ min: 0, max: 2 }),
  /** New images and sizes, with the time until the next change in ms. */
  changes: fc.array(
    fc.record({
      image: fc.integer({ min: 1, max: 3 }),
      replicas: fc.option(fc.integer({ min: 0, max: 8 }), { nil: undefined }),
      after: fc.integer({ min: 0, max: 3_000 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
}).filter(({ maxSurge, maxUnavailable }) =>
  Number.parseInt(String(maxSurge)) + Number.parseInt(String(maxUnavailable)) >
    0
);

function part(value: number | string, total: number, up: boolean): number {
  if (typeof value === "number") return value;
  const exact = Number.parseInt(value) * total / 100;
  return up ? Math.ceil(exact) : Math.floor(exact);
}

test("a rollout keeps its bounds, and ends with the last template", async () => {
  await fc.assert(
    fc.asyncProperty(plan, async (plan) => {
      const clock = new VirtualClock();
      const server = await ApiServer.start({
        port: false,
        clock,
        simulate: true,
        seed: 1,
      });
      try {
        await rollOut(server, clock, plan);
      } finally {
        await server.stop();
      }
    }),
    { numRuns: 12 },
  );
});

async function rollOut(
  { client }: ApiServer,
  clock: VirtualClock,
  plan: {
    readonly replicas: number;
    readonly maxSurge: number | string;
    readonly maxUnavailable: number | string;
    readonly minReadySeconds: number;
    readonly changes: readonly {
      readonly image: number;
      readonly replicas: number | undefined;
      readonly after: number;
    }[];
  },
): Promise<void> {
  const { maxSurge, maxUnavailable, minReadySeconds } = plan;
  let { replicas } = plan;
  let image = "v0";
  const template = () => ({
    metadata: { labels },
    spec: { containers: [{ name: "c", image }] },
  });
  await client.create(Deployment, {
    metadata: key,
    spec: {
      replicas,
      minReadySeconds,
      selector: { matchLabels: labels },
      strategy: { rollingUpdate: { maxSurge, maxUnavailable } },
      template: template(),
    },
  });
  await clock.advance(5_000);
  for (const change of plan.changes) {
    const isScaled = change.replicas !== undefined &&
      change.replicas !== replicas;
    replicas = change.replicas ?? replicas;
    image = `v${change.image}`;
    await client.patch(Deployment, key, {
      spec: { replicas, template: template() },
    });
    for (let left = change.after; left > 0; left -= 250) {
      await clock.advance(Math.min(left, 250));
      const { items } = await client.list(ReplicaSet);
      const wanted = items.reduce(
        (sum, { spec }) => sum + (spec?.replicas ?? 0),
        0,
      );
      const surge = part(maxSurge, replicas, true);
      if (!isScaled) assert.ok(wanted <= replicas + surge, "too many pods");
    }
    const { status } = await client.get(Deployment, key);
    const unavailable = Math.max(
      part(maxUnavailable, replicas, false),
      part(maxSurge, replicas, true) === 0 ? 1 : 0,
    );
    const isSettled = !isScaled &&
      plan.changes.every((change) =>
        change.replicas === undefined || change.replicas === plan.replicas
      );
    if (isSettled) {
      assert.ok(
        (status?.availableReplicas ?? 0) >= replicas - unavailable,
        "too few available pods",
      );
    }
  }
  await clock.advance(60_000);
  const { status } = await client.get(Deployment, key);
  assert.equal(status?.replicas ?? 0, replicas);
  assert.equal(status?.updatedReplicas ?? 0, replicas);
  assert.equal(status?.availableReplicas ?? 0, replicas);
  const { items } = await client.list(Pod);
  assert.ok(
    items.every(({ spec }) => spec.containers?.[0]?.image === image),
    "a pod of an old template is left",
  );
  assert.equal(items.length, replicas);
  // Nothing is due: the controllers are idle.
  assert.equal(clock.pendingTimers, 0);
}
