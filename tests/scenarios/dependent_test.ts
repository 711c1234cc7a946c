import assert from "node:assert/strict";
import { ConfigMap, ServiceAccount } from "../../core/kinds/mod.ts";
import { untyped } from "../../core/api/kind.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { byAnnotation } from "../../sources/mappers.ts";
import { kubernetesDependent } from "../../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";
import {
  findMap,
  mapValue,
  registerWorkflow,
  valueMap,
} from "../support/gadget_dependents.ts";
import { Gadget, scenario } from "../support/operator_case.ts";

scenario(
  "Two dependents of one kind are told apart by their names, made, changed and deleted [MultipleDependentResourceIT] [MultipleManagedDependentNoDiscriminatorIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>()
      .add("first", kubernetesDependent(ConfigMap, { desired: valueMap("-1") }))
      .add(
        "second",
        kubernetesDependent(ConfigMap, { desired: valueMap("-2") }),
      );
    const { operator } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a-2")) !== undefined);
    await one.change("a", { value: "changed" });
    for (const name of ["a-1", "a-2"]) {
      await one.until(async () => await mapValue(one, name) === "changed");
    }
    await one.remove("a");
    await one.until(async () => (await findMap(one, "a-1")) === undefined);
    await one.until(async () => (await findMap(one, "a-2")) === undefined);
  },
);

scenario(
  "Dependents of one kind may share a source [MultipleManagedDependentSameTypeIT]",
  async (one) => {
    const source = informerSource<Gadget, ConfigMap>(ConfigMap);
    const workflow = new Workflow<Gadget>()
      .add(
        "first",
        kubernetesDependent(ConfigMap, { source, desired: valueMap("-1") }),
      )
      .add(
        "second",
        kubernetesDependent(ConfigMap, { source, desired: valueMap("-2") }),
      );
    assert.equal(workflow.sources.length, 1);
    const { operator } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a-2")) !== undefined);
    await one.client.delete(ConfigMap, { namespace: "default", name: "a-1" });
    await one.until(async () => (await findMap(one, "a-1")) !== undefined);
  },
);

scenario(
  "A dependent in another namespace is mapped by annotations and deleted by cleanup [DependentDifferentNamespaceIT] [DependentAnnotationSecondaryMapperIT]",
  async (one) => {
    const namespace = untyped({
      group: "",
      version: "v1",
      kind: "Namespace",
      plural: "namespaces",
      scope: "Cluster",
    });
    await one.client.create(namespace, { metadata: { name: "far" } });
    const workflow = new Workflow<Gadget>().add(
      "far",
      kubernetesDependent(ConfigMap, {
        relation: "annotations",
        desired: (gadget) => {
          const { metadata, ...rest } = valueMap("")(gadget);
          return { ...rest, metadata: { ...metadata, namespace: "far" } };
        },
      }),
    );
    const { operator, counter } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a", "far")) !== undefined);
    await one.settle();
    const { runs } = counter;
    await one.client.patch(ConfigMap, { namespace: "far", name: "a" }, {
      data: { value: "of somebody else" },
    });
    await one.until(() => counter.runs > runs);
    await one.until(async () => await mapValue(one, "a", "far") === "first");
    await one.remove("a");
    await one.until(async () => (await one.gadget("a")) === undefined);
    assert.equal(await findMap(one, "a", "far"), undefined);
  },
);

scenario(
  "The annotations that lead to the primary can be one's own [DependentCustomMappingAnnotationIT]",
  async (one) => {
    const mapper = byAnnotation<Gadget, ConfigMap>("example.com/gadget", {});
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, {
        source: informerSource(ConfigMap, { mapper }),
        desired: (gadget) => {
          const { metadata, ...rest } = valueMap("")(gadget);
          const annotations = { "example.com/gadget": gadget.metadata.name };
          return { ...rest, metadata: { ...metadata, annotations } };
        },
      }),
    );
    const { operator } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a")) !== undefined);
    await one.client.delete(ConfigMap, { namespace: "default", name: "a" });
    await one.until(async () => (await findMap(one, "a")) !== undefined);
  },
);

scenario(
  "An owned dependent is collected with its primary, and needs no finalizer [KubernetesDependentGarbageCollectionIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const { operator } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a")) !== undefined);
    const [owner] = (await findMap(one, "a"))!.metadata.ownerReferences!;
    assert.equal(owner?.kind, "Gadget");
    assert.equal((await one.gadget("a"))?.metadata.finalizers, undefined);
    await one.remove("a");
    await one.until(async () => (await findMap(one, "a")) === undefined);
  },
);

scenario(
  "An untyped dependent is made, changed and deleted [GenericKubernetesDependentManagedIT]",
  async (one) => {
    const kind = untyped({ group: "", version: "v1", kind: "ConfigMap" });
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(kind, {
        desired: (gadget) => valueMap("")(gadget) as never,
      }),
    );
    const { operator } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a")) !== undefined);
    await one.change("a", { value: "second" });
    await one.until(async () => await mapValue(one, "a") === "second");
  },
);

scenario(
  "A kind without a spec is matched and changed rightly [SpecialResourcesDependentIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>().add(
      "account",
      kubernetesDependent(ServiceAccount, {
        desired: ({ metadata: { name }, spec }) => ({
          metadata: { name },
          automountServiceAccountToken: spec.value === "mount",
        }),
      }),
    );
    const { operator, counter } = registerWorkflow(one, workflow);
    const account = () =>
      one.client.find(ServiceAccount, { namespace: "default", name: "a" });
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await account()) !== undefined);
    await one.change("a", { value: "mount" });
    await one.until(async () =>
      (await account())?.automountServiceAccountToken === true
    );
    const { runs } = counter;
    await one.advance(60_000);
    assert.equal(counter.runs, runs);
  },
);

scenario(
  "An object that somebody else made is not taken over, unless that is asked for [CreateOnlyIfNotExistingDependentWithSSAIT]",
  async (one) => {
    await one.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "a" },
      data: { value: "foreign" },
    });
    const strict = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, {
        // Only what is ours is in the cache, so the other one is not seen.
        watch: { labelSelector: "ours=yes" },
        desired: valueMap(""),
      }),
    );
    const operator = one.operator();
    const errors: string[] = [];
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(String(error));
      },
    }, { workflow: strict });
    await one.start(operator);
    await one.create("a");
    await one.until(() => errors.length > 0);
    assert.match(errors[0]!, /1 of 1 nodes failed.*map/);
    assert.equal(await mapValue(one, "a"), "foreign");
  },
);
