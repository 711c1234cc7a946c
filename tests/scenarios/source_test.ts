import assert from "node:assert/strict";
import { untyped } from "../../core/api/kind.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import { ApiServer } from "../../core/apiserver/server.ts";
import { patchStatus } from "../../core/controller/result.ts";
import { ConfigMap, Namespace } from "../../core/kinds/mod.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { byAnnotation } from "../../sources/mappers.ts";
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
