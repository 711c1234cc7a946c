import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigMap } from "@coracle/operator/kinds";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import { Greeting } from "./greeting.ts";
import { operator } from "./operator.ts";

test(
  "The ConfigMap has the message until the hours are over",
  withTestCluster(
    {
      kinds: [Greeting],
      operator: (options) =>
        operator({ ...options, leaderElection: undefined, probes: undefined }),
      clock: new VirtualClock(),
    },
    async (cluster) => {
      const { client, namespace, clock } = cluster;
      const key = { namespace, name: "hello" };
      const message = async () =>
        (await client.find(ConfigMap, key))?.data?.["message"];
      await client.create(Greeting, {
        metadata: key,
        spec: { message: "Hello", validHours: 8 },
      });
      await cluster.until(async () => await message() === "Hello");

      // What somebody else deletes is there again.
      await client.delete(ConfigMap, key);
      await cluster.until(async () => await message() === "Hello");

      const expired = async () =>
        (await client.get(Greeting, key)).status?.expired;
      await cluster.until(expired, { within: "9h" });
      assert(clock.now() >= 8 * 3_600_000);
      assert.equal(await message(), undefined);
    },
  ),
);
