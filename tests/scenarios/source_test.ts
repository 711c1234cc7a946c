import assert from "node:assert/strict";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  patchStatus,
  untyped,
  type UntypedObject,
} from "@coracle/operator/core";
import { ConfigMap, Namespace, Secret } from "@coracle/operator/kinds";
import {
  byAnnotation,
  byFunction,
  perResourcePollingSource,
  pollingSource,
  watch,
} from "@coracle/operator/sources";
import { KEY } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "Creating, changing and deleting a secondary shows in the status [InformerEventSourceIT]",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const map = await ctx.secondary(ConfigMap);
        return patchStatus({ value: map?.data?.["value"] ?? "missing" });
      },
    }, { sources: [watch(ConfigMap, { mapper: byAnnotation() })] });
    await fixture.start(operator);
    await fixture.create("a");
    const status = async () => (await fixture.gadget("a"))?.status?.value;
    await fixture.until(async () => await status() === "missing");
    await fixture.client.create(ConfigMap, {
      metadata: { ...KEY, annotations: { "coracle.dev/primary-name": "a" } },
      data: { value: "1" },
    });
    await fixture.until(async () => await status() === "1");
    await fixture.client.patch(ConfigMap, KEY, { data: { value: "2" } });
    await fixture.until(async () => await status() === "2");
    await fixture.client.delete(ConfigMap, KEY);
    await fixture.until(async () => await status() === "missing");
  },
);

scenario(
  "A source on another cluster triggers primaries of this one [InformerRemoteClusterIT]",
  async (fixture) => {
    const remote = await ApiServer.start({
      port: false,
      clock: fixture.clock,
      seed: 2,
    });
    try {
      const operator = fixture.operator();
      operator.register(Gadget, {
        async reconcile(_gadget, ctx) {
          return patchStatus({
            value: (await ctx.secondary(ConfigMap))?.data?.["value"] ?? "none",
          });
        },
      }, {
        sources: [
          watch(ConfigMap, {
            client: remote.client,
            mapper: byAnnotation(),
          }),
        ],
      });
      await fixture.start(operator);
      await fixture.create("a");
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
      await fixture.until(async () =>
        (await fixture.gadget("a"))?.status?.value === "from afar"
      );
      await fixture.done(operator.stop());
    } finally {
      await remote.stop();
    }
  },
);

scenario(
  "Sources of untyped kinds can be added and removed at run time [DynamicGenericEventSourceRegistrationIT]",
  async (fixture) => {
    const Maps = untyped({ group: "", version: "v1", kind: "ConfigMap" });
    const causes: string[] = [];
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        causes.push(ctx.cause.source ?? ctx.cause.type);
      },
    });
    await fixture.start(operator);
    const gadget = await fixture.create("a");
    await fixture.until(() => causes.length === 1);
    const source = watch<Gadget, UntypedObject>(Maps, {
      name: "maps",
    });
    await fixture.done(controller.addSource(source));
    assert.equal(
      await controller.addSource(watch(Maps, { name: "maps" })),
      source,
      "the one that is there",
    );
    const { uid = "" } = gadget.metadata;
    await fixture.client.create(ConfigMap, {
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
    await fixture.until(() => causes.length === 2);
    assert.deepEqual(causes, ["added", "maps"]);
    await fixture.done(controller.removeSource("maps"));
    await fixture.client.patch(ConfigMap, KEY, { data: { any: "thing" } });
    await fixture.advance(5_000);
    assert.equal(causes.length, 2);
  },
);

scenario(
  "An untyped secondary is created, changed and deleted [GenericKubernetesResourceHandlingIT]",
  async (fixture) => {
    const Maps = untyped({
      group: "",
      version: "v1",
      kind: "ConfigMap",
      plural: "configmaps",
      scope: "Namespaced",
    });
    const operator = fixture.operator();
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
    }, { sources: [watch(Maps)] });
    await fixture.start(operator);
    await fixture.create("a");
    const value = async () =>
      (await fixture.client.find(ConfigMap, KEY))?.data?.["value"];
    await fixture.until(async () => await value() === "first");
    await fixture.change("a", { value: "second" });
    await fixture.until(async () => await value() === "second");
    await fixture.change("a", { value: "none" });
    await fixture.until(async () =>
      await fixture.client.find(ConfigMap, KEY) === undefined
    );
  },
);

scenario(
  "Each primary is polled on its own, and a changed answer triggers a run [PerResourcePollingEventSourceIT]",
  async (fixture) => {
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
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        runs[gadget.metadata.name]?.push(
          (await ctx.secondary(polls))?.value ?? -1,
        );
      },
    }, { sources: [polls] });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.create("b");
    await fixture.until(() =>
      Object.values(runs).every((values) => values.length > 3)
    );
  },
);

scenario(
  "An object in two sources is listed once, in its newest state [LatestDistinctIT]",
  async (fixture) => {
    const lists: string[][] = [];
    const operator = fixture.operator();
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
        watch(ConfigMap, { name: "all" }),
        watch(ConfigMap, { name: "labelled", labelSelector: "app=x" }),
      ],
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => lists.length === 1);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => lists.length === 2);
    assert.deepEqual(lists, [["first"], ["second"]]);
  },
);

scenario(
  "Namespaces can be added, removed and opened to all at run time [ChangeNamespaceIT]",
  async (fixture) => {
    const seen: string[] = [];
    for (const name of ["one", "two", "three"]) {
      await fixture.client.create(Namespace, { metadata: { name } });
    }
    const make = (namespace: string, name: string) =>
      fixture.client.create(Gadget, {
        metadata: { namespace, name },
        spec: { value: "x" },
      });
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      reconcile(gadget) {
        seen.push(`${gadget.metadata.namespace}/${gadget.metadata.name}`);
      },
    }, { namespaces: ["one"], sources: [watch(ConfigMap)] });
    await fixture.start(operator);
    await make("one", "a");
    await make("two", "b");
    await fixture.until(() => seen.length === 1);
    await fixture.advance(1_000);
    assert.deepEqual(seen, ["one/a"]);

    await fixture.done(controller.changeNamespaces(["one", "two"]));
    await fixture.until(() => seen.length === 2);
    await fixture.advance(1_000);
    assert.deepEqual(
      seen,
      ["one/a", "two/b"],
      "what was watched runs no second time",
    );

    await fixture.done(controller.changeNamespaces(["two"]));
    assert.equal(controller.health().primaries, 1);
    assert.equal(
      controller.health().delayed,
      1,
      "nothing is left of the others [3.9.6]",
    );
    await fixture.client.patch(Gadget, { namespace: "one", name: "a" }, {
      spec: { value: "y" },
    });
    await fixture.advance(1_000);
    assert.equal(seen.length, 2);

    await fixture.done(controller.changeNamespaces("all"));
    await make("three", "c");
    await fixture.until(() =>
      seen.includes("three/c") &&
      seen.filter((key) => key === "one/a").length === 2
    );
    await assert.rejects(
      controller.changeNamespaces("current"),
      /they must be "all" or a list of names: received "current"/,
    );
  },
);

scenario(
  "Sources read other kinds from complete caches, or from the server",
  async (fixture) => {
    const read: (string | undefined)[] = [];
    const key = { namespace: "default", name: "a" };
    await fixture.client.create(Secret, {
      metadata: key,
      stringData: { password: "cached" },
    });
    await fixture.client.create(ConfigMap, {
      metadata: key,
      data: { host: "fetched" },
    });
    await fixture.create("a");
    const poll = perResourcePollingSource<Gadget, string>({
      name: "poll",
      interval: "1h",
      async fetch(_gadget, ctx) {
        const secret = await ctx.get(Secret);
        const { password = "" } = secret?.data ?? {};
        const [config] = await ctx.list(ConfigMap);
        read.push(atob(password), config?.data?.["host"]);
        assert.equal(ctx.signal.aborted, false);
        assert.ok(ctx.client && ctx.log);
        await assert.rejects(
          ctx.get(Secret, undefined as never),
          /^TypeError: Cannot read Secret: the name is missing: received undefined$/,
        );
        return [];
      },
    });
    const whole = pollingSource<Gadget, string>({
      name: "whole",
      interval: "1h",
      async fetch(ctx) {
        const gadgets = await ctx.list(Gadget);
        read.push(gadgets[0]?.metadata.name);
        read.push((await ctx.get(ConfigMap, "a", "default"))?.metadata.name);
        await assert.rejects(
          ctx.get(ConfigMap),
          /^TypeError: Cannot read ConfigMap: without a primary its name/,
        );
        return new Map();
      },
    });
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      sources: [whole, poll],
      watches: [watch(Secret, { mapper: byFunction(() => []) })],
    });
    const before = fixture.requests.length;
    await fixture.start(operator);
    await fixture.until(() => read.length === 4);
    assert.deepEqual(read.toSorted(), ["a", "a", "cached", "fetched"]);
    const reads = fixture.requests.slice(before).filter(({ verb, resource }) =>
      verb === "get" && resource === "secrets"
    );
    assert.deepEqual(reads, []);
  },
);
