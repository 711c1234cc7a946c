import assert from "node:assert/strict";
import { kubernetesDependent, Workflow } from "@coracle/operator";
import {
  ConfigMap,
  Deployment,
  Secret,
  Service,
  StatefulSet,
} from "@coracle/operator/kinds";
import {
  findMap,
  mapValue,
  registerWorkflow,
  valueMap,
  writesBeside,
} from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Objects as kubectl sends them: without a status, for example. */
type Templates = NonNullable<StatefulSet["spec"]>["volumeClaimTemplates"];

scenario(
  "Foreign fields survive, own fields are restored, without needless writes [DependentSSAMatchingIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a")) !== undefined
    );
    const mark = fixture.requests.length;
    const patch = (data: Record<string, string>) =>
      fixture.client.patch(ConfigMap, { namespace: "default", name: "a" }, {
        data,
      });
    await patch({ other: "kept" });
    await fixture.until(() => counter.runs >= 2);
    await fixture.settle();
    assert.deepEqual(writesBeside(fixture, mark), [
      "patch configmaps a",
    ], "no write but that of the other one");
    await patch({ value: "overwritten" });
    await fixture.until(async () => await mapValue(fixture, "a") === "first");
    assert.equal((await findMap(fixture, "a"))?.data?.["other"], "kept");
  },
);

scenario(
  "Dependents with defaulted and normalized values are written once [StatefulSetDesiredSanitizerIT] [PrevAnnotationBlockReconcilerIT] [ServiceStrictMatcherIT] [SSAWithLegacyMatcherIT]",
  async (fixture) => {
    const labels = { app: "a" };
    const template = {
      metadata: { labels },
      spec: {
        containers: [{
          name: "web",
          image: "web:1",
          env: [
            { name: "EMPTY", value: "" },
            {
              name: "POD",
              valueFrom: { fieldRef: { fieldPath: "metadata.name" } },
            },
          ],
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: "1000m", memory: "1024Mi" } },
        }],
      },
    };
    const metadata = { name: "a" };
    const workflow = new Workflow<Gadget>()
      .add(
        "deployment",
        kubernetesDependent(Deployment, {
          desired: () => ({
            metadata,
            spec: { selector: { matchLabels: labels }, template },
          }),
        }),
      )
      .add(
        "set",
        kubernetesDependent(StatefulSet, {
          desired: () => ({
            metadata,
            spec: {
              serviceName: "a",
              selector: { matchLabels: labels },
              template,
              volumeClaimTemplates: [{
                metadata: { name: "data" },
                spec: {
                  accessModes: ["ReadWriteOnce"],
                  resources: { requests: { storage: "1024Mi" } },
                },
              }] as Templates,
            },
          }),
        }),
      )
      .add(
        "service",
        kubernetesDependent(Service, {
          desired: () => ({
            metadata,
            spec: { selector: labels, ports: [{ port: 80 }] },
          }),
        }),
      )
      .add(
        "secret",
        kubernetesDependent(Secret, {
          desired: () => ({ metadata, stringData: { password: "of a test" } }),
        }),
      );
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.client.find(Secret, {
        namespace: "default",
        name: "a",
      })) !==
        undefined
    );
    await fixture.settle();
    const mark = fixture.requests.length;
    const { runs } = counter;
    for (let index = 0; index < 100; index++) {
      await fixture.change("a", { value: `run ${index}` });
      await fixture.until(() => counter.runs > runs + index);
    }
    assert.deepEqual(writesBeside(fixture, mark), []);
    const restarted = registerWorkflow(fixture, workflow);
    await fixture.done(operator.stop());
    await fixture.start(restarted.operator);
    await fixture.until(() => restarted.counter.runs > 0);
    assert.deepEqual(writesBeside(fixture, mark), [], "nor after a restart");
  },
);

scenario(
  "A field that is changed back each time is named, and the writes slow down",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const operator = fixture.operator();
    operator.register(Gadget, { reconcile() {} }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    let fighting = true;
    const restore = async () => {
      const found = await findMap(fixture, "a");
      if (fighting && found?.data?.["value"] === "first") {
        await fixture.client.patch(
          ConfigMap,
          { namespace: "default", name: "a" },
          { data: { value: "fought" } },
        );
      }
    };
    const isNamed = ({ fields }: OperatorFixture["log"][number]) =>
      String(fields["error"]).includes("changes after each write");
    await fixture.until(async () => {
      await restore();
      return fixture.log.some(isNamed);
    }, 600_000);
    assert.match(
      String(fixture.log.find(isNamed)?.fields["error"]),
      /received \.data\.value after \d+ writes/,
    );
    fighting = false;
    await fixture.change("a", { value: "second" });
    await fixture.until(
      async () => await mapValue(fixture, "a") === "second",
      3_600_000,
    );
  },
);

scenario(
  "Ten unchanged dependents cost no request",
  async (fixture) => {
    const workflow = Array.from({ length: 10 }, (_, index) => index).reduce(
      (flow, index) =>
        flow.add(
          `map-${index}`,
          kubernetesDependent(ConfigMap, { desired: valueMap(`-${index}`) }),
        ),
      new Workflow<Gadget>() as Workflow<Gadget, Record<string, unknown>>,
    );
    const { operator, controller, counter } = registerWorkflow(
      fixture,
      workflow,
    );
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a-9")) !== undefined
    );
    await fixture.settle();
    const { runs } = counter;
    const mark = fixture.requests.length;
    controller.trigger("default/a");
    await fixture.until(() => counter.runs > runs);
    assert.deepEqual(
      fixture.requests.slice(mark).map(({ target }) => target),
      [],
    );
  },
);
