import assert from "node:assert/strict";
import { keepFinalizer, noUpdate } from "../../core/controller/result.ts";
import { Namespace } from "../../core/kinds/mod.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

const OURS = "gadgets.sample.coracle.dev/finalizer";

async function finalizers(
  one: OperatorCase,
  name: string,
): Promise<readonly string[]> {
  return (await one.gadget(name))?.metadata.finalizers ?? [];
}

scenario("The finalizer is there before the first work", async (one) => {
  const seen: (readonly string[] | undefined)[] = [];
  const operator = one.operator();
  operator.register(Gadget, {
    async reconcile(gadget, ctx) {
      seen.push(gadget.metadata.finalizers);
      seen.push((await ctx.client.get(Gadget, ctx.key)).metadata.finalizers);
    },
    cleanup() {},
  });
  await one.start(operator);
  await one.create("a");
  await one.until(() => seen.length > 0);
  await one.advance(5_000);
  assert.deepEqual(seen, [[OURS], [OURS]]);
});

scenario(
  "Another finalizer that goes during a slow cleanup does not disturb it [CleanupConflictIT]",
  async (one) => {
    let cleanups = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile() {},
      async cleanup() {
        cleanups++;
        await new Promise<void>((resolve) =>
          one.clock.setTimer(resolve, 2_000)
        );
      },
    });
    await one.start(operator);
    await one.create("a", {}, { finalizers: ["other.example.com/x"] });
    await one.until(async () => (await finalizers(one, "a")).length === 2);
    await one.remove("a");
    await one.until(() => cleanups === 1);
    await one.client.patch(Gadget, { namespace: "default", name: "a" }, {
      metadata: { finalizers: [OURS] },
    });
    await one.until(async () => await one.gadget("a") === undefined);
    assert.equal(cleanups, 1);
  },
);

scenario(
  "An object that others hold is left alone after our cleanup",
  async (one) => {
    let cleanups = 0;
    let runs = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile() {
        runs++;
      },
      cleanup() {
        cleanups++;
      },
    });
    await one.start(operator);
    await one.create("a", {}, { finalizers: ["other.example.com/x"] });
    await one.until(() => runs === 1);
    await one.remove("a");
    await one.until(() => cleanups === 1);
    await one.until(async () => (await finalizers(one, "a")).length === 1);
    await one.mark("a", { labels: { still: "here" } });
    await one.change("a", { value: "second" });
    await one.advance(36_100_000);
    assert.equal(cleanups, 1);
    assert.equal(runs, 1);
  },
);

scenario(
  "Two controllers remove their finalizers at once, without a retry [ConcurrentFinalizerRemovalIT]",
  async (one) => {
    const operator = one.operator();
    const cleaned: Record<string, number> = { first: 0, second: 0 };
    for (const name of ["first", "second"]) {
      operator.register(Gadget, {
        reconcile() {},
        cleanup(_gadget, ctx) {
          assert.equal(ctx.retry.attempt, 0);
          cleaned[name] = (cleaned[name] ?? 0) + 1;
        },
      }, { name, finalizer: `${name}.example.com/finalizer` });
    }
    await one.start(operator);
    const names = Array.from({ length: 10 }, (_, index) => `gadget-${index}`);
    await Promise.all(names.map((name) => one.create(name)));
    await one.until(async () =>
      (await one.client.list(Gadget)).items.every(({ metadata }) =>
        metadata.finalizers?.length === 2
      )
    );
    await Promise.all(names.map((name) => one.remove(name)));
    await one.until(async () =>
      (await one.client.list(Gadget)).items.length === 0
    );
    assert.deepEqual(cleaned, { first: 10, second: 10 });
    assert.match(
      operator.metrics(),
      /retries_total counter\n(?!coracle_reconciliation_retries_total\{)/,
    );
  },
);

scenario(
  "Finalizers come and go without server-side apply [AddFinalizerNoSSAIT]",
  async (one) => {
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile() {},
      cleanup() {},
    }, { serverSideApply: false });
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await finalizers(one, "a"))[0] === OURS);
    const manager = (await one.gadget("a"))?.metadata.managedFields?.find((
      { manager },
    ) => manager === "gadget");
    assert.equal(manager?.operation, "Update");
    await one.remove("a");
    await one.until(async () => await one.gadget("a") === undefined);
  },
);

scenario(
  "Cleanup may write the status, keep the finalizer and come back [UpdateStatusInCleanupAndRescheduleIT]",
  async (one) => {
    const operator = one.operator();
    const times: number[] = [];
    operator.register(Gadget, {
      reconcile: () => noUpdate(),
      async cleanup(gadget, ctx) {
        times.push(one.clock.now());
        const count = (gadget.status?.count ?? 0) + 1;
        await ctx.client.status.patch(Gadget, ctx.key, { status: { count } }, {
          type: "merge",
        });
        return count < 4 ? keepFinalizer().rescheduleAfter("500ms") : undefined;
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await finalizers(one, "a")).length === 1);
    await one.remove("a");
    await one.until(async () => await one.gadget("a") === undefined);
    assert.equal(times.length, 4);
  },
);

scenario(
  "In all-events mode a reconciler decides itself which objects have a finalizer [SelectiveFinalizerHandlingIT]",
  async (one) => {
    const finalizer = "finalizer.test/finalizer";
    const deletions: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const { name, finalizers = [] } = gadget.metadata;
        if (ctx.deleted) {
          deletions.push(name);
          return;
        }
        if (gadget.spec.value !== "hold") return;
        const deleting = gadget.metadata.deletionTimestamp !== undefined;
        if (deleting === finalizers.includes(finalizer)) {
          await ctx.patch(Gadget, name, {
            metadata: { finalizers: deleting ? [] : [finalizer] },
          });
        }
      },
    }, { allEvents: true });
    await one.start(operator);
    await one.create("held", { value: "hold" });
    await one.create("free", { value: "free" });
    await one.until(async () =>
      (await finalizers(one, "held"))[0] === finalizer
    );
    assert.deepEqual(await finalizers(one, "free"), []);
    await one.remove("held");
    await one.remove("free");
    await one.until(() => deletions.length === 2);
    assert.equal(await one.gadget("held"), undefined);
  },
);

scenario(
  "Objects are cleaned up when their whole namespace is deleted [ControllerNamespaceDeletionE2E]",
  async (one) => {
    await one.client.create(Namespace, { metadata: { name: "team" } });
    let cleanups = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile() {},
      cleanup() {
        cleanups++;
      },
    }, { namespaces: ["team"] });
    await one.start(operator);
    await one.client.create(Gadget, {
      metadata: { namespace: "team", name: "a" },
      spec: { value: "first" },
    });
    await one.until(async () =>
      (await one.gadget("a", "team"))?.metadata.finalizers?.length === 1
    );
    await one.client.delete(Namespace, { name: "team" });
    await one.until(async () =>
      await one.client.find(Namespace, { name: "team" }) === undefined
    );
    assert.equal(cleanups, 1);
  },
);

scenario(
  "An object that is deleted and made anew during its run gets two runs, one after the other [3.9.0]",
  async (one) => {
    const log: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        log.push(`begin ${gadget.spec.value}`);
        await new Promise<void>((resolve) =>
          one.clock.setTimer(resolve, 1_000)
        );
        log.push(`end ${gadget.spec.value} ${ctx.signal.aborted}`);
      },
    });
    await one.start(operator);
    await one.create("a", { value: "old" });
    await one.until(() => log.length === 1);
    await one.remove("a");
    await one.create("a", { value: "new" });
    await one.until(() => log.length === 4);
    assert.deepEqual(log, [
      "begin old",
      "end old true",
      "begin new",
      "end new false",
    ]);
  },
);

scenario(
  "A paused object is left alone, its deletion included, until it is resumed",
  async (one) => {
    const log: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        log.push(gadget.spec.value);
      },
      cleanup() {
        log.push("cleanup");
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => log.length === 1);
    await one.mark("a", { annotations: { "coracle.dev/paused": "true" } });
    await one.change("a", { value: "second" });
    await one.advance(60_000);
    assert.deepEqual(log, ["first"]);
    await one.mark("a", { annotations: { "coracle.dev/paused": "false" } });
    await one.until(() => log.length === 2);
    await one.mark("a", { annotations: { "coracle.dev/paused": "true" } });
    await one.remove("a");
    await one.advance(60_000);
    assert.deepEqual(log, ["first", "second"]);
    await one.mark("a", { annotations: { "coracle.dev/paused": "" } });
    await one.until(async () => await one.gadget("a") === undefined);
    assert.deepEqual(log, ["first", "second", "cleanup"]);
  },
);
