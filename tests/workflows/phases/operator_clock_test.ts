import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { defineKind, MetricsRegistry, Operator } from "@coracle/operator/core";
import {
  conditionedStatus,
  intervalSchedule,
  oneShotTask,
  phased,
  phasedStatus,
  states,
  summarized,
} from "@coracle/operator/workflows";

const named = {
  group: "sample.coracle.dev",
  version: "v1",
  spec: z.object({ image: z.string() }),
};
const Task = defineKind({
  ...named,
  kind: "Task",
  status: conditionedStatus(z.object({
    state: z.enum([
      "Pending",
      "InProgress",
      "Completed",
      "Failed",
      "Abandoned",
    ]),
    attempt: z.string(),
    failures: z.int(),
    retryAt: z.int(),
    error: z.string(),
    result: z.string(),
  })),
});
const Machine = defineKind({
  ...named,
  kind: "Machine",
  status: conditionedStatus(
    z.object({ state: z.enum(["Trying", "Given up"]), deadline: z.int() }),
  ),
});
const Rollout = defineKind({
  ...named,
  kind: "Rollout",
  status: phasedStatus(),
});
const Site = defineKind({
  ...named,
  kind: "Site",
  status: conditionedStatus(),
});
const kinds = [Task, Machine, Rollout, Site];

/** Whose images run: `bad` never becomes stable. */
const deployed = new Map<string, { image: string; attempt: string }>();
let starts = 0;
const metrics = new MetricsRegistry();

test(
  "The reconcilers of workflows follow the operator's clock",
  withTestCluster({
    kinds,
    clock: new VirtualClock(),
    operator(options) {
      const operator = new Operator(options);
      operator.register(
        Task,
        oneShotTask(Task, {
          start: () => void starts++,
          check: () =>
            starts < 3
              ? { state: "failed", message: "too early" }
              : { state: "completed", result: "done" },
        }),
      );
      operator.register(
        Machine,
        states(Machine, {
          initial: "Trying",
          states: {
            Trying: { run: () => undefined, within: "10m", late: "Given up" },
            "Given up": { rest: true, run: () => undefined },
          },
        }),
      );
      operator.register(
        Rollout,
        phased(Rollout, {
          diff: (before, after) => ({
            change: JSON.stringify(before) === JSON.stringify(after)
              ? "none"
              : "upgrade",
            fields: [],
          }),
          observe: ({ object }) => deployed.get(object.metadata.name)?.image,
          stable: (image) => image === "good",
          isDeployed: ({ object }, attempt) =>
            deployed.get(object.metadata.name)?.attempt === attempt,
          deploy: ({ object }, { spec: { image }, attempt }) =>
            void deployed.set(object.metadata.name, { image, attempt }),
          rollback: { after: "5m" },
          metrics,
        }),
      );
      operator.register(
        Site,
        summarized(Site, { schedule: () => intervalSchedule("1h") }, []),
      );
      return operator;
    },
  }, async ({ client, clock, namespace }) => {
    const metadata = { namespace, name: "a" };
    for (const kind of kinds) {
      await client.create(kind, { metadata, spec: { image: "good" } });
    }
    await clock.advance("5m");
    await client.patch(Rollout, metadata, { spec: { image: "bad" } });
    await clock.advance("15m");
    assert.equal((await client.get(Task, metadata)).status?.state, "Completed");
    assert.equal(
      (await client.get(Machine, metadata)).status?.state,
      "Given up",
    );
    const { lifecycle } = (await client.get(Rollout, metadata)).status ?? {};
    assert.equal(lifecycle, "RolledBack");
    const [, seconds = ""] = metrics.text().match(
      /transition_seconds_sum\{.*transition="Rollback"\} (.*)/,
    ) ?? [];
    assert.ok(Number(seconds) >= 300, `${seconds} s by the operator's clock`);
    const [ready] = (await client.get(Site, metadata)).status?.conditions ?? [];
    assert.match(ready?.lastTransitionTime ?? "", /^2026-01-01T00:0/);
  }),
);

test("The types of states take the names from the schema", () => {
  const rest = { rest: true, run: () => undefined };
  const reconciler = states(Machine, {
    initial: "Trying",
    states: {
      Trying: {
        run({ object }) {
          assert(object.spec.image);
          return "Given up";
        },
      },
      "Given up": rest,
    },
  });
  assert(reconciler.reconcile);
  assert.throws(() =>
    states(Machine, {
      // @ts-expect-error -- not in the schema
      initial: "Lost",
      states: { Trying: rest, "Given up": rest },
    })
  );
  states(Machine, {
    initial: "Trying",
    // @ts-expect-error -- not in the schema
    states: { Trying: { run: () => "Lost" }, "Given up": rest },
  });
  states(Machine, {
    initial: "Trying",
    // @ts-expect-error -- without a state
    states: { Trying: rest },
  });
});
