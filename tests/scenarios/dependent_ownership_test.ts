import assert from "node:assert/strict";
import { ConfigMap, HorizontalPodAutoscaler } from "../../core/kinds/mod.ts";
import { kubernetesDependent } from "../../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";
import { KEY } from "../support/gadget_runs.ts";
import {
  registerWorkflow,
  writesBeside,
} from "../support/gadget_dependents.ts";
import {
  type Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

/** The field managers of an object, and how they wrote it. */
async function managers(one: OperatorCase): Promise<string[]> {
  const { metadata } = await one.client.get(ConfigMap, KEY);
  return (metadata.managedFields ?? [])
    .map(({ manager, operation }) => `${manager} ${operation}`).toSorted();
}

scenario(
  "An object that was kept by updates is adopted by apply, and back, without a loop [DependentSSAMigrationIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, {
        existing: "adopt",
        desired: ({ metadata: { name }, spec }) => ({
          metadata: { name },
          data: { value: spec.value },
        }),
      }),
    );
    const { operator, counter } = registerWorkflow(one, workflow);
    const gadget = await one.create("a");
    const update = async (value: string) => {
      const found = await one.client.find(ConfigMap, KEY);
      const object = {
        metadata: {
          ...KEY,
          ...found?.metadata,
          ownerReferences: [{
            apiVersion: "sample.coracle.dev/v1",
            kind: "Gadget",
            name: "a",
            uid: gadget.metadata.uid!,
          }],
        },
        data: { value },
      };
      const options = { fieldManager: "gadget" };
      if (found === undefined) {
        await one.client.create(ConfigMap, object, options);
      } else await one.client.replace(ConfigMap, object, options);
    };
    await update("first");
    assert.deepEqual(await managers(one), ["gadget Update"]);

    await one.start(operator);
    await one.until(() => counter.runs > 0);
    assert.deepEqual(await managers(one), ["gadget Apply", "gadget Update"]);
    const mark = one.requests.length;
    for (let index = 0; index < 5; index++) {
      const { runs } = counter;
      await one.mark("a", { labels: { round: `${index}` } });
      await one.change("a", { numberOfExecutions: index });
      await one.until(() => counter.runs > runs);
    }
    assert.deepEqual(writesBeside(one, mark), []);

    await one.done(operator.stop());
    await update("by update");
    const again = registerWorkflow(one, workflow);
    await one.start(again.operator);
    await one.until(async () =>
      (await one.client.get(ConfigMap, KEY)).data?.["value"] === "first"
    );
    await one.settle();
    assert.deepEqual(
      (await managers(one)).filter((text) => text.endsWith("Apply")),
      ["gadget Apply"],
      "there is one entry of ours, however often it changed hands",
    );
  },
);

scenario(
  "What was applied in another version of the kind is applied once more, and then stays [DetectApiVersionChangeIT]",
  async (one) => {
    const scaler = (version: "v1" | "v2") =>
      new Workflow<Gadget>().add(
        "scaler",
        kubernetesDependent(
          { ...HorizontalPodAutoscaler, version },
          {
            desired: ({ metadata: { name } }) => ({
              metadata: { name },
              spec: {
                maxReplicas: 3,
                minReplicas: 1,
                scaleTargetRef: {
                  apiVersion: "apps/v1",
                  kind: "Deployment",
                  name,
                },
              },
            }),
          },
        ),
      );
    const entry = async () => {
      const { metadata } = await one.client.get(HorizontalPodAutoscaler, KEY);
      return metadata.managedFields
        ?.filter(({ manager, operation }) =>
          manager === "gadget" && operation === "Apply"
        )
        .map(({ apiVersion }) => apiVersion);
    };
    const old = registerWorkflow(one, scaler("v1"));
    await one.start(old.operator);
    await one.create("a");
    await one.until(() => old.counter.runs > 0);
    assert.deepEqual(await entry(), ["autoscaling/v1"]);
    await one.done(old.operator.stop());

    const mark = one.requests.length;
    const next = registerWorkflow(one, scaler("v2"));
    await one.start(next.operator);
    await one.until(() => next.counter.runs > 0);
    await one.settle();
    const once = ["patch horizontalpodautoscalers a"];
    assert.deepEqual(writesBeside(one, mark), once);
    assert.deepEqual(await entry(), ["autoscaling/v2"]);
    for (let index = 0; index < 5; index++) {
      const { runs } = next.counter;
      next.controller.trigger("default/a");
      await one.until(() => next.counter.runs > runs);
    }
    assert.deepEqual(writesBeside(one, mark), once);
  },
);
