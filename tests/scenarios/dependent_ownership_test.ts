import assert from "node:assert/strict";
import { kubernetesDependent, Workflow } from "@coracle/operator";
import { ConfigMap, HorizontalPodAutoscaler } from "@coracle/operator/kinds";
import { KEY } from "../support/gadget_runs.ts";
import {
  registerWorkflow,
  writesBeside,
} from "../support/gadget_dependents.ts";
import {
  type Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** The field managers of an object, and how they wrote it. */
async function managers(fixture: OperatorFixture): Promise<string[]> {
  const { metadata } = await fixture.client.get(ConfigMap, KEY);
  return (metadata.managedFields ?? [])
    .map(({ manager, operation }) => `${manager} ${operation}`).toSorted();
}

scenario(
  "An object moves from updates to apply and back without a loop [DependentSSAMigrationIT]",
  async (fixture) => {
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
    const { operator, counter } = registerWorkflow(fixture, workflow);
    const gadget = await fixture.create("a");
    const update = async (value: string) => {
      const found = await fixture.client.find(ConfigMap, KEY);
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
        await fixture.client.create(ConfigMap, object, options);
      } else await fixture.client.replace(ConfigMap, object, options);
    };
    await update("first");
    assert.deepEqual(await managers(fixture), ["gadget Update"]);

    await fixture.start(operator);
    await fixture.until(() => counter.runs > 0);
    assert.deepEqual(await managers(fixture), [
      "gadget Apply",
      "gadget Update",
    ]);
    const mark = fixture.requests.length;
    for (let index = 0; index < 5; index++) {
      const { runs } = counter;
      await fixture.mark("a", { labels: { round: `${index}` } });
      await fixture.change("a", { numberOfExecutions: index });
      await fixture.until(() => counter.runs > runs);
    }
    assert.deepEqual(writesBeside(fixture, mark), []);

    await fixture.done(operator.stop());
    await update("by update");
    const again = registerWorkflow(fixture, workflow);
    await fixture.start(again.operator);
    await fixture.until(async () =>
      (await fixture.client.get(ConfigMap, KEY)).data?.["value"] === "first"
    );
    await fixture.settle();
    assert.deepEqual(
      (await managers(fixture)).filter((text) => text.endsWith("Apply")),
      ["gadget Apply"],
      "there is one entry of ours, however often it changed hands",
    );
  },
);

scenario(
  "An object applied in another version is applied once more [DetectApiVersionChangeIT]",
  async (fixture) => {
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
      const { metadata } = await fixture.client.get(
        HorizontalPodAutoscaler,
        KEY,
      );
      return metadata.managedFields
        ?.filter(({ manager, operation }) =>
          manager === "gadget" && operation === "Apply"
        )
        .map(({ apiVersion }) => apiVersion);
    };
    const old = registerWorkflow(fixture, scaler("v1"));
    await fixture.start(old.operator);
    await fixture.create("a");
    await fixture.until(() => old.counter.runs > 0);
    assert.deepEqual(await entry(), ["autoscaling/v1"]);
    await fixture.done(old.operator.stop());

    const mark = fixture.requests.length;
    const next = registerWorkflow(fixture, scaler("v2"));
    await fixture.start(next.operator);
    await fixture.until(() => next.counter.runs > 0);
    await fixture.settle();
    const once = ["patch horizontalpodautoscalers a"];
    assert.deepEqual(writesBeside(fixture, mark), once);
    assert.deepEqual(await entry(), ["autoscaling/v2"]);
    for (let index = 0; index < 5; index++) {
      const { runs } = next.counter;
      next.controller.trigger("default/a");
      await fixture.until(() => next.counter.runs > runs);
    }
    assert.deepEqual(writesBeside(fixture, mark), once);
  },
);
