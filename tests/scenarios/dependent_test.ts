import assert from "node:assert/strict";
import { byAnnotation, untyped, watch } from "@coracle/operator";
import { ConfigMap, ServiceAccount } from "@coracle/operator/kinds";
import {
  bulkDependent,
  isGone,
  kubernetesDependent,
  Workflow,
} from "@coracle/operator/workflows";
import {
  findMap,
  mapValue,
  registerWorkflow,
  valueMap,
} from "../support/gadget_dependents.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

scenario(
  "Two dependents of one kind are distinguished by name [MultipleDependentResourceIT] [MultipleManagedDependentNoDiscriminatorIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("first", kubernetesDependent(ConfigMap, { desired: valueMap("-1") }))
      .add(
        "second",
        kubernetesDependent(ConfigMap, { desired: valueMap("-2") }),
      );
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a-2")) !== undefined
    );
    await fixture.change("a", { value: "changed" });
    for (const name of ["a-1", "a-2"]) {
      await fixture.until(async () =>
        await mapValue(fixture, name) === "changed"
      );
    }
    await fixture.remove("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a-1")) === undefined
    );
    await fixture.until(async () =>
      (await findMap(fixture, "a-2")) === undefined
    );
  },
);

scenario(
  "An object of others is neither changed nor deleted, and named in the error",
  async (fixture) => {
    const errors: unknown[] = [];
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }), {
        reconcileWhen: ({ primary }) => primary.spec.value !== "unwanted",
        deletedWhen: isGone,
      });
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "a" },
      data: { value: "of others" },
    });
    await fixture.create("a");
    await fixture.until(() => errors.length > 0);
    assert.match(
      String(errors[0]),
      /Cannot take over ConfigMap default\/a: it exists and does not belong to default\/a/,
    );
    await fixture.change("a", { value: "unwanted" });
    await fixture.settle();
    await fixture.remove("a");
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
    const found = await fixture.client.get(ConfigMap, {
      namespace: "default",
      name: "a",
    });
    assert.deepEqual(found.data, { value: "of others" });
    assert.equal(found.metadata.ownerReferences, undefined);
  },
);

scenario(
  "A dependent whose labels are edited comes back into its selection",
  async (fixture) => {
    const one = valueMap("-1", { role: "worker" });
    const workflow = new Workflow<Gadget>()
      .add(
        "one",
        kubernetesDependent(ConfigMap, {
          desired: valueMap("", { role: "leader" }),
          watch: { labelSelector: "role=leader" },
        }),
      )
      .add(
        "many",
        bulkDependent(ConfigMap, {
          desired: (gadget) => [one(gadget)],
          watch: { labelSelector: "role=worker" },
        }),
      );
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    for (const [name, role] of [["a", "leader"], ["a-1", "worker"]] as const) {
      await fixture.until(async () =>
        (await findMap(fixture, name)) !== undefined
      );
      await fixture.settle();
      await fixture.client.patch(ConfigMap, { namespace: "default", name }, {
        metadata: { labels: { role: "other" } },
      });
      await fixture.until(async () =>
        (await findMap(fixture, name))?.metadata.labels?.["role"] === role
      );
    }
    assert.deepEqual(
      fixture.log.filter(({ message }) => message.startsWith("Run failed")),
      [],
    );
  },
);

scenario(
  "An object of others outside of the selection is named in the error",
  async (fixture) => {
    const errors: unknown[] = [];
    const workflow = new Workflow<Gadget>()
      .add(
        "map",
        kubernetesDependent(ConfigMap, {
          desired: valueMap("", { role: "worker" }),
          watch: { labelSelector: "role=worker" },
        }),
      );
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.client.create(ConfigMap, {
      metadata: { namespace: "default", name: "a" },
    });
    await fixture.create("a");
    await fixture.until(() => errors.length > 0);
    assert.match(String(errors[0]), /Cannot take over ConfigMap default\/a/);
  },
);

scenario(
  "Nodes for one object fail, unless only one of them is wanted",
  async (fixture) => {
    const errors: unknown[] = [];
    const node = (value: string) =>
      kubernetesDependent<Gadget, ConfigMap>(ConfigMap, {
        desired: ({ metadata: { name } }) => ({
          metadata: { name },
          data: { value },
        }),
      });
    const wanted = (value: string) => ({
      reconcileWhen: ({ primary: { spec } }: { primary: Gadget }) =>
        spec.value === value || spec.value === "both",
    });
    const workflow = new Workflow<Gadget>()
      .add("first", node("first"), wanted("first"))
      .add("second", node("second"), wanted("second"));
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a", { value: "first" });
    for (const value of ["first", "second"]) {
      await fixture.change("a", { value });
      await fixture.until(async () => await mapValue(fixture, "a") === value);
      const before = await findMap(fixture, "a");
      await fixture.change("a", { numberOfExecutions: 1 });
      await fixture.settle();
      const { metadata } = (await findMap(fixture, "a"))!;
      assert.equal(metadata.uid, before!.metadata.uid, "it is not deleted");
    }
    assert.deepEqual(errors, []);
    await fixture.change("a", { value: "both" });
    await fixture.until(() => errors.length > 0);
    assert.match(
      String(errors[0]),
      /another dependent makes or deletes it in the same run/,
    );
  },
);

scenario(
  "An object that a bulk dependent deletes and a later node makes is an error",
  async (fixture) => {
    const errors: unknown[] = [];
    const workflow = new Workflow<Gadget>()
      .add(
        "many",
        bulkDependent<Gadget, ConfigMap>(ConfigMap, {
          desired: () => [],
          watch: { labelSelector: "role=worker" },
        }),
      )
      .add(
        "one",
        kubernetesDependent(ConfigMap, {
          desired: valueMap("", { role: "worker" }),
        }),
        { dependsOn: ["many"] },
      );
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
      (await findMap(fixture, "a")) !== undefined
    );
    assert.deepEqual(errors, []);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => errors.length > 0);
    assert.match(
      String(errors[0]),
      /Cannot reconcile v1 ConfigMap default\/a: another dependent makes or deletes it in the same run/,
    );
  },
);

scenario(
  "A bulk dependent refuses two desired objects of one name",
  async (fixture) => {
    const errors: unknown[] = [];
    const workflow = new Workflow<Gadget>().add(
      "maps",
      bulkDependent<Gadget, ConfigMap>(ConfigMap, {
        desired: (gadget) => [valueMap("")(gadget), valueMap("")(gadget)],
      }),
    );
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(error);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => errors.length > 0);
    assert.match(
      String(errors[0]),
      /a name of its own: received default\/a twice/,
    );
  },
);

scenario(
  "Two primaries do not fight for an object that annotations relate",
  async (fixture) => {
    const errors: unknown[] = [];
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, {
        relation: "annotations",
        desired: ({ spec }) => ({
          metadata: { name: "shared" },
          data: { value: spec.value },
        }),
      }),
    );
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile() {},
      onError({ metadata }, error) {
        errors.push(`${metadata.name}: ${error}`);
      },
    }, { workflow });
    await fixture.start(operator);
    await fixture.create("a", { value: "of a" });
    await fixture.until(async () =>
      await mapValue(fixture, "shared") === "of a"
    );
    await fixture.create("b", { value: "of b" });
    await fixture.until(() => errors.length > 0);
    assert.match(String(errors[0]), /b: .*does not belong to default\/b/);
    assert.equal(await mapValue(fixture, "shared"), "of a");
    await fixture.remove("b");
    await fixture.until(async () => (await fixture.gadget("b")) === undefined);
    assert.equal(await mapValue(fixture, "shared"), "of a");
  },
);

scenario(
  "Dependents of one kind may share a source [MultipleManagedDependentSameTypeIT]",
  async (fixture) => {
    const source = watch<Gadget, ConfigMap>(ConfigMap);
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
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a-2")) !== undefined
    );
    await fixture.client.delete(ConfigMap, {
      namespace: "default",
      name: "a-1",
    });
    await fixture.until(async () =>
      (await findMap(fixture, "a-1")) !== undefined
    );
  },
);

scenario(
  "A dependent in another namespace is mapped by annotations and deleted by cleanup [DependentDifferentNamespaceIT] [DependentAnnotationSecondaryMapperIT]",
  async (fixture) => {
    const namespace = untyped({
      group: "",
      version: "v1",
      kind: "Namespace",
      plural: "namespaces",
      scope: "Cluster",
    });
    await fixture.client.create(namespace, { metadata: { name: "far" } });
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
    const { operator, counter } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a", "far")) !== undefined
    );
    await fixture.settle();
    const { runs } = counter;
    await fixture.client.patch(ConfigMap, { namespace: "far", name: "a" }, {
      data: { value: "of somebody else" },
    });
    await fixture.until(() => counter.runs > runs);
    await fixture.until(async () =>
      await mapValue(fixture, "a", "far") === "first"
    );
    await fixture.remove("a");
    await fixture.until(async () => (await fixture.gadget("a")) === undefined);
    assert.equal(await findMap(fixture, "a", "far"), undefined);
  },
);

scenario(
  "The annotations that name the primary can be chosen [DependentCustomMappingAnnotationIT]",
  async (fixture) => {
    const mapper = byAnnotation<Gadget, ConfigMap>("example.com/gadget", {});
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(ConfigMap, {
        source: watch(ConfigMap, { mapper }),
        desired: (gadget) => {
          const { metadata, ...rest } = valueMap("")(gadget);
          const annotations = { "example.com/gadget": gadget.metadata.name };
          return { ...rest, metadata: { ...metadata, annotations } };
        },
      }),
    );
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a")) !== undefined
    );
    await fixture.client.delete(ConfigMap, { namespace: "default", name: "a" });
    await fixture.until(async () =>
      (await findMap(fixture, "a")) !== undefined
    );
  },
);

scenario(
  "An owned dependent is garbage collected without a finalizer [KubernetesDependentGarbageCollectionIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a")) !== undefined
    );
    const [owner] = (await findMap(fixture, "a"))!.metadata.ownerReferences!;
    assert.equal(owner?.kind, "Gadget");
    assert.equal((await fixture.gadget("a"))?.metadata.finalizers, undefined);
    await fixture.remove("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a")) === undefined
    );
  },
);

scenario(
  "An untyped dependent is created, changed and deleted [GenericKubernetesDependentManagedIT]",
  async (fixture) => {
    const kind = untyped({ group: "", version: "v1", kind: "ConfigMap" });
    const workflow = new Workflow<Gadget>().add(
      "map",
      kubernetesDependent(kind, {
        desired: (gadget) => valueMap("")(gadget) as never,
      }),
    );
    const { operator } = registerWorkflow(fixture, workflow);
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await findMap(fixture, "a")) !== undefined
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(async () => await mapValue(fixture, "a") === "second");
  },
);

scenario(
  "A kind without a spec is matched and updated [SpecialResourcesDependentIT]",
  async (fixture) => {
    const workflow = new Workflow<Gadget>().add(
      "account",
      kubernetesDependent(ServiceAccount, {
        desired: ({ metadata: { name }, spec }) => ({
          metadata: { name },
          automountServiceAccountToken: spec.value === "mount",
        }),
      }),
    );
    const { operator, counter } = registerWorkflow(fixture, workflow);
    const account = () =>
      fixture.client.find(ServiceAccount, { namespace: "default", name: "a" });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () => (await account()) !== undefined);
    await fixture.change("a", { value: "mount" });
    await fixture.until(async () =>
      (await account())?.automountServiceAccountToken === true
    );
    const { runs } = counter;
    await fixture.advance(60_000);
    assert.equal(counter.runs, runs);
  },
);

scenario(
  "An existing foreign object is taken over only on request [CreateOnlyIfNotExistingDependentWithSSAIT]",
  async (fixture) => {
    await fixture.client.create(ConfigMap, {
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
    const operator = fixture.operator();
    const errors: string[] = [];
    operator.register(Gadget, {
      reconcile() {},
      onError(_gadget, error) {
        errors.push(String(error));
      },
    }, { workflow: strict });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => errors.length > 0);
    assert.match(errors[0]!, /1 of 1 nodes failed.*map/);
    assert.equal(await mapValue(fixture, "a"), "foreign");
  },
);
