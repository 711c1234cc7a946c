import assert from "node:assert/strict";
import { z } from "zod";
import {
  defineKind,
  keepFinalizer,
  noUpdate,
  patchStatus,
  untyped,
} from "@coracle/operator/core";
import { ConfigMap, Deployment, Service } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "An operator creates secondaries, reports status, ignores labels and cleans up [ReconcilerExecutorIT]",
  async (fixture) => {
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        seen.push(gadget.spec.value);
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name },
          data: { value: gadget.spec.value },
        });
        return patchStatus({ value: gadget.spec.value });
      },
      cleanup() {
        seen.push("cleanup");
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "first"
    );
    const key = { namespace: "default", name: "a" };
    assert.deepEqual((await fixture.client.get(ConfigMap, key)).data, {
      value: "first",
    });
    await fixture.mark("a", { labels: { color: "blue" } });
    await fixture.advance(10_000);
    assert.deepEqual(seen, ["first"]);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.deepEqual(seen, ["first", "cleanup"]);
    await fixture.until(async () =>
      await fixture.client.find(ConfigMap, key) === undefined
    );
  },
);

scenario(
  "Cleanup may keep the finalizer and run again until it is done [CleanerForReconcilerIT]",
  async (fixture) => {
    let runs = 0;
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: () => noUpdate(),
      cleanup() {
        runs++;
        if (runs < 3) return keepFinalizer().rescheduleAfter("1s");
        return undefined;
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.finalizers?.length === 1
    );
    await fixture.remove("a");
    await fixture.advance(1_500);
    assert.equal(runs, 2);
    assert.ok(await fixture.gadget("a"));
    await fixture.advance(1_000);
    assert.equal(runs, 3);
    assert.equal(await fixture.gadget("a"), undefined);
  },
);

scenario(
  "Objects created, changed and deleted concurrently converge [ConcurrencyIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name, labels: { of: "gadget" } },
          data: { value: gadget.spec.value },
        });
        return patchStatus({ value: gadget.spec.value });
      },
      cleanup() {},
    });
    await fixture.start(operator);
    const names = Array.from({ length: 50 }, (_, index) => `gadget-${index}`);
    await Promise.all(names.map((name) => fixture.create(name)));
    await Promise.all([
      ...names.slice(0, 20).map((name) =>
        fixture.change(name, { value: "second" })
      ),
      ...names.slice(20).map((name) => fixture.remove(name)),
    ]);
    await fixture.until(async () =>
      (await fixture.client.list(Gadget)).items.length === 20 &&
      (await fixture.client.list(ConfigMap, { labelSelector: "of=gadget" }))
          .items
          .length === 20 &&
      (await fixture.client.list(Gadget)).items.every((gadget) =>
        gadget.status?.value === "second"
      )
    );
    const maps = await fixture.client.list(ConfigMap, {
      labelSelector: "of=gadget",
    });
    for (const map of maps.items) {
      assert.deepEqual(map.data, { value: "second" });
    }
  },
);

// No other scenario may serve this kind with another scope: the garbage collector
// of a real cluster would look for the owner where it was, and delete what it owns.
const Team = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Team",
  scope: "Cluster",
  spec: z.object({ namespace: z.string() }),
  status: z.object({ ready: z.boolean() }).partial(),
});

scenario(
  "A cluster-scoped primary may have namespaced secondaries [ClusterScopedResourceIT]",
  async (fixture) => {
    await fixture.install(Team);
    const operator = fixture.operator();
    operator.register(Team, {
      async reconcile(team, ctx) {
        assert.equal(ctx.key.namespace, undefined);
        await ctx.apply(ConfigMap, {
          metadata: {
            name: team.metadata.name,
            namespace: team.spec.namespace,
          },
          data: { team: team.metadata.name },
        });
        return patchStatus({ ready: true });
      },
      async cleanup(team, ctx) {
        await ctx.delete(ConfigMap, {
          name: team.metadata.name,
          namespace: team.spec.namespace,
        });
      },
    });
    await fixture.start(operator);
    await fixture.client.create(Team, {
      metadata: { name: "t" },
      spec: { namespace: "default" },
    });
    await fixture.until(async () =>
      (await fixture.client.get(Team, { name: "t" })).status?.ready === true
    );
    const key = { namespace: "default", name: "t" };
    const map = await fixture.client.get(ConfigMap, key);
    assert.equal(map.metadata.ownerReferences?.[0]?.kind, "Team");
    await fixture.client.delete(Team, { name: "t" });
    await fixture.until(async () =>
      await fixture.client.find(Team, { name: "t" }) === undefined
    );
    assert.equal(await fixture.client.find(ConfigMap, key), undefined);
  },
);

scenario(
  "A built-in kind can be the primary, with its status [KubernetesResourceStatusUpdateIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Deployment, {
      reconcile: () =>
        patchStatus({
          conditions: [{
            type: "Audited",
            status: "True",
            reason: "Seen",
            message: "",
          }],
        }),
    });
    await fixture.start(operator);
    const labels = { app: "web" };
    await fixture.client.create(Deployment, {
      metadata: { namespace: "default", name: "web" },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "web", image: "web:1" }] },
        },
      },
    });
    const key = { namespace: "default", name: "web" };
    await fixture.until(async () =>
      (await fixture.client.get(Deployment, key)).status?.conditions?.[0]
        ?.type ===
        "Audited"
    );
  },
  { embedded: "its Deployment controller puts the status back" },
);

scenario(
  "A built-in kind without a generation can be cleaned up [BuiltInResourceCleanerIT]",
  async (fixture) => {
    let cleaned = 0;
    const operator = fixture.operator();
    operator.register(Service, {
      reconcile() {},
      cleanup() {
        cleaned++;
      },
    }, { labelSelector: "cleaned=yes" });
    await fixture.start(operator);
    const key = { namespace: "default", name: "web" };
    await fixture.client.create(Service, {
      metadata: { ...key, labels: { cleaned: "yes" } },
      spec: { ports: [{ port: 80 }] },
    });
    await fixture.until(async () =>
      (await fixture.client.get(Service, key)).metadata.finalizers?.[0] ===
        "services.coracle.dev/finalizer"
    );
    await fixture.client.delete(Service, key);
    await fixture.until(async () =>
      await fixture.client.find(Service, key) === undefined
    );
    assert.equal(cleaned, 1);
  },
);

scenario(
  "A kind that is unknown at compile time can be the primary [#2716]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(
      untyped({ group: "sample.coracle.dev", version: "v1", kind: "Gadget" }),
      {
        reconcile: (gadget) =>
          patchStatus({ value: (gadget.spec as { value: string }).value }),
      },
    );
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "first"
    );
  },
);

scenario(
  "Two controllers of one kind divide it by label [MultipleReconcilerSameTypeIT]",
  async (fixture) => {
    const seen: Record<string, string[]> = { red: [], blue: [] };
    const operator = fixture.operator();
    for (const color of ["red", "blue"]) {
      operator.register(Gadget, {
        reconcile(gadget) {
          seen[color]?.push(gadget.metadata.name);
        },
      }, { name: color, labelSelector: `color=${color}` });
    }
    await fixture.start(operator);
    await fixture.create("r", {}, { labels: { color: "red" } });
    await fixture.create("b", {}, { labels: { color: "blue" } });
    await fixture.create("other");
    await fixture.until(() =>
      seen["red"]?.length === 1 && seen["blue"]?.length === 1
    );
    await fixture.advance(5_000);
    assert.deepEqual(seen, { red: ["r"], blue: ["b"] });
  },
);

scenario(
  "Two controllers can use different versions of a kind [MultiVersionCRDIT]",
  async (fixture) => {
    const size = z.object({ size: z.number() });
    const Versioned = defineKind({
      group: "sample.coracle.dev",
      version: "v2",
      kind: "Versioned",
      spec: size,
      status: z.object({ by: z.string() }).partial(),
      versions: [{
        name: "v1",
        spec: size,
        status: z.object({ by: z.string() }).partial(),
      }],
    });
    await fixture.install(Versioned);
    const operator = fixture.operator();
    for (const version of ["v1", "v2"]) {
      operator.register(
        untyped({ group: Versioned.group, version, kind: "Versioned" }),
        {
          reconcile(object) {
            assert.equal(object.apiVersion, `sample.coracle.dev/${version}`);
            return patchStatus({ by: version });
          },
        },
        { name: version, labelSelector: `version=${version}` },
      );
    }
    await fixture.start(operator);
    for (const version of ["v1", "v2"]) {
      await fixture.client.create(Versioned, {
        metadata: { namespace: "default", name: version, labels: { version } },
        spec: { size: 1 },
      });
    }
    await fixture.until(async () =>
      (await fixture.client.list(Versioned)).items.every((
        { metadata, status },
      ) => status?.by === metadata.name)
    );
  },
);

scenario(
  "An observed generation written by the reconciler follows the spec [ManualObservedGenerationIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: (gadget) =>
        patchStatus({ observedGeneration: gadget.metadata.generation ?? 0 }),
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.observedGeneration === 1
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.observedGeneration === 2
    );
  },
);

scenario(
  "The first run after a start sees all existing secondaries [StartupSecondaryAccessIT]",
  async (fixture) => {
    const gadget = await fixture.create("a");
    const owner = {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Gadget",
      name: "a",
      uid: gadget.metadata.uid as string,
    };
    for (let index = 0; index < 200; index++) {
      await fixture.client.create(ConfigMap, {
        metadata: {
          namespace: "default",
          name: `map-${index}`,
          ownerReferences: [owner],
        },
      });
    }
    const counts: number[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        counts.push((await ctx.secondaries(ConfigMap)).length);
      },
    }, { sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    await fixture.until(() => counts.length > 0);
    assert.equal(counts[0], 200);
  },
);
