import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import {
  ApiError,
  Client,
  type Kind,
  loadConfig,
  untyped,
} from "@coracle/operator/client";
import * as kinds from "../../core/kinds/mod.ts";
import { helmTemplate, operator } from "../../examples/helm_release.ts";
import { PROJECT } from "../support/child_process.ts";
import { goTool, NO_GO } from "../support/go_tool.ts";
import { startScenarioCluster } from "../support/scenario_cluster.ts";
import { until } from "../support/until.ts";

const HelmRelease = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "HelmRelease",
  plural: "helmreleases",
  scope: "Namespaced",
});
const ShopQueue = untyped({
  group: "shop.example.com",
  version: "v1",
  kind: "ShopQueue",
  plural: "shopqueues",
  scope: "Namespaced",
});

/** Kinds of the chart, with the namespaced ones first. */
const KINDS: readonly Kind[] = [
  kinds.ConfigMap,
  kinds.CronJob,
  kinds.Deployment,
  kinds.HorizontalPodAutoscaler,
  kinds.Ingress,
  kinds.LimitRange,
  kinds.NetworkPolicy,
  kinds.PodDisruptionBudget,
  kinds.Role,
  kinds.RoleBinding,
  kinds.Secret,
  kinds.Service,
  kinds.ServiceAccount,
  kinds.StatefulSet,
  kinds.ClusterRole,
  kinds.ClusterRoleBinding,
  kinds.CustomResourceDefinition,
  kinds.PriorityClass,
];

test("The Helm example manages a chart of 22 objects by Helm itself", async (t) => {
  const helm = await goTool("helm");
  if (helm === undefined) return t.skip(NO_GO);
  const cluster = await startScenarioCluster();
  assert(cluster !== undefined);
  const { kubeconfig } = cluster;
  const namespace = `helm-release-${randomUUID().slice(0, 8)}`;
  const client = new Client(await loadConfig({ kubeconfig }));
  const running = operator(
    { client, namespaces: [namespace] },
    helmTemplate(join(PROJECT, "examples/charts"), [helm]),
  );
  t.after(async () => {
    await running.stop();
    for (
      const [kind, name] of [
        [kinds.CustomResourceDefinition, "helmreleases.sample.coracle.dev"],
        [kinds.Namespace, namespace],
      ] as const
    ) {
      await client.delete(kind as Kind, { name }).catch((error) => {
        if (!ApiError.is(error) || !error.isNotFound) throw error;
      });
    }
    await client.close();
    await cluster.stop();
  });
  const here = (name: string) => ({ namespace, name });
  const eventually = (what: string, holds: () => Promise<boolean>) =>
    until(what, holds, { within: 60_000 });
  /** Objects of the set, by kind and name. */
  const objects = async () => {
    const labelSelector = "coracle.dev/set=helm-release";
    const found: string[] = [];
    for (const kind of [...KINDS, ShopQueue as Kind]) {
      const { items } = await client.list(kind, { labelSelector })
        .catch((error) => {
          if (ApiError.is(error) && error.isNotFound) return { items: [] };
          throw error;
        });
      for (const { metadata } of items) {
        const { annotations = {} } = metadata;
        if (JSON.stringify(annotations).includes(namespace)) {
          found.push(`${kind.kind}/${metadata.name}`);
        }
      }
    }
    return found;
  };

  await client.create(kinds.Namespace, { metadata: { name: namespace } });
  await running.start();
  await client.create(HelmRelease, {
    metadata: here("shop"),
    spec: { chart: "shop", values: { replicas: 2 } },
  });
  await eventually(
    "the chart is installed",
    async () => (await objects()).length === 22,
  );
  const web = await client.get(kinds.Deployment, here("shop-web"));
  assert.equal(web.spec?.replicas, 2);
  assert((await client.find(ShopQueue, here("shop"))) !== undefined);

  const values = { replicas: 1, withoutOrders: true };
  await client.patch(HelmRelease, here("shop"), { spec: { values } });
  await eventually(
    "what the upgrade no longer has is pruned",
    async () =>
      await client.find(kinds.ConfigMap, here("shop-orders")) === undefined,
  );
  assert.equal((await objects()).length, 21);
  const upgraded = await client.get(kinds.Deployment, here("shop-web"));
  assert.equal(upgraded.spec?.replicas, 1);

  const priority = { name: `${namespace}-shop` };
  await client.patch(kinds.Deployment, here("shop-web"), {
    spec: { replicas: 7 },
  });
  await client.delete(kinds.PriorityClass, priority);
  await client.delete(ShopQueue, here("shop"));
  await eventually("drift of three kinds is mended", async () => {
    const { spec } = await client.get(kinds.Deployment, here("shop-web"));
    return spec?.replicas === 1 && (await objects()).length === 21;
  });

  await client.delete(HelmRelease, here("shop"));
  await eventually(
    "the release is gone",
    async () => await client.find(HelmRelease, here("shop")) === undefined,
  );
  assert.deepEqual(await objects(), []);
});
