import { untyped } from "@coracle/operator";
import { StatefulSet } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/operator/testing";
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { operator } from "./store_cluster.ts";

const StoreCluster = untyped({
  group: "gallery.coracle.dev",
  version: "v1",
  kind: "StoreCluster",
  plural: "storeclusters",
  scope: "Namespaced",
});

/** Store whose members hand over a partition each time they are asked. */
async function startStore(members: number) {
  const left = new Map(
    Array.from({ length: members }, (_, index) => [`orders-${index}`, 3]),
  );
  const state = { isDown: false, removed: [] as string[], lost: 0 };
  const server = createServer((request, response) => {
    const [, name = "", action] =
      /^\/members\/([\w-]+)(?:\/(drain))?$/.exec(request.url ?? "") ?? [];
    const partitions = left.get(name);
    if (state.isDown) response.writeHead(503).end();
    else if (partitions === undefined) response.writeHead(404).end();
    else if (action === "drain") {
      left.set(name, Math.max(0, partitions - 1));
      response.end(JSON.stringify({ partitions: left.get(name) }));
    } else {
      state.lost += partitions;
      left.delete(name);
      state.removed.push(name);
      response.end("{}");
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    state,
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

test(
  "A store loses no partition when it is scaled down, through an outage too",
  withTestCluster(
    { operator, clock: new VirtualClock(), server: { simulate: true } },
    async (cluster) => {
      const { client, namespace } = cluster;
      const store = await startStore(5);
      try {
        const key = { namespace, name: "orders" };
        const status = async () =>
          (await client.get(StoreCluster, key))["status"] as
            | { members: number; ready: number; message?: string }
            | undefined;
        await client.create(StoreCluster, {
          metadata: key,
          spec: { members: 5, image: "store:2", admin: store.url },
        });
        await cluster.until(async () => (await status())?.ready === 5);

        store.state.isDown = true;
        await client.patch(StoreCluster, key, { spec: { members: 3 } });
        await cluster.until(async () =>
          /answers 503/.test((await status())?.message ?? "")
        );
        assert.equal((await client.get(StatefulSet, key)).spec?.replicas, 5);

        store.state.isDown = false;
        await cluster.until(async () => {
          const { members, ready } = await status() ?? {};
          return members === 3 && ready === 3;
        });
        assert.deepEqual(store.state.removed, ["orders-4", "orders-3"]);
        assert.equal(store.state.lost, 0);
        assert.equal((await client.get(StatefulSet, key)).spec?.replicas, 3);
      } finally {
        await store.stop();
      }
    },
  ),
);
