import { untyped } from "@coracle/operator";
import { Deployment, Pod, Service } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./memcached.ts";

const Memcached = untyped({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "Memcached",
  plural: "memcacheds",
  scope: "Namespaced",
});

test(
  "A Memcached has as many ready servers as its size, and names their pods",
  withTestCluster(
    { operator, clock: new VirtualClock(), server: { simulate: true } },
    async (cluster) => {
      const { client, namespace } = cluster;
      const key = { namespace, name: "sessions" };
      const status = async () =>
        (await client.get(Memcached, key))["status"] as
          | { nodes: string[]; ready: string }
          | undefined;
      await client.create(Memcached, { metadata: key, spec: { size: 2 } });
      await cluster.until(async () => (await status())?.ready === "2/2");
      const { items } = await client.list(Pod, { namespace });
      assert.deepEqual(
        (await status())?.nodes,
        items.map(({ metadata }) => metadata.name).toSorted(),
      );
      assert.equal((await client.get(Service, key)).spec?.clusterIP, "None");

      await client.patch(Memcached, key, { spec: { size: 3 } });
      await cluster.until(async () => (await status())?.nodes.length === 3);

      // What somebody else changes is put right, what is deleted comes back.
      await client.patch(Deployment, key, { spec: { replicas: 1 } });
      await cluster.until(async () =>
        (await client.get(Deployment, key)).spec?.replicas === 3
      );
      await client.delete(Service, key);
      await cluster.until(() => client.find(Service, key));

      await client.delete(Memcached, key);
      await cluster.until(async () =>
        (await client.list(Pod, { namespace })).items.length === 0
      );
    },
  ),
);
