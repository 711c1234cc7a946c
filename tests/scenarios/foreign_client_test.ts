import {
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  Watch,
} from "@kubernetes/client-node";
import type { V1ConfigMap } from "@kubernetes/client-node";
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { startScenarioCluster } from "../support/scenario_cluster.ts";
import { until } from "../support/until.ts";

/** Bun does not hand certificates to the agent that client-node gives it. */
const NO_CLIENT_NODE: string | false = "Bun" in globalThis &&
  "client-node cannot trust a server's certificate on Bun";

/** Runs a test of the official JavaScript client in a namespace of its own. */
function foreignTest(
  title: string,
  body: (config: KubeConfig, namespace: string) => Promise<void>,
): void {
  test(title, { skip: NO_CLIENT_NODE }, async () => {
    const cluster = await startScenarioCluster();
    assert(cluster !== undefined);
    const config = new KubeConfig();
    config.loadFromFile(cluster.kubeconfig);
    const core = config.makeApiClient(CoreV1Api);
    const namespace = `foreign-${randomBytes(4).toString("hex")}`;
    try {
      await core.createNamespace({ body: { metadata: { name: namespace } } });
      try {
        await body(config, namespace);
      } finally {
        await core.deleteNamespace({ name: namespace });
      }
    } finally {
      await cluster.stop();
    }
  });
}

foreignTest(
  "client-node creates, reads, replaces, patches, lists and deletes",
  async (config, namespace) => {
    const core = config.makeApiClient(CoreV1Api);
    const made = await core.createNamespacedConfigMap({
      namespace,
      body: {
        metadata: { name: "a", labels: { tier: "x" } },
        data: { k: "1" },
      },
    });
    assert.match(made.metadata?.uid ?? "", /^[\da-f-]{36}$/);
    assert(made.metadata?.creationTimestamp instanceof Date);
    const replaced = await core.replaceNamespacedConfigMap({
      namespace,
      name: "a",
      body: { ...made, data: { k: "2" } },
    });
    assert.equal(replaced.data?.["k"], "2");
    await assert.rejects(
      core.replaceNamespacedConfigMap({ namespace, name: "a", body: made }),
      { code: 409 },
    );
    const patched = await core.patchNamespacedConfigMap({
      namespace,
      name: "a",
      body: [{ op: "add", path: "/data/l", value: "3" }],
    });
    assert.deepEqual(patched.data, { k: "2", l: "3" });
    const list = await core.listNamespacedConfigMap({
      namespace,
      labelSelector: "tier=x",
    });
    assert.deepEqual(list.items.map((item) => item.metadata?.name), ["a"]);
    await core.deleteNamespacedConfigMap({ namespace, name: "a" });
    await assert.rejects(
      core.readNamespacedConfigMap({ namespace, name: "a" }),
      {
        code: 404,
      },
    );
  },
);

foreignTest(
  "client-node uses discovery and the scale subresource",
  async (config, namespace) => {
    const objects = KubernetesObjectApi.makeApiClient(config);
    const labels = { app: "web" };
    await objects.create({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "web", image: "nginx:1" }] },
        },
      },
    } as object);
    const apps = config.makeApiClient(AppsV1Api);
    const scale = await apps.readNamespacedDeploymentScale({
      name: "web",
      namespace,
    });
    assert.equal(scale.spec?.replicas, 1);
    await apps.replaceNamespacedDeploymentScale({
      name: "web",
      namespace,
      body: {
        ...scale,
        metadata: { name: "web", namespace },
        spec: { replicas: 4 },
      },
    });
    const deployment = await apps.readNamespacedDeployment({
      name: "web",
      namespace,
    });
    assert.equal(deployment.spec?.replicas, 4);
  },
);

foreignTest(
  "client-node's informer sees objects added, changed and deleted",
  async (config, namespace) => {
    const core = config.makeApiClient(CoreV1Api);
    const create = (name: string) =>
      core.createNamespacedConfigMap({
        namespace,
        body: { metadata: { name } },
      });
    await create("before");
    const seen: string[] = [];
    const informer = makeInformer<V1ConfigMap>(
      config,
      `/api/v1/namespaces/${namespace}/configmaps`,
      () => core.listNamespacedConfigMap({ namespace }),
    );
    for (const event of ["add", "update", "delete"] as const) {
      informer.on(event, (object) => {
        seen.push(`${event} ${object.metadata?.name}`);
      });
    }
    await informer.start();
    try {
      await create("after");
      await core.patchNamespacedConfigMap({
        namespace,
        name: "before",
        body: [{ op: "add", path: "/data", value: { k: "v" } }],
      });
      await core.deleteNamespacedConfigMap({ namespace, name: "after" });
      const expected = [
        "add before",
        "add after",
        "update before",
        "delete after",
      ];
      await until(
        "all events",
        () => expected.every((event) => seen.includes(event)),
      );
      assert.equal(informer.get("before", namespace)?.data?.["k"], "v");
      assert.equal(informer.get("after", namespace), undefined);
    } finally {
      await informer.stop();
    }
  },
);

foreignTest(
  "client-node's informer survives ended watches and selects by labels",
  async (config, namespace) => {
    const core = config.makeApiClient(CoreV1Api);
    const create = (name: string, labels: Record<string, string>) =>
      core.createNamespacedConfigMap({
        namespace,
        body: { metadata: { name, labels } },
      });
    const labelSelector = "tier=front";
    const informer = makeInformer<V1ConfigMap>(
      config,
      // The server ends each watch after a second.
      `/api/v1/namespaces/${namespace}/configmaps?timeoutSeconds=1`,
      () => core.listNamespacedConfigMap({ namespace, labelSelector }),
      labelSelector,
    );
    let watches = 0;
    informer.on("connect", () => watches++);
    await informer.start();
    try {
      await create("front", { tier: "front" });
      await create("back", { tier: "back" });
      await until("a second watch", () => watches > 1);
      await create("late", { tier: "front" });
      await until("the late one", () => informer.get("late", namespace));
      const names = informer.list(namespace).map(({ metadata }) =>
        metadata?.name
      );
      assert.deepEqual(names.toSorted(), ["front", "late"]);
    } finally {
      await informer.stop();
    }
  },
);

foreignTest(
  "client-node uses server-side apply and gets conflicts",
  async (config, namespace) => {
    const objects = KubernetesObjectApi.makeApiClient(config);
    const apply = (owner: string, color: string, force?: boolean) =>
      objects.patch<V1ConfigMap>(
        {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: "settings", namespace },
          data: { color },
        },
        undefined,
        undefined,
        owner,
        force,
        PatchStrategy.ServerSideApply,
      );
    assert.equal((await apply("one", "blue")).data?.["color"], "blue");
    await assert.rejects(apply("two", "red"), { code: 409 });
    const forced = await apply("two", "red", true);
    assert.equal(forced.data?.["color"], "red");
    assert.deepEqual(
      forced.metadata?.managedFields?.map(({ manager }) => manager),
      ["two"],
    );
  },
);

foreignTest(
  "client-node's watch starts at the version of its list",
  async (config, namespace) => {
    const types: string[] = [];
    const core = config.makeApiClient(CoreV1Api);
    const { metadata } = await core.listNamespacedConfigMap({ namespace });
    const watch = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion: metadata?.resourceVersion, allowWatchBookmarks: true },
      (type) => types.push(type),
      () => {},
    );
    try {
      await core.createNamespacedConfigMap({
        namespace,
        body: { metadata: { name: "seen" } },
      });
      await until("the event", () => types.includes("ADDED"));
    } finally {
      watch.abort();
    }
  },
);
