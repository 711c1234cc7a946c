import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kill } from "./phased_store.ts";
import { StreamWorld } from "./stream_world.ts";

interface Story {
  readonly name: string;
  readonly begin: () => Promise<StreamWorld>;
  readonly act: (world: StreamWorld) => Promise<void> | void;
}

const STORIES: readonly Story[] = [
  {
    name: "a first deployment",
    begin: () => Promise.resolve(new StreamWorld()),
    act() {},
  },
  ...(["stateless", "savepoint", "last-state"] as const).map((
    upgradeMode,
  ): Story => ({
    name: `an upgrade by ${upgradeMode}`,
    begin: () => StreamWorld.stable({ upgradeMode }),
    act: (world) => world.edit({ program: "count:2" }),
  })),
  {
    name: "a rollback",
    begin: async () => {
      const world = await StreamWorld.stable({ rollbackAfter: "5m" });
      world.edit({ program: "count:2-stuck" });
      await world.settle();
      return world;
    },
    act: (world) => world.clock.advance(6 * 60_000),
  },
  {
    name: "a suspension",
    begin: () => StreamWorld.stable(),
    act: (world) => world.edit({ suspend: true }),
  },
  {
    name: "a resumption",
    begin: async () => {
      const world = await StreamWorld.stable();
      world.edit({ suspend: true });
      await world.settle();
      return world;
    },
    act: (world) => world.edit({ suspend: false }),
  },
  {
    name: "a change of scale",
    begin: () => StreamWorld.stable(),
    act: (world) => world.edit({ parallelism: 4 }),
  },
  {
    name: "a recovery",
    begin: () => StreamWorld.stable(),
    act: (world) => world.loseJobs(),
  },
  {
    name: "a deletion",
    begin: () => StreamWorld.stable(),
    act: (world) => world.remove(),
  },
];

/** Where a story ends: what the job manager has, and what the status says. */
function ending(world: StreamWorld) {
  const { lifecycle, rollout, error } = world.stored.status!;
  const { phase, running, target, stable, attempt, savepoint } = rollout!;
  return {
    gone: world.gone,
    jobs: world.manager.jobs.map(
      ({ records: _, startedAt: _started, endedAt: _ended, ...job }) => job,
    ),
    rollout: { phase, running, target, stable, attempt, savepoint },
    lifecycle,
    error,
  };
}

async function play(story: Story, kill: Kill): Promise<StreamWorld> {
  const world = await story.begin();
  world.effects = 0;
  world.actions.length = 0;
  world.kill = kill;
  await story.act(world);
  await world.settle();
  // A job that was started last takes its first checkpoint.
  await world.between();
  if (!world.gone) await world.settle();
  return world;
}

for (const story of STORIES) {
  test(`stream_job ends in the same state after a kill anywhere in ${story.name}`, async () => {
    const undisturbed = await play(story, { after: Infinity, side: "before" });
    assert.ok(undisturbed.effects > 0, "the story does something");
    for (let after = 0; after < undisturbed.effects; after++) {
      for (const side of ["before", "after"] as const) {
        const world = await play(story, { after, side });
        const where =
          `killed ${side} effect ${after} of ${undisturbed.effects}: ${world.actions}`;
        assert.equal(world.kill, undefined, where);
        assert.deepEqual(ending(world), ending(undisturbed), where);
        // The request around which it died may come once more, no other.
        const once = [...new Set(undisturbed.actions)];
        assert.deepEqual([...new Set(world.actions)], once, where);
        assert.ok(world.actions.length <= once.length + 1, where);
      }
    }
  });
}
