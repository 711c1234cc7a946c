import assert from "node:assert/strict";
import {
  type ApplyObject,
  type Context,
  patchStatus,
} from "@coracle/operator/core";
import {
  ConfigMap,
  Deployment,
  Secret,
  Service,
  StatefulSet,
} from "@coracle/operator/kinds";
import {
  isCurrent,
  kubernetesDependent,
  Workflow,
} from "@coracle/operator/workflows";
import { KEY } from "../support/gadget_runs.ts";
import { registerWorkflow } from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

function configMap(
  options: Partial<
    Parameters<typeof kubernetesDependent<Gadget, ConfigMap>>[1]
  > = {},
) {
  return kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
    desired: ({ metadata: { name }, spec }) => ({
      metadata: { name },
      data: { value: spec.value },
    }),
    ...options,
  });
}

function secret() {
  return kubernetesDependent<Gadget, Secret>(Secret, {
    desired: ({ metadata: { name }, spec }) => ({
      metadata: { name },
      stringData: { value: spec.value },
    }),
  });
}

const labels = { app: "a" };
const template = {
  metadata: { labels },
  spec: { containers: [{ name: "web", image: "web:1" }] },
};

function deployment() {
  return kubernetesDependent<Gadget, Deployment>(Deployment, {
    desired: ({ metadata: { name } }) => ({
      metadata: { name },
      spec: { selector: { matchLabels: labels }, template },
    }),
  });
}

const exists = async (
  fixture: OperatorFixture,
  kind: typeof ConfigMap | typeof Secret,
) => (await fixture.client.find(kind as typeof ConfigMap, KEY)) !== undefined;

scenario(
  "A ConfigMap waits for a Deployment and a condition, and delays deletion [WorkflowAllFeatureIT]",
  async (fixture) => {
    let gone = false;
    const workflow = new Workflow<Gadget>()
      .add("deployment", deployment(), {
        readyWhen: ({ resource }) => resource?.status?.readyReplicas === 1,
      })
      .add("map", configMap({ relation: "annotations" }), {
        dependsOn: ["deployment"],
        reconcileWhen: ({ primary }) => primary.spec.value !== "no map",
        deletedWhen: () => gone,
      });
    const { operator, controller } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.client.find(Deployment, KEY)) !== undefined
    );
    await fixture.settle();
    assert.equal(await exists(fixture, ConfigMap), false);
    await fixture.client.status.patch(Deployment, KEY, {
      status: { replicas: 1, readyReplicas: 1 },
    });
    await fixture.until(() => exists(fixture, ConfigMap));
    await fixture.remove("a");
    await fixture.until(async () => !await exists(fixture, ConfigMap));
    await fixture.advance(10_000);
    assert.notEqual(
      await fixture.gadget("a"),
      undefined,
      "held by deletedWhen",
    );
    gone = true;
    controller.trigger("default/a");
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
  },
);

scenario(
  "StatefulSets and Services are created in the order of their dependencies [ComplexWorkflowIT] [OrderedManagedDependentIT]",
  async (fixture) => {
    const set = (suffix: string) =>
      kubernetesDependent<Gadget, StatefulSet>(StatefulSet, {
        desired: ({ metadata: { name } }) => ({
          metadata: { name: `${name}${suffix}` },
          spec: {
            serviceName: `${name}${suffix}`,
            selector: { matchLabels: labels },
            template,
          },
        }),
      });
    const service = (suffix: string) =>
      kubernetesDependent<Gadget, Service>(Service, {
        desired: ({ metadata: { name } }): ApplyObject<Service> => ({
          metadata: { name: `${name}${suffix}` },
          spec: { selector: labels, ports: [{ port: 80 }] },
        }),
      });
    const isReady = ({ resource }: { resource: StatefulSet | undefined }) =>
      resource?.status?.readyReplicas === 1;
    const workflow = new Workflow<Gadget>()
      .add("first", set("-1"), { readyWhen: isReady })
      .add("first-service", service("-1"), { dependsOn: ["first"] })
      .add("second", set("-2"), { dependsOn: ["first"], readyWhen: isReady })
      .add("second-service", service("-2"), { dependsOn: ["second"] });
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    const created = () =>
      fixture.requests
        .filter(({ resource, status, verb }) =>
          ["statefulsets", "services"].includes(resource) &&
          verb === "patch" && status === 201
        )
        .map(({ resource, name }) => `${resource} ${name}`);
    for (const name of ["a-1", "a-2"]) {
      await fixture.until(() => created().includes(`statefulsets ${name}`));
      await fixture.settle();
      await fixture.client.status.patch(
        StatefulSet,
        { namespace: "default", name },
        { status: { replicas: 1, readyReplicas: 1 } },
      );
      await fixture.until(() => created().includes(`services ${name}`));
    }
    const [first, ...later] = created();
    assert.equal(first, "statefulsets a-1");
    // Both wait for the first alone, and come up beside each other.
    assert.deepEqual(later.slice(0, 2).sort(), [
      "services a-1",
      "statefulsets a-2",
    ]);
    assert.deepEqual(later.slice(2), ["services a-2"]);
  },
);

scenario(
  "A primary stays until the finalizer of its ConfigMap is removed [ManagedDependentDeleteConditionIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("secret", secret())
      .add("map", configMap({ relation: "annotations" }), {
        dependsOn: ["secret"],
        deletedWhen: ({ resource }) => resource === undefined,
      });
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => exists(fixture, ConfigMap));
    await fixture.client.patch(ConfigMap, KEY, {
      metadata: { finalizers: ["example.com/hold"] },
    });
    await fixture.remove("a");
    await fixture.until(async () =>
      (await fixture.client.get(ConfigMap, KEY)).metadata.deletionTimestamp !==
        undefined
    );
    await fixture.settle();
    assert.equal(await exists(fixture, Secret), true);
    assert.notEqual(await fixture.gadget("a"), undefined);
    await fixture.client.patch(ConfigMap, KEY, {
      metadata: { finalizers: [] },
    });
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
    await fixture.until(async () => !await exists(fixture, Secret));
  },
);

scenario(
  "An inactive node is skipped and reads as undefined; the rest reconciles [WorkflowActivationConditionIT] [WorkflowInactiveDependentAccessIT] [OneDependentActivationConditionIT]",
  async (fixture) => {
    let active = false;
    const seen: (string | undefined)[] = [];
    const workflow = new Workflow<Gadget>()
      .add("map", configMap(), { activeWhen: () => active })
      .add("secret", secret());
    const operator = fixture.operator();
    const controller = operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        seen.push((await ctx.secondary(ConfigMap))?.metadata.name);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => exists(fixture, Secret));
    await fixture.settle();
    assert.equal(await exists(fixture, ConfigMap), false);
    active = true;
    controller.trigger("default/a");
    await fixture.until(() => exists(fixture, ConfigMap));
    active = false;
    controller.trigger("default/a");
    await fixture.settle();
    assert.equal(await exists(fixture, ConfigMap), true, "left alone");
    assert.equal(seen[0], undefined);
    assert.ok(seen.includes("a"));
  },
);

scenario(
  "A workflow runs only when called by the reconciler; cleanup is automatic [WorkflowExplicitInvocationIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>({ explicit: true })
      .add("map", configMap({ relation: "annotations" }));
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        if (gadget.spec.value === "go") await workflow.reconcile(gadget, ctx);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.settle();
    assert.equal(await exists(fixture, ConfigMap), false);
    await fixture.change("a", { value: "go" });
    await fixture.until(() => exists(fixture, ConfigMap));
    await fixture.remove("a");
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
    assert.equal(await exists(fixture, ConfigMap), false);
  },
);

scenario(
  "The cleanup of a reconciler can call the cleanup of the workflow [WorkflowExplicitCleanupIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>({ explicit: true })
      .add("map", configMap({ relation: "annotations" }));
    const seen: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      async reconcile(gadget, ctx) {
        assert.throws(
          () => workflow.resultOf(ctx),
          /was not executed in this run/,
        );
        const result = await workflow.reconcile(gadget, ctx);
        assert.equal(workflow.resultOf(ctx), result);
      },
      async cleanup(gadget, ctx) {
        seen.push(`${await exists(fixture, ConfigMap)}`);
        const { done } = await workflow.cleanup(gadget, ctx);
        seen.push(`${done} ${await exists(fixture, ConfigMap)}`);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => exists(fixture, ConfigMap));
    await fixture.remove("a");
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
    assert.deepEqual(seen, ["true", "true false"]);
  },
);

scenario(
  "Collected errors of nodes are in the result [WorkflowSilentExceptionHandlingIT]",
  async (fixture) => {
    let route: "closed" | "open" = "closed";
    const needsRoute = () =>
      route === "open"
        ? Promise.resolve({ operation: "none", resource: route } as const)
        : Promise.reject(new Error("no route"));
    const remote = {
      read: () => undefined,
      reconcile: needsRoute,
      delete: () => needsRoute().then(() => {}),
    };
    const seen: string[] = [];
    const workflow = new Workflow<Gadget>({ errors: "collect" })
      .add("remote", remote)
      .add("secret", secret());
    const operator = fixture.operator();
    const failing = () => operator.health().controllers[0]?.failing;
    const note = (step: string, ctx: Context<Gadget>) => {
      const { error } = workflow.resultOf(ctx).node("remote");
      seen.push(`${step}: ${error ?? "done"}`);
    };
    operator.register(Gadget, {
      reconcile(_gadget, ctx) {
        note("reconcile", ctx);
        return patchStatus({ value: String(route) });
      },
      cleanup: (_gadget, ctx) => note("cleanup", ctx),
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => exists(fixture, Secret));
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "closed"
    );
    // The route causes no event.
    await fixture.until(() => seen.length >= 2);
    route = "open";
    await fixture.until(() =>
      seen.includes("reconcile: done") && failing() === 0
    );
    route = "closed";
    await fixture.remove("a");
    await fixture.until(() => failing() === 1);
    assert.notEqual(
      await fixture.gadget("a"),
      undefined,
      "held by the failure",
    );
    route = "open";
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
    assert.equal(seen[0], "reconcile: Error: no route");
    assert.equal(seen.at(-1), "cleanup: done");
  },
);

scenario(
  "A node whose condition changes is deleted and created again",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", configMap(), {
        reconcileWhen: ({ primary }) => primary.spec.value !== "none",
      });
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => exists(fixture, ConfigMap));
    await fixture.change("a", { value: "none" });
    await fixture.until(async () => !await exists(fixture, ConfigMap));
    await fixture.change("a", { value: "some" });
    await fixture.until(() => exists(fixture, ConfigMap));
  },
);

scenario(
  "Readiness is event driven and in the status; onError sees the failed nodes",
  async (fixture) => {
    let external = false;
    let broken = false;
    const workflow = new Workflow<Gadget>()
      .add("deployment", deployment(), { readyWhen: isCurrent })
      .add("outside", { read: () => external }, {
        dependsOn: ["deployment"],
        // It causes no event.
        readyWhen: ({ resource }) => ({
          met: resource === true,
          message: "It is away",
          recheckAfter: "10s",
        }),
      })
      .add("last", {
        read: () => undefined,
        reconcile: () =>
          broken
            ? Promise.reject(new Error("out of paper"))
            : Promise.resolve({ operation: "none", resource: undefined }),
      }, { dependsOn: ["outside"] });
    const operator = fixture.operator();
    const messages = async () => (await fixture.gadget("a"))?.status?.messages;
    operator.register(Gadget, {
      reconcile(gadget, ctx) {
        const [ready] = workflow.resultOf(ctx)
          .rollUp({ metadata: gadget.metadata });
        assert.equal(
          Date.parse(ready?.lastTransitionTime ?? ""),
          Math.floor(ctx.clock.wallTime() / 1000) * 1000,
        );
        return patchStatus({
          messages: [`${ready?.status} ${ready?.message}`],
        });
      },
      onError(_gadget, _error, ctx) {
        return patchStatus({ messages: [workflow.resultOf(ctx).summary] });
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      /^False Waiting for deployment \(/.test((await messages())?.[0] ?? "")
    );
    await fixture.client.status.patch(Deployment, KEY, {
      status: {
        observedGeneration: 1,
        replicas: 1,
        updatedReplicas: 1,
        readyReplicas: 1,
        availableReplicas: 1,
        conditions: [
          { type: "Available", status: "True" },
          {
            type: "Progressing",
            status: "True",
            reason: "NewReplicaSetAvailable",
          },
        ],
      },
    });
    await fixture.until(async () =>
      (await messages())?.[0] === "False Waiting for outside (It is away)"
    );
    external = true;
    await fixture.advance(9_000);
    assert.equal(
      (await messages())?.[0],
      "False Waiting for outside (It is away)",
    );
    await fixture.advance(2_000);
    await fixture.until(async () =>
      (await messages())?.[0] === "True 3 of 3 are done"
    );
    broken = true;
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await messages())?.[0] ===
        "deployment reconciled, outside reconciled, last failed"
    );
  },
  { embedded: "its Deployment controller puts the status back" },
);

scenario(
  "The first failure of an object has the stack of its node in the log",
  async (fixture) => {
    function failsHere(): never {
      throw new Error("Not today");
    }
    const workflow = new Workflow<Gadget>()
      .add("map", configMap({ desired: failsHere }));
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    const failures = () =>
      fixture.log.filter(({ message }) => message.startsWith("Run failed"));
    await fixture.until(() => failures().length === 2);
    const [first, second] = failures();
    assert.equal(first?.level, "warn");
    assert.match(
      `${first?.fields["stack"]}`,
      /Not today\n.*failsHere.*workflow_test/,
    );
    assert.equal(second?.fields["stack"], undefined);
  },
);

scenario(
  "A node that was never wanted needs no desired state",
  async (fixture) => {
    let asked = 0;
    const workflow = new Workflow<Gadget>().add(
      "map",
      configMap({
        desired({ metadata, spec }) {
          asked++;
          if (spec.numberOfExecutions === undefined) throw new Error("No spec");
          return { metadata: { name: metadata.name } };
        },
      }),
      { reconcileWhen: ({ primary }) => !!primary.spec.numberOfExecutions },
    );
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => counter.runs === 1);
    assert.equal(asked, 0);
    const exists = async () =>
      await fixture.client.find(ConfigMap, KEY) !== undefined;
    await fixture.change("a", { numberOfExecutions: 1 });
    await fixture.until(exists);
    await fixture.change("a", { numberOfExecutions: 0 });
    await fixture.until(async () => !await exists());
    // Which of its objects it was, only a key says without the desired state.
    await fixture.change("a", { numberOfExecutions: 1 });
    await fixture.until(exists);
    await fixture.client.patch(Gadget, KEY, {
      spec: { numberOfExecutions: null },
    });
    await fixture.until(() =>
      fixture.log.some(({ fields }) =>
        `${fields["error"]}`.includes(
          'Cannot find the ConfigMap of a by its desired state, so give the dependent a "key": received No spec',
        )
      )
    );
  },
);
