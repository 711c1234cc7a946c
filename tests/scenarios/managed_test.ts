import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  kubernetesDependent,
  type UntypedObject,
  Workflow,
} from "@coracle/operator";
import { crdManifest } from "@coracle/operator/crd";
import { ConfigMap, Namespace } from "@coracle/operator/kinds";
import { KEY } from "../support/gadget_runs.ts";
import {
  mapValue,
  registerWorkflow,
  valueMap,
} from "../support/gadget_dependents.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "A dependent serves a second operator after the first [DependentReInitializationIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    for (const round of ["first", "second"]) {
      const operator = fixture.operator();
      operator.register(Gadget, { reconcile() {} }, { workflow });
      await fixture.start(operator);
      if (round === "first") await fixture.create("a");
      else await fixture.change("a", { value: round });
      await fixture.until(async () =>
        await mapValue(fixture, KEY.name) === round
      );
      await fixture.done(operator.stop());
    }
  },
);

scenario(
  "A dependent with an explicit deletion enables finalizers without a cleanup [CleanerForManagedDependentResourcesOnlyIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add(
        "map",
        kubernetesDependent(ConfigMap, {
          desired: valueMap(""),
          relation: "annotations",
        }),
      );
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      await mapValue(fixture, KEY.name) === "first"
    );
    assert.equal((await fixture.gadget("a"))?.metadata.finalizers?.length, 1);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(await mapValue(fixture, KEY.name), undefined);
  },
);

scenario(
  "A filter on a dependent prevents runs by its changes [DependentFilterIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, {
        desired: valueMap(""),
        watch: {
          filters: { update: (map) => map.data?.["ignored"] === undefined },
        },
      }),
    );
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => counter.runs === 1);
    await fixture.client.patch(ConfigMap, KEY, { data: { ignored: "yes" } });
    await fixture.advance(5_000);
    assert.equal(counter.runs, 1);
    await fixture.client.patch(
      ConfigMap,
      KEY,
      { data: { ignored: null } } as never,
    );
    await fixture.until(() => counter.runs === 2);
  },
);

scenario(
  "Own creations and changes of a dependent cause no run [DependentOperationEventFilterIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => counter.runs === 1);
    await fixture.advance(5_000);
    assert.equal(counter.runs, 1);
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      await mapValue(fixture, KEY.name) === "second"
    );
    await fixture.advance(5_000);
    assert.equal(counter.runs, 2);
  },
);

test(
  "The test kit creates objects with all rights, the operator has its own only [InfrastructureClientIT]",
  { timeout: 60_000 },
  () =>
    withTestCluster({
      kinds: [Gadget],
      clock: new VirtualClock(),
      rights: [{
        apiGroups: ["sample.coracle.dev"],
        resources: ["gadgets", "gadgets/status"],
        verbs: ["get", "list", "watch", "patch"],
      }],
    }, async ({ client, operatorClient, namespace }) => {
      const name = `${namespace}-infrastructure`;
      const infrastructure = { metadata: { name } };
      await assert.rejects(
        operatorClient.create(Namespace, infrastructure),
        (error: { isForbidden?: boolean }) => error.isForbidden === true,
      );
      await client.create(Namespace, infrastructure);
      assert.ok(await client.find(Namespace, { name }));
      await operatorClient.list(Gadget);
      await client.delete(Namespace, { name });
    })(),
);

test(
  "The test kit installs definitions given as objects [CRDMappingInTestExtensionIT]",
  { timeout: 180_000 },
  withTestCluster({
    objects: [crdManifest(Gadget) as unknown as UntypedObject],
    clock: new VirtualClock(),
  }, async ({ client, namespace, until }) => {
    await until(() => client.list(Gadget).then(() => true, () => false));
    await client.create(Gadget, {
      metadata: { namespace, name: "a" },
      spec: { value: "first" },
    });
    assert.equal((await client.list(Gadget, { namespace })).items.length, 1);
  }),
);
