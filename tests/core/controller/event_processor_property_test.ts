import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FRESH } from "../../../core/controller/run_state.ts";
import { ProcessorCase } from "../../support/processor_case.ts";

const KEYS = ["default/a", "default/b", "other/c"];

/** One thing that happens to an operator. */
type Step =
  | { do: "add" | "update" | "mark" | "delete" | "source"; key: string }
  | { do: "leave" | "yield" | "gain"; key: string }
  | {
    do: "end";
    pick: number;
    how: "done" | "delayed" | "failed" | "final" | "gone";
  }
  | { do: "advance"; by: number }
  | { do: "pause" | "abort" | "resume" | "relist" };

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
      ),
    }),
  },
);

async function take(
  one: ProcessorCase,
  step: Step,
  others: Set<string>,
): Promise<void> {
  const { processor, primaries } = one;
  switch (step.do) {
    case "add":
      if (!primaries.has(step.key)) one.add(step.key);
      break;
    case "update":
      if (primaries.has(step.key)) one.update(step.key);
      break;
    case "mark":
      if (primaries.has(step.key)) one.mark(step.key);
      break;
    case "delete":
      if (primaries.has(step.key)) one.delete(step.key);
      break;
    case "leave":
      // Its namespace is not watched any more.
      primaries.delete(step.key);
      processor.forget(step.key, "namespace");
      break;
    case "yield":
      // Another replica runs it from now on.
      others.add(step.key);
      void processor.yieldOthers();
      break;
    case "gain":
      if (others.delete(step.key)) {
        processor.resync((key) => key === step.key);
      }
      break;
    case "source":
      processor.triggered(step.key, "source", {});
      break;
    case "end": {
      const open = [...one.open.values()];
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
          if (run.step === "cleanup") {
            end({ end: { type: "finalizerRemoved" } });
          } else end();
      }
      break;
    }
    case "advance":
      await one.clock.advance(step.by);
      return;
    case "pause":
      processor.pause();
      break;
    case "abort":
      processor.pause();
      processor.abortAll("leadership");
      break;
    case "resume":
      processor.resume();
      processor.resync();
      break;
    case "relist":
      for (const key of primaries.keys()) one.update(key, { relist: true });
  }
  await one.settle();
}

test("EventProcessor: whatever happens, one run at a time, newest state seen, nothing left behind", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 80, size: "max" }),
      async (steps) => {
        /** What other replicas run. */
        const others = new Set<string>();
        const one = new ProcessorCase({
          settings: { concurrency: 2 },
          shard: { owns: (key) => !others.has(key) },
        });
        // The version of each object that its last run saw.
        const seen = new Map<string, string>();
        one.processor.resume();
        // ProcessorCase throws when two runs of a key are open at once.
        for (const step of steps) {
          await take(one, step, others);
          assert.ok(one.clock.pendingTimers <= 1, "one timer for all objects");
          assert.ok(
            one.processor.delayed <= one.primaries.size,
            "no deadline of an object that is gone",
          );
          for (const key of KEYS) {
            if (one.primaries.has(key) && !others.has(key)) continue;
            assert.equal(one.processor.stateOf(key), FRESH);
          }
        }
        // From now on all is well.
        others.clear();
        one.processor.resync();
        one.script = (run) => {
          seen.set(
            run.key,
            run.primary.metadata.resourceVersion as string,
          );
          return { end: { type: "done" } };
        };
        one.processor.resume();
        for (const { run, end } of [...one.open.values()]) {
          seen.set(
            run.key,
            run.primary.metadata.resourceVersion as string,
          );
          end({ end: { type: "done" } });
        }
        await one.clock.advance(36_000_000);
        for (const [key, primary] of one.primaries) {
          if (one.processor.stateOf(key).leaving) continue;
          assert.equal(
            seen.get(key),
            primary.metadata.resourceVersion,
            `the newest state of ${key} was reconciled`,
          );
        }
        assert.equal(one.processor.running, 0);
        assert.equal(one.processor.exhausted, 0);
        for (const key of [...one.primaries.keys()]) one.delete(key);
        await one.settle();
        assert.equal(
          one.processor.delayed,
          0,
          "nothing is left of the deleted",
        );
        assert.equal(one.processor.waiting, 0);
        assert.equal(one.clock.pendingTimers, 0);
      },
    ),
    { numRuns: 400 },
  );
});
