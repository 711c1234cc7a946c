import type { OperatorOptions } from "@coracle/operator";
import {
  Namespace,
  NetworkPolicy,
  ResourceQuota,
  RoleBinding,
} from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { operator } from "./namespace_policies.ts";

test(
  "A namespace has the policies of its team for as long as it has the label",
  withTestCluster(
    {
      // All namespaces, not only that of the test.
      operator: ({ client, clock, logger }: OperatorOptions) =>
        operator({ client, clock, logger }),
      clock: new VirtualClock(),
    },
    async (cluster) => {
      const { client } = cluster;
      const key = { name: "shop" };
      const policy = { namespace: "shop", name: "team-policy" };
      const team = (name: string | null) =>
        client.patch(Namespace, key, {
          metadata: { labels: { "gallery.coracle.dev/team": name } },
        });
      const group = async () =>
        (await client.find(RoleBinding, policy))?.subjects?.[0]?.name;
      await client.create(Namespace, { metadata: { ...key } });
      await team("payments");
      await cluster.until(async () => await group() === "team:payments");
      assert.equal(
        (await client.get(ResourceQuota, policy)).spec?.hard?.["pods"],
        "50",
      );

      await client.delete(NetworkPolicy, policy);
      await cluster.until(() => client.find(NetworkPolicy, policy));

      await team("billing");
      await cluster.until(async () => await group() === "team:billing");

      await team(null);
      await cluster.until(async () => await group() === undefined);
      await cluster.until(async () =>
        await client.find(NetworkPolicy, policy) === undefined &&
        await client.find(ResourceQuota, policy) === undefined
      );
    },
  ),
);
