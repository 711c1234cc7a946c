import type { Kind, KubernetesObject } from "@coracle/operator";
import { Secret, StatefulSet } from "@coracle/operator/kinds";
import type { Condition } from "@coracle/operator/workflows";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./rabbitmq_cluster.ts";

interface Cluster extends KubernetesObject {
  spec: { image?: string; replicas?: number; config?: string };
  status?: { conditions?: Condition[] };
}
const RabbitmqCluster: Kind<Cluster> = {
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "RabbitmqCluster",
  plural: "rabbitmqclusters",
  scope: "Namespaced",
};

test(
  "A cluster of RabbitMQ grows, restarts for its configuration, and never shrinks",
  withTestCluster(
    { operator, clock: new VirtualClock() },
    async (cluster) => {
      const { client, namespace } = cluster;
      const key = { namespace, name: "orders" };
      const server = { namespace, name: "orders-server" };
      const user = { namespace, name: "orders-default-user" };
      const set = async () => (await client.get(StatefulSet, server)).spec;
      const condition = async (type: string) => {
        const { status } = await client.get(RabbitmqCluster, key);
        return status?.conditions?.find((one) => one.type === type);
      };
      await client.create(RabbitmqCluster, {
        metadata: key,
        spec: { image: "rabbitmq:4.1" },
      });
      await cluster.until(async () =>
        (await condition("ReconcileSuccess"))?.status === "True"
      );
      const { data } = await client.get(Secret, user);
      const before = (await set())?.template.metadata?.annotations;

      await client.patch(RabbitmqCluster, key, { spec: { replicas: 3 } });
      await cluster.until(async () => (await set())?.replicas === 3);
      assert.deepEqual((await set())?.template.metadata?.annotations, before);
      const config = "vm_memory_high_watermark.relative = 0.6";
      await client.patch(RabbitmqCluster, key, { spec: { config } });
      await cluster.until(async () => {
        const { annotations = {} } = (await set())?.template.metadata ?? {};
        return JSON.stringify(annotations) !== JSON.stringify(before);
      });

      await client.patch(RabbitmqCluster, key, { spec: { replicas: 1 } });
      await cluster.until(async () =>
        (await condition("ReconcileSuccess"))?.message ===
          "A cluster of 3 members is not scaled down"
      );
      assert.equal((await set())?.replicas, 3);
      assert.deepEqual((await client.get(Secret, user)).data, data);
    },
  ),
);
