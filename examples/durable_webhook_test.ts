import { TestCluster, VirtualClock } from "@coracle/dev";
import assert from "node:assert/strict";
import { test } from "node:test";
import { calls, Shop, shops } from "./durable_webhook.ts";

test("A call that a standby takes reaches the leader, and the next one after it", async () => {
  const cluster = await TestCluster.start({
    kinds: [Shop],
    clock: new VirtualClock(),
  });
  const { client, logger, namespace, clock } = cluster;
  const key = { namespace, name: "bakery" };
  const check = { bearer: { token: ["new", "old"] } };
  const replica = async (identity: string) => {
    const source = calls({ check });
    const operator = shops(source, {
      client,
      clock,
      logger,
      namespaces: [namespace],
      leaderElection: { name: "shops", namespace, identity },
    });
    await cluster.complete(operator.start());
    const call = async (token: string, name = key.name) => {
      const response = await fetch(source.url ?? "", {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ namespace, name }),
      });
      await response.text();
      return response.status;
    };
    return { operator, call };
  };
  const calledAt = async () =>
    (await client.get(Shop, key)).status?.calledAt ?? "";
  const leader = await replica("leader");
  await cluster.until(() => leader.operator.health().leading);
  const standby = await replica("standby");
  try {
    await client.create(Shop, { metadata: key, spec: { url: "x" } });
    assert.equal(await standby.call("new"), 202);
    await cluster.until(async () => await calledAt() !== "");
    assert.equal(standby.operator.health().leading, false);
    const first = await calledAt();
    // The leader is gone before the next call, and nobody leads yet.
    await cluster.complete(leader.operator.stop());
    assert.equal(await standby.call("old"), 202);
    await cluster.until(async () => await calledAt() > first);
    assert.equal(await standby.call("none"), 401);
    assert.equal(await standby.call("new", "unknown"), 400);
    // The sender repeats what could not be written down.
    const fault = cluster.server?.faults.add({
      verb: "patch",
      effect: { status: 503 },
    });
    const late = standby.call("new");
    assert.equal(await cluster.complete(late), 503);
    fault?.remove();
  } finally {
    await cluster.complete(standby.operator.stop());
    await cluster.stop();
  }
});
