import type { OperatorOptions } from "@coracle/operator";
import { ConfigMap, Namespace, Secret } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./reflector.ts";

const PREFIX = "reflector.v1.k8s.emberstack.com";

test(
  "A Secret is copied where it may be, and its copies follow it",
  withTestCluster(
    {
      // All namespaces, not only that of the test.
      operator: ({ client, clock, logger }: OperatorOptions) =>
        operator({ client, clock, logger }),
      clock: new VirtualClock(),
    },
    async (cluster) => {
      const { client, namespace } = cluster;
      const source = { namespace, name: "ca" };
      const at = (namespace: string) => ({ namespace, name: "ca" });
      const found = async (namespace: string) =>
        (await client.find(Secret, at(namespace)))?.data?.["key"];
      const isGone = (namespace: string) => async () =>
        await client.find(Secret, at(namespace)) === undefined;

      await client.create(Namespace, { metadata: { name: "team-a" } });
      await client.create(Namespace, { metadata: { name: "other" } });
      await client.create(Secret, {
        metadata: {
          ...source,
          annotations: {
            [`${PREFIX}/reflection-allowed`]: "true",
            [`${PREFIX}/reflection-allowed-namespaces`]: "shop,team-.*",
            [`${PREFIX}/reflection-auto-enabled`]: "true",
          },
        },
        data: { key: "b25l" },
      });
      await cluster.until(async () => await found("team-a") === "b25l");
      await client.create(Namespace, { metadata: { name: "team-b" } });
      await cluster.until(async () => await found("team-b") === "b25l");

      await client.patch(Secret, source, { data: { key: "dHdv" } });
      await cluster.until(async () => await found("team-b") === "dHdv");
      await client.patch(Secret, at("team-b"), { data: { key: "YQ==" } });
      await cluster.until(async () => await found("team-b") === "dHdv");
      await client.delete(Secret, at("team-b"));
      await cluster.until(async () => await found("team-b") === "dHdv");
      assert.equal(await found("other"), undefined);

      const name = `${PREFIX}/reflection-allowed-namespaces`;
      await client.patch(Secret, source, {
        metadata: { annotations: { [name]: "team-a" } },
      });
      await cluster.until(isGone("team-b"));
      assert.equal(await found("team-a"), "dHdv");
      await client.delete(Secret, source);
      await cluster.until(isGone("team-a"));
    },
  ),
);

test(
  "An object that names an allowed source has its content",
  withTestCluster(
    {
      operator: ({ client, clock, logger }: OperatorOptions) =>
        operator({ client, clock, logger }),
      clock: new VirtualClock(),
    },
    async (cluster) => {
      const { client, namespace } = cluster;
      const copy = { namespace, name: "copy" };
      await client.create(ConfigMap, {
        metadata: {
          ...copy,
          annotations: { [`${PREFIX}/reflects`]: `${namespace}/texts` },
        },
        data: { old: "text" },
      });
      await client.create(ConfigMap, {
        metadata: { namespace, name: "texts" },
        data: { greeting: "Hello" },
      });
      const data = async () => (await client.get(ConfigMap, copy)).data;
      await cluster.clock.advance("1m");
      assert.deepEqual(await data(), { old: "text" });
      await client.patch(ConfigMap, { namespace, name: "texts" }, {
        metadata: { annotations: { [`${PREFIX}/reflection-allowed`]: "true" } },
      });
      const isCopied = async () =>
        JSON.stringify(await data()) === `{"greeting":"Hello"}`;
      await cluster.until(isCopied);
    },
  ),
);
