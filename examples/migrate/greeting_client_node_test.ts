import { defineKind } from "@coracle/operator";
import { ConfigMap } from "@coracle/operator/kinds";
import { withTestCluster } from "@coracle/dev";
import { KubeConfig } from "@kubernetes/client-node";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { start } from "./greeting_client_node.ts";

const Greeting = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Greeting",
  spec: z.object({ name: z.string().min(1), loud: z.boolean().default(false) }),
  status: z.object({ text: z.string() }).partial(),
});

/** Bun does not hand certificates to the agent that client-node gives it. */
const NO_CLIENT_NODE: string | false = "Bun" in globalThis &&
  "client-node cannot trust a server's certificate on Bun";

test(
  "The operator of the guide for client-node writes ConfigMap and status",
  { skip: NO_CLIENT_NODE },
  withTestCluster(
    { kinds: [Greeting], server: { port: 0 } },
    async (cluster) => {
      const { client, namespace, server } = cluster;
      assert(server !== undefined);
      const config = new KubeConfig();
      config.loadFromString(server.kubeconfig);
      const stop = await start(config);
      try {
        const key = { namespace, name: "ann" };
        const text = async () =>
          (await client.find(ConfigMap, key))?.data?.["text"];
        await client.create(Greeting, { metadata: key, spec: { name: "Ann" } });
        await cluster.until(async () => await text() === "Hello, Ann.");
        await client.patch(Greeting, key, { spec: { loud: true } });
        await cluster.until(async () => await text() === "HELLO, ANN!");
        await client.delete(ConfigMap, key);
        await cluster.until(async () => await text() === "HELLO, ANN!");
        await cluster.until(async () =>
          (await client.get(Greeting, key)).status?.text === "HELLO, ANN!"
        );
      } finally {
        await stop();
      }
    },
  ),
);
