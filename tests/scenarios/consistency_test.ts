import assert from "node:assert/strict";
import { noUpdate, patchStatus } from "../../core/controller/result.ts";
import type { Operator } from "../../core/operator/operator.ts";
import { ConfigMap } from "../../core/kinds/mod.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { KEY, pause } from "../support/gadget_runs.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

scenario(
  "Every run sees the own write of the run before, over 250 objects [ReadOwnUpdatesIT]",
  async (one) => {
    const stale: string[] = [];
    const written = new Map<string, number>();
    const operator = one.operator();
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
    await one.start(operator);
    const names = Array.from({ length: 250 }, (_, index) => `gadget-${index}`);
    await Promise.all(names.map((name) => one.create(name)));
    await one.until(() =>
      [...written.values()].filter((count) => count === 3).length === 250
    );
    assert.deepEqual(stale, []);
  },
);

scenario(
  "A counter in the status never goes backwards [StatusPatchCacheIT]",
  async (one) => {
    const seen: number[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        const count = gadget.status?.count ?? 0;
        seen.push(count);
        return patchStatus({ count: count + 1 }).rescheduleAfter("10ms");
      },
    });
    await one.start(operator);
    await one.create("a");
    for (let index = 0; index < 10; index++) {
      await one.advance(35);
      await one.change("a", { value: `value-${index}` });
    }
    assert.ok(seen.length > 20);
    assert.deepEqual(seen, seen.map((_, index) => index));
  },
);

scenario(
  "An own status write causes no run, whichever way it is sent [FilterPatchEventIT] [OwnSsaStatusUpdateIT]",
  async (one) => {
    for (const method of ["apply", "merge", "json", "replace"] as const) {
      let runs = 0;
      const operator = one.operator();
      operator.register(Gadget, {
        reconcile: () => patchStatus({ count: ++runs }, { method }),
      }, { generationAware: false, name: method });
      await one.start(operator);
      await one.create(method);
      await one.until(() => runs === 1);
      await one.advance(10_000);
      assert.equal(runs, 1, method);
      assert.equal((await one.gadget(method))?.status?.count, 1);
      await one.remove(method);
      await one.done(operator.stop());
    }
  },
);

scenario(
  "A change by others during an own write gives another run, with fresh data [ExternalUpdateDuringOwnUpdateIT] [SpecChangeDuringStatusPatchIT]",
  async (one) => {
    for (const method of ["apply", "merge", "json"] as const) {
      const seen: string[] = [];
      const operator = one.operator();
      const fault = one.faults.add({
        resource: "gadgets",
        subresource: "status",
        effect: { delay: 1_000 },
      });
      operator.register(Gadget, {
        reconcile(gadget) {
          seen.push(gadget.spec.value);
          return patchStatus({ value: gadget.spec.value }, { method });
        },
      }, { name: method });
      await one.start(operator);
      await one.create(method);
      await one.until(() => seen.length === 1);
      await one.advance(100);
      // The status write is on its way.
      await one.change(method, { value: "second" });
      await one.until(() => seen.length === 2);
      await one.until(async () =>
        (await one.gadget(method))?.status?.value === "second"
      );
      assert.deepEqual(seen, ["first", "second"], method);
      fault.remove();
      await one.remove(method);
      await one.done(operator.stop());
    }
  },
);

scenario(
  "A change of a secondary by others during the own write is delivered [ExternalSecondaryUpdateIT]",
  async (one) => {
    const seen: (string | undefined)[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        seen.push((await ctx.secondary(ConfigMap))?.data?.["theirs"]);
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: { ours: gadget.spec.value },
        });
      },
    }, { sources: [informerSource(ConfigMap)] });
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    const fault = one.faults.add({
      resource: "configmaps",
      verb: "patch",
      count: 1,
      effect: { delay: 1_000 },
    });
    await one.change("a", { value: "second" });
    await one.until(() => fault.hits === 1);
    await one.client.patch(ConfigMap, KEY, { data: { theirs: "changed" } });
    await one.until(() => seen.includes("changed"));
    const runs = seen.length;
    await one.advance(5_000);
    assert.equal(seen.length, runs);
  },
);

scenario(
  "A deletion during a status write still leads to cleanup [DeletionDuringStatusUpdateIT]",
  async (one) => {
    let cleanups = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile: (gadget) => patchStatus({ value: gadget.spec.value }),
      cleanup() {
        cleanups++;
      },
    });
    one.faults.add({
      resource: "gadgets",
      subresource: "status",
      count: 1,
      effect: { delay: 2_000 },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.metadata.finalizers?.length === 1
    );
    await one.advance(500);
    await one.remove("a");
    await one.until(async () => await one.gadget("a") === undefined);
    assert.equal(cleanups, 1);
  },
);

scenario(
  "An own write is swallowed, but never what a relist finds around it [OnRelistFilterIT]",
  async (one) => {
    let runs = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        runs++;
        if (gadget.spec.value === "first") return noUpdate();
        if (runs === 2) {
          one.faults.expireWatches();
          await pause(one, 30_000);
          await ctx.client.patch(Gadget, ctx.key, {
            spec: { numberOfExecutions: 1 },
          });
        }
        return patchStatus({ count: runs });
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => runs === 1);
    await one.change("a", { value: "second" });
    await one.until(async () => (await one.gadget("a"))?.status?.count === 3);
    await one.advance(60_000);
    assert.equal(
      runs,
      3,
      "the change of the spec that a plain client made was seen once",
    );
  },
);

/** An operator that reports what it has seen, and tells it. */
function echo(one: OperatorCase): { operator: Operator; seen: string[] } {
  const seen: string[] = [];
  const operator = one.operator();
  operator.register(Gadget, {
    reconcile(gadget) {
      seen.push(`${gadget.metadata.name} ${gadget.spec.value}`);
      return patchStatus({ value: gadget.spec.value });
    },
  });
  return { operator, seen };
}

scenario(
  "What happens while the API server is away is found when it is back",
  async (one) => {
    const { operator, seen } = echo(one);
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    await one.done(one.faults.restart({ downFor: 30_000 }));
    await one.change("a", { value: "second" });
    await one.until(() => seen.includes("a second"));
    assert.equal(operator.health().healthy, true);
  },
);

scenario(
  "What an API server lost with its data is forgotten, though it counts anew",
  async (one) => {
    const { operator, seen } = echo(one);
    await one.start(operator);
    await one.create("a");
    await one.until(() => seen.length === 1);
    // A server without its data counts from the beginning: let it be seen.
    for (let index = 0; index < 50; index++) {
      await one.mark("a", { labels: { index: String(index) } });
    }
    await one.done(one.faults.restart({ downFor: 30_000, keepData: false }));
    await one.install(Gadget);
    await one.until(() => operator.health().controllers[0]?.primaries === 0);
    await one.create("b");
    await one.until(async () =>
      (await one.gadget("b"))?.status?.value === "first"
    );
    assert.equal(operator.health().healthy, true);
  },
  { embedded: "a real cluster does not lose its data" },
);
