import assert from "node:assert/strict";
import { Expectations } from "../../core/controller/expectations.ts";
import { noUpdate, patchStatus } from "../../core/controller/result.ts";
import { Deployment } from "../../core/kinds/mod.ts";
import { informerSource } from "../../sources/informer_source.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

interface Seen {
  readonly deleting: boolean;
  readonly deleted: boolean;
  readonly attempt: number;
}

/** A reconciler that sees all events, and fails deletions as it is told. */
function observer(
  one: OperatorCase,
  fails: (seen: Seen) => boolean,
  maxAttempts = 3,
) {
  const seen: Seen[] = [];
  const operator = one.operator();
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
  "In all-events mode the mark and the deletion are events [TriggerReconcilerOnAllEventIT]",
  async (one) => {
    const { operator, seen } = observer(one, () => false);
    await one.start(operator);
    await one.create("a", {}, { finalizers: ["other.example.com/x"] });
    await one.until(() => seen.length === 1);
    await one.remove("a");
    await one.until(() => seen.length === 2);
    await one.client.patch(Gadget, { namespace: "default", name: "a" }, {
      metadata: { finalizers: [] },
    });
    await one.until(() => seen.length === 3);
    await one.advance(60_000);
    assert.deepEqual(seen.map(({ deleting, deleted }) => [deleting, deleted]), [
      [false, false],
      [true, false],
      [true, true],
    ]);
    assert.equal(operator.health().controllers[0]?.delayed, 0);
  },
);

scenario(
  "In all-events mode a deletion without finalizer is seen with the last state [TriggerReconcilerOnAllEventIT]",
  async (one) => {
    const { operator, seen } = observer(one, () => false);
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    await one.remove("a");
    await one.until(() => seen.length === 2);
    assert.equal(seen[1]?.deleted, true);
  },
);

scenario(
  "In all-events mode what a run of a deleted object asks for is ignored, and told",
  async (one) => {
    const deletions: boolean[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        if (ctx.deleted) deletions.push(ctx.finalStateUnknown);
        return patchStatus({ value: "seen" }).rescheduleAfter("1m");
      },
    }, { allEvents: true, maxInterval: false });
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "seen"
    );
    const before = one.requests.length;
    await one.remove("a");
    await one.until(() => deletions.length === 1);
    await one.advance(120_000);
    assert.deepEqual(deletions, [false]);
    assert.deepEqual(
      one.requests.slice(before).map(({ verb }) => verb)
        .filter((verb) => verb === "patch"),
      [],
    );
    assert.ok(
      one.log.some(({ message }) =>
        message === "Result ignored: the object is deleted"
      ),
    );
  },
);

scenario(
  "In all-events mode a failing deletion run is retried [TriggerReconcilerOnAllEventIT]",
  async (one) => {
    const { operator, seen } = observer(
      one,
      ({ deleted, attempt }) => deleted && attempt < 2,
    );
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    await one.remove("a");
    await one.advance(60_000);
    assert.deepEqual(
      seen.filter(({ deleted }) => deleted).map(({ attempt }) => attempt),
      [0, 1, 2],
    );
    assert.equal(one.clock.pendingTimers > 0, true);
  },
);

scenario(
  "In all-events mode an object made anew during the retries of a deletion is another one [TriggerReconcilerOnAllEventIT]",
  async (one) => {
    const { operator, seen } = observer(
      one,
      ({ deleted, attempt }) => deleted && attempt < 1,
    );
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    await one.remove("a");
    await one.until(() => seen.length === 2);
    await one.create("a");
    await one.until(() => seen.length === 4);
    await one.advance(60_000);
    assert.deepEqual(seen.map(({ deleted }) => deleted), [
      false,
      true,
      true,
      false,
    ]);
  },
);

scenario(
  "In all-events mode nothing is left when the retries of a deletion are used up [TriggerReconcilerOnAllEventIT]",
  async (one) => {
    const { operator, seen } = observer(one, ({ deleted }) => deleted, 1);
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    await one.remove("a");
    await one.advance(60_000);
    assert.equal(seen.length, 3);
    assert.equal(operator.health().controllers[0]?.exhausted, 0);
    await one.create("a");
    await one.until(() => seen.length === 4);
    assert.equal(seen[3]?.attempt, 0);
  },
);

/** Why a status that a test writes does not stay on a real cluster. */
const CONTROLLED = "its Deployment controller puts the status back";

/** A Deployment that never becomes ready unless the test says so. */
async function ready(one: OperatorCase, readyReplicas: number): Promise<void> {
  await one.client.status.patch(
    Deployment,
    { namespace: "default", name: "a" },
    {
      status: { replicas: 1, readyReplicas },
    },
    { type: "merge" },
  );
}

function waitingOperator(one: OperatorCase) {
  const expectations = new Expectations<Gadget>();
  const operator = one.operator();
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
  }, { sources: [expectations, informerSource(Deployment)] });
  return { operator, expectations };
}

scenario(
  "What is expected comes true by an event [ExpectationIT]",
  async (one) => {
    const { operator, expectations } = waitingOperator(one);
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "pending"
    );
    await ready(one, 1);
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "fulfilled"
    );
    assert.equal(expectations.size, 0);
  },
  { embedded: CONTROLLED },
);

scenario(
  "What is expected in vain makes the object run when its time is over [ExpectationIT]",
  async (one) => {
    const { operator } = waitingOperator(one);
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "pending"
    );
    const before = one.clock.now();
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "timedOut"
    );
    assert.ok(one.clock.now() - before <= 30_100);
  },
);

scenario(
  "What is expected of an object goes with it [PeriodicCleanerExpectationIT]",
  async (one) => {
    const { operator, expectations } = waitingOperator(one);
    await one.start(operator);
    await one.create("a");
    await one.until(() => expectations.size === 1);
    await one.remove("a");
    await one.until(() => expectations.size === 0);
  },
);
