import assert from "node:assert/strict";
import { z } from "zod";
import { defineKind } from "../../core/crd/define_kind.ts";
import { ConfigMap, Secret } from "../../core/kinds/mod.ts";
import { CustomResourceDefinition } from "../../core/kinds/apiextensions_v1.ts";
import { bulkDependent } from "../../workflows/dependents/bulk_dependent.ts";
import { kubernetesDependent } from "../../workflows/dependents/kubernetes_dependent.ts";
import { crdPresent } from "../../workflows/graph/crd_presence.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";
import {
  findMap,
  mapValue,
  registerWorkflow,
} from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

const Route = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Route",
  spec: z.object({ host: z.string() }),
});

function valueMap(suffix: string, name = "value") {
  return kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
    desired: ({ metadata, spec }) => ({
      metadata: { name: `${metadata.name}${suffix}` },
      data: { [name]: spec.value },
    }),
  });
}

function route() {
  return kubernetesDependent<Gadget, NonNullable<typeof Route.objectType>>(
    Route,
    {
      desired: ({ metadata, spec }) => ({
        metadata: { name: metadata.name },
        spec: { host: `${spec.value}.example.com` },
      }),
    },
  );
}

/** Whether anything watches the kind at this moment. */
function watches(one: OperatorCase, resource: string): number {
  return one.requests.filter((event) =>
    event.resource === resource && event.verb === "watch"
  ).length;
}

scenario(
  "A dependent starts when the definition of its kind appears, and stops when it goes [CRDPresentActivationConditionIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>()
      .add("map", valueMap(""))
      .add("route", route(), { activeWhen: crdPresent(Route) })
      .add("above", valueMap("-above"), { dependsOn: ["route"] });
    const operator = one.operator();
    const states: string[] = [];
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        const result = workflow.resultOf(ctx);
        states.push(result.node("route").state);
        if (states.length === 1) {
          assert.deepEqual(await ctx.secondaries(Route), []);
        }
      },
    }, { workflow });
    await one.start(operator);
    await one.create("a");
    await one.until(async () => await findMap(one, "a") !== undefined);
    await one.advance(60_000);
    assert.deepEqual(states, ["inactive"]);
    assert.equal(one.requests.some((r) => r.resource === "routes"), false);

    await one.install(Route);
    const key = { namespace: "default", name: "a" };
    await one.until(async () =>
      await one.client.find(Route, key).catch(() => undefined) !== undefined
    );
    await one.until(async () => await findMap(one, "a-above") !== undefined);
    assert.equal(states.at(-1), "reconciled");
    await one.client.patch(Route, key, { spec: { host: "other" } });
    await one.until(async () =>
      (await one.client.get(Route, key)).spec.host === "first.example.com"
    );

    const mark = states.length;
    await one.client.delete(CustomResourceDefinition, {
      name: "routes.sample.coracle.dev",
    });
    await one.until(async () => await findMap(one, "a-above") === undefined);
    await one.until(() => states.length > mark);
    assert.equal(states.at(-1), "inactive");
    await one.settle();
    const requests = one.requests.length;
    await one.advance(300_000);
    const later = one.requests.slice(requests);
    assert.deepEqual(
      later.filter((r) => r.resource === "routes").map((r) => r.target),
      [],
      "nobody watches the kind any more",
    );
    assert.equal(operator.health().healthy, true);

    await one.install(Route);
    await one.until(async () =>
      await one.client.find(Route, key).catch(() => undefined) !== undefined
    );
  },
);

scenario(
  "Two dependents of one kind are active by a condition and go with the changes of it [MultipleDependentWithActivationIT]",
  async (one) => {
    const active = { first: true, second: false };
    const workflow = new Workflow<Gadget>()
      .add("first", valueMap("-1"), { activeWhen: () => active.first })
      .add("second", valueMap("-2"), { activeWhen: () => active.second });
    const { operator, controller } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => await findMap(one, "a-1") !== undefined);
    await one.settle();
    assert.equal(await findMap(one, "a-2"), undefined);
    active.second = true;
    controller.trigger("default/a");
    await one.until(async () => await findMap(one, "a-2") !== undefined);
    await one.change("a", { value: "changed" });
    for (const name of ["a-1", "a-2"]) {
      await one.until(async () => await mapValue(one, name) === "changed");
    }
    await one.remove("a");
    await one.until(async () => await findMap(one, "a-1") === undefined);
    await one.until(async () => await findMap(one, "a-2") === undefined);
  },
);

scenario(
  "A node becomes active and inactive again and again; while it is not, its kind causes no runs [WorkflowMultipleActivationIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>()
      .add("map", valueMap(""), {
        activeWhen: ({ primary }) => primary.spec.value !== "inactive",
      });
    const { operator, counter } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("b", { value: "inactive" });
    await one.until(() => counter.runs === 1);
    assert.equal(watches(one, "configmaps"), 0);
    await one.create("a");
    for (const round of [1, 2]) {
      await one.change("a", { value: `active ${round}` });
      await one.until(async () =>
        await mapValue(one, "a") === `active ${round}`
      );
      assert.equal(watches(one, "configmaps"), round);
      await one.settle();
      const { runs } = counter;
      await one.change("a", { value: "inactive" });
      await one.until(() => counter.runs === runs + 1);
      await one.client.patch(
        ConfigMap,
        { namespace: "default", name: "a" },
        { data: { other: `${round}` } },
      );
      await one.advance(5_000);
      assert.equal(counter.runs, runs + 1);
    }
    assert.equal(
      await mapValue(one, "a"),
      "active 2",
      "what is not active is left alone",
    );
    await Promise.all(
      ["c", "d", "e"].map((name) => one.create(name, { value: "on" })),
    );
    for (const name of ["c", "d", "e"]) {
      await one.until(async () => await findMap(one, name) !== undefined);
    }
    assert.equal(watches(one, "configmaps"), 3, "one watch for all");
  },
);

scenario(
  "What depends on an inactive node is deleted, whatever its own condition says, and nothing throws [PreconditionAndActivationIT]",
  async (one) => {
    let active = true;
    const workflow = new Workflow<Gadget>()
      .add("map", valueMap(""), {
        activeWhen: () => active,
        reconcileWhen: ({ primary }) => primary.spec.value !== "unwanted",
      })
      .add("above", valueMap("-above"), {
        dependsOn: ["map"],
        reconcileWhen: () => true,
      });
    const errors: unknown[] = [];
    const operator = one.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await one.start(operator);
    await one.create("a");
    await one.until(async () => await findMap(one, "a-above") !== undefined);
    active = false;
    await one.change("a", { value: "unwanted" });
    await one.until(async () => await findMap(one, "a-above") === undefined);
    assert.notEqual(await findMap(one, "a"), undefined);
    active = true;
    await one.change("a", { value: "unwanted still" });
    await one.until(async () => await findMap(one, "a-above") !== undefined);
    await one.change("a", { value: "unwanted" });
    await one.until(async () => await findMap(one, "a") === undefined);
    assert.deepEqual(errors, []);
  },
);

scenario(
  "What was marked for deletion before the start is cleaned up, though the source of its node is not started yet [WorkflowActivationCleanupIT] [BulkActivationConditionIT]",
  async (one) => {
    const make = () =>
      new Workflow<Gadget>()
        .add(
          "maps",
          bulkDependent<Gadget, ConfigMap>(ConfigMap, {
            relation: "annotations",
            desired: ({ metadata }) =>
              ["-1", "-2"].map((suffix) => ({
                metadata: { name: `${metadata.name}${suffix}` },
              })),
          }),
          { activeWhen: () => true },
        )
        .add(
          "secret",
          kubernetesDependent<Gadget, Secret>(Secret, {
            relation: "annotations",
            desired: ({ metadata }) => ({ metadata: { name: metadata.name } }),
          }),
          { activeWhen: () => true, dependsOn: ["maps"] },
        );
    const first = registerWorkflow(one, make());
    await one.start(first.operator);
    await one.create("a");
    const key = { namespace: "default", name: "a" };
    const secret = () => one.client.find(Secret, key);
    await one.until(async () => await secret() !== undefined);
    await one.done(first.operator.stop());
    await one.remove("a");
    const second = registerWorkflow(one, make());
    await one.start(second.operator);
    await one.until(async () => await one.gadget("a") === undefined);
    assert.equal(await secret(), undefined);
    for (const name of ["a-1", "a-2"]) {
      assert.equal(await findMap(one, name), undefined);
    }
  },
);
