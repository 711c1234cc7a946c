import assert from "node:assert/strict";
import {
  noUpdate,
  type Operator,
  patchStatus,
  setStatus,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { KEY, pause } from "../support/gadget_runs.ts";
import {
  Gadget,
  type GadgetStatus,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

scenario(
  "Each of 250 objects sees its previous write in the next run [ReadOwnUpdatesIT]",
  async (fixture) => {
    const stale: string[] = [];
    const written = new Map<string, number>();
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(gadget, ctx) {
        const { name } = gadget.metadata;
        const count = gadget.status?.count ?? 0;
        if (count !== (written.get(name) ?? 0)) stale.push(name);
        if (count === 3) return noUpdate();
        written.set(name, count + 1);
        assert.equal(ctx.current?.status?.count ?? 0, count);
        return patchStatus({ count: count + 1 }).rescheduleAfter(0);
      },
    }, { concurrency: 50 });
    await fixture.start(operator);
    const names = Array.from({ length: 250 }, (_, index) => `gadget-${index}`);
    await Promise.all(names.map((name) => fixture.create(name)));
    await fixture.until(() =>
      [...written.values()].filter((count) => count === 3).length === 250
    );
    assert.deepEqual(stale, []);
  },
);

scenario(
  "A counter in the status never decreases [StatusPatchCacheIT]",
  async (fixture) => {
    const seen: number[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        const count = gadget.status?.count ?? 0;
        seen.push(count);
        return patchStatus({ count: count + 1 }).rescheduleAfter("10ms");
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    for (let index = 0; index < 10; index++) {
      await fixture.advance(35);
      await fixture.change("a", { value: `value-${index}` });
    }
    assert.ok(seen.length > 20);
    assert.deepEqual(seen, seen.map((_, index) => index));
  },
);

/** Every way in which a result writes a status. */
const STATUS_WRITES = {
  set: (status: GadgetStatus) => setStatus(status),
  patch: (status: GadgetStatus) => patchStatus(status),
  json: (status: GadgetStatus) => patchStatus(status, { method: "json" }),
  replace: (status: GadgetStatus) => patchStatus(status, { method: "replace" }),
} as const;

scenario(
  "An own status write causes no run, by any verb [FilterPatchEventIT] [OwnSsaStatusUpdateIT]",
  async (fixture) => {
    for (const [method, write] of Object.entries(STATUS_WRITES)) {
      let runs = 0;
      const operator = fixture.operator();
      operator.register(Gadget, {
        reconcile: () => write({ count: ++runs }),
      }, { generationAware: false, name: method });
      await fixture.start(operator);
      await fixture.create(method);
      await fixture.until(() => runs === 1);
      await fixture.advance(10_000);
      assert.equal(runs, 1, method);
      assert.equal((await fixture.gadget(method))?.status?.count, 1);
      await fixture.remove(method);
      await fixture.done(operator.stop());
    }
  },
);

scenario(
  "A foreign change during an own write causes a run with fresh data [ExternalUpdateDuringOwnUpdateIT] [SpecChangeDuringStatusPatchIT]",
  async (fixture) => {
    for (const method of ["set", "patch", "json"] as const) {
      const seen: string[] = [];
      const operator = fixture.operator();
      const fault = fixture.faults.add({
        resource: "gadgets",
        subresource: "status",
        effect: { delay: 1_000 },
      });
      operator.register(Gadget, {
        reconcile(gadget) {
          seen.push(gadget.spec.value);
          return STATUS_WRITES[method]({ value: gadget.spec.value });
        },
      }, { name: method });
      await fixture.start(operator);
      await fixture.create(method);
      await fixture.until(() => seen.length === 1);
      await fixture.advance(100);
      // The status write is on its way.
      await fixture.change(method, { value: "second" });
      await fixture.until(() => seen.length === 2);
      await fixture.until(async () =>
        (await fixture.gadget(method))?.status?.value === "second"
      );
      assert.deepEqual(seen, ["first", "second"], method);
      fault.remove();
      await fixture.remove(method);
      await fixture.done(operator.stop());
    }
  },
);

scenario(
  "A foreign change of a secondary during an own write is delivered [ExternalSecondaryUpdateIT]",
  async (fixture) => {
    const seen: (string | undefined)[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        seen.push((await ctx.secondary(ConfigMap))?.data?.["theirs"]);
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: { ours: gadget.spec.value },
        });
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    const fault = fixture.faults.add({
      resource: "configmaps",
      verb: "patch",
      count: 1,
      effect: { delay: 1_000 },
    });
    await fixture.change("a", { value: "second" });
    await fixture.until(() => fault.hits === 1);
    await fixture.client.patch(ConfigMap, KEY, { data: { theirs: "changed" } });
    await fixture.until(() => seen.includes("changed"));
    const runs = seen.length;
    await fixture.advance(5_000);
    assert.equal(seen.length, runs);
  },
);

scenario(
  "A deletion during a status write still leads to cleanup [DeletionDuringStatusUpdateIT]",
  async (fixture) => {
    let cleanups = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
      cleanup() {
        cleanups++;
      },
    });
    fixture.faults.add({
      resource: "gadgets",
      subresource: "status",
      count: 1,
      effect: { delay: 2_000 },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.finalizers?.length === 1
    );
    await fixture.advance(500);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(cleanups, 1);
  },
);

scenario(
  "The event of an own write is suppressed, but not what a relist finds [OnRelistFilterIT]",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        runs++;
        if (gadget.spec.value === "first") return noUpdate();
        if (runs === 2) {
          fixture.faults.expireWatches();
          await pause(fixture, 30_000);
          await ctx.client.patch(Gadget, ctx.key, {
            spec: { numberOfExecutions: 1 },
          });
        }
        return patchStatus({ count: runs });
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs === 1);
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.count === 3
    );
    await fixture.advance(60_000);
    assert.equal(
      runs,
      3,
      "the change of the spec that a plain client made was seen once",
    );
  },
);

/** Operator that reports the objects it has seen. */
function echo(
  fixture: OperatorFixture,
): { operator: Operator; seen: string[] } {
  const seen: string[] = [];
  const operator = fixture.operator();
  operator.register(Gadget, {
    reconcile(gadget) {
      seen.push(`${gadget.metadata.name} ${gadget.spec.value}`);
      return patchStatus({ value: gadget.spec.value });
    },
  });
  return { operator, seen };
}

scenario(
  "Changes during an outage of the API server are found after it",
  async (fixture) => {
    const { operator, seen } = echo(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    await fixture.done(fixture.faults.restart({ downFor: 30_000 }));
    await fixture.change("a", { value: "second" });
    await fixture.until(() => seen.includes("a second"));
    assert.equal(operator.health().healthy, true);
  },
);

scenario(
  "Objects lost with the server's data are removed, though its versions restart",
  async (fixture) => {
    const { operator, seen } = echo(fixture);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    // A server without its data counts from the beginning: let it be seen.
    for (let index = 0; index < 50; index++) {
      await fixture.mark("a", { labels: { index: String(index) } });
    }
    await fixture.done(
      fixture.faults.restart({ downFor: 30_000, keepData: false }),
    );
    await fixture.install(Gadget);
    await fixture.until(() =>
      operator.health().controllers[0]?.primaries === 0
    );
    await fixture.create("b");
    await fixture.until(async () =>
      (await fixture.gadget("b"))?.status?.value === "first"
    );
    assert.equal(operator.health().healthy, true);
  },
  { embedded: "a real cluster does not lose its data" },
);
