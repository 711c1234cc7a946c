import { type OperatorOptions, untyped } from "@coracle/operator";
import { StatefulSet } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
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
class Store {
  /** Whether it does not answer. */
  isDown = false;
  /** Members that have left. */
  readonly removed: string[] = [];
  /** Partitions that were on members when they left. */
  lost = 0;
  readonly #left: Map<string, number>;

  constructor(members: number) {
    this.#left = new Map(
      Array.from({ length: members }, (_, index) => [`orders-${index}`, 3]),
    );
  }

  /** Answers as the API of the store. */
  readonly fetch = (url: string): Promise<Response> =>
    Promise.resolve(this.#answer(new URL(url).pathname));

  #answer(path: string): Response {
    if (this.isDown) return new Response(null, { status: 503 });
    const [, name = "", action] =
      /^\/members\/([\w-]+)(?:\/(drain))?$/.exec(path) ?? [];
    const partitions = this.#left.get(name);
    if (partitions === undefined) return new Response(null, { status: 404 });
    if (action === "drain") {
      const left = Math.max(0, partitions - 1);
      this.#left.set(name, left);
      return Response.json({ partitions: left });
    }
    this.lost += partitions;
    this.#left.delete(name);
    this.removed.push(name);
    return Response.json({});
  }
}

const store = new Store(5);

test(
  "A store loses no partition when it is scaled down, through an outage too",
  withTestCluster(
    {
      operator: (options: OperatorOptions) => operator(options, store.fetch),
      clock: new VirtualClock(),
      server: { simulate: true },
    },
    async (cluster) => {
      const { client, namespace } = cluster;
      const key = { namespace, name: "orders" };
      const status = async () =>
        (await client.get(StoreCluster, key))["status"] as
          | { members: number; ready: number; message?: string }
          | undefined;
      await client.create(StoreCluster, {
        metadata: key,
        spec: { members: 5, image: "store:2", admin: "http://store.test" },
      });
      await cluster.until(async () => (await status())?.ready === 5);

      store.isDown = true;
      await client.patch(StoreCluster, key, { spec: { members: 3 } });
      await cluster.until(async () =>
        /answers 503/.test((await status())?.message ?? "")
      );
      assert.equal((await client.get(StatefulSet, key)).spec?.replicas, 5);

      store.isDown = false;
      await cluster.until(async () => {
        const { members, ready } = await status() ?? {};
        return members === 3 && ready === 3;
      });
      assert.deepEqual(store.removed, ["orders-4", "orders-3"]);
      assert.equal(store.lost, 0);
      assert.equal((await client.get(StatefulSet, key)).spec?.replicas, 3);
    },
  ),
);
