import type { OperatorOptions } from "@coracle/operator";
import { Namespace, Secret, ServiceAccount } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./pull_secret.ts";

const TYPE = "kubernetes.io/dockerconfigjson";

/** Data of a secret for a registry with a password. */
function registry(password: string) {
  const auths = { "registry.example.com": { password } };
  return { ".dockerconfigjson": btoa(JSON.stringify({ auths })) };
}

test(
  "The secret of a registry is in every namespace, in its newest state",
  withTestCluster(
    {
      // All namespaces, not only that of the test.
      operator: ({ client, clock, logger }: OperatorOptions) =>
        operator({ client, clock, logger }),
      clock: new VirtualClock(),
    },
    async (cluster) => {
      const { client } = cluster;
      const home = { namespace: "registry", name: "registry" };
      const shop = { namespace: "shop", name: "registry" };
      const copy = async () => (await client.find(Secret, shop))?.data;
      const isCopied = (password: string) => async () =>
        JSON.stringify(await copy()) === JSON.stringify(registry(password));

      await client.create(Namespace, { metadata: { name: "registry" } });
      await client.create(Namespace, { metadata: { name: "shop" } });
      await client.create(Secret, {
        metadata: home,
        type: TYPE,
        data: registry("one"),
      });
      await cluster.until(isCopied("one"));
      assert.equal((await client.get(Secret, shop)).type, TYPE);
      const isUsed = async () => {
        const account = { namespace: "shop", name: "default" };
        const { imagePullSecrets = [] } = await client.find(
          ServiceAccount,
          account,
        ) ?? {};
        return imagePullSecrets.some(({ name }) => name === "registry");
      };
      await cluster.until(isUsed);

      await client.patch(Secret, home, { data: registry("two") });
      await cluster.until(isCopied("two"));
      await client.delete(Secret, shop);
      await cluster.until(isCopied("two"));

      const annotate = (value: string | null) =>
        client.patch(Namespace, { name: "shop" }, {
          metadata: {
            annotations: { "gallery.coracle.dev/no-pull-secret": value },
          },
        });
      await annotate("");
      await cluster.until(async () => await copy() === undefined);
      await annotate(null);
      await cluster.until(isCopied("two"));

      await client.delete(Secret, home);
      await cluster.until(async () => await copy() === undefined);
      assert.equal(await isUsed(), false);
    },
  ),
);
