import assert from "node:assert/strict";
import { z } from "zod";
import { defineKind } from "../../core/crd/define_kind.ts";
import type { ObjectOf } from "../../core/api/kind.ts";
import { ConfigMap, Event } from "../../core/kinds/core_v1.ts";
import { changeMap } from "../../workflows/phases/change_map.ts";
import { readyColumns } from "../../workflows/conditions/ready_columns.ts";
import { phased } from "../../workflows/phases/phased.ts";
import type { PhasedDefinition } from "../../workflows/phases/phased_definition.ts";
import { phasedStatus } from "../../workflows/phases/phased_status.ts";
import { type OperatorCase, scenario } from "../support/operator_case.ts";

const Engine = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Engine",
  spec: z.object({
    image: z.string(),
    replicas: z.int().default(1),
    suspend: z.boolean().default(false),
  }),
  status: phasedStatus(z.object({ ready: z.string() }).partial()),
  printerColumns: readyColumns,
});
type Engine = ObjectOf<typeof Engine>;
type Seen = ConfigMap | undefined;

/** The annotation that carries the stamp of an attempt. */
const ATTEMPT = "sample.coracle.dev/attempt";
const KEY = { namespace: "default", name: "engine" };

/** Engines as ConfigMaps, whose readiness the test decides. */
function engines(
  one: OperatorCase,
  definition: Partial<PhasedDefinition<Engine, Seen>> = {},
): PhasedDefinition<Engine, Seen> {
  return {
    clock: one.clock,
    diff: changeMap({ replicas: "scale" }),
    parked: ({ suspend }) => suspend,
    async observe({ ctx, object }) {
      const found = await ctx.client.find(ConfigMap, KEY);
      object.status!.ready = found?.data?.["ready"] ?? "no";
      return found;
    },
    stable: (found) =>
      found?.data?.["ready"] === "yes" || "the engine is not ready",
    async landed({ ctx }, attempt) {
      const found = await ctx.client.find(ConfigMap, KEY);
      return found?.metadata.annotations?.[ATTEMPT] === attempt;
    },
    async deploy({ ctx }, { spec, attempt }) {
      await ctx.apply(ConfigMap, {
        metadata: { name: "engine", annotations: { [ATTEMPT]: attempt } },
        data: { image: spec.image },
      });
    },
    recover: (_, { seen }) =>
      seen === undefined
        ? { reason: "RecoverDeployment", message: "The engine is gone" }
        : undefined,
    async cleanup({ ctx }) {
      await ctx.delete(ConfigMap, "engine");
    },
    ...definition,
  };
}

async function begin(
  one: OperatorCase,
  definition: Partial<PhasedDefinition<Engine, Seen>> = {},
): Promise<void> {
  await one.install(Engine);
  const operator = one.operator();
  operator.register(Engine, phased(Engine, engines(one, definition)));
  await one.start(operator);
  await one.client.create(Engine, { metadata: KEY, spec: { image: "a" } });
  await one.until(async () => (await deployed(one)) !== undefined);
  await ready(one);
  await one.until(async () => await reason(one) === "Stable");
}

async function deployed(one: OperatorCase): Promise<Seen> {
  return await one.client.find(ConfigMap, KEY);
}

/** The engine gets ready. */
async function ready(one: OperatorCase): Promise<void> {
  await one.client.patch(ConfigMap, KEY, { data: { ready: "yes" } });
}

async function engine(one: OperatorCase): Promise<Engine> {
  return await one.client.get(Engine, KEY);
}

async function reason(one: OperatorCase): Promise<string | undefined> {
  const { conditions = [] } = (await engine(one)).status ?? {};
  return conditions.find(({ type }) => type === "Ready")?.reason;
}

scenario(
  "phased: what is deployed belongs to its object, also after a recovery [L21]",
  async (one) => {
    await begin(one);
    const owners = async () =>
      (await deployed(one))?.metadata.ownerReferences?.map(({ uid }) => uid);
    const { uid } = (await engine(one)).metadata;
    assert.deepEqual(await owners(), [uid]);

    await one.client.delete(ConfigMap, KEY);
    await one.until(async () => (await deployed(one)) !== undefined);
    assert.deepEqual(await owners(), [uid]);
    assert.equal(
      (await deployed(one))?.metadata.annotations?.[ATTEMPT],
      "1.2",
    );
  },
);

scenario(
  "phased: each change is one write of the status, and nothing changes at rest [L39]",
  async (one) => {
    await begin(one);
    const writes = () =>
      one.requests.filter(({ method, subresource }) =>
        method === "PUT" && subresource === "status"
      ).length;
    const before = writes();
    await one.advance(10 * 60_000);
    assert.equal(writes(), before);
    await one.client.patch(Engine, KEY, { spec: { image: "b" } });
    await one.until(async () => await reason(one) === "Stable");
    // What changed, what is promised, that it is there, that it is stable.
    assert.equal(writes(), before + 4);
  },
);

scenario(
  "phased: a status that is edited by hand is restored, with an event",
  async (one) => {
    await begin(one);
    await one.client.patch(Engine, KEY, { spec: { image: "b" } });
    await one.until(async () => await reason(one) === "Stable");
    const before = (await engine(one)).status;
    await one.client.status.patch(Engine, KEY, {
      status: {
        rollout: { phase: "Upgrading", attempt: "9.9", running: false },
      },
    });
    await one.until(async () =>
      (await engine(one)).status?.rollout?.attempt === before?.rollout?.attempt
    );
    await one.advance(60_000);
    const after = (await engine(one)).status;
    assert.deepEqual(after?.rollout?.target, before?.rollout?.target);
    assert.equal(await reason(one), "Stable");
    await one.until(async () => {
      const { items } = await one.client.list(Event, { namespace: "default" });
      return items.some(({ reason }) => reason === "StatusTampered");
    });
  },
);

scenario(
  "phased: an invalid spec stops nothing, and its repair goes on as if it had not been",
  async (one) => {
    await begin(one, {
      validate: (_, { image }) =>
        image.includes(" ") ? "an image has no space" : undefined,
    });
    await one.client.patch(Engine, KEY, { spec: { image: "b c" } });
    await one.until(async () => await reason(one) === "ValidationError");
    await one.client.delete(ConfigMap, KEY);
    await one.until(async () => (await deployed(one)) !== undefined);
    assert.equal(
      (await deployed(one))?.data?.["image"],
      "a",
      "the last valid spec is recovered meanwhile",
    );
    await one.client.patch(Engine, KEY, { spec: { image: "c" } });
    await one.until(async () => (await deployed(one))?.data?.["image"] === "c");
    await ready(one);
    await one.until(async () => await reason(one) === "Stable");
    const { status } = await engine(one);
    assert.equal(status?.error, undefined);
    assert.equal(status?.observedGeneration, 3);
  },
);

scenario("phased: an object and what it deployed go together", async (one) => {
  await begin(one);
  await one.client.delete(Engine, KEY);
  await one.until(async () => await one.client.find(Engine, KEY) === undefined);
  assert.equal(await deployed(one), undefined);
});
