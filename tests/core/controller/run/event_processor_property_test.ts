import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../support/property.ts";
import { FRESH } from "../../../../core/controller/run/run_state.ts";
import { ProcessorFixture } from "../../../support/processor_fixture.ts";

const KEYS = ["default/a", "default/b", "other/c"];

/** Command of the property test. */
type Step =
  | { do: "add" | "update" | "mark" | "delete" | "source"; key: string }
  | { do: "leave" | "yield" | "gain"; key: string }
  | {
    do: "end";
    pick: number;
    how: "done" | "delayed" | "failed" | "final" | "gone";
  }
  | { do: "advance"; by: number }
  | { do: "pause" | "abort" | "resume" | "relist" | "idle" };

const key = fc.constantFrom(...KEYS);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom("add" as const, "update" as const, "source" as const),
      key,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "mark" as const,
        "delete" as const,
        "leave" as const,
        "yield" as const,
        "gain" as const,
      ),
      key,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      pick: fc.nat(5),
      how: fc.constantFrom(
        "done" as const,
        "delayed" as const,
        "failed" as const,
        "final" as const,
        "gone" as const,
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      by: fc.constantFrom(1, 50, 500, 3_000, 20_000, 4_000_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "pause" as const,
        "abort" as const,
        "resume" as const,
        "relist" as const,
        "idle" as const,
      ),
    }),
  },
);

/** What a history has brought about. */
interface World {
  /** Keys that other replicas run. */
  readonly others: Set<string>;
  readonly violations: string[];
  paused: boolean;
  readonly allEvents: boolean;
}

async function take(
  fixture: ProcessorFixture,
  step: Step,
  world: World,
): Promise<void> {
  const { processor, primaries } = fixture;
  const { others } = world;
  switch (step.do) {
    case "add":
      if (!primaries.has(step.key)) fixture.add(step.key);
      break;
    case "update":
      if (primaries.has(step.key)) fixture.update(step.key);
      break;
    case "mark":
      if (primaries.has(step.key)) fixture.mark(step.key);
      break;
    case "delete":
      if (primaries.has(step.key)) fixture.delete(step.key);
      break;
    case "leave":
      // Its namespace is no longer watched.
      fixture.leave(step.key);
      break;
    case "yield":
      // From here on another replica runs it.
      others.add(step.key);
      void processor.releaseShard().then(() => {
        if (processor.runs.some(({ key }) => others.has(key))) {
          world.violations.push("an object was yielded while it runs");
        }
      });
      break;
    case "gain":
      if (others.delete(step.key)) {
        processor.resync((key) => key === step.key);
      }
      break;
    case "source":
      processor.onTrigger(step.key, "source", {});
      break;
    case "end": {
      const open = [...fixture.open.values()];
      const { run, end } = open[step.pick % open.length] ?? {};
      if (run === undefined || end === undefined) break;
      const failed = { type: "failed", final: false } as const;
      switch (step.how) {
        case "done":
          end();
          break;
        case "delayed":
          end({ end: { type: "done", delay: 700 } });
          break;
        case "failed":
          end({ end: failed, error: new Error("As asked") });
          break;
        case "final":
          end({ end: { ...failed, final: true }, error: new Error("Final") });
          break;
        case "gone":
          // With all events there is no cleanup.
          if (run.step === "cleanup" && !world.allEvents) {
            end({ end: { type: "finalizerRemoved" } });
          } else end();
      }
      break;
    }
    case "advance":
      await fixture.clock.advance(step.by);
      return;
    case "pause":
      world.paused = true;
      processor.pause();
      break;
    case "abort":
      world.paused = true;
      processor.pause();
      processor.abortAll("leadership");
      break;
    case "resume":
      world.paused = false;
      processor.resume();
      break;
    case "idle":
      processor.pause();
      world.paused = true;
      void processor.whenIdle().then(() => {
        if (world.paused && processor.running > 0) {
          world.violations.push("it is not idle");
        }
      });
      break;
    case "relist":
      for (const key of primaries.keys()) fixture.update(key, { relist: true });
  }
  await fixture.settle();
}

for (const allEvents of [false, true]) {
  const mode = allEvents ? "with all events" : "with its own events";
  test(`EventProcessor ${mode} has one run at a time, shows the newest state, leaks nothing`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 80, size: "max" }),
        async (steps) => {
          const world: World = {
            others: new Set(),
            violations: [],
            paused: false,
            allEvents,
          };
          const { others, violations } = world;
          const fixture = new ProcessorFixture({
            settings: { concurrency: 2, allEvents },
            shard: { owns: (key) => !others.has(key) },
          });
          // The version of each object that its last run saw.
          const seen = new Map<string, string>();
          fixture.processor.resume();
          // ProcessorFixture throws when two runs of a key are open at once.
          for (const step of steps) {
            await take(fixture, step, world);
            assert.deepEqual(violations, []);
            assert.ok(
              fixture.clock.pendingTimers <= 1,
              "one timer for all objects",
            );
            // A deletion that was not reconciled yet is state of its object.
            if (allEvents) continue;
            assert.ok(
              fixture.processor.delayed <= fixture.primaries.size,
              "no deadline of an object that is gone",
            );
            for (const key of KEYS) {
              if (fixture.primaries.has(key) && !others.has(key)) continue;
              assert.equal(fixture.processor.stateOf(key), FRESH);
            }
          }
          // From here on no run fails.
          others.clear();
          fixture.processor.resync();
          world.paused = false;
          fixture.script = (run) => {
            seen.set(
              run.key,
              run.primary.metadata.resourceVersion as string,
            );
            return { end: { type: "done" } };
          };
          fixture.processor.resume();
          for (const { run, end } of [...fixture.open.values()]) {
            seen.set(
              run.key,
              run.primary.metadata.resourceVersion as string,
            );
            end({ end: { type: "done" } });
          }
          await fixture.clock.advance(36_000_000);
          for (const [key, primary] of fixture.primaries) {
            if (fixture.processor.stateOf(key).leaving) continue;
            assert.equal(
              seen.get(key),
              primary.metadata.resourceVersion,
              `the newest state of ${key} was reconciled`,
            );
          }
          assert.equal(fixture.processor.running, 0);
          assert.equal(fixture.processor.failures.exhausted, 0);
          for (const key of [...fixture.primaries.keys()]) fixture.delete(key);
          await fixture.settle();
          assert.equal(
            fixture.processor.delayed,
            0,
            "nothing is left of the deleted",
          );
          assert.equal(fixture.processor.waiting, 0);
          assert.equal(fixture.clock.pendingTimers, 0);
          for (const key of KEYS) assert(fixture.isForgotten(key), key);
          assert.deepEqual(violations, []);
        },
      ),
      { numRuns: 300 },
    );
  });
}
