import assert from "node:assert/strict";
import { z } from "zod";
import type { ObjectOf, Operator } from "@coracle/operator/core";
import { defineKind } from "@coracle/operator/crd";
import { ConfigMap, Event } from "@coracle/operator/kinds";
import {
  changeMap,
  phased,
  type PhasedDefinition,
  phasedStatus,
  readyColumns,
} from "@coracle/operator/workflows";
import { type OperatorFixture, scenario } from "../support/operator_fixture.ts";

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
  fixture: OperatorFixture,
  definition: Partial<PhasedDefinition<Engine, Seen>> = {},
): PhasedDefinition<Engine, Seen> {
  return {
    clock: fixture.clock,
    diff: changeMap({ replicas: "scale" }),
    suspended: ({ suspend }) => suspend,
    async observe({ ctx, object }) {
      const found = await ctx.client.find(ConfigMap, KEY);
      object.status!.ready = found?.data?.["ready"] ?? "no";
      return found;
    },
    stable: (found) =>
      found?.data?.["ready"] === "yes" || "the engine is not ready",
    async isDeployed({ ctx }, attempt) {
      const found = await ctx.client.find(ConfigMap, KEY);
      return found?.metadata.annotations?.[ATTEMPT] === attempt;
    },
    async deploy({ ctx }, { spec, attempt }) {
      await ctx.apply(ConfigMap, {
        metadata: { name: "engine", annotations: { [ATTEMPT]: attempt } },
        data: { image: spec.image },
      });
    },
    recover: (_, { observed }) =>
      observed === undefined
        ? { reason: "RecoverDeployment", message: "The engine is gone" }
        : undefined,
    async cleanup({ ctx }) {
      await ctx.delete(ConfigMap, "engine");
    },
    ...definition,
  };
}

async function begin(
  fixture: OperatorFixture,
  definition: Partial<PhasedDefinition<Engine, Seen>> = {},
): Promise<{ operator: Operator }> {
  await fixture.install(Engine);
  const operator = await run(fixture, definition);
  await fixture.client.create(Engine, { metadata: KEY, spec: { image: "a" } });
  await fixture.until(async () => (await deployed(fixture)) !== undefined);
  await ready(fixture);
  await fixture.until(async () => await reason(fixture) === "Stable");
  return { operator };
}

/** Starts an operator for engines. */
async function run(
  fixture: OperatorFixture,
  definition: Partial<PhasedDefinition<Engine, Seen>> = {},
): Promise<Operator> {
  const operator = fixture.operator();
  operator.register(Engine, phased(Engine, engines(fixture, definition)));
  await fixture.start(operator);
  return operator;
}

async function deployed(fixture: OperatorFixture): Promise<Seen> {
  return await fixture.client.find(ConfigMap, KEY);
}

/** The engine gets ready. */
async function ready(fixture: OperatorFixture): Promise<void> {
  await fixture.client.patch(ConfigMap, KEY, { data: { ready: "yes" } });
}

async function engine(fixture: OperatorFixture): Promise<Engine> {
  return await fixture.client.get(Engine, KEY);
}

async function reason(fixture: OperatorFixture): Promise<string | undefined> {
  const { conditions = [] } = (await engine(fixture)).status ?? {};
  return conditions.find(({ type }) => type === "Ready")?.reason;
}

scenario(
  "phased: deployed objects have an owner, also after a recovery [L21]",
  async (fixture) => {
    await begin(fixture);
    const owners = async () =>
      (await deployed(fixture))?.metadata.ownerReferences?.map(({ uid }) =>
        uid
      );
    const { uid } = (await engine(fixture)).metadata;
    assert.deepEqual(await owners(), [uid]);

    await fixture.client.delete(ConfigMap, KEY);
    await fixture.until(async () => (await deployed(fixture)) !== undefined);
    assert.deepEqual(await owners(), [uid]);
    assert.equal(
      (await deployed(fixture))?.metadata.annotations?.[ATTEMPT],
      "1.2",
    );
  },
);

scenario(
  "phased: each change is one status write, and none happens at rest [L39]",
  async (fixture) => {
    await begin(fixture);
    const writes = () =>
      fixture.requests.filter(({ method, subresource }) =>
        method === "PUT" && subresource === "status"
      ).length;
    const before = writes();
    await fixture.advance(10 * 60_000);
    assert.equal(writes(), before);
    await fixture.client.patch(Engine, KEY, { spec: { image: "b" } });
    await fixture.until(async () => await reason(fixture) === "Stable");
    // What changed, what is promised, that it is there, that it is stable.
    assert.equal(writes(), before + 4);
  },
);

scenario(
  "phased: a status that is edited by hand is restored, with an event",
  async (fixture) => {
    await begin(fixture);
    await fixture.client.patch(Engine, KEY, { spec: { image: "b" } });
    await fixture.until(async () => await reason(fixture) === "Stable");
    const before = (await engine(fixture)).status;
    await fixture.client.status.patch(Engine, KEY, {
      status: {
        rollout: { phase: "Upgrading", attempt: "9.9", running: false },
      },
    });
    await fixture.until(async () =>
      (await engine(fixture)).status?.rollout?.attempt ===
        before?.rollout?.attempt
    );
    await fixture.advance(60_000);
    const after = (await engine(fixture)).status;
    assert.deepEqual(after?.rollout?.target, before?.rollout?.target);
    assert.equal(await reason(fixture), "Stable");
    await fixture.until(async () => {
      const { items } = await fixture.client.list(Event, {
        namespace: "default",
      });
      return items.some(({ reason }) => reason === "StatusTampered");
    });
  },
);

scenario(
  "phased: a log that was damaged during a restart heals by itself",
  async (fixture) => {
    const first = await begin(fixture);
    for (
      const [rollout, image] of [
        [{ phase: "Lunch" }, "b"],
        [{ target: { generation: "x" }, stable: null, attempt: null }, "c"],
        [null, "d"],
      ] as const
    ) {
      await fixture.done(first.operator.stop());
      await fixture.client.status.patch(Engine, KEY, {
        status: { rollout } as never,
      });
      first.operator = await run(fixture);
      await fixture.until(async () => await reason(fixture) === "Stable");
      await fixture.client.patch(Engine, KEY, { spec: { image } });
      await fixture.until(async () =>
        (await deployed(fixture))?.data?.["image"] === image
      );
      await fixture.until(async () => await reason(fixture) === "Stable");
    }
    await fixture.until(async () => {
      const { items } = await fixture.client.list(Event, {
        namespace: "default",
      });
      return items.some(({ reason }) => reason === "StatusInvalid");
    });
  },
);

scenario(
  "phased: an invalid spec stops nothing, and its correction continues",
  async (fixture) => {
    await begin(fixture, {
      validate: (_, { image }) =>
        image.includes(" ") ? "an image has no space" : undefined,
    });
    await fixture.client.patch(Engine, KEY, { spec: { image: "b c" } });
    await fixture.until(async () =>
      await reason(fixture) === "ValidationError"
    );
    await fixture.client.delete(ConfigMap, KEY);
    await fixture.until(async () => (await deployed(fixture)) !== undefined);
    assert.equal(
      (await deployed(fixture))?.data?.["image"],
      "a",
      "the last valid spec is recovered meanwhile",
    );
    await fixture.client.patch(Engine, KEY, { spec: { image: "c" } });
    await fixture.until(async () =>
      (await deployed(fixture))?.data?.["image"] === "c"
    );
    await ready(fixture);
    await fixture.until(async () => await reason(fixture) === "Stable");
    const { status } = await engine(fixture);
    assert.equal(status?.error, undefined);
    assert.equal(status?.observedGeneration, 3);
  },
);

scenario(
  "phased: an object is deleted with what it deployed",
  async (fixture) => {
    await begin(fixture);
    await fixture.client.delete(Engine, KEY);
    await fixture.until(async () =>
      await fixture.client.find(Engine, KEY) === undefined
    );
    assert.equal(await deployed(fixture), undefined);
  },
);
