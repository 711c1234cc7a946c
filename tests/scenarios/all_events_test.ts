import assert from "node:assert/strict";
import {
  kubernetesDependent,
  noUpdate,
  patchStatus,
  Workflow,
} from "@coracle/operator";
import { ConfigMap, Deployment } from "@coracle/operator/kinds";
import { Expectations, watch } from "@coracle/operator/sources";
import { mapValue, valueMap } from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const FINALIZER = "finalizer.test/finalizer";

interface Seen {
  readonly deleting: boolean;
  readonly deleted: boolean;
  readonly attempt: number;
}

/** Reconciler in all-events mode that fails deletions on request. */
function observer(
  fixture: OperatorFixture,
  fails: (seen: Seen) => boolean,
  maxAttempts = 3,
) {
  const seen: Seen[] = [];
  const operator = fixture.operator();
  operator.register(Gadget, {
    reconcile(gadget, ctx) {
      const now = {
        deleting: gadget.metadata.deletionTimestamp !== undefined,
        deleted: ctx.deleted,
        attempt: ctx.retry.attempt,
      };
      seen.push(now);
      if (fails(now)) throw new Error("As told");
    },
  }, {
    allEvents: true,
    maxInterval: false,
    retry: { initial: "1s", multiplier: 1, max: "1s", jitter: 0, maxAttempts },
  });
  return { operator, seen };
}

scenario(
  "In all-events mode the deletion mark and the deletion are events [TriggerReconcilerOnAllEventIT]",
  async (fixture) => {
    const { operator, seen } = observer(fixture, () => false);
    await fixture.start(operator);
    await fixture.create("a", {}, { finalizers: ["other.example.com/x"] });
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    await fixture.client.patch(Gadget, { namespace: "default", name: "a" }, {
      metadata: { finalizers: [] },
    });
    await fixture.until(() => seen.length === 3);
    await fixture.advance(60_000);
    assert.deepEqual(seen.map(({ deleting, deleted }) => [deleting, deleted]), [
      [false, false],
      [true, false],
      [true, true],
    ]);
    assert.equal(operator.health().controllers[0]?.delayed, 0);
  },
);

scenario(
  "In all-events mode a deletion without finalizer has the last state [TriggerReconcilerOnAllEventIT]",
  async (fixture) => {
    const { operator, seen } = observer(fixture, () => false);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    assert.equal(seen[1]?.deleted, true);
  },
);

scenario(
  "In all-events mode results of deleted objects are ignored with a warning",
  async (fixture) => {
    const deletions: boolean[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        if (ctx.deleted) deletions.push(ctx.finalStateUnknown);
        return patchStatus({ value: "seen" }).rescheduleAfter("1m");
      },
    }, { allEvents: true, maxInterval: false });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "seen"
    );
    const before = fixture.requests.length;
    await fixture.remove("a");
    await fixture.until(() => deletions.length === 1);
    await fixture.advance(120_000);
    assert.deepEqual(deletions, [false]);
    assert.deepEqual(
      fixture.requests.slice(before).map(({ verb }) => verb)
        .filter((verb) => verb === "patch"),
      [],
    );
    assert.ok(
      fixture.log.some(({ message }) =>
        message === "Result ignored: the object is deleted"
      ),
    );
  },
);

scenario(
  "In all-events mode each deletion of objects of one name has its run, in order",
  async (fixture) => {
    const seen: string[] = [];
    const held = Promise.withResolvers<void>();
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ spec }, ctx) {
        if (ctx.deleted && spec.value === "first") {
          seen.push("first begins");
          await held.promise;
          ctx.signal.throwIfAborted();
        }
        seen.push(`${ctx.deleted ? "deleted" : "live"} ${spec.value}`);
      },
    }, { allEvents: true, maxInterval: false });
    await fixture.start(operator);
    await fixture.create("a", { value: "first" });
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    await fixture.create("a", { value: "second" });
    await fixture.advance(100);
    await fixture.remove("a");
    await fixture.create("a", { value: "third" });
    await fixture.advance(100);
    held.resolve();
    await fixture.until(() => seen.includes("live third"));
    assert.deepEqual(seen, [
      "live first",
      "first begins",
      "deleted first",
      "deleted second",
      "live third",
    ]);
  },
);

for (const method of ["removeFinalizer", "addFinalizer"] as const) {
  scenario(
    `ctx.${method} of a deleted object leaves its successor as it is`,
    async (fixture) => {
      const finalizers = method === "addFinalizer" ? [] : [FINALIZER];
      const held = Promise.withResolvers<void>();
      const ended: string[] = [];
      const operator = fixture.operator();
      operator.register(Gadget, {
        async reconcile({ spec }, ctx) {
          if (ctx.deleted) {
            await held.promise;
            await ctx[method](FINALIZER);
          }
          ended.push(`${ctx.deleted ? "deleted" : "live"} ${spec.value}`);
        },
      }, { allEvents: true, maxInterval: false });
      await fixture.start(operator);
      await fixture.create("a", { value: "first" });
      await fixture.until(() => ended.length === 1);
      await fixture.remove("a");
      await fixture.until(() =>
        operator.health().controllers[0]?.running === 1
      );
      await fixture.create("a", { value: "second" });
      await fixture.mark("a", { finalizers });
      await fixture.advance(100);
      held.resolve();
      await fixture.until(() => ended.includes("live second"));
      assert.deepEqual(ended, ["live first", "deleted first", "live second"]);
      const { metadata } = (await fixture.gadget("a"))!;
      assert.deepEqual(metadata.finalizers ?? [], finalizers);
      await fixture.mark("a", { finalizers: [] });
    },
  );
}

scenario(
  "In all-events mode a failing deletion run is retried [TriggerReconcilerOnAllEventIT]",
  async (fixture) => {
    const { operator, seen } = observer(
      fixture,
      ({ deleted, attempt }) => deleted && attempt < 2,
    );
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.advance(60_000);
    assert.deepEqual(
      seen.filter(({ deleted }) => deleted).map(({ attempt }) => attempt),
      [0, 1, 2],
    );
    assert.equal(fixture.clock.pendingTimers > 0, true);
  },
);

scenario(
  "In all-events mode an object re-created during deletion retries is a new one [TriggerReconcilerOnAllEventIT]",
  async (fixture) => {
    const { operator, seen } = observer(
      fixture,
      ({ deleted, attempt }) => deleted && attempt < 1,
    );
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    await fixture.create("a");
    await fixture.until(() => seen.length === 4);
    await fixture.advance(60_000);
    assert.deepEqual(seen.map(({ deleted }) => deleted), [
      false,
      true,
      true,
      false,
    ]);
  },
);

scenario(
  "In all-events mode exhausted deletion retries leave no state [TriggerReconcilerOnAllEventIT]",
  async (fixture) => {
    const { operator, seen } = observer(fixture, ({ deleted }) => deleted, 1);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    await fixture.advance(60_000);
    assert.equal(seen.length, 3);
    assert.equal(operator.health().controllers[0]?.exhausted, 0);
    await fixture.create("a");
    await fixture.until(() => seen.length === 4);
    assert.equal(seen[3]?.attempt, 0);
  },
);

/** Why a status that a test writes does not stay on a real cluster. */
const CONTROLLED = "its Deployment controller puts the status back";

/** A Deployment that never becomes ready unless the test says so. */
async function ready(
  fixture: OperatorFixture,
  readyReplicas: number,
): Promise<void> {
  await fixture.client.status.patch(
    Deployment,
    { namespace: "default", name: "a" },
    {
      status: { replicas: 1, readyReplicas },
    },
    { type: "merge" },
  );
}

function waitingOperator(fixture: OperatorFixture) {
  const expectations = new Expectations<Gadget>();
  const operator = fixture.operator();
  operator.register(Gadget, {
    async reconcile(gadget, ctx) {
      const labels = { app: gadget.metadata.name };
      await ctx.apply(Deployment, {
        metadata: { name: gadget.metadata.name },
        spec: {
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: { containers: [{ name: "a", image: "a:1" }] },
          },
        },
      });
      const { status } = await expectations.checkOrSet(gadget, ctx, {
        name: "deployment ready",
        timeout: "30s",
        isFulfilled: async () =>
          (await ctx.secondary(Deployment))?.status?.readyReplicas === 1,
      });
      return status === gadget.status?.value
        ? noUpdate()
        : patchStatus({ value: status });
    },
  }, { sources: [expectations, watch(Deployment)] });
  return { operator, expectations };
}

scenario(
  "An expectation is met by an event [ExpectationIT]",
  async (fixture) => {
    const { operator, expectations } = waitingOperator(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "pending"
    );
    await ready(fixture, 1);
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "fulfilled"
    );
    assert.equal(expectations.size, 0);
  },
  { embedded: CONTROLLED },
);

scenario(
  "An expectation that is not met runs the object at its timeout [ExpectationIT]",
  async (fixture) => {
    const { operator } = waitingOperator(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "pending"
    );
    const before = fixture.clock.now();
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "timedOut"
    );
    assert.ok(fixture.clock.now() - before <= 30_100);
  },
);

scenario(
  "An expectation is removed with its object [PeriodicCleanerExpectationIT]",
  async (fixture) => {
    const { operator, expectations } = waitingOperator(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => expectations.size === 1);
    await fixture.remove("a");
    await fixture.until(() => expectations.size === 0);
  },
);

scenario(
  "In all-events mode the deletion of a paused object is reconciled",
  async (fixture) => {
    const seen: boolean[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: (_gadget, ctx) => void seen.push(ctx.deleted),
    }, { allEvents: true, pauseAnnotation: "example.com/paused" });
    await fixture.start(operator);
    await fixture.create("a", {}, {
      annotations: { "example.com/paused": "true" },
    });
    await fixture.settle();
    assert.deepEqual(seen, []);
    await fixture.remove("a");
    await fixture.until(() => seen.length > 0);
    assert.deepEqual(seen, [true]);
  },
);

scenario(
  "onError is not called for a run that the deletion of its object has aborted",
  async (fixture) => {
    const calls: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, { signal }) {
        calls.push("reconcile");
        await new Promise((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason))
        );
      },
      onError: () => void calls.push("onError"),
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => calls.length === 1);
    await fixture.remove("a");
    await fixture.until(() =>
      operator.health().controllers.every(({ running }) => running === 0)
    );
    await fixture.advance(10_000);
    assert.deepEqual(calls, ["reconcile"]);
  },
);

scenario(
  "In all-events mode a workflow runs until the deletion of its primary begins",
  async (fixture) => {
    const seen: unknown[] = [];
    const operator = fixture.operator();
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, { desired: valueMap("") }),
    );
    operator.register(Gadget, {
      reconcile(gadget, ctx) {
        const deleting = gadget.metadata.deletionTimestamp !== undefined;
        seen.push([deleting, ctx.deleted, ctx.workflow?.done]);
      },
    }, { workflow, allEvents: true, maxInterval: false });
    await fixture.start(operator);
    await fixture.create("a", {}, { finalizers: ["other.example.com/x"] });
    await fixture.until(() => seen.length === 1);
    assert.equal(await mapValue(fixture, "a"), "first");
    await fixture.remove("a");
    await fixture.until(() => seen.length === 2);
    await fixture.client.patch(Gadget, { namespace: "default", name: "a" }, {
      metadata: { finalizers: [] },
    });
    await fixture.until(() => seen.length === 3);
    assert.deepEqual(seen, [
      [false, false, true],
      [true, false, undefined],
      [true, true, undefined],
    ]);
  },
);
