import assert from "node:assert/strict";
import {
  patchResource,
  patchResourceAndStatus,
  patchStatus,
  type Reconciler,
  setStatus,
} from "@coracle/operator/core";
import { KEY, pause, startGadgets } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

const OURS = "gadgets.sample.coracle.dev/finalizer";

function managers(gadget: Gadget | undefined): string[] {
  return (gadget?.metadata.managedFields ?? []).map((
    { manager, operation, subresource },
  ) => `${manager} ${operation}${subresource ? ` ${subresource}` : ""}`);
}

scenario(
  "ctx.apply of the primary keeps foreign fields and the finalizer [PatchResourceWithSSAIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ metadata: { name } }, ctx) {
        const annotations = { ours: "yes" };
        await ctx.apply(Gadget, { metadata: { name, annotations } });
      },
      cleanup() {},
    });
    await fixture.start(operator);
    await fixture.create("a", {}, { labels: { theirs: "yes" } });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.annotations?.["ours"] === "yes"
    );
    const gadget = await fixture.gadget("a");
    assert.deepEqual(gadget?.metadata.finalizers, [OURS]);
    assert.deepEqual(gadget?.metadata.labels, { theirs: "yes" });
    assert.equal(gadget?.metadata.ownerReferences, undefined);
    assert.equal(gadget?.spec.value, "first");
    assert.ok(managers(gadget).includes("gadget Apply"));
  },
);

scenario(
  "ctx.apply and setStatus write object and status [PatchResourceAndStatusWithSSAIT]",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ metadata: { name } }, ctx) {
        runs++;
        await ctx.apply(Gadget, {
          metadata: { name, annotations: { ours: "yes" } },
          spec: { numberOfExecutions: 3 },
        });
        return setStatus({ value: "written" });
      },
      cleanup() {},
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "written"
    );
    const gadget = await fixture.gadget("a");
    assert.equal(gadget?.spec.numberOfExecutions, 3);
    assert.deepEqual(gadget?.metadata.finalizers, [OURS]);
    assert.ok(managers(gadget).includes("gadget Apply status"));
    await fixture.advance(10_000);
    assert.equal(runs, 1, "the own change of the spec causes no run");
  },
);

scenario(
  "patchResource and patchStatus keep what they do not mention, and the finalizer",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: () =>
        patchResourceAndStatus(
          {
            metadata: {
              annotations: { ours: "yes", gone: null, kept: undefined },
              finalizers: ["example.com/other"],
            },
            spec: { numberOfExecutions: 3 },
          },
          { value: undefined, count: 1 },
        ),
      cleanup() {},
    });
    await fixture.create("a", {}, {
      annotations: { theirs: "yes", gone: "yes", kept: "yes" },
    });
    await fixture.client.status.patch(Gadget, KEY, {
      status: { value: "theirs" },
    });
    await fixture.start(operator);
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.count === 1
    );
    const gadget = await fixture.gadget("a");
    assert.deepEqual(gadget?.metadata.annotations, {
      theirs: "yes",
      kept: "yes",
      ours: "yes",
    });
    assert.deepEqual(gadget?.metadata.finalizers?.toSorted(), [
      "example.com/other",
      OURS,
    ]);
    assert.deepEqual(gadget?.spec, { value: "first", numberOfExecutions: 3 });
    assert.equal(gadget?.status?.value, "theirs");
    await fixture.mark("a", { finalizers: [] });
  },
);

scenario(
  "Without server-side apply both are patched, and null removes a field [PatchResourceAndStatusNoSSAIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: (gadget) =>
        patchResourceAndStatus(
          {
            metadata: {
              annotations: { theirs: null, ours: gadget.spec.value },
            },
          },
          { value: gadget.spec.value },
        ),
      cleanup() {},
    }, { serverSideApply: false });
    await fixture.start(operator);
    await fixture.create("a", {}, { annotations: { theirs: "yes" } });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "first"
    );
    const gadget = await fixture.gadget("a");
    assert.deepEqual(gadget?.metadata.annotations, { ours: "first" });
    assert.deepEqual(gadget?.metadata.finalizers, [OURS]);
  },
);

scenario(
  "A merge patch of the status takes no lock, and null deletes a field [StatusPatchNotLockingForNonSSAIT] [StatusUpdateLockingIT]",
  async (fixture) => {
    const operator = fixture.operator();
    const attempts: number[] = [];
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        attempts.push(ctx.retry.attempt);
        await pause(fixture, 1_000);
        return patchStatus({
          value: gadget.spec.value,
          count: gadget.spec.value === "first" ? 1 : null,
        });
      },
    }, { serverSideApply: false });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => attempts.length === 1);
    await fixture.mark("a", { labels: { changed: "meanwhile" } });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.count === 1
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "second"
    );
    assert.deepEqual((await fixture.gadget("a"))?.status, {
      value: "second",
      observedGeneration: 2,
    });
    assert.deepEqual(attempts, [0, 0]);
  },
);

scenario(
  "A replacement of a changed object is refused and retried",
  async (fixture) => {
    const attempts: number[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        attempts.push(ctx.retry.attempt);
        if (attempts.length === 1) {
          await fixture.client.patch(Gadget, KEY, {
            metadata: { labels: { changed: "meanwhile" } },
          });
        }
        return patchStatus({ value: gadget.spec.value }, { method: "replace" });
      },
    }, { retry: { initial: "1s", jitter: 0 } });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "first"
    );
    assert.deepEqual(attempts, [0, 1]);
    const conflict = fixture.log.find(({ message }) =>
      message.startsWith("Run failed")
    );
    assert.equal(conflict?.level, "info", "a conflict is part of life");
  },
);

scenario(
  "After a change to setStatus the fields of earlier patches are removed [StatusPatchSSAMigrationIT]",
  async (fixture) => {
    const make = (reconcile: () => ReturnType<typeof setStatus>) => {
      const operator = fixture.operator();
      operator.register(Gadget, { reconcile }, { name: "gadget" });
      return operator;
    };
    const before = make(() => patchStatus({ value: "old", count: 1 }));
    await fixture.start(before);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.count === 1
    );
    await fixture.done(before.stop());
    const after = make(() => setStatus({ value: "new" }));
    await fixture.start(after);
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.count === undefined
    );
    assert.deepEqual((await fixture.gadget("a"))?.status, {
      value: "new",
      observedGeneration: 1,
    });
  },
);

scenario(
  "Fields applied under the controller's manager name are lost to it [SSAFinalizerIssueIT] [SSASpecUpdateIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {}, cleanup() {} });
    await fixture.start(operator);
    // numberOfExecutions is applied under the name that the controller uses, too.
    await fixture.client.apply(Gadget, {
      metadata: KEY,
      spec: { value: "first" },
    }, { fieldManager: "user" });
    await fixture.client.apply(Gadget, {
      metadata: KEY,
      spec: { numberOfExecutions: 3 },
    }, { fieldManager: "gadget" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.finalizers?.length === 1
    );
    const gadget = await fixture.gadget("a");
    assert.equal(gadget?.spec.value, "first");
    assert.equal(gadget?.spec.numberOfExecutions, undefined);
    // And the other way round: who applies without the finalizer takes it away.
    const applied = await fixture.client.apply(Gadget, {
      metadata: KEY,
      spec: { numberOfExecutions: 3 },
    }, { fieldManager: "gadget" });
    assert.deepEqual(applied.metadata.finalizers, undefined);
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.finalizers?.length === 1
    );
  },
);

scenario(
  "Every way to write the primary is seen by the next read and causes no run [ResourceOperationsIT]",
  async (fixture) => {
    const ways: string[] = [];
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      const { name } = gadget.metadata;
      const check = (way: string) => {
        ways.push(way);
        assert.equal(
          ctx.current?.metadata.annotations?.["way"] ??
            ctx.current?.status?.value,
          way,
        );
      };
      const annotated = (way: string) => ({
        metadata: { annotations: { way } },
      });
      await ctx.patch(Gadget, name, annotated("merge"));
      check("merge");
      await ctx.patch(Gadget, name, [
        { op: "replace", path: "/metadata/annotations/way", value: "json" },
      ], { type: "json" });
      check("json");
      await ctx.apply(Gadget, {
        metadata: { name, annotations: { way: "apply" } },
      }, { owned: false });
      check("apply");
      return patchStatus({ value: "status" });
    }, { defaultFilters: false });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "status"
    );
    await fixture.advance(10_000);
    assert.equal(runs.length, 1);
    assert.deepEqual(ways, ["merge", "json", "apply"]);
  },
);

scenario(
  "A status that violates the schema is refused by field, and nothing is lost",
  async (fixture) => {
    const operator = fixture.operator();
    let runs = 0;
    operator.register(Gadget, {
      reconcile(gadget) {
        runs++;
        return patchStatus(
          { count: gadget.spec.value === "first" ? "many" : 2 } as never,
        );
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs === 2);
    const failure = fixture.log.find(({ message }) =>
      message.startsWith("Run failed")
    );
    assert.match(String(failure?.fields["error"]), /status\.count/);
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.count === 2
    );
  },
);

for (const method of ["json", "replace"] as const) {
  scenario(
    `A ${method} of a pruned object keeps the rest and foreign changes`,
    async (fixture) => {
      let attempts = 0;
      const { runs } = await startGadgets(fixture, async (gadget) => {
        if (gadget.spec.value === "first") {
          return patchResource({ spec: { value: "second" } }, { method });
        }
        if (gadget.spec.value !== "third") return;
        // The cache of this run does not know of it yet.
        if (++attempts === 1) {
          await fixture.change("a", { numberOfExecutions: 9 });
        }
        return patchResource({ spec: { value: "fourth" } }, { method });
      }, {
        cache: { prune: ["spec.numberOfExecutions"] },
        retry: { initial: "1s", jitter: 0 },
      });
      await fixture.create("a", { numberOfExecutions: 7 });
      const spec = async () => (await fixture.gadget("a"))?.spec;
      await fixture.until(async () => (await spec())?.value === "second");
      assert.deepEqual(await spec(), {
        value: "second",
        numberOfExecutions: 7,
      });
      await fixture.change("a", { value: "third" });
      await fixture.until(async () => (await spec())?.value === "fourth");
      assert.deepEqual(await spec(), {
        value: "fourth",
        numberOfExecutions: 9,
      });
      assert.equal(attempts, 2);
      assert.ok(runs.length >= 3);
    },
  );
}

scenario(
  "The observed generation is that of the run, not of a change during its writes",
  async (fixture) => {
    const observed: (number | undefined)[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ status }) {
        observed.push(status?.observedGeneration);
        if (observed.length > 1) return;
        await fixture.change("a", { value: "second" });
        return patchResourceAndStatus(
          { spec: { numberOfExecutions: 3 } },
          { value: "first" },
        );
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => observed.length === 2);
    assert.deepEqual(observed, [undefined, 1]);
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.observedGeneration === 3
    );
  },
);

scenario(
  "The observed generation is not that of a deletion that the run did not see",
  async (fixture) => {
    const observed: (number | undefined)[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile({ status }) {
        observed.push(status?.observedGeneration);
        if (observed.length > 1) return;
        await fixture.client.delete(Gadget, KEY);
        return patchResourceAndStatus(
          { spec: { numberOfExecutions: 3 } },
          { value: "first" },
        );
      },
    }, { allEvents: true });
    await fixture.start(operator);
    await fixture.create("a", {}, { finalizers: ["example.com/theirs"] });
    await fixture.until(() => observed.length === 2);
    assert.deepEqual(observed, [undefined, 1]);
  },
);

scenario(
  "The observed generation includes the own change of an object that was marked",
  async (fixture) => {
    const operator = fixture.operator();
    let runs = 0;
    operator.register(Gadget, {
      async reconcile() {
        runs++;
        await pause(fixture, 1_000);
        return patchResourceAndStatus(
          { spec: { numberOfExecutions: 3 } },
          { value: "first" },
        );
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => runs === 1);
    // The events of these changes come before the write, and cause no run.
    await fixture.mark("a", { labels: { changed: "meanwhile" } });
    await fixture.client.status.patch(Gadget, KEY, { status: { count: 1 } });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "first"
    );
    await fixture.settle();
    const gadget = await fixture.gadget("a");
    assert.deepEqual([runs, gadget?.metadata.generation], [1, 2]);
    assert.equal(gadget?.status?.observedGeneration, 2);
  },
);

scenario(
  "A json status keeps what another client wrote first meanwhile",
  async (fixture) => {
    await startGadgets(fixture, async ({ status }) => {
      if (status !== undefined) return;
      const theirs = { status: { count: 7 } };
      await fixture.client.status.patch(Gadget, KEY, theirs);
      return patchStatus({ value: "ours" }, { method: "json" });
    });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "ours"
    );
    assert.equal((await fixture.gadget("a"))?.status?.count, 7);
  },
);

const PRIMARY_WRITES: Readonly<
  Record<string, Reconciler<Gadget>["reconcile"] | undefined>
> = {
  "The finalizer": undefined,
  "ctx.apply": async ({ metadata: { name }, spec }, ctx) => {
    const metadata = { name, labels: { ours: spec.value } };
    await ctx.apply(Gadget, { metadata });
  },
  "patchResource": ({ spec }) => labelled(spec.value),
  "patchResource by json": ({ spec }) => labelled(spec.value, "json"),
  "patchResource by replace": ({ spec }) => labelled(spec.value, "replace"),
};

function labelled(ours: string, method?: "json" | "replace") {
  return patchResource({ metadata: { labels: { ours } } }, { method });
}

for (const [name, reconcile] of Object.entries(PRIMARY_WRITES)) {
  scenario(
    `${name} neither revives an object nor changes its successor`,
    async (fixture) => {
      const labels = { theirs: "yes" };
      const statuses: number[] = [];
      let successor = "";
      const client = fixture.client.with([(send) => async (request) => {
        const { signal: _, ...sent } = request;
        if (request.method === "GET" || !/gadgets.a/.test(request.path)) {
          return await send(request);
        }
        // The write is already on its way, so that no abort ends it.
        if (statuses.length === 0) {
          await fixture.remove("a");
          if (successor !== "") {
            await fixture.create("a", { value: successor }, { labels });
          }
        }
        const response = await send(sent);
        statuses.push(response.status);
        return response;
      }]);
      await startGadgets(fixture, reconcile ?? (() => {}), {
        operator: { client },
        ...(reconcile === undefined && { cleanup() {} }),
      });
      await fixture.create("a", { value: "first" }, { labels });
      await fixture.until(() => statuses.length > 0);
      await fixture.advance(10_000);
      assert.ok(statuses[0]! >= 400, `${statuses}`);
      assert.equal(await fixture.gadget("a"), undefined);
      statuses.length = 0;
      successor = "second";
      await fixture.create("a", { value: "first" }, { labels });
      await fixture.until(() => statuses.length > 1);
      await fixture.advance(10_000);
      assert.ok(statuses[0]! >= 400, `${statuses}`);
      const { metadata } = (await fixture.gadget("a"))!;
      assert.deepEqual(
        [metadata.labels, metadata.finalizers],
        reconcile === undefined
          ? [labels, [OURS]]
          : [{ ...labels, ours: "second" }, undefined],
      );
    },
  );
}
