import assert from "node:assert/strict";
import { z } from "zod";
import { untyped } from "../../core/api/kind.ts";
import {
  keepFinalizer,
  noUpdate,
  patchStatus,
} from "../../core/controller/result.ts";
import { defineKind } from "../../core/crd/define_kind.ts";
import { ConfigMap, Deployment, Service } from "../../core/kinds/mod.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { Gadget, scenario } from "../support/operator_case.ts";

scenario(
  "An operator makes what an object asks for, reports, ignores labels and cleans up [ReconcilerExecutorIT]",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator();
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
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "first"
    );
    const key = { namespace: "default", name: "a" };
    assert.deepEqual((await one.client.get(ConfigMap, key)).data, {
      value: "first",
    });
    await one.mark("a", { labels: { color: "blue" } });
    await one.advance(10_000);
    assert.deepEqual(seen, ["first"]);
    await one.remove("a");
    await one.until(async () => await one.gadget("a") === undefined);
    assert.deepEqual(seen, ["first", "cleanup"]);
    await one.until(async () =>
      await one.client.find(ConfigMap, key) === undefined
    );
  },
);

scenario(
  "Cleanup may keep the finalizer and come back until it is done [CleanerForReconcilerIT]",
  async (one) => {
    let runs = 0;
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile: () => noUpdate(),
      cleanup() {
        runs++;
        if (runs < 3) return keepFinalizer().rescheduleAfter("1s");
        return undefined;
      },
    });
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.metadata.finalizers?.length === 1
    );
    await one.remove("a");
    await one.advance(1_500);
    assert.equal(runs, 2);
    assert.ok(await one.gadget("a"));
    await one.advance(1_000);
    assert.equal(runs, 3);
    assert.equal(await one.gadget("a"), undefined);
  },
);

scenario(
  "Objects made, changed and deleted all at once end up right [ConcurrencyIT]",
  async (one) => {
    const operator = one.operator();
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
    await one.start(operator);
    const names = Array.from({ length: 50 }, (_, index) => `gadget-${index}`);
    await Promise.all(names.map((name) => one.create(name)));
    await Promise.all([
      ...names.slice(0, 20).map((name) =>
        one.change(name, { value: "second" })
      ),
      ...names.slice(20).map((name) => one.remove(name)),
    ]);
    await one.until(async () =>
      (await one.client.list(Gadget)).items.length === 20 &&
      (await one.client.list(ConfigMap, { labelSelector: "of=gadget" })).items
          .length === 20 &&
      (await one.client.list(Gadget)).items.every((gadget) =>
        gadget.status?.value === "second"
      )
    );
    const maps = await one.client.list(ConfigMap, {
      labelSelector: "of=gadget",
    });
    for (const map of maps.items) {
      assert.deepEqual(map.data, { value: "second" });
    }
  },
);

const Tenant = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Tenant",
  scope: "Cluster",
  spec: z.object({ namespace: z.string() }),
  status: z.object({ ready: z.boolean() }).partial(),
});

scenario(
  "A cluster-scoped object may have parts in a namespace, and is cleaned up [ClusterScopedResourceIT]",
  async (one) => {
    await one.install(Tenant);
    const operator = one.operator();
    operator.register(Tenant, {
      async reconcile(tenant, ctx) {
        assert.equal(ctx.key.namespace, undefined);
        await ctx.apply(ConfigMap, {
          metadata: {
            name: tenant.metadata.name,
            namespace: tenant.spec.namespace,
          },
          data: { tenant: tenant.metadata.name },
        });
        return patchStatus({ ready: true });
      },
      async cleanup(tenant, ctx) {
        await ctx.delete(ConfigMap, {
          name: tenant.metadata.name,
          namespace: tenant.spec.namespace,
        });
      },
    });
    await one.start(operator);
    await one.client.create(Tenant, {
      metadata: { name: "t" },
      spec: { namespace: "default" },
    });
    await one.until(async () =>
      (await one.client.get(Tenant, { name: "t" })).status?.ready === true
    );
    const key = { namespace: "default", name: "t" };
    const map = await one.client.get(ConfigMap, key);
    assert.equal(map.metadata.ownerReferences?.[0]?.kind, "Tenant");
    await one.client.delete(Tenant, { name: "t" });
    await one.until(async () =>
      await one.client.find(Tenant, { name: "t" }) === undefined
    );
    assert.equal(await one.client.find(ConfigMap, key), undefined);
  },
);

scenario(
  "A built-in kind may be the primary, and its status be written [KubernetesResourceStatusUpdateIT]",
  async (one) => {
    const operator = one.operator();
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
    await one.start(operator);
    const labels = { app: "web" };
    await one.client.create(Deployment, {
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
    await one.until(async () =>
      (await one.client.get(Deployment, key)).status?.conditions?.[0]?.type ===
        "Audited"
    );
  },
  { embedded: "its Deployment controller puts the status back" },
);

scenario(
  "A built-in kind without generation may be cleaned up [BuiltInResourceCleanerIT]",
  async (one) => {
    let cleaned = 0;
    const operator = one.operator();
    operator.register(Service, {
      reconcile() {},
      cleanup() {
        cleaned++;
      },
    }, { labelSelector: "cleaned=yes" });
    await one.start(operator);
    const key = { namespace: "default", name: "web" };
    await one.client.create(Service, {
      metadata: { ...key, labels: { cleaned: "yes" } },
      spec: { ports: [{ port: 80 }] },
    });
    await one.until(async () =>
      (await one.client.get(Service, key)).metadata.finalizers?.[0] ===
        "services.coracle.dev/finalizer"
    );
    await one.client.delete(Service, key);
    await one.until(async () =>
      await one.client.find(Service, key) === undefined
    );
    assert.equal(cleaned, 1);
  },
);

scenario(
  "A kind that is not known at compile time may be the primary [#2716]",
  async (one) => {
    const operator = one.operator();
    operator.register(
      untyped({ group: "sample.coracle.dev", version: "v1", kind: "Gadget" }),
      {
        reconcile: (gadget) =>
          patchStatus({ value: (gadget.spec as { value: string }).value }),
      },
    );
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.value === "first"
    );
  },
);

scenario(
  "Two controllers of one kind share it by label [MultipleReconcilerSameTypeIT]",
  async (one) => {
    const seen: Record<string, string[]> = { red: [], blue: [] };
    const operator = one.operator();
    for (const color of ["red", "blue"]) {
      operator.register(Gadget, {
        reconcile(gadget) {
          seen[color]?.push(gadget.metadata.name);
        },
      }, { name: color, labelSelector: `color=${color}` });
    }
    await one.start(operator);
    await one.create("r", {}, { labels: { color: "red" } });
    await one.create("b", {}, { labels: { color: "blue" } });
    await one.create("other");
    await one.until(() =>
      seen["red"]?.length === 1 && seen["blue"]?.length === 1
    );
    await one.advance(5_000);
    assert.deepEqual(seen, { red: ["r"], blue: ["b"] });
  },
);

scenario(
  "Two controllers may each speak another version of a kind [MultiVersionCRDIT]",
  async (one) => {
    const size = z.object({ size: z.number() });
    const Versioned = defineKind({
      group: "sample.coracle.dev",
      version: "v2",
      kind: "Versioned",
      spec: size,
      status: z.object({ by: z.string() }).partial(),
      versions: {
        v1: { spec: size, status: z.object({ by: z.string() }).partial() },
      },
    });
    await one.install(Versioned);
    const operator = one.operator();
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
    await one.start(operator);
    for (const version of ["v1", "v2"]) {
      await one.client.create(Versioned, {
        metadata: { namespace: "default", name: version, labels: { version } },
        spec: { size: 1 },
      });
    }
    await one.until(async () =>
      (await one.client.list(Versioned)).items.every(({ metadata, status }) =>
        status?.by === metadata.name
      )
    );
  },
);

scenario(
  "The observed generation is written by hand and follows the spec [ManualObservedGenerationIT]",
  async (one) => {
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile: (gadget) =>
        patchStatus({ observedGeneration: gadget.metadata.generation ?? 0 }),
    });
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.gadget("a"))?.status?.observedGeneration === 1
    );
    await one.change("a", { value: "second" });
    await one.until(async () =>
      (await one.gadget("a"))?.status?.observedGeneration === 2
    );
  },
);

scenario(
  "The first run after a start sees all secondaries that were there [StartupSecondaryAccessIT]",
  async (one) => {
    const gadget = await one.create("a");
    const owner = {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Gadget",
      name: "a",
      uid: gadget.metadata.uid as string,
    };
    for (let index = 0; index < 200; index++) {
      await one.client.create(ConfigMap, {
        metadata: {
          namespace: "default",
          name: `map-${index}`,
          ownerReferences: [owner],
        },
      });
    }
    const counts: number[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        counts.push((await ctx.secondaries(ConfigMap)).length);
      },
    }, { sources: [informerSource(ConfigMap)] });
    await one.start(operator);
    await one.until(() => counts.length > 0);
    assert.equal(counts[0], 200);
  },
);
