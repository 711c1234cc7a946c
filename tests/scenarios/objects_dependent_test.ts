import assert from "node:assert/strict";
import { operatorAccess } from "../../dev/testing/operator_access.ts";
import { policyRules } from "../../dev/testing/rbac.ts";
import { limitedClient } from "../support/limited_client.ts";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";
import { z } from "zod";
import { untyped, type UntypedObject } from "@coracle/operator/client";
import { crdManifest, defineKind } from "@coracle/operator/crd";
import {
  ClusterRole,
  ConfigMap,
  CustomResourceDefinition,
  Deployment,
  HorizontalPodAutoscaler,
  Namespace,
  Secret,
  ServiceAccount,
} from "@coracle/operator/kinds";
import {
  fromYaml,
  objectsDependent,
  type ObjectsDependentOptions,
  Workflow,
} from "@coracle/operator/workflows";

const here = (name: string) => ({ namespace: "default", name });

const map = (name: string, value = "one"): UntypedObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  data: { value },
});

const account = (name: string): UntypedObject => ({
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name },
});

/** Starts an operator whose gadgets each have the set of their value. */
async function startSets(
  fixture: OperatorFixture,
  sets: Readonly<
    Record<string, readonly UntypedObject[] | (() => Promise<UntypedObject[]>)>
  >,
  options: Partial<ObjectsDependentOptions<Gadget>> = {},
  client = fixture.client,
) {
  const results: {
    readonly done: boolean;
    readonly message: string;
    readonly resource: ReadonlyMap<string, UntypedObject> | undefined;
  }[] = [];
  const errors: string[] = [];
  const workflow = new Workflow<Gadget>().add(
    "set",
    objectsDependent({
      objects: async ({ spec: { value } }) => {
        const set = sets[value] ?? [];
        return typeof set === "function" ? await set() : set;
      },
      ...options,
    }),
  );
  const operator = fixture.operator({ client });
  operator.register(Gadget, {
    reconcile(_gadget, ctx) {
      const result = workflow.resultOf(ctx);
      const { message = "" } = result.toCondition();
      const { resource } = result.node("set");
      results.push({ done: result.done, message, resource });
    },
    onError(_gadget, error) {
      errors.push(String(error));
    },
  }, { workflow });
  await fixture.start(operator);
  return {
    operator,
    errors,
    get last() {
      return results.at(-1);
    },
  };
}

scenario(
  "A set is installed, mended, pruned and uninstalled",
  async (fixture) => {
    const role: UntypedObject = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "objects-set-test" },
      rules: [],
    };
    const sets = await startSets(fixture, {
      first: [map("one"), account("one"), role],
      second: [map("one", "two"), map("two")],
    });
    const { client } = fixture;
    await fixture.create("a");
    await fixture.until(() => sets.last?.done === true);
    assert.deepEqual([...sets.last?.resource?.keys() ?? []], [
      "ConfigMap/default/one",
      "ServiceAccount/default/one",
      "ClusterRole.rbac.authorization.k8s.io/objects-set-test",
    ]);
    const { metadata } = await client.get(ConfigMap, here("one"));
    assert.equal(metadata.ownerReferences?.[0]?.name, "a");
    assert.equal(metadata.labels?.["coracle.dev/set"], "objects");

    // What matches costs no request.
    await fixture.settle();
    const before = fixture.requests.length;
    await fixture.mark("a", { labels: { touched: "yes" } });
    await fixture.change("a", { numberOfExecutions: 1 });
    await fixture.settle();
    const sent = fixture.requests.slice(before).filter(({ resource, verb }) =>
      resource !== "gadgets" && verb !== "watch"
    );
    assert.deepEqual(
      sent.map(({ verb, resource }) => `${verb} ${resource}`),
      [],
    );

    // Drift of each kind: a changed value, a lost label, a deleted object.
    await client.patch(ConfigMap, here("one"), { data: { value: "other" } });
    await client.patch(ServiceAccount, here("one"), {
      metadata: { labels: { "coracle.dev/set": null } },
    });
    await client.delete(ClusterRole, { name: "objects-set-test" });
    await fixture.until(async () => {
      const one = await client.find(ConfigMap, here("one"));
      const two = await client.find(ServiceAccount, here("one"));
      const { name } = role.metadata;
      return one?.data?.["value"] === "one" &&
        two?.metadata.labels?.["coracle.dev/set"] === "objects" &&
        await client.find(ClusterRole, { name }) !== undefined;
    });

    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      await client.find(ServiceAccount, here("one")) === undefined &&
      await client.find(ClusterRole, { name: role.metadata.name }) ===
        undefined
    );
    assert.equal(
      (await client.get(ConfigMap, here("one"))).data?.["value"],
      "two",
    );
    // Kinds without an object are no longer watched, nor remembered.
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.annotations
        ?.["coracle.dev/kinds-of-objects"] === "v1/ConfigMap"
    );
    await fixture.settle();
    const [health] = sets.operator.health().controllers;
    assert.deepEqual(
      [...health?.sources.keys() ?? []],
      ["set objects", "v1 ConfigMap of set objects"],
    );

    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    for (const name of ["one", "two"]) {
      assert.equal(await client.find(ConfigMap, here(name)), undefined);
    }
  },
);

const Sample = defineKind({
  group: "sets.coracle.dev",
  version: "v1",
  kind: "SetSample",
  spec: z.object({ size: z.int() }),
});

scenario(
  "A set has a definition with its objects, and a namespace with content",
  async (fixture) => {
    const { client } = fixture;
    const sample = {
      apiVersion: "sets.coracle.dev/v1",
      kind: "SetSample",
      metadata: { name: "one", namespace: "set-content" },
      spec: { size: 1 },
    };
    const sets = await startSets(fixture, {
      first: [
        sample,
        {
          ...map("inside"),
          metadata: { name: "inside", namespace: "set-content" },
        },
        {
          apiVersion: "v1",
          kind: "Namespace",
          metadata: { name: "set-content" },
        },
        {
          ...crdManifest(Sample) as unknown as UntypedObject,
          status: { acceptedNames: {} },
        },
      ],
    });
    await fixture.create("a");
    await fixture.until(() => sets.last?.done === true);
    const key = { namespace: "set-content", name: "one" };
    const stored = await client.get(Sample, key);
    assert.equal(stored.metadata.ownerReferences, undefined);
    assert.equal(
      stored.metadata.annotations?.["coracle.dev/primary-kind"],
      "Gadget.sample.coracle.dev",
    );
    // The uninstallation keeps their order, after a restart as well.
    await client.patch(Sample, key, {
      metadata: { finalizers: ["test.coracle.dev/kept"] },
    });
    await fixture.done(sets.operator.stop());
    await startSets(fixture, {});
    await fixture.remove("a");
    await fixture.until(async () =>
      (await client.get(Sample, key)).metadata.deletionTimestamp !== undefined
    );
    await fixture.settle();
    const definition = untyped({
      group: "apiextensions.k8s.io",
      version: "v1",
      kind: "CustomResourceDefinition",
    });
    const crd = { name: "setsamples.sets.coracle.dev" };
    for (
      const kept of [
        await client.get(definition, crd),
        await client.get(Namespace, { name: "set-content" }),
        await client.get(ConfigMap, { ...key, name: "inside" }),
      ]
    ) assert.equal(kept.metadata.deletionTimestamp, undefined);
    await client.patch(Sample, key, { metadata: { finalizers: null } });
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(await client.find(definition, crd), undefined);
    assert.equal(
      await client.find(Namespace, { name: "set-content" }),
      undefined,
    );
  },
);

scenario(
  "An object of a set is the same one in each version of its kind",
  async (fixture) => {
    const scaler = (version: string) => ({
      apiVersion: `autoscaling/${version}`,
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "web" },
      spec: {
        maxReplicas: 3,
        scaleTargetRef: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          name: "web",
        },
      },
    });
    const sets = await startSets(fixture, {
      first: [scaler("v1")],
      second: [scaler("v2")],
    }, { readyWhen: () => true });
    await fixture.create("a");
    await fixture.until(() => sets.last?.done === true);
    const { client } = fixture;
    const before = await client.get(HorizontalPodAutoscaler, here("web"));
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.annotations
        ?.["coracle.dev/kinds-of-objects"] ===
        "autoscaling/v2/HorizontalPodAutoscaler"
    );
    await fixture.settle();
    const after = await client.get(HorizontalPodAutoscaler, here("web"));
    assert.equal(after.metadata.uid, before.metadata.uid);
    assert.equal(after.metadata.deletionTimestamp, undefined);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
  },
);

scenario(
  "A set is deleted whose kind has lost its version, and has a dash in its name",
  async (fixture) => {
    const { client } = fixture;
    const group = "old-versions.coracle.dev";
    const define = (kind: string, old: { readonly served: boolean }) => {
      const singular = kind.toLowerCase();
      const plural = `${singular}s`;
      const schema = {
        openAPIV3Schema: {
          type: "object",
          "x-kubernetes-preserve-unknown-fields": true,
        },
      };
      return client.apply(CustomResourceDefinition, {
        metadata: { name: `${plural}.${group}` },
        spec: {
          group,
          scope: "Cluster",
          names: { plural, singular, kind, listKind: `${kind}List` },
          versions: [
            { name: "v1", served: true, storage: true, schema },
            { name: "v1beta1", storage: false, schema, ...old },
          ],
        },
      });
    };
    const kinds = ["Aging", "Set-Part"];
    const isServed = (version: string) => async () => {
      const served = (await client.resources()).filter((one) =>
        one.group === group && one.version === version
      );
      return served.length === kinds.length;
    };
    for (const kind of kinds) await define(kind, { served: true });
    await fixture.until(isServed("v1beta1"));
    const objects = kinds.map((kind) => ({
      apiVersion: `${group}/v1beta1`,
      kind,
      metadata: { name: "a" },
    }));
    const sets = await startSets(fixture, { first: objects });
    await fixture.create("a");
    await fixture.until(() => sets.last?.done === true);
    for (const kind of kinds) await define(kind, { served: false });
    await fixture.until(async () => !await isServed("v1beta1")());
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    for (const kind of kinds) {
      const left = await client.list(untyped({ group, version: "v1", kind }));
      assert.deepEqual(left.items, []);
      const name = `${kind.toLowerCase()}s.${group}`;
      await client.delete(CustomResourceDefinition, { name });
    }
  },
);

scenario(
  "An object in a namespace that the set does not watch is refused",
  async (fixture) => {
    const sets = await startSets(fixture, {
      first: [{
        ...map("one"),
        metadata: { name: "one", namespace: "kube-public" },
      }],
    }, { namespaces: ["default"] });
    await fixture.create("a");
    await fixture.until(() => sets.errors.length > 0);
    assert.match(
      sets.errors[0] ?? "",
      /it must watch the namespaces of its objects, .*received ConfigMap kube-public\/one$/,
    );
  },
);

scenario(
  "What a set was before a restart is pruned, and a kept object is not",
  async (fixture) => {
    const { client } = fixture;
    const kept = {
      ...map("kept"),
      metadata: {
        name: "kept",
        annotations: { "helm.sh/resource-policy": "keep" },
      },
    };
    const first = await startSets(fixture, {
      first: [map("one"), account("one"), kept],
    });
    await fixture.create("a");
    await fixture.until(() => first.last?.done === true);
    await fixture.done(first.operator.stop());
    const second = await startSets(fixture, { first: [map("two")] });
    await fixture.until(() => second.last?.done === true);
    await fixture.until(async () =>
      await client.find(ConfigMap, here("one")) === undefined &&
      await client.find(ServiceAccount, here("one")) === undefined
    );
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    const { metadata } = await client.get(ConfigMap, here("kept"));
    assert.equal(metadata.deletionTimestamp, undefined);
    assert.equal(metadata.ownerReferences, undefined);
  },
);

scenario(
  "An object of others is refused by name, and the others are applied",
  async (fixture) => {
    const { client } = fixture;
    await client.create(ConfigMap, {
      metadata: here("taken"),
      data: { value: "theirs" },
    });
    const sets = await startSets(fixture, {
      first: [map("taken"), map("one"), account("one")],
      twice: [map("one"), { ...map("one"), metadata: here("one") }],
      text: () =>
        fromYaml("kind: ConfigMap\nmetadata: {name: [", { name: "a chart" }),
      unnamed: [{ apiVersion: "v1", kind: "ConfigMap", metadata: {} } as never],
    });
    await fixture.create("a");
    await fixture.until(() => sets.errors.length > 0);
    assert.match(
      sets.errors[0] ?? "",
      /Cannot take over ConfigMap default\/taken: it exists and does not belong to default\/a/,
    );
    await client.get(ConfigMap, here("one"));
    await client.get(ServiceAccount, here("one"));
    for (
      const [value, error] of [
        ["twice", /only once: received ConfigMap\/default\/one twice/],
        [
          "text",
          /Cannot read a chart: it must be YAML.*received \w+ at line 2/,
        ],
        [
          "unnamed",
          /the set "objects", object 1, a ConfigMap: it must have a metadata.name/,
        ],
      ] as const
    ) {
      await fixture.change("a", { value });
      await fixture.until(() => error.test(sets.errors.at(-1) ?? ""));
      // A set that cannot be read deletes nothing.
      await client.get(ServiceAccount, here("one"));
    }
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    const taken = await client.get(ConfigMap, here("taken"));
    assert.equal(taken.data?.["value"], "theirs");
  },
);

scenario(
  "A set is ready when its objects are Current, and says which are not",
  async (fixture) => {
    const labels = { app: "web" };
    const containers = [{ name: "web", image: "web:1" }];
    const sets = await startSets(fixture, {
      first: [{
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "set-web" },
        spec: {
          replicas: 1,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers } },
        },
      }],
    }, { kinds: [Deployment] });
    await fixture.create("a");
    await fixture.until(() => sets.last !== undefined);
    assert.equal(sets.last?.done, false);
    assert.match(
      sets.last?.message ?? "",
      /^Waiting for set \(Deployment\/default\/set-web is InProgress \(/,
    );
    const { metadata } = await fixture.client.get(Deployment, here("set-web"));
    await fixture.client.status.patch(Deployment, here("set-web"), {
      status: {
        observedGeneration: metadata.generation,
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
    await fixture.until(() => sets.last?.done === true);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
  },
  { embedded: "its controllers own the status of Deployments" },
);

scenario(
  "A missing right is named, and the rights of the manifest suffice",
  async (fixture) => {
    const { client, grant } = await limitedClient(fixture, []);
    const planned = fixture.operator({ client });
    planned.register(Gadget, { reconcile() {} }, {
      workflow: new Workflow<Gadget>().add(
        "set",
        objectsDependent({ objects: () => [], kinds: [ConfigMap] }),
      ),
    });
    const access = operatorAccess(planned, { namespace: "default" });
    await grant(policyRules(access));
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "set-secret" },
    };
    const sets = await startSets(
      fixture,
      { first: [map("one"), secret], second: [map("two")] },
      { kinds: [ConfigMap] },
      client,
    );
    await fixture.create("a");
    await fixture.until(() => sets.errors.length > 0);
    assert.match(
      sets.errors[0] ?? "",
      /Cannot watch v1 Secret: the right is missing.*resources: \["secrets"\]/,
    );
    await fixture.client.get(ConfigMap, here("one"));
    assert.equal(
      await fixture.client.find(Secret, here("set-secret")),
      undefined,
    );
    // The kind was noted before the error, and cannot be looked for either.
    await grant([
      ...policyRules(access),
      { apiGroups: [""], resources: ["secrets"], verbs: ["list", "watch"] },
    ]);
    await fixture.change("a", { value: "second" });
    await fixture.until(() => sets.last?.done === true);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
    assert.equal(await fixture.client.find(ConfigMap, here("two")), undefined);
  },
);
