import assert from "node:assert/strict";
import { test } from "node:test";
import {
  oneShotTask,
  type PhasedStatus,
  states,
  type StatesObject,
  type TaskObject,
} from "@coracle/operator/workflows";
import { fc } from "../../support/property.ts";
import { PhasedStore } from "./phased_store.ts";
import { PhasedWorld } from "./phased_world.ts";

/** Whether a damaged field was reported by a Warning Event. */
function isReported(world: { readonly events: readonly string[] }): boolean {
  return world.events.some((text) => text.startsWith("Warning StatusInvalid"));
}

/** Any JSON value, or one that is nearly right. */
const garbage = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom<unknown>(
    null,
    -1,
    1e300,
    "Upgrading",
    "RollingBack",
    "RolledBack",
    "Deployed",
    "9.9",
    [null],
    [{ type: "Ready" }],
    [{ type: 5 }, { type: "Ready", status: "True", reason: "R", message: "" }],
    { spec: { image: "x" } },
    { generation: 1 },
    { spec: null, generation: 1 },
    { spec: { image: "a" }, generation: "1" },
    { stalled: true },
    // Its conversion to text throws.
    { toString: false },
  ),
);

/** A status some of whose fields, or of the fields of one field, are garbage. */
function damaged(
  status: object,
  fields: readonly string[],
  within?: { readonly field: string; readonly fields: readonly string[] },
): fc.Arbitrary<unknown> {
  const some = (names: readonly string[]) =>
    fc.dictionary(fc.constantFrom(...names), garbage, { minKeys: 1 });
  const inner = within && (status as Record<string, object>)[within.field];
  return fc.oneof(
    garbage,
    some(fields).map((bad) => ({ ...status, ...bad })),
    within === undefined
      ? fc.constant(null)
      : some(within.fields).map((bad) => ({
        ...status,
        [within.field]: { ...inner, ...bad },
      })),
  );
}

const ROLLOUT = {
  field: "rollout",
  fields: [
    "phase",
    "running",
    "healthy",
    "target",
    "stable",
    "attempt",
    "savepoint",
    "since",
    "revision",
  ],
} as const;

const LOST: readonly Partial<Record<string, unknown>>[] = [
  { phase: "Lunch" },
  { running: 5 },
  { running: false },
  { target: null },
  { target: { spec: "x", generation: 1 } },
  { target: 1, stable: 2 },
  { attempt: 5 },
  { attempt: "x", running: null },
  { phase: 1, running: 2, target: 3, stable: 4, attempt: 5 },
  { revision: {}, since: "now", healthy: "yes" },
];

test("phased heals a damaged log by itself, and deploys twice only if it must", async () => {
  for (const bad of LOST) {
    const world = await PhasedWorld.stable();
    const { status } = world.stored;
    world.write(
      { ...status, rollout: { ...status!.rollout, ...bad } } as never,
    );
    world.restart();
    await world.settle();
    const what = JSON.stringify(bad);
    assert.equal(world.stored.status?.lifecycle, "Stable", what);
    assert.equal(world.engine?.spec.image, "a", what);
    assert.ok(isReported(world), what);
    // Other replicas take a lower one for that of a former status.
    const { revision } = world.stored.status?.rollout as { revision: number };
    assert.ok(revision > (status!.rollout!.revision as number), what);
    // Otherwise it is not known which spec runs.
    const isKept = !("stable" in bad) && bad["attempt"] !== "x";
    assert.equal(world.actions.length, isKept ? 0 : 2, `${what}: kept`);
    if (!isKept) assert.equal(world.engine?.savepoint, "savepoint", what);
    world.edit({ image: "b" });
    await world.settle();
    assert.equal(world.engine?.spec.image, "b", what);
    assert.equal(world.stored.status?.lifecycle, "Stable", what);
  }
});

test("phased goes on with a rollback whose log is damaged", async () => {
  for (const bad of [{ phase: 1 }, { running: 1 }, { target: 1 }]) {
    const world = await PhasedWorld.stable({ rollback: { after: "1s" } });
    world.broken.add("b");
    world.edit({ image: "b" });
    await world.settle();
    await world.clock.advance(2_000);
    await world.settle();
    assert.equal(world.stored.status?.lifecycle, "RolledBack");
    assert.equal(world.engine?.spec.image, "a");
    const { status } = world.stored;
    world.write(
      { ...status, rollout: { ...status!.rollout, ...bad } } as never,
    );
    world.restart();
    world.actions.length = 0;
    await world.settle();
    await world.clock.advance(2_000);
    await world.settle();
    assert.equal(world.engine?.spec.image, "a", JSON.stringify(bad));
    assert.equal(world.stored.status?.lifecycle, "RolledBack");
    // Without the target it is not known that its generation has failed.
    assert.equal(world.actions.length, "target" in bad ? 4 : 0);
  }
});

test("phased deploys once though its log is damaged when the operator is killed", async () => {
  const bads = [{ phase: 1 }, { running: 1 }, { phase: 1, running: 1 }];
  for (const bad of bads) {
    for (const side of ["before", "after"] as const) {
      for (let after = 0; after < 9; after++) {
        const world = await PhasedWorld.stable();
        world.edit({ image: "b" });
        world.effects = 0;
        world.kill = { after, side };
        for (let pass = 0; pass < 9 && world.kill !== undefined; pass++) {
          await world.pass().catch(() => {});
        }
        const { status } = world.stored;
        world.write({
          ...status,
          rollout: { ...status!.rollout, ...bad },
        } as never);
        world.restart();
        await world.settle();
        const what = `${JSON.stringify(bad)} ${side} ${after}`;
        const started = world.actions.filter((text) => text.endsWith(" b"));
        assert.equal(started.length, 1, what);
        // With both, nothing says that the deployment was suspended.
        if (!("phase" in bad && "running" in bad)) {
          assert.equal(world.engine?.savepoint, "savepoint", what);
        }
        assert.equal(world.stored.status?.lifecycle, "Stable", what);
      }
    }
  }
});

test("phased settles whatever is in the fields of its status", async () => {
  const { stored } = await PhasedWorld.stable();
  const fields = ["rollout", "lifecycle", "error", "conditions"];
  await fc.assert(
    fc.asyncProperty(
      damaged(stored.status!, fields, ROLLOUT),
      fc.boolean(),
      fc.boolean(),
      async (status, isRestarted, isEdited) => {
        const world = await PhasedWorld.stable();
        world.write(status as PhasedStatus as never);
        if (isRestarted) world.restart();
        if (isEdited) world.edit({ image: "b" });
        await world.settle();
        await world.clock.advance(600_000);
        await world.settle();
        assert.equal(world.stored.status?.lifecycle, "Stable");
        assert.equal(world.engine?.spec.image, isEdited ? "b" : "a");
        assert.equal(world.ready().status, "True");
        const { writes } = world;
        await world.pass();
        assert.equal(world.writes, writes);
        world.edit({ image: "c" });
        await world.settle();
        assert.equal(world.engine?.spec.image, "c");
        world.remove();
        await world.settle();
        assert.ok(world.gone);
      },
    ),
    { numRuns: 200 },
  );
});

type Backup = TaskObject<string>;
const Backup = {
  group: "example.com",
  version: "v1",
  kind: "Backup",
  plural: "backups",
  scope: "Namespaced",
} as const;

test("oneShotTask settles whatever is in the fields of its status", async () => {
  const create = () => {
    const started = new Set<string>();
    const world: PhasedStore<Backup> = new PhasedStore<Backup>(
      {},
      () =>
        oneShotTask<Backup, string>(Backup, {
          clock: world.clock,
          start(_, attempt) {
            started.add(attempt);
          },
          check: (_, attempt) =>
            started.has(attempt)
              ? { state: "completed", result: attempt }
              : { state: "failed", message: "unknown attempt" },
        }),
    );
    return world;
  };
  const first = create();
  await first.pass();
  const fields = ["state", "attempt", "failures", "retryAt", "error"];
  await fc.assert(
    fc.asyncProperty(
      damaged(first.stored.status!, [...fields, "conditions"]),
      async (status) => {
        const world = create();
        await world.pass();
        world.write(status as never);
        world.restart();
        for (let pass = 0; pass < 20; pass++) {
          const after = await world.pass();
          if (after === undefined) break;
          assert.ok(after <= 3_600_000, `${after}`);
          await world.clock.advance(after);
        }
        const { state } = world.stored.status!;
        assert.ok(["Completed", "Failed", "Abandoned"].includes(state!), state);
        assert.equal(world.ready().reason, state);
        const { writes } = world;
        await world.pass();
        assert.equal(world.writes, writes);
        world.remove();
        await world.settle();
        assert.ok(world.gone);
      },
    ),
    { numRuns: 200 },
  );
});

test("states settles whatever is in the fields of its status", async () => {
  const Shop = { ...Backup, kind: "Shop", plural: "shops" };
  const create = () => {
    const world: PhasedStore<StatesObject> = new PhasedStore<StatesObject>(
      {},
      () =>
        states<StatesObject>(Shop, {
          initial: "Opening",
          clock: world.clock,
          states: {
            Opening: { run: () => "Open", within: "1h", late: "Closed" },
            Open: { rest: true, run: () => undefined },
            Closed: { rest: true, run: () => "Opening" },
          },
        }),
    );
    return world;
  };
  const first = create();
  await first.settle();
  await fc.assert(
    fc.asyncProperty(
      damaged(first.stored.status!, ["state", "deadline", "conditions"]),
      async (status) => {
        const world = create();
        world.write(status as never);
        await world.settle();
        assert.equal(world.stored.status?.state, "Open");
        assert.equal(world.stored.status?.deadline, undefined);
        assert.equal(world.ready().status, "True");
        assert.equal(world.stored.status?.observedGeneration, 1);
        const texts = world.events.filter((text) => text.includes("TooLate"));
        assert.ok(texts.length <= 1, texts.join());
      },
    ),
    { numRuns: 200 },
  );
});
