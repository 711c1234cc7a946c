import assert from "node:assert/strict";
import { z } from "zod";
import {
  byLabel,
  defineKind,
  kubernetesDependent,
  untyped,
  watch,
  Workflow,
} from "@coracle/operator";
import {
  ClusterRole,
  ConfigMap,
  Namespace,
  Secret,
} from "@coracle/operator/kinds";
import { isDefinedKind } from "../../core/crd/kind_definition.ts";
import { KEY, startGadgets } from "../support/gadget_runs.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

function warnings({ log }: OperatorFixture): string[] {
  return log.filter(({ level }) => level === "warn").map(({ message }) =>
    message
  );
}

function watches({ requests }: OperatorFixture, plural: string): number {
  return requests.filter(({ verb, resource }) =>
    verb === "watch" && resource === plural
  ).length;
}

scenario(
  "A changed or deleted owned object triggers its owner",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.apply(ConfigMap, { metadata: { name: "a" }, data: { a: "1" } });
    }, { owns: [ConfigMap] });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    await fixture.client.delete(ConfigMap, KEY);
    await fixture.until(async () =>
      await fixture.client.find(ConfigMap, KEY) !== undefined
    );
    await fixture.settle();
    await fixture.client.patch(ConfigMap, KEY, { data: { a: "2" } });
    await fixture.until(async () =>
      (await fixture.client.get(ConfigMap, KEY)).data?.["a"] === "1"
    );
    await fixture.advance(1_000);
    assert.equal(runs.length, 3);
    assert.deepEqual(warnings(fixture), []);
  },
);

scenario(
  "Owned objects are found by a reference of any version to the controller",
  async (fixture) => {
    const found: string[][] = [];
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      const owned = await ctx.secondaries(ConfigMap);
      found.push(owned.map(({ metadata }) => metadata.name).toSorted());
    }, { owns: [ConfigMap] });
    const { metadata: { uid = "" } } = await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    const make = (name: string, controller: boolean, apiVersion: string) =>
      fixture.client.create(ConfigMap, {
        metadata: {
          namespace: "default",
          name,
          ownerReferences: [
            { apiVersion, kind: "Gadget", name: "a", uid, controller },
          ],
        },
      });
    await make("not-controlled", false, "sample.coracle.dev/v1");
    await fixture.advance(1_000);
    assert.equal(runs.length, 1);
    await make("old", true, "sample.coracle.dev/v1alpha1");
    await make("new", true, "sample.coracle.dev/v1");
    await fixture.until(() => found.at(-1)?.length === 2);
    assert.deepEqual(found.at(-1), ["new", "old"]);
  },
);

scenario(
  "An object of another controller is refused by ctx.apply, which names that one",
  async (fixture) => {
    const { metadata: { uid = "" } } = await fixture.create("other");
    const owner = {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Gadget",
      name: "other",
      uid,
      controller: true,
    };
    for (const name of ["a", "b"]) {
      await fixture.client.create(ConfigMap, {
        metadata: { namespace: "default", name, ownerReferences: [owner] },
        data: { whose: "other" },
      });
    }
    const errors: string[] = [];
    // With the cache, and without one.
    for (const owns of [[ConfigMap], []]) {
      const name = `with-${owns.length}`;
      await startGadgets(fixture, async (gadget, ctx) => {
        if (gadget.metadata.name === "other") return;
        const object = { metadata: { name: "a" }, data: { whose: "gadget" } };
        await ctx.apply(ConfigMap, object).catch((error: Error) =>
          errors.push(error.message)
        );
        await ctx.apply(ConfigMap, {
          ...object,
          metadata: { name: "b" },
        }, { owned: false });
      }, { owns, name, retry: false });
    }
    await fixture.create("a");
    await fixture.until(() => errors.length === 2);
    for (const error of errors) {
      assert.match(
        error,
        /^Cannot own v1 ConfigMap default\/a: another controller owns it, .*: received owner sample.coracle.dev\/v1 Gadget "other"$/,
      );
    }
    const stored = await fixture.client.get(ConfigMap, KEY);
    assert.deepEqual(stored.data, { whose: "other" });
    await fixture.until(async () =>
      (await fixture.client.get(ConfigMap, { ...KEY, name: "b" })).data
        ?.["whose"] === "gadget"
    );
  },
);

scenario(
  "The owner reference to an earlier incarnation is replaced",
  async (fixture) => {
    const earlier = await fixture.client.create(ConfigMap, {
      metadata: {
        namespace: "default",
        name: "a",
        // The garbage collector may begin to delete it.
        finalizers: ["example.com/hold"],
        ownerReferences: [{
          apiVersion: "sample.coracle.dev/v1alpha1",
          kind: "Gadget",
          name: "a",
          uid: "earlier",
          controller: true,
        }],
      },
    });
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.apply(ConfigMap, { metadata: { name: "a" }, data: { a: "1" } });
    }, { owns: [ConfigMap], retry: false });
    const { metadata: { uid } } = await fixture.create("a");
    await fixture.until(() => runs.length > 0);
    await fixture.settle();
    const { metadata, data } = await fixture.client.get(ConfigMap, KEY);
    assert.equal(metadata.uid, earlier.metadata.uid);
    assert.deepEqual(metadata.ownerReferences?.map((owner) => owner.uid), [
      uid,
    ]);
    assert.deepEqual(data, { a: "1" });
    await fixture.advance(1_000);
    assert.equal(runs.length, 1);
    await fixture.client.patch(ConfigMap, KEY, {
      metadata: { finalizers: null },
    });
  },
);

scenario(
  "An object without a possible owner reference is owned by annotations",
  async (fixture) => {
    const role = { name: "coracle-owns-test" };
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.apply(ClusterRole, { metadata: role, rules: [] });
      const owned = await ctx.secondaries(ClusterRole);
      assert.deepEqual(owned.map(({ metadata }) => metadata.name), [role.name]);
    }, {
      owns: [ClusterRole],
      retry: false,
      cleanup: (_gadget, ctx) => ctx.delete(ClusterRole, role),
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    const { metadata } = await fixture.client.get(ClusterRole, role);
    assert.deepEqual(metadata.annotations, {
      "coracle.dev/primary-kind": "Gadget.sample.coracle.dev",
      "coracle.dev/primary-name": "a",
      "coracle.dev/primary-namespace": "default",
    });
    assert.equal(metadata.ownerReferences, undefined);
    await fixture.client.delete(ClusterRole, role);
    await fixture.until(async () =>
      await fixture.client.find(ClusterRole, role) !== undefined
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(() => runs.length === 3);
    const [warning, ...others] = warnings(fixture);
    assert.match(
      `${warning}`,
      /garbage collector will not delete .*"cleanup" must/,
    );
    assert.deepEqual(others, []);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
  },
);

scenario(
  "An object with annotations of another primary is refused, cached or not",
  async (fixture) => {
    const role = { name: "coracle-owns-test" };
    const errors: string[] = [];
    for (const owns of [[ClusterRole], []]) {
      await startGadgets(fixture, async (gadget, ctx) => {
        try {
          await ctx.apply(ClusterRole, { metadata: role, rules: [] });
        } catch (error) {
          errors.push(`${gadget.metadata.name} ${(error as Error).message}`);
        }
      }, { owns, name: `with-${owns.length}`, retry: false });
    }
    await fixture.create("a");
    await fixture.until(async () =>
      await fixture.client.find(ClusterRole, role) !== undefined
    );
    await fixture.settle();
    assert.deepEqual(errors, []);
    await fixture.create("b");
    await fixture.until(() => errors.length === 2);
    for (const error of errors) {
      assert.match(
        error,
        /^b .*received owner Gadget.sample.coracle.dev "default\/a"$/,
      );
    }
    await fixture.client.delete(ClusterRole, role);
  },
);

scenario(
  "owns narrows the cache, and an apply that it would not show fails",
  async (fixture) => {
    const errors: string[] = [];
    const cached: string[][] = [];
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      const apply = (name: string, labels: Record<string, string>) =>
        ctx.apply(Secret, { metadata: { name, labels } });
      await apply("shown", { app: "web" });
      await apply("hidden", { app: "db" }).catch((error: Error) =>
        errors.push(error.message)
      );
      await ctx.create(Secret, { metadata: { name: "hidden" } }).catch(
        (error: Error) => errors.push(error.message),
      );
      const list = await ctx.list(Secret);
      cached.push(list.map(({ metadata }) => metadata.name));
    }, {
      owns: [watch(Secret, { labelSelector: "app=web", metadataOnly: true })],
      retry: false,
    });
    await fixture.client.create(Secret, {
      metadata: { namespace: "default", name: "foreign" },
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    const why =
      'Secret default/hidden: the event source "v1 Secret" would not show it, since it watches the labels app=web';
    assert.deepEqual(errors, [
      `Cannot apply v1 ${why}`,
      `Cannot create v1 ${why}`,
    ]);
    assert.deepEqual(cached, [["shown"]]);
    await fixture.client.patch(Secret, { ...KEY, name: "shown" }, {
      metadata: { labels: { more: "yes" } },
    });
    await fixture.until(() => runs.length === 2);
  },
);

scenario(
  "ctx.apply of an object not owned does not mind who controls it",
  async (fixture) => {
    const other = await fixture.client.create(Secret, { metadata: KEY });
    await fixture.client.create(ConfigMap, {
      metadata: {
        ...KEY,
        name: "theirs",
        ownerReferences: [{
          apiVersion: "v1",
          kind: "Secret",
          name: KEY.name,
          uid: other.metadata.uid!,
          controller: true,
        }],
      },
    });
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.apply(ConfigMap, {
        metadata: { name: "theirs" },
        data: { seen: "yes" },
      }, { owned: false });
    }, { watches: [watch(ConfigMap, { mapper: byLabel("app") })] });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    const { data } = await fixture.client.get(ConfigMap, {
      ...KEY,
      name: "theirs",
    });
    assert.deepEqual(data, { seen: "yes" });
  },
);

scenario(
  "ctx.apply to an object of others, whose kind is only watched, sets no owner",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      for (
        const [name, options] of [["a", undefined], ["b", {
          owned: true,
        }]] as const
      ) {
        await ctx.apply(ConfigMap, {
          metadata: { name, labels: { seen: "yes" } },
        }, options);
      }
      await ctx.apply(Secret, { metadata: { name: "a" } });
    }, {
      owns: [Secret],
      watches: [
        watch(ConfigMap, { mapper: byLabel("app") }),
        watch(Secret, { mapper: byLabel("app") }),
      ],
    });
    for (const name of ["a", "b"]) {
      await fixture.client.create(ConfigMap, { metadata: { ...KEY, name } });
    }
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    const owners = async (
      kind: typeof ConfigMap | typeof Secret,
      name: string,
    ) =>
      (await fixture.client.get(kind, { ...KEY, name })).metadata
        .ownerReferences?.map(({ name }) => name);
    assert.deepEqual(await owners(ConfigMap, "a"), undefined);
    assert.deepEqual(await owners(ConfigMap, "b"), ["a"]);
    assert.deepEqual(await owners(Secret, "a"), ["a"]);
  },
);

scenario(
  "ctx.apply of a kind that nobody watches warns once, with the line to add",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.apply(ConfigMap, { metadata: { name: "a" } });
      await ctx.apply(Secret, { metadata: { name: "a" } }, { owned: false });
      await ctx.create(Namespace, { metadata: { generateName: "x-" } }, {
        owned: false,
      });
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => runs.length === 2);
    await fixture.settle();
    assert.deepEqual(warnings(fixture), [
      "Nothing watches v1 ConfigMap, which this controller applies, so that changes and deletions by others trigger no run: add owns: [ConfigMap] to the options of the controller",
    ]);
  },
  { embedded: "it leaves namespaces behind" },
);

scenario(
  "ctx.apply of the primary itself sets no owner and no warning",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      await ctx.apply(Gadget, {
        metadata: { name: gadget.metadata.name, labels: { seen: "yes" } },
      });
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    const gadget = await fixture.gadget("a");
    assert.equal(gadget?.metadata.labels?.["seen"], "yes");
    assert.equal(gadget?.metadata.ownerReferences, undefined);
    assert.deepEqual(warnings(fixture), []);
  },
);

scenario(
  "A kind that is owned and a dependent is watched once",
  async (fixture) => {
    for (
      const [name, owns] of [
        ["plain", [ConfigMap]],
        ["narrow", [watch<Gadget, ConfigMap>(ConfigMap, {
          labelSelector: "app=web",
        })]],
      ] as const
    ) {
      const before = watches(fixture, "configmaps");
      const dependent = kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
        desired: ({ metadata }) => ({
          metadata: {
            name: `${metadata.name}-${name}`,
            labels: { app: "web" },
          },
        }),
      });
      const key = { ...KEY, name: `a-${name}` };
      const { runs, operator } = await startGadgets(fixture, async (_, ctx) => {
        const [owned] = await ctx.secondaries(ConfigMap);
        assert.equal(owned?.metadata.name, key.name);
      }, {
        owns,
        workflow: new Workflow<Gadget>().add("map", dependent),
        name,
      });
      await fixture.create("a");
      await fixture.until(() => runs.length === 1);
      await fixture.settle();
      await fixture.client.delete(ConfigMap, key);
      await fixture.until(async () =>
        await fixture.client.find(ConfigMap, key) !== undefined
      );
      await fixture.settle();
      assert.deepEqual(warnings(fixture), []);
      assert.equal(watches(fixture, "configmaps") - before, 1, name);
      await fixture.done(operator.stop());
      await fixture.remove("a");
      await fixture.settle();
    }
  },
);

scenario(
  "A kind is owned, a dependent and watched by reference at the same time",
  async (fixture) => {
    const secret = kubernetesDependent<Gadget, Secret>(Secret, {
      desired: ({ metadata: { name } }) => ({ metadata: { name } }),
    });
    const { runs } = await startGadgets(fixture, () => {}, {
      workflow: new Workflow<Gadget>().add("secret", secret),
      owns: [Secret],
      watches: ["first", "second"].map((name) =>
        watch<Gadget, Secret>(Secret, {
          references: ({ metadata: { namespace } }) => [{ namespace, name }],
        })
      ),
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    for (const name of ["first", "second", "neither"]) {
      const metadata = { namespace: "default", name };
      await fixture.client.create(Secret, { metadata });
      await fixture.advance(1_000);
    }
    assert.equal(runs.length, 3);
    await fixture.client.delete(Secret, KEY);
    await fixture.until(async () =>
      await fixture.client.find(Secret, KEY) !== undefined
    );
  },
);

scenario(
  "A start names an owned or watched kind that the server does not serve",
  async (fixture) => {
    const Missing = untyped({
      group: "missing.example.com",
      version: "v1",
      kind: "Missing",
      plural: "missings",
      scope: "Namespaced",
    });
    for (
      const options of [
        { owns: [Missing] },
        { watches: [watch(Missing, { mapper: byLabel("app") })] },
        { sources: [watch(Missing)] },
      ]
    ) {
      const operator = fixture.operator();
      operator.register(Gadget, { reconcile() {} }, options);
      await assert.rejects(
        fixture.start(operator),
        /^Error: Cannot watch missing.example.com\/v1 Missing: the server does not serve it, so install its CustomResourceDefinition first$/,
      );
    }
  },
);

scenario(
  "install applies the definitions of owned and watched kinds",
  async (fixture) => {
    const kinds = ["Owned", "Watched"].map((kind) =>
      defineKind({
        group: "owns.coracle.dev",
        version: "v1",
        kind,
        spec: z.object({ size: z.number() }),
      })
    );
    const [Owned, Watched] = kinds as [typeof kinds[0], typeof kinds[0]];
    assert.ok(Owned && Watched && isDefinedKind(Owned));
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      owns: [Owned],
      watches: [watch(Watched, { mapper: byLabel("app") })],
      install: true,
    });
    const [controller] = operator.controllers;
    assert.deepEqual(controller?.secondaryKinds, [Owned]);
    assert.deepEqual(controller?.readOnlyKinds, [Watched]);
    await fixture.start(operator);
    for (const kind of kinds) {
      assert.ok(kind);
      assert.deepEqual((await fixture.client.list(kind)).items, []);
    }
  },
);
