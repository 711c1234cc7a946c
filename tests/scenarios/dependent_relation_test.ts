import assert from "node:assert/strict";
import { untyped } from "../../core/api/kind.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { ConfigMap, Namespace, Secret } from "../../core/kinds/mod.ts";
import type { ControllerHandle } from "../../core/operator/controller_handle.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { byFunction } from "../../sources/mappers.ts";
import {
  kubernetesDependent,
  readOnlyDependent,
} from "../../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";
import { findMap, mapValue, valueMap } from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

const secret = (one: OperatorCase, name: string) =>
  one.client.find(Secret, { namespace: "default", name });

scenario(
  "Dependents of one kind may have an informer each [MultipleDependentSameTypeMultiInformerIT]",
  async (one) => {
    const part = (name: string) =>
      kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
        desired: valueMap(`-${name}`, { part: name }),
        watch: { labelSelector: `part=${name}` },
      });
    const workflow = new Workflow<Gadget>()
      .add("first", part("1"))
      .add("second", part("2"));
    const operator = one.operator();
    operator.register(Gadget, { reconcile() {} }, { workflow });
    await one.start(operator);
    const watches = one.requests.filter(({ verb, resource }) =>
      verb === "watch" && resource === "configmaps"
    );
    assert.equal(watches.length, 2);
    await one.create("a");
    await one.until(async () => await findMap(one, "a-2") !== undefined);
    await one.client.delete(ConfigMap, { namespace: "default", name: "a-1" });
    await one.until(async () => await findMap(one, "a-1") !== undefined);
    await one.change("a", { value: "changed" });
    for (const name of ["a-1", "a-2"]) {
      await one.until(async () => await mapValue(one, name) === "changed");
    }
    await one.remove("a");
    for (const name of ["a-1", "a-2"]) {
      await one.until(async () => await findMap(one, name) === undefined);
    }
  },
);

scenario(
  "Dependents that read each other's state work for many primaries, in making and in deleting [DependentResourceCrossRefIT]",
  async (one) => {
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
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await one.start(operator);
    const names = Array.from({ length: 20 }, (_, index) => `g${index}`);
    await Promise.all(names.map((name) => one.create(name)));
    for (const name of names) {
      await one.until(async () => {
        const copy = (await findMap(one, name))?.data?.["copy"];
        return copy !== undefined &&
          copy === (await secret(one, name))?.data?.["key"];
      });
    }
    await Promise.all(names.map((name) => one.remove(name)));
    for (const name of names) {
      await one.until(async () => await findMap(one, name) === undefined);
      await one.until(async () => await secret(one, name) === undefined);
    }
    assert.deepEqual(errors, []);
  },
);

scenario(
  "A ConfigMap that primaries refer to steers whether their Secrets exist [PrimaryToSecondaryDependentIT]",
  async (one) => {
    const switches = informerSource<Gadget, ConfigMap>(ConfigMap, {
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
    const operator = one.operator();
    operator.register(Gadget, { reconcile() {} }, { workflow });
    await one.start(operator);
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "switch" },
      data: { wanted: "yes" },
    });
    for (const name of ["a", "b"]) {
      await one.create(name, { value: "switch" });
    }
    for (const name of ["a", "b"]) {
      await one.until(async () => await secret(one, name) !== undefined);
    }
    const turn = (wanted: string) =>
      one.client.patch(ConfigMap, { namespace: "default", name: "switch" }, {
        data: { wanted },
      });
    await turn("no");
    for (const name of ["a", "b"]) {
      await one.until(async () => await secret(one, name) === undefined);
    }
    await turn("yes");
    for (const name of ["a", "b"]) {
      await one.until(async () => await secret(one, name) !== undefined);
    }
  },
);

scenario(
  "The mapper of a dependent finds primaries by their index [DependentPrimaryIndexerIT]",
  async (one) => {
    const seen: string[] = [];
    const shared = informerSource<Gadget, ConfigMap>(ConfigMap, {
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
    const operator = one.operator();
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
    await one.start(operator);
    await one.create("one", { value: "shared" });
    await one.create("two", { value: "shared" });
    await one.create("three", { value: "other" });
    await one.settle();
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "shared" },
      data: { value: "news" },
    });
    await one.until(() => seen.length === 2);
    await one.advance(1_000);
    assert.deepEqual(seen.toSorted(), [
      "default/one news",
      "default/two news",
    ]);
  },
);

scenario(
  "A dependent in no namespace is kept by an operator of one namespace",
  async (one) => {
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
    const operator = one.operator();
    operator.register(Gadget, { reconcile() {} }, {
      workflow,
      namespaces: ["default"],
    });
    const label = async () =>
      (await one.client.find(Namespace, { name: "of-a" }))?.metadata
        .labels?.["value"];
    await one.start(operator);
    await one.create("a");
    await one.until(async () => await label() === "first");
    await one.client.patch(Namespace, { name: "of-a" }, {
      metadata: { labels: { value: "foreign" } },
    });
    await one.until(async () => await label() === "first");
    await one.remove("a");
    await one.until(async () => await one.gadget("a") === undefined);
    await one.until(async () => await label() === undefined);
  },
);
