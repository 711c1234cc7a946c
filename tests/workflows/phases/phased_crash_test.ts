import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kill } from "./phased_store.ts";
import { PhasedWorld } from "./phased_world.ts";

interface Story {
  readonly name: string;
  /** Brings the world to where the story begins. */
  readonly begin: (world: PhasedWorld) => Promise<void>;
  /** What the story does. */
  readonly act: (world: PhasedWorld) => Promise<void>;
}

const settled = (world: PhasedWorld) => world.settle();

const STORIES: readonly Story[] = [
  {
    name: "a first deployment",
    begin: async () => {},
    act: settled,
  },
  {
    name: "an upgrade",
    begin: settled,
    act: async (world) => {
      world.edit({ image: "b" });
      await world.settle();
    },
  },
  {
    name: "a rollback",
    begin: async (world) => {
      await world.settle();
      world.broken.add("b");
      world.edit({ image: "b" });
      await world.settle();
      await world.clock.advance(5 * 60_000);
    },
    act: settled,
  },
  {
    name: "a suspension",
    begin: settled,
    act: async (world) => {
      world.edit({ suspend: true });
      await world.settle();
    },
  },
  {
    name: "a resumption",
    begin: async (world) => {
      await world.settle();
      world.edit({ suspend: true });
      await world.settle();
    },
    act: async (world) => {
      world.edit({ suspend: false });
      await world.settle();
    },
  },
  {
    name: "a recovery",
    begin: settled,
    act: async (world) => {
      world.engine = undefined;
      await world.settle();
    },
  },
  {
    name: "a new start without state",
    begin: settled,
    act: async (world) => {
      world.edit({ path: "elsewhere" });
      await world.settle();
    },
  },
  {
    name: "a status that somebody edits in the middle of an upgrade",
    begin: async (world) => {
      await world.settle();
      world.edit({ image: "b" });
      await world.pass();
    },
    act: settled,
  },
  {
    name: "a deletion",
    begin: settled,
    act: async (world) => {
      world.remove();
      await world.settle();
      assert.ok(world.gone);
    },
  },
];

/** Where a story ends: what runs, and what the status says of it. */
function ending(world: PhasedWorld) {
  const { lifecycle, rollout, observedGeneration, error } = world.stored
    .status!;
  return {
    engine: world.engine?.spec,
    lifecycle,
    observedGeneration,
    error,
    phase: rollout?.phase,
    running: rollout?.running,
    target: rollout?.target?.spec,
    stable: rollout?.stable?.spec,
  };
}

async function play(
  story: Story,
  kill: Kill,
): Promise<PhasedWorld> {
  const world = new PhasedWorld({ image: "a" }, {
    rollback: { after: "5m" },
    recover: (_, { observed }) =>
      observed.running === undefined
        ? { reason: "Lost", message: "It is gone", savepoint: "backup" }
        : undefined,
  });
  await story.begin(world);
  world.effects = 0;
  world.actions.length = 0;
  world.kill = kill;
  await story.act(world);
  return world;
}

/** Starts that stand beside a start of the same attempt, which is never right. */
function repeated(actions: readonly string[]): readonly string[] {
  return actions.filter((action, index) =>
    action.startsWith("start") && actions.indexOf(action) !== index
  );
}

for (const story of STORIES) {
  test(`phased ends in the same state wherever the operator is killed in ${story.name} [X4]`, async () => {
    const undisturbed = await play(story, { after: Infinity, side: "before" });
    const points = undisturbed.effects;
    assert.ok(points > 0, "the story does something");
    for (let after = 0; after < points; after++) {
      for (const side of ["before", "after"] as const) {
        const where = `killed ${side} effect ${after} of ${points}`;
        const world = await play(story, { after, side });
        assert.equal(world.kill, undefined, `${where}: it was killed`);
        assert.deepEqual(ending(world), ending(undisturbed), where);
        assert.deepEqual(repeated(world.actions), [], where);
        const stops = world.actions.filter((a) => a.startsWith("stop 1.1"));
        assert.ok(stops.length <= 2, `${where}: ${world.actions}`);
      }
    }
  });
}
