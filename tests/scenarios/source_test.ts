import assert from "node:assert/strict";
import { untyped } from "../../core/api/kind.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import { keyOf } from "../../core/api/object_key.ts";
import { ApiServer } from "../../core/apiserver/server.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { ConfigMap, Namespace } from "../../core/kinds/mod.ts";
import type { ControllerHandle } from "../../core/operator/controller_handle.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { byAnnotation, byFunction } from "../../sources/mappers.ts";
import { perResourcePollingSource } from "../../sources/per_resource_polling_source.ts";
import { KEY } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_case.ts";

scenario(
  "Making, changing and deleting a secondary shows in the status [InformerEventSourceIT]",
  async (one) => {
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const map = await ctx.secondary(ConfigMap);
        return patchStatus({ value: map?.data?.["value"] ?? "missing" });
      },
    }, { sources: [informerSource(ConfigMap, { mapper: byAnnotation() })] });
    await one.start(operator);
    await one.create("a");
    const status = async () => (await one.gadget("a"))?.status?.value;
    await one.until(async () => await status() === "missing");
    await one.client.create(ConfigMap, {
      metadata: { ...KEY, annotations: { "coracle.dev/primary-name": "a" } },
      data: { value: "1" },
    });
    await one.until(async () => await status() === "1");
    await one.client.patch(ConfigMap, KEY, { data: { value: "2" } });
    await one.until(async () => await status() === "2");
    await one.client.delete(ConfigMap, KEY);
    await one.until(async () => await status() === "missing");
  },
);

scenario(
  "A source on another cluster triggers primaries of this one [InformerRemoteClusterIT]",
  async (one) => {
    const remote = await ApiServer.start({
      port: false,
      clock: one.clock,
      seed: 2,
    });
    try {
      const operator = one.operator();
      operator.register(Gadget, {
        async reconcile(_gadget, ctx) {
          return patchStatus({
            value: (await ctx.secondary(ConfigMap))?.data?.["value"] ?? "none",
          });
        },
      }, {
        sources: [
          informerSource(ConfigMap, {
            client: remote.client,
            mapper: byAnnotation(),
          }),
        ],
      });
      await one.start(operator);
      await one.create("a");
      await remote.client.create(ConfigMap, {
        metadata: {
          ...KEY,
          annotations: {
            "coracle.dev/primary-name": "a",
            "coracle.dev/primary-namespace": "default",
          },
        },
        data: { value: "from afar" },
      });
      await one.until(async () =>
        (await one.gadget("a"))?.status?.value === "from afar"
      );
      await one.done(operator.stop());
    } finally {
      await remote.stop();
    }
  },
);

scenario(
  "Sources of untyped kinds can be added, and taken away, at run time [DynamicGenericEventSourceRegistrationIT]",
  async (one) => {
    const Maps = untyped({ group: "", version: "v1", kind: "ConfigMap" });
    const causes: string[] = [];
    const operator = one.operator();
    const controller = operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        causes.push(ctx.cause.source ?? ctx.cause.type);
      },
    });
    await one.start(operator);
    const gadget = await one.create("a");
    await one.until(() => causes.length === 1);
    const source = informerSource<Gadget, UntypedObject>(Maps, {
      name: "maps",
    });
    await one.done(controller.addSource(source));
    assert.equal(
      await controller.addSource(informerSource(Maps, { name: "maps" })),
      source,
      "the one that is there",
    );
    const { uid = "" } = gadget.metadata;
    await one.client.create(ConfigMap, {
      metadata: {
        ...KEY,
        ownerReferences: [{
          apiVersion: "sample.coracle.dev/v1",
          kind: "Gadget",
          name: "a",
          uid,
        }],
      },
    });
    await one.until(() => causes.length === 2);
    assert.deepEqual(causes, ["added", "maps"]);
    await one.done(controller.removeSource("maps"));
    await one.client.patch(ConfigMap, KEY, { data: { any: "thing" } });
    await one.advance(5_000);
    assert.equal(causes.length, 2);
  },
);

scenario(
  "An untyped secondary is made, changed and deleted [GenericKubernetesResourceHandlingIT]",
  async (one) => {
    const Maps = untyped({
      group: "",
      version: "v1",
      kind: "ConfigMap",
      plural: "configmaps",
      scope: "Namespaced",
    });
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        if (gadget.spec.value === "none") {
          await ctx.delete(Maps, gadget.metadata.name);
        } else {
          await ctx.apply(Maps, {
            metadata: { name: gadget.metadata.name },
            data: { value: gadget.spec.value },
          });
        }
      },
    }, { sources: [informerSource(Maps)] });
    await one.start(operator);
    await one.create("a");
    const value = async () =>
      (await one.client.find(ConfigMap, KEY))?.data?.["value"];
    await one.until(async () => await value() === "first");
    await one.change("a", { value: "second" });
    await one.until(async () => await value() === "second");
    await one.change("a", { value: "none" });
    await one.until(async () =>
      await one.client.find(ConfigMap, KEY) === undefined
    );
  },
);

scenario(
  "Each primary has its own poll, which triggers when the answer changes [PerResourcePollingEventSourceIT]",
  async (one) => {
    const external: Record<string, number> = { a: 0, b: 0 };
    const runs: Record<string, number[]> = { a: [], b: [] };
    const polls = perResourcePollingSource<Gadget, { value: number }>({
      name: "polls",
      interval: "1s",
      id: () => "only",
      fetch({ metadata: { name } }) {
        external[name] = (external[name] ?? 0) + 1;
        return [{ value: external[name] as number }];
      },
    });
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        runs[gadget.metadata.name]?.push(
          (await ctx.secondary(polls))?.value ?? -1,
        );
      },
    }, { sources: [polls] });
    await one.start(operator);
    await one.create("a");
    await one.create("b");
    await one.until(() =>
      Object.values(runs).every((values) => values.length > 3)
    );
  },
);

scenario(
  "An index on primaries finds those that a changed ConfigMap concerns [PrimaryIndexerIT]",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator();
    const controller: ControllerHandle<Gadget> = operator.register(Gadget, {
      reconcile(gadget, ctx) {
        if (ctx.cause.type === "source") seen.push(gadget.metadata.name);
      },
    }, {
      indexes: { value: { byFunction: ({ spec }) => [spec.value] } },
      sources: [informerSource<Gadget, ConfigMap>(ConfigMap, {
        mapper: byFunction(({ metadata }) =>
          controller.primaries.byIndex("value", metadata.name).map(keyOf)
        ),
      })],
    });
    await one.start(operator);
    assert.throws(() => controller.primaries.byIndex("x", "y"), RangeError);
    await one.create("one", { value: "shared" });
    await one.create("two", { value: "shared" });
    await one.create("three", { value: "other" });
    await one.settle();
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
    });
    await one.until(() => seen.length === 2);
    await one.advance(1_000);
    assert.deepEqual(seen.toSorted(), ["one", "two"]);
  },
);

scenario(
  "Many primaries may share one secondary that does not know them [PrimaryToSecondaryIT]",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const shared = await ctx.secondary(ConfigMap);
        seen.push(`${gadget.metadata.name} ${shared?.data?.["value"]}`);
      },
    }, {
      sources: [informerSource<Gadget, ConfigMap>(ConfigMap, {
        references: (gadget) => [`default/${gadget.spec.value}`],
      })],
    });
    await one.start(operator);
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
      data: { value: "1" },
    });
    await one.create("one", { value: "shared" });
    await one.create("two", { value: "shared" });
    await one.until(() => seen.length >= 2);
    await one.advance(1_000);
    seen.length = 0;
    await one.client.patch(
      ConfigMap,
      { namespace: "default", name: "shared" },
      { data: { value: "2" } },
    );
    await one.until(() => seen.length === 2);
    assert.deepEqual(seen.toSorted(), ["one 2", "two 2"]);
  },
);

scenario(
  "What primaries refer to is found though a bounded cache has given it up, and forgotten with them",
  async (one) => {
    const seen: string[] = [];
    const operator = one.operator({ cache: { budget: 1 } });
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        const maps = await ctx.secondaries(ConfigMap);
        const values = maps.map(({ data }) => data?.["value"]);
        seen.push(`${gadget.metadata.name} ${values}`);
      },
    }, {
      sources: [informerSource<Gadget, ConfigMap>(ConfigMap, {
        bounded: true,
        references: ({ spec: { value } }) => [
          `default/map-${value}`,
          "default/none",
        ],
      })],
    });
    for (let index = 0; index < 100; index++) {
      await one.client.create(ConfigMap, {
        metadata: { namespace: "default", name: `map-${index}` },
        data: { value: `${index}` },
      });
    }
    await one.start(operator);
    await one.until(() =>
      /objects\{kind="v1 ConfigMap",tier="key_only"\} [1-9]\d/
        .test(operator.metrics())
    );
    await one.create("one", { value: "7" });
    await one.create("two", { value: "7" });
    await one.until(() => seen.length === 2);
    assert.deepEqual(seen.splice(0).toSorted(), ["one 7", "two 7"]);
    await one.remove("one");
    await one.until(() => operator.health().controllers[0]?.primaries === 1);
    await one.client.patch(
      ConfigMap,
      { namespace: "default", name: "map-7" },
      { data: { value: "8" } },
    );
    await one.until(() => seen.length === 1);
    await one.advance(1_000);
    assert.deepEqual(seen, ["two 8"]);
  },
);

scenario(
  "Without a way from primary to secondary the context finds none, the cache does [PrimaryToSecondaryMissingIT]",
  async (one) => {
    const found: [number, boolean][] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const related = await ctx.secondaries(ConfigMap);
        found.push([
          related.length,
          await ctx.get(ConfigMap, "shared") !== undefined,
        ]);
      },
    }, { sources: [informerSource(ConfigMap)] });
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
    });
    await one.start(operator);
    await one.create("a", { value: "shared" });
    await one.until(() => found.length === 1);
    assert.deepEqual(found, [[0, true]]);
  },
);

scenario(
  "When a secondary refers to others, the dropped, the kept and the new all run [SecondaryToPrimaryReferenceChangeIT]",
  async (one) => {
    let seen: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile(gadget, ctx) {
        if (ctx.cause.type === "source") seen.push(gadget.metadata.name);
      },
    }, {
      sources: [informerSource(ConfigMap, {
        mapper: byFunction((map) =>
          (map.data?.["for"] ?? "").split(",").filter((name) => name !== "")
            .map((name) => `default/${name}`)
        ),
      })],
    });
    await one.start(operator);
    for (const name of ["dropped", "kept", "new", "none"]) {
      await one.create(name);
    }
    await one.client.create(ConfigMap, {
      metadata: KEY,
      data: { for: "dropped,kept" },
    });
    await one.until(() => seen.length === 2);
    seen = [];
    await one.client.patch(ConfigMap, KEY, { data: { for: "kept,new" } });
    await one.until(() => seen.length === 3);
    await one.advance(1_000);
    assert.deepEqual(seen.toSorted(), ["dropped", "kept", "new"]);
  },
);

scenario(
  "Owner references lead to the primary whatever version they name [OwnerRefMultiVersionIT]",
  async (one) => {
    const causes: string[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        causes.push(ctx.cause.type);
      },
    }, { sources: [informerSource(ConfigMap)] });
    await one.start(operator);
    const { metadata: { uid = "" } } = await one.create("a");
    await one.until(() => causes.length === 1);
    await one.client.create(ConfigMap, {
      metadata: {
        ...KEY,
        ownerReferences: [{
          apiVersion: "sample.coracle.dev/v1alpha1",
          kind: "Gadget",
          name: "a",
          uid,
        }],
      },
    });
    await one.until(() => causes.length === 2);
    assert.deepEqual(causes, ["added", "source"]);
  },
);

scenario(
  "An object in two sources is listed once, in its newest state [LatestDistinctIT]",
  async (one) => {
    const lists: string[][] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        await ctx.apply(ConfigMap, {
          metadata: { name: gadget.metadata.name, labels: { app: "x" } },
          data: { value: gadget.spec.value },
        });
        lists.push(
          (await ctx.secondaries(ConfigMap)).map((map) =>
            map.data?.["value"] ?? ""
          ),
        );
      },
    }, {
      sources: [
        informerSource(ConfigMap, { name: "all" }),
        informerSource(ConfigMap, { name: "labelled", labelSelector: "app=x" }),
      ],
    });
    await one.start(operator);
    await one.create("a");
    await one.until(() => lists.length === 1);
    await one.change("a", { value: "second" });
    await one.until(() => lists.length === 2);
    assert.deepEqual(lists, [["first"], ["second"]]);
  },
);

scenario(
  "Namespaces can be added, taken away and opened to all at run time [ChangeNamespaceIT]",
  async (one) => {
    const seen: string[] = [];
    for (const name of ["one", "two", "three"]) {
      await one.client.create(Namespace, { metadata: { name } });
    }
    const make = (namespace: string, name: string) =>
      one.client.create(Gadget, {
        metadata: { namespace, name },
        spec: { value: "x" },
      });
    const operator = one.operator();
    const controller = operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(`${gadget.metadata.namespace}/${gadget.metadata.name}`);
      },
    }, { namespaces: ["one"], sources: [informerSource(ConfigMap)] });
    await one.start(operator);
    await make("one", "a");
    await make("two", "b");
    await one.until(() => seen.length === 1);
    await one.advance(1_000);
    assert.deepEqual(seen, ["one/a"]);

    await one.done(controller.changeNamespaces(["one", "two"]));
    await one.until(() => seen.length === 2);
    await one.advance(1_000);
    assert.deepEqual(
      seen,
      ["one/a", "two/b"],
      "what was watched runs no second time",
    );

    await one.done(controller.changeNamespaces(["two"]));
    assert.equal(controller.health().primaries, 1);
    assert.equal(
      controller.health().delayed,
      1,
      "nothing is left of the others [3.9.6]",
    );
    await one.client.patch(Gadget, { namespace: "one", name: "a" }, {
      spec: { value: "y" },
    });
    await one.advance(1_000);
    assert.equal(seen.length, 2);

    await one.done(controller.changeNamespaces("all"));
    await make("three", "c");
    await one.until(() =>
      seen.includes("three/c") &&
      seen.filter((key) => key === "one/a").length === 2
    );
    await assert.rejects(
      controller.changeNamespaces("current"),
      /Cannot change namespaces/,
    );
  },
);
