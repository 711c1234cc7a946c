import assert from "node:assert/strict";
import {
  ApiError,
  type ControllerOptions,
  keepFinalizer,
  noUpdate,
} from "@coracle/operator/core";
import { Namespace } from "@coracle/operator/kinds";
import { startGadgets, writesSince } from "../support/gadget_runs.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const OURS = "gadgets.sample.coracle.dev/finalizer";

async function finalizers(
  fixture: OperatorFixture,
  name: string,
): Promise<readonly string[]> {
  return (await fixture.gadget(name))?.metadata.finalizers ?? [];
}

scenario(
  "A selection together with a cleanup is warned about at the start",
  async (fixture) => {
    const warnings = () =>
      fixture.log.filter(({ level, message }) =>
        level === "warn" && message.startsWith("Objects that leave")
      );
    const cleanup = () => {};
    const labelSelector = "app=web";
    await startGadgets(fixture, () => {}, { name: "a", labelSelector });
    await startGadgets(fixture, () => {}, { name: "b", cleanup });
    assert.deepEqual(warnings(), []);
    await startGadgets(fixture, () => {}, {
      name: "c",
      cleanup,
      labelSelector,
    });
    assert.deepEqual(
      warnings().map(({ fields }) => fields["finalizer"]),
      ["gadgets.sample.coracle.dev/finalizer"],
    );
  },
);

scenario(
  "The finalizer is added before the first reconciliation [J7]",
  async (fixture) => {
    const seen: (readonly string[] | undefined)[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        seen.push(gadget.metadata.finalizers);
        seen.push((await ctx.client.get(Gadget, ctx.key)).metadata.finalizers);
      },
      cleanup() {},
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => seen.length > 0);
    await fixture.advance(5_000);
    assert.deepEqual(seen, [[OURS], [OURS]]);
  },
);

scenario(
  "A foreign finalizer removed during a slow cleanup does not disturb it [CleanupConflictIT]",
  async (fixture) => {
    let cleanups = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      async cleanup() {
        cleanups++;
        await new Promise<void>((resolve) =>
          fixture.clock.setTimer(resolve, 2_000)
        );
      },
    });
    await fixture.start(operator);
    await fixture.create("a", {}, { finalizers: ["other.example.com/x"] });
    await fixture.until(async () =>
      (await finalizers(fixture, "a")).length === 2
    );
    await fixture.remove("a");
    await fixture.until(() => cleanups === 1);
    await fixture.client.patch(Gadget, { namespace: "default", name: "a" }, {
      metadata: { finalizers: [OURS] },
    });
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(cleanups, 1);
  },
);

scenario(
  "An object with foreign finalizers is not cleaned up twice [J27]",
  async (fixture) => {
    let cleanups = 0;
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {
        runs++;
      },
      cleanup() {
        cleanups++;
      },
    });
    await fixture.start(operator);
    await fixture.create("a", {}, { finalizers: ["other.example.com/x"] });
    await fixture.until(() => runs === 1);
    await fixture.remove("a");
    await fixture.until(() => cleanups === 1);
    await fixture.until(async () =>
      (await finalizers(fixture, "a")).length === 1
    );
    await fixture.mark("a", { labels: { still: "here" } });
    await fixture.change("a", { value: "second" });
    await fixture.advance(36_100_000);
    assert.equal(cleanups, 1);
    assert.equal(runs, 1);
  },
);

scenario(
  "Two controllers remove their finalizers concurrently without a retry [ConcurrentFinalizerRemovalIT]",
  async (fixture) => {
    const operator = fixture.operator();
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
    await fixture.start(operator);
    const names = Array.from({ length: 10 }, (_, index) => `gadget-${index}`);
    await Promise.all(names.map((name) => fixture.create(name)));
    await fixture.until(async () =>
      (await fixture.client.list(Gadget)).items.every(({ metadata }) =>
        metadata.finalizers?.length === 2
      )
    );
    await Promise.all(names.map((name) => fixture.remove(name)));
    await fixture.until(async () =>
      (await fixture.client.list(Gadget)).items.length === 0
    );
    assert.deepEqual(cleaned, { first: 10, second: 10 });
    assert.match(
      operator.metrics(),
      /retries_total counter\n(?!coracle_reconciliation_retries_total\{)/,
    );
  },
);

scenario(
  "Finalizers are added and removed without server-side apply [AddFinalizerNoSSAIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      cleanup() {},
    }, { serverSideApply: false });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await finalizers(fixture, "a"))[0] === OURS
    );
    const manager = (await fixture.gadget("a"))?.metadata.managedFields?.find((
      { manager },
    ) => manager === "gadget");
    assert.equal(manager?.operation, "Update");
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
  },
);

scenario(
  "Cleanup may write the status, keep the finalizer and reschedule [UpdateStatusInCleanupAndRescheduleIT]",
  async (fixture) => {
    const operator = fixture.operator();
    const times: number[] = [];
    operator.register(Gadget, {
      reconcile: () => noUpdate(),
      async cleanup(gadget, ctx) {
        times.push(fixture.clock.now());
        const count = (gadget.status?.count ?? 0) + 1;
        await ctx.client.status.patch(Gadget, ctx.key, { status: { count } }, {
          type: "merge",
        });
        return count < 4 ? keepFinalizer().rescheduleAfter("500ms") : undefined;
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await finalizers(fixture, "a")).length === 1
    );
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(times.length, 4);
  },
);

scenario(
  "In all-events mode the reconciler decides which objects have a finalizer [SelectiveFinalizerHandlingIT]",
  async (fixture) => {
    const finalizer = "finalizer.test/finalizer";
    const deletions: string[] = [];
    const operator = fixture.operator();
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
    await fixture.start(operator);
    await fixture.create("held", { value: "hold" });
    await fixture.create("free", { value: "free" });
    await fixture.until(async () =>
      (await finalizers(fixture, "held"))[0] === finalizer
    );
    assert.deepEqual(await finalizers(fixture, "free"), []);
    await fixture.remove("held");
    await fixture.remove("free");
    await fixture.until(() => deletions.length === 2);
    assert.equal(await fixture.gadget("held"), undefined);
  },
);

scenario(
  "A finalizer is added to some objects by ctx.addFinalizer, without idle requests",
  async (fixture) => {
    const finalizer = "finalizer.test/finalizer";
    const runs: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ metadata, spec }, ctx) {
        const { name, deletionTimestamp, finalizers = [] } = metadata;
        if (ctx.deleted) return void runs.push(`${name} gone`);
        if (deletionTimestamp !== undefined) {
          if (!finalizers.includes(finalizer)) return;
          runs.push(`${name} cleaned up`);
          await ctx.removeFinalizer(finalizer);
        } else if (spec.value === "hold") await ctx.addFinalizer(finalizer);
        else await ctx.removeFinalizer(finalizer);
      },
    }, { allEvents: true });
    await fixture.start(operator);
    await fixture.create("held", { value: "hold" });
    await fixture.create("free", { value: "free" });
    await fixture.until(async () =>
      (await finalizers(fixture, "held"))[0] === finalizer
    );
    const { resourceVersion } = (await fixture.gadget("free"))?.metadata ?? {};
    assert.deepEqual(await finalizers(fixture, "free"), []);
    await fixture.remove("held");
    await fixture.until(() => runs.includes("held gone"));
    assert.deepEqual(runs, ["held cleaned up", "held gone"]);
    const free = await fixture.gadget("free");
    assert.equal(free?.metadata.resourceVersion, resourceVersion);
  },
);

scenario(
  "Objects are cleaned up when their whole namespace is deleted [ControllerNamespaceDeletionE2E]",
  async (fixture) => {
    await fixture.client.create(Namespace, { metadata: { name: "team" } });
    let cleanups = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      cleanup() {
        cleanups++;
      },
    }, { namespaces: ["team"] });
    await fixture.start(operator);
    await fixture.client.create(Gadget, {
      metadata: { namespace: "team", name: "a" },
      spec: { value: "first" },
    });
    await fixture.until(async () =>
      (await fixture.gadget("a", "team"))?.metadata.finalizers?.length === 1
    );
    await fixture.client.delete(Namespace, { name: "team" });
    await fixture.until(async () =>
      await fixture.client.find(Namespace, { name: "team" }) === undefined
    );
    assert.equal(cleanups, 1);
  },
);

scenario(
  "An object re-created during its run gets a second run after the first [3.9.0]",
  async (fixture) => {
    const log: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        log.push(`begin ${gadget.spec.value}`);
        await new Promise<void>((resolve) =>
          fixture.clock.setTimer(resolve, 1_000)
        );
        log.push(`end ${gadget.spec.value} ${ctx.signal.aborted}`);
      },
    });
    await fixture.start(operator);
    await fixture.create("a", { value: "old" });
    await fixture.until(() => log.length === 1);
    await fixture.remove("a");
    await fixture.create("a", { value: "new" });
    await fixture.until(() => log.length === 4);
    assert.deepEqual(log, [
      "begin old",
      "end old true",
      "begin new",
      "end new false",
    ]);
  },
);

scenario(
  "A paused object does not run until resumed, not even for its deletion",
  async (fixture) => {
    const log: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(gadget) {
        log.push(gadget.spec.value);
      },
      cleanup() {
        log.push("cleanup");
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => log.length === 1);
    await fixture.mark("a", { annotations: { "coracle.dev/paused": "true" } });
    await fixture.change("a", { value: "second" });
    await fixture.advance(60_000);
    assert.deepEqual(log, ["first"]);
    await fixture.mark("a", { annotations: { "coracle.dev/paused": "false" } });
    await fixture.until(() => log.length === 2);
    await fixture.mark("a", { annotations: { "coracle.dev/paused": "true" } });
    await fixture.remove("a");
    await fixture.advance(60_000);
    assert.deepEqual(log, ["first", "second"]);
    await fixture.mark("a", { annotations: { "coracle.dev/paused": "" } });
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.deepEqual(log, ["first", "second", "cleanup"]);
  },
);

scenario(
  "A deletion event that is quicker than the answer does not abort the cleanup",
  async (fixture) => {
    const answer = Promise.withResolvers<void>();
    let removed = false;
    const client = fixture.client.with([(next) => async (request) => {
      const response = await next(request);
      if (`${request.body}`.includes('"/metadata/finalizers"')) {
        removed = true;
        await answer.promise;
      }
      return response;
    }]);
    const operator = fixture.operator({ client });
    operator.register(Gadget, { reconcile() {}, cleanup() {} });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await finalizers(fixture, "a")).length === 1
    );
    await fixture.remove("a");
    await fixture.until(() => removed);
    // The watch delivers the deletion while the answer is on its way.
    await fixture.advance(1_000);
    answer.resolve();
    await fixture.until(() =>
      fixture.log.some(({ message }) => /^Cleaned up|^Run /.test(message))
    );
    assert.deepEqual(
      fixture.log.filter(({ message }) => message.startsWith("Run ")),
      [],
    );
  },
);

scenario(
  "Controllers that clean up different objects may share a finalizer",
  (fixture) => {
    const register = (...options: readonly ControllerOptions<Gadget>[]) => {
      const operator = fixture.operator();
      for (const [at, one] of options.entries()) {
        const reconciler = { reconcile() {}, cleanup() {} };
        operator.register(Gadget, reconciler, { name: `c${at}`, ...one });
      }
    };
    const [web, app] = ["app=web", "app in (web)"].map((labelSelector) => ({
      labelSelector,
    }));
    const refused = /"c1": it and "c0" clean up Gadget objects/;
    register({ labelSelector: "app=a" }, { labelSelector: "app=b" });
    register({ namespaces: ["a", "b"] }, { namespaces: ["c"] });
    register({}, { finalizer: "example.com/other" });
    assert.throws(() => register({}, web!), refused);
    assert.throws(() => register(web!, app!), refused);
    assert.throws(() => register({ namespaces: ["a"] }, {}), refused);
    assert.throws(() =>
      register({ namespaces: ["a", "b"] }, {
        namespaces: ["b"],
      }), refused);
    assert.throws(() => register({}, { finalizer: OURS }), refused);
    return Promise.resolve();
  },
);

scenario(
  "A finalizer that stands twice goes with one patch, after one cleanup",
  async (fixture) => {
    let cleanups = 0;
    await startGadgets(fixture, () => {}, {
      cleanup() {
        cleanups++;
      },
    });
    const other = "other.example.com/x";
    await fixture.create("a", {}, { finalizers: [OURS, other, OURS] });
    await fixture.advance(1_000);
    const since = fixture.requests.length;
    await fixture.remove("a");
    await fixture.until(() => cleanups === 1);
    await fixture.until(async () =>
      (await finalizers(fixture, "a")).join() === other
    );
    assert.deepEqual(writesSince(fixture, since), [
      "delete gadgets",
      "patch gadgets",
    ]);
    await fixture.mark("a", { labels: { still: "here" } });
    await fixture.advance(60_000);
    assert.equal(cleanups, 1);
  },
);

for (const status of [409, 422]) {
  scenario(
    `A removal of the finalizer that is refused by ${status} costs one patch a run`,
    async (fixture) => {
      let patches = 0;
      // Like a webhook that refuses all changes.
      const client = fixture.client.with([(next) => async (request) => {
        if (!`${request.body}`.includes('"/metadata/finalizers"')) {
          return await next(request);
        }
        patches++;
        throw new ApiError("Cannot patch Gadget default/a: denied", { status });
      }]);
      let cleanups = 0;
      await startGadgets(fixture, () => {}, {
        operator: { client },
        cleanup() {
          cleanups++;
        },
        retry: { initial: "10s", jitter: 0 },
      });
      await fixture.create("a");
      await fixture.until(async () =>
        (await finalizers(fixture, "a")).length === 1
      );
      await fixture.remove("a");
      await fixture.until(() => cleanups === 1);
      await fixture.advance(1_000);
      assert.equal(patches, 1);
      const failure = fixture.log.find(({ message }) =>
        message.startsWith("Run failed")
      );
      assert.equal(failure?.level, "warn");
      assert.match(
        `${failure?.fields["error"]}`,
        /denied; no other client has changed the object, so its schema, a webhook/,
      );
      await fixture.advance(10_000);
      assert.deepEqual([cleanups, patches], [2, 2]);
    },
  );
}
