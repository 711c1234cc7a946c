import assert from "node:assert/strict";
import {
  byFunction,
  type ControllerHandle,
  kubernetesDependent,
  readOnlyDependent,
  watch,
  Workflow,
} from "@coracle/operator";
import { keyText, untyped, type UntypedObject } from "@coracle/operator/client";
import { ConfigMap, Namespace, Secret } from "@coracle/operator/kinds";
import { keyOf } from "../../core/api/object_key.ts";
import { findMap, mapValue, valueMap } from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

const secret = (fixture: OperatorFixture, name: string) =>
  fixture.client.find(Secret, { namespace: "default", name });

scenario(
  "Dependents of one kind may have an informer each [MultipleDependentSameTypeMultiInformerIT]",
  async (fixture) => {
    const part = (name: string) =>
      kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
        desired: valueMap(`-${name}`, { part: name }),
        watch: { labelSelector: `part=${name}` },
      });
    const workflow = new Workflow<Gadget>()
      .add("first", part("1"))
      .add("second", part("2"));
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, { workflow });
    await fixture.start(operator);
    const watches = fixture.requests.filter(({ verb, resource }) =>
      verb === "watch" && resource === "configmaps"
    );
    assert.equal(watches.length, 2);
    await fixture.create("a");
    await fixture.until(async () =>
      await findMap(fixture, "a-2") !== undefined
    );
    await fixture.client.delete(ConfigMap, {
      namespace: "default",
      name: "a-1",
    });
    await fixture.until(async () =>
      await findMap(fixture, "a-1") !== undefined
    );
    await fixture.change("a", { value: "changed" });
    for (const name of ["a-1", "a-2"]) {
      await fixture.until(async () =>
        await mapValue(fixture, name) === "changed"
      );
    }
    await fixture.remove("a");
    for (const name of ["a-1", "a-2"]) {
      await fixture.until(async () =>
        await findMap(fixture, name) === undefined
      );
    }
  },
);

scenario(
  "Dependents that read each other's state work for many primaries [DependentResourceCrossRefIT]",
  async (fixture) => {
    const errors: unknown[] = [];
    const workflow = new Workflow<Gadget>()
      .add(
        "secret",
        kubernetesDependent<Gadget, Secret>(Secret, {
          desired: ({ metadata, spec }) => ({
            metadata: { name: metadata.name },
            stringData: { key: `${metadata.name} ${spec.value}` },
          }),
        }),
      )
      .add(
        "map",
        kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
          desired: async ({ metadata: { name } }, ctx) => ({
            metadata: { name },
            data: { copy: (await ctx.secondary(Secret))!.data!["key"]! },
          }),
        }),
        { dependsOn: ["secret"] },
      );
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await fixture.start(operator);
    const names = Array.from({ length: 20 }, (_, index) => `g${index}`);
    await Promise.all(names.map((name) => fixture.create(name)));
    for (const name of names) {
      await fixture.until(async () => {
        const copy = (await findMap(fixture, name))?.data?.["copy"];
        return copy !== undefined &&
          copy === (await secret(fixture, name))?.data?.["key"];
      });
    }
    await Promise.all(names.map((name) => fixture.remove(name)));
    for (const name of names) {
      await fixture.until(async () =>
        await findMap(fixture, name) === undefined
      );
      await fixture.until(async () =>
        await secret(fixture, name) === undefined
      );
    }
    assert.deepEqual(errors, []);
  },
);

scenario(
  "A referenced ConfigMap decides whether Secrets exist [PrimaryToSecondaryDependentIT]",
  async (fixture) => {
    const switches = watch<Gadget, ConfigMap>(ConfigMap, {
      references: ({ spec }) => [`default/${spec.value}`],
    });
    const workflow = new Workflow<Gadget>()
      .add("switch", readOnlyDependent(ConfigMap, { source: switches }))
      .add(
        "secret",
        kubernetesDependent<Gadget, Secret>(Secret, {
          desired: ({ metadata: { name } }) => ({ metadata: { name } }),
        }),
        {
          dependsOn: ["switch"],
          reconcileWhen: async ({ ctx }) =>
            (await ctx.secondary(switches))?.data?.["wanted"] === "yes",
        },
      );
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, { workflow });
    await fixture.start(operator);
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "switch" },
      data: { wanted: "yes" },
    });
    for (const name of ["a", "b"]) {
      await fixture.create(name, { value: "switch" });
    }
    for (const name of ["a", "b"]) {
      await fixture.until(async () =>
        await secret(fixture, name) !== undefined
      );
    }
    const turn = (wanted: string) =>
      fixture.client.patch(
        ConfigMap,
        { namespace: "default", name: "switch" },
        {
          data: { wanted },
        },
      );
    await turn("no");
    for (const name of ["a", "b"]) {
      await fixture.until(async () =>
        await secret(fixture, name) === undefined
      );
    }
    await turn("yes");
    for (const name of ["a", "b"]) {
      await fixture.until(async () =>
        await secret(fixture, name) !== undefined
      );
    }
  },
);

scenario(
  "The mapper of a dependent finds primaries by an index [DependentPrimaryIndexerIT]",
  async (fixture) => {
    const seen: string[] = [];
    const shared = watch<Gadget, ConfigMap>(ConfigMap, {
      mapper: byFunction(({ metadata }) =>
        controller.primaries.byIndex("value", metadata.name).map(keyOf)
      ),
    });
    const workflow = new Workflow<Gadget>().add(
      "shared",
      readOnlyDependent(ConfigMap, {
        source: shared,
        key: ({ spec }) => ({ namespace: "default", name: spec.value }),
      }),
    );
    const operator = fixture.operator();
    const controller: ControllerHandle<Gadget> = operator.register(Gadget, {
      reconcile(gadget, ctx) {
        const data = workflow.resultOf(ctx).resource("shared")?.data;
        if (ctx.cause.type === "source") {
          seen.push(`${keyText(keyOf(gadget))} ${data?.["value"]}`);
        }
      },
    }, {
      workflow,
      indexes: { value: { byFunction: ({ spec }) => [spec.value] } },
    });
    await fixture.start(operator);
    await fixture.create("one", { value: "shared" });
    await fixture.create("two", { value: "shared" });
    await fixture.create("three", { value: "other" });
    await fixture.settle();
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
      data: { value: "news" },
    });
    await fixture.until(() => seen.length === 2);
    await fixture.advance(1_000);
    assert.deepEqual(seen.toSorted(), [
      "default/one news",
      "default/two news",
    ]);
  },
);

scenario(
  "A read-only dependent with a key is seen when others create the object",
  async (fixture) => {
    const workflow = new Workflow<Gadget>().add(
      "certificate",
      readOnlyDependent<Gadget, Secret>(Secret, {
        key: ({ metadata: { namespace, name } }) => ({
          namespace,
          name: `${name}-tls`,
        }),
      }),
      { readyWhen: ({ resource }) => resource?.data?.["tls.crt"] === "b25l" },
    );
    const states: (string | undefined)[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        states.push(workflow.resultOf(ctx).node("certificate").state);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => states.at(-1) === "notReady");
    const write = (name: string, value: string) =>
      fixture.client.apply(Secret, {
        metadata: { namespace: "default", name },
        data: { "tls.crt": value },
      });
    await write("other-tls", "b25l");
    await write("a-tls", "b25l");
    await fixture.until(() => states.at(-1) === "reconciled");
    await write("a-tls", "dHdv");
    await fixture.until(() => states.at(-1) === "notReady");
  },
);

scenario(
  "An operator of one namespace manages a cluster-scoped dependent",
  async (fixture) => {
    const kind = untyped({ group: "", version: "v1", kind: "Namespace" });
    const workflow = new Workflow<Gadget>().add(
      "namespace",
      kubernetesDependent<Gadget, UntypedObject>(kind, {
        relation: "annotations",
        desired: ({ metadata: { name }, spec }) => ({
          metadata: { name: `of-${name}`, labels: { value: spec.value } },
        }),
      }),
    );
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, {
      workflow,
      namespaces: ["default"],
    });
    const label = async () =>
      (await fixture.client.find(Namespace, { name: "of-a" }))?.metadata
        .labels?.["value"];
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () => await label() === "first");
    await fixture.client.patch(Namespace, { name: "of-a" }, {
      metadata: { labels: { value: "foreign" } },
    });
    await fixture.until(async () => await label() === "first");
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    await fixture.until(async () => await label() === undefined);
  },
);
