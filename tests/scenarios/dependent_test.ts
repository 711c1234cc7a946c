import assert from "node:assert/strict";
import {
  ConfigMap,
  Deployment,
  Secret,
  Service,
  ServiceAccount,
  StatefulSet,
} from "../../core/kinds/mod.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { type Kind, untyped } from "../../core/api/kind.ts";
import { RoleBinding } from "../../core/kinds/rbac_v1.ts";
import { informerSource } from "../../sources/informer_source.ts";
import { byAnnotation } from "../../sources/mappers.ts";
import { kubernetesDependent } from "../../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";
import {
  findMap,
  mapValue,
  registerWorkflow,
  valueMap,
  writesBeside,
} from "../support/gadget_dependents.ts";
import {
  Gadget,
  type OperatorCase,
  scenario,
} from "../support/operator_case.ts";

/** What a person's kubectl would write: without a status, and so on. */
type Templates = NonNullable<StatefulSet["spec"]>["volumeClaimTemplates"];

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

scenario(
  "Fields of others survive, our own are restored, and nothing is written for nothing [DependentSSAMatchingIT]",
  async (one) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const { operator, counter } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a")) !== undefined);
    const mark = one.requests.length;
    const patch = (data: Record<string, string>) =>
      one.client.patch(ConfigMap, { namespace: "default", name: "a" }, {
        data,
      });
    await patch({ other: "kept" });
    await one.until(() => counter.runs >= 2);
    await one.settle();
    assert.deepEqual(writesBeside(one, mark), [
      "patch configmaps a",
    ], "no write but that of the other one");
    await patch({ value: "overwritten" });
    await one.until(async () => await mapValue(one, "a") === "first");
    assert.equal((await findMap(one, "a"))?.data?.["other"], "kept");
  },
);

scenario(
  "Dependents whose values the server defaults and spells otherwise are written once [StatefulSetDesiredSanitizerIT] [PrevAnnotationBlockReconcilerIT] [ServiceStrictMatcherIT] [SSAWithLegacyMatcherIT]",
  async (one) => {
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
    const { operator, counter } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () =>
      (await one.client.find(Secret, { namespace: "default", name: "a" })) !==
        undefined
    );
    await one.settle();
    const mark = one.requests.length;
    const { runs } = counter;
    for (let index = 0; index < 100; index++) {
      await one.change("a", { value: `run ${index}` });
      await one.until(() => counter.runs > runs + index);
    }
    assert.deepEqual(writesBeside(one, mark), []);
    const restarted = registerWorkflow(one, workflow);
    await one.done(operator.stop());
    await one.start(restarted.operator);
    await one.until(() => restarted.counter.runs > 0);
    assert.deepEqual(writesBeside(one, mark), [], "nor after a restart");
  },
);

scenario(
  "A field that somebody else changes back each time is named, and the writes slow down",
  async (one) => {
    const workflow = new Workflow<Gadget>()
      .add("map", kubernetesDependent(ConfigMap, { desired: valueMap("") }));
    const operator = one.operator();
    operator.register(Gadget, { reconcile() {} }, { workflow });
    await one.start(operator);
    await one.create("a");
    let fighting = true;
    const restore = async () => {
      const found = await findMap(one, "a");
      if (fighting && found?.data?.["value"] === "first") {
        await one.client.patch(
          ConfigMap,
          { namespace: "default", name: "a" },
          { data: { value: "fought" } },
        );
      }
    };
    const isNamed = ({ fields }: OperatorCase["log"][number]) =>
      String(fields["error"]).includes("changes back after each write");
    await one.until(async () => {
      await restore();
      return one.log.some(isNamed);
    }, 600_000);
    assert.match(
      String(one.log.find(isNamed)?.fields["error"]),
      /received \.data\.value after \d+ writes/,
    );
    fighting = false;
    await one.change("a", { value: "second" });
    await one.until(
      async () => await mapValue(one, "a") === "second",
      3_600_000,
    );
  },
);

scenario(
  "Ten dependents of which nothing changed cost no request",
  async (one) => {
    const workflow = Array.from({ length: 10 }, (_, index) => index).reduce(
      (flow, index) =>
        flow.add(
          `map-${index}`,
          kubernetesDependent(ConfigMap, { desired: valueMap(`-${index}`) }),
        ),
      new Workflow<Gadget>() as Workflow<Gadget, Record<string, unknown>>,
    );
    const { operator, controller, counter } = registerWorkflow(one, workflow);
    await one.start(operator);
    await one.create("a");
    await one.until(async () => (await findMap(one, "a-9")) !== undefined);
    await one.settle();
    const { runs } = counter;
    const mark = one.requests.length;
    controller.trigger("default/a");
    await one.until(() => counter.runs > runs);
    assert.deepEqual(one.requests.slice(mark).map(({ target }) => target), []);
  },
);

/** Kinds of which a value cannot change, and how a server says it. */
const FIXED = [
  [
    "cannot change roleRef",
    RoleBinding,
    (value: string) => ({
      roleRef: {
        apiGroup: "rbac.authorization.k8s.io",
        kind: "Role",
        name: value,
      },
    }),
  ],
  [
    "field is immutable when `immutable` is set",
    ConfigMap,
    (value: string) => ({ immutable: true, data: { value } }),
  ],
  [
    "updates to statefulset spec for fields other than",
    StatefulSet,
    (value: string) => ({
      spec: {
        serviceName: value,
        selector: { matchLabels: { app: "a" } },
        template: {
          metadata: { labels: { app: "a" } },
          spec: { containers: [{ name: "main", image: "a" }] },
        },
      },
    }),
  ],
  [
    "may not change once set",
    Service,
    (value: string) => ({
      spec: {
        clusterIP: value === "first" ? "10.0.0.21" : "10.0.0.22",
        ports: [{ name: "main", port: 80 }],
      },
    }),
  ],
] as const;

for (const recreate of [true, false]) {
  scenario(
    recreate
      ? "A dependent of which a field cannot change is made again where that is asked for"
      : "A dependent of which a field cannot change fails the run, and stays as it is",
    async (one) => {
      const workflow = FIXED.reduce<Workflow<Gadget>>(
        (all, [, kind, fields]) =>
          all.add(
            kind.kind,
            kubernetesDependent<Gadget, KubernetesObject>(kind as Kind, {
              desired: ({ metadata, spec }) => ({
                metadata: { name: metadata.name },
                ...fields(spec.value),
              }),
              recreate,
            }),
          ) as never,
        new Workflow<Gadget>(),
      );
      const failures: unknown[] = [];
      const operator = one.operator();
      operator.register(Gadget, {
        reconcile: () => {},
        onError: (_gadget, error) => {
          failures.push(error);
        },
      }, { workflow, retry: false });
      await one.start(operator);
      await one.create("a");
      const key = { namespace: "default", name: "a" };
      const uids = () =>
        Promise.all(
          FIXED.map(async ([, kind]) =>
            (await one.client.find(kind as Kind, key))?.metadata.uid
          ),
        );
      await one.until(async () => !(await uids()).includes(undefined));
      const before = await uids();
      await one.change("a", { value: "second" });
      if (recreate) {
        await one.until(async () =>
          (await uids()).every((uid, index) =>
            uid !== undefined && uid !== before[index]
          )
        );
        assert.deepEqual(failures, []);
        return;
      }
      await one.until(() => failures.length === 1);
      assert.deepEqual(await uids(), before);
      const { errors } = failures[0] as AggregateError;
      const told = errors.map(String).join("\n");
      for (const [words] of FIXED) assert.ok(told.includes(words), told);
    },
  );
}
