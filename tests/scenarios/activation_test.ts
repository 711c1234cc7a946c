import assert from "node:assert/strict";
import { z } from "zod";
import {
  bulkDependent,
  crdPresent,
  defineKind,
  kubernetesDependent,
  type ObjectOf,
  Workflow,
} from "@coracle/operator";
import {
  ConfigMap,
  CustomResourceDefinition,
  Secret,
} from "@coracle/operator/kinds";
import {
  findMap,
  mapValue,
  registerWorkflow,
} from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

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
  return kubernetesDependent<Gadget, ObjectOf<typeof Route>>(
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
function watches(fixture: OperatorFixture, resource: string): number {
  return fixture.requests.filter((event) =>
    event.resource === resource && event.verb === "watch"
  ).length;
}

scenario(
  "A dependent starts and stops with the definition of its kind [CRDPresentActivationConditionIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", valueMap(""))
      .add("route", route(), { activeWhen: crdPresent(Route) })
      .add("above", valueMap("-above"), { dependsOn: ["route"] });
    const operator = fixture.operator();
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
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () => await findMap(fixture, "a") !== undefined);
    await fixture.advance(60_000);
    assert.deepEqual(states, ["inactive"]);
    assert.equal(fixture.requests.some((r) => r.resource === "routes"), false);

    await fixture.install(Route);
    const key = { namespace: "default", name: "a" };
    await fixture.until(async () =>
      await fixture.client.find(Route, key).catch(() => undefined) !== undefined
    );
    await fixture.until(async () =>
      await findMap(fixture, "a-above") !== undefined
    );
    assert.equal(states.at(-1), "reconciled");
    await fixture.client.patch(Route, key, { spec: { host: "other" } });
    await fixture.until(async () =>
      (await fixture.client.get(Route, key)).spec.host === "first.example.com"
    );

    const mark = states.length;
    await fixture.client.delete(CustomResourceDefinition, {
      name: "routes.sample.coracle.dev",
    });
    await fixture.until(async () =>
      await findMap(fixture, "a-above") === undefined
    );
    await fixture.until(() => states.length > mark);
    assert.equal(states.at(-1), "inactive");
    await fixture.settle();
    const requests = fixture.requests.length;
    await fixture.advance(300_000);
    const later = fixture.requests.slice(requests);
    assert.deepEqual(
      later.filter((r) => r.resource === "routes").map((r) => r.target),
      [],
      "nobody watches the kind any more",
    );
    assert.equal(operator.health().healthy, true);

    // A definition that is still being deleted would take the objects along.
    await fixture.until(async () =>
      await fixture.client.find(CustomResourceDefinition, {
        name: "routes.sample.coracle.dev",
      }) === undefined
    );
    await fixture.install(Route);
    await fixture.until(async () =>
      await fixture.client.find(Route, key).catch(() => undefined) !== undefined
    );
  },
);

scenario(
  "Two dependents of one kind follow the changes of their activation condition [MultipleDependentWithActivationIT]",
  async (fixture) => {
    const active = { first: true, second: false };
    const workflow = new Workflow<Gadget>()
      .add("first", valueMap("-1"), { activeWhen: () => active.first })
      .add("second", valueMap("-2"), { activeWhen: () => active.second });
    const { operator, controller } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      await findMap(fixture, "a-1") !== undefined
    );
    await fixture.settle();
    assert.equal(await findMap(fixture, "a-2"), undefined);
    active.second = true;
    controller.trigger("default/a");
    await fixture.until(async () =>
      await findMap(fixture, "a-2") !== undefined
    );
    await fixture.change("a", { value: "changed" });
    for (const name of ["a-1", "a-2"]) {
      await fixture.until(async () =>
        await mapValue(fixture, name) === "changed"
      );
    }
    await fixture.remove("a");
    await fixture.until(async () =>
      await findMap(fixture, "a-1") === undefined
    );
    await fixture.until(async () =>
      await findMap(fixture, "a-2") === undefined
    );
  },
);

scenario(
  "An inactive node causes no runs, through repeated activations [WorkflowMultipleActivationIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", valueMap(""), {
        activeWhen: ({ primary }) => primary.spec.value !== "inactive",
      });
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("b", { value: "inactive" });
    await fixture.until(() => counter.runs === 1);
    assert.equal(watches(fixture, "configmaps"), 0);
    await fixture.create("a");
    for (const round of [1, 2]) {
      await fixture.change("a", { value: `active ${round}` });
      await fixture.until(async () =>
        await mapValue(fixture, "a") === `active ${round}`
      );
      assert.equal(watches(fixture, "configmaps"), round);
      await fixture.settle();
      const { runs } = counter;
      await fixture.change("a", { value: "inactive" });
      await fixture.until(() => counter.runs === runs + 1);
      await fixture.client.patch(
        ConfigMap,
        { namespace: "default", name: "a" },
        { data: { other: `${round}` } },
      );
      await fixture.advance(5_000);
      assert.equal(counter.runs, runs + 1);
    }
    assert.equal(
      await mapValue(fixture, "a"),
      "active 2",
      "what is not active is left alone",
    );
    await Promise.all(
      ["c", "d", "e"].map((name) => fixture.create(name, { value: "on" })),
    );
    for (const name of ["c", "d", "e"]) {
      await fixture.until(async () =>
        await findMap(fixture, name) !== undefined
      );
    }
    assert.equal(watches(fixture, "configmaps"), 3, "one watch for all");
  },
);

scenario(
  "Dependents of an inactive node are deleted, whatever their conditions say [PreconditionAndActivationIT]",
  async (fixture) => {
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
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      await findMap(fixture, "a-above") !== undefined
    );
    active = false;
    await fixture.change("a", { value: "unwanted" });
    await fixture.until(async () =>
      await findMap(fixture, "a-above") === undefined
    );
    assert.notEqual(await findMap(fixture, "a"), undefined);
    active = true;
    await fixture.change("a", { value: "unwanted still" });
    await fixture.until(async () =>
      await findMap(fixture, "a-above") !== undefined
    );
    await fixture.change("a", { value: "unwanted" });
    await fixture.until(async () => await findMap(fixture, "a") === undefined);
    assert.deepEqual(errors, []);
  },
);

scenario(
  "An object marked before the start is cleaned up without the source of its node [WorkflowActivationCleanupIT] [BulkActivationConditionIT]",
  async (fixture) => {
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
    const first = registerWorkflow(fixture, make());
    await fixture.start(first.operator);
    await fixture.create("a");
    const key = { namespace: "default", name: "a" };
    const secret = () => fixture.client.find(Secret, key);
    await fixture.until(async () => await secret() !== undefined);
    await fixture.done(first.operator.stop());
    await fixture.remove("a");
    const second = registerWorkflow(fixture, make());
    await fixture.start(second.operator);
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(await secret(), undefined);
    for (const name of ["a-1", "a-2"]) {
      assert.equal(await findMap(fixture, name), undefined);
    }
  },
);
