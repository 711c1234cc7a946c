import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { Client } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { Lease } from "../../../core/operator/lease_lock.ts";
import {
  MemberTracker,
  ShardLeases,
} from "../../../core/operator/shard_leases.ts";
import { ScriptedTransport } from "../../support/scripted_transport.ts";

const { signal } = new AbortController();
const KEY = { namespace: "default", name: "shop-a" };

/** Calls a function with the Leases of members `a` and `b` of one group. */
async function withGroup(
  body: (group: {
    readonly a: ShardLeases;
    readonly b: ShardLeases;
    readonly client: ApiServer["client"];
  }) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({ port: false });
  const { client } = server;
  const member = (identity: string) =>
    new ShardLeases({
      client,
      clock: new VirtualClock(),
      namespace: "default",
      name: "shop",
      identity,
      leaseDuration: 15_000,
    });
  try {
    await body({ a: member("a"), b: member("b"), client });
  } finally {
    await server.stop();
  }
}

test("ShardLeases tells a renewal from a Lease that is new", () =>
  withGroup(async ({ a, b, client }) => {
    assert.equal(await a.publish([], signal), false);
    assert.equal(await a.publish(["a"], signal), true);
    assert.equal(await b.publish(["a", "b"], signal), false);
    const members = await a.members(signal);
    assert.deepEqual(
      members.map(({ identity, members, duration }) => [
        identity,
        members,
        duration,
      ]),
      [["a", ["a"], 15_000], ["b", ["a", "b"], 15_000]],
    );
    await client.delete(Lease, KEY);
    // The server would create it, if the write did not name the UID.
    await assert.rejects(a.publish(["a"], signal), /Operation cannot|Conflict/);
    assert.equal(await a.publish(["a"], signal), false, "others saw it leave");
    assert.equal(await a.publish(["a"], signal), true);
  }));

test("ShardLeases tells members by the names of their Leases, not by holders", () =>
  withGroup(async ({ a, b, client }) => {
    await a.publish([], signal);
    await b.publish([], signal);
    for (const name of ["shop-a", "shop-b"]) {
      const key = { namespace: "default", name };
      await client.patch(Lease, key, { spec: { holderIdentity: "" } });
    }
    const { metadata: { labels } } = await client.get(Lease, KEY);
    const foreign = { namespace: "default", name: "other", labels };
    await client.create(Lease, { metadata: foreign });
    const members = await a.members(signal);
    assert.deepEqual(members.map(({ identity }) => identity), ["a", "b"]);
  }));

test("ShardLeases writes nothing over a later write, and goes on after it", () =>
  withGroup(async ({ a, client }) => {
    await a.publish([], signal);
    await client.patch(Lease, KEY, { metadata: { labels: { late: "yes" } } });
    await assert.rejects(a.publish(["a"], signal), /Conflict|modified/);
    assert.deepEqual((await a.members(signal))[0]?.members, []);
    assert.equal(await a.publish(["a"], signal), true, "it has read it again");
  }));

test("ShardLeases writes back what others have put into its Lease", () =>
  withGroup(async ({ a, client }) => {
    await a.publish([], signal);
    const { metadata: { uid } } = await client.create(ConfigMap, {
      metadata: { namespace: "default", name: "owner" },
    });
    const owner = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "owner",
      uid: uid!,
    };
    const foreign = {
      labels: { team: "a" },
      annotations: { "example.com/note": "kept" },
      finalizers: ["example.com/keep"],
      ownerReferences: [owner],
    };
    await client.patch(Lease, KEY, {
      metadata: foreign,
      spec: { leaseTransitions: 7 },
    });
    await assert.rejects(a.publish(["a"], signal), /Conflict|modified/);
    for (const members of [["a"], ["a", "b"]]) {
      assert.equal(await a.publish(members, signal), true);
      assert.deepEqual((await a.members(signal))[0]?.members, members);
      const { metadata, spec } = await client.get(Lease, KEY);
      assert.equal(metadata.labels?.["team"], "a");
      assert.equal(metadata.annotations?.["example.com/note"], "kept");
      assert.deepEqual(metadata.finalizers, foreign.finalizers);
      assert.deepEqual(metadata.ownerReferences, [owner]);
      assert.equal(spec?.leaseTransitions, 7);
    }
  }));

test("ShardLeases removes a member only as it was read", () =>
  withGroup(async ({ a, b, client }) => {
    await a.publish([], signal);
    const [read] = await b.members(signal);
    await a.publish(["a"], signal);
    await assert.rejects(b.remove(read!, signal), /Conflict|precondition/i);
    const [again] = await b.members(signal);
    await b.remove(again!, signal);
    await b.remove(again!, signal);
    assert.equal(await client.find(Lease, KEY), undefined);
  }));

test("ShardLeases leaves with its own Lease, if it has one", () =>
  withGroup(async ({ a, b, client }) => {
    await b.leave(signal);
    await a.publish(["a"], signal);
    await b.publish(["b"], signal);
    await a.leave(signal);
    const { items } = await client.list(Lease, { namespace: "default" });
    assert.deepEqual(items.map(({ metadata }) => metadata.name), ["shop-b"]);
  }));

test("ShardLeases takes a membership that somebody has damaged for none", () =>
  withGroup(async ({ a, client }) => {
    await a.publish(["a"], signal);
    const { metadata } = await client.get(Lease, KEY);
    const [name] = Object.keys(metadata.annotations ?? {});
    for (const [text, members] of [["{", []], ["5", []], ['["b",5]', ["b"]]]) {
      await client.patch(Lease, KEY, {
        metadata: { annotations: { [name!]: text as string } },
      });
      assert.deepEqual((await a.members(signal))[0]?.members, members);
    }
  }));

test("ShardLeases leaves with no Lease that somebody has changed since", () =>
  withGroup(async ({ a, client }) => {
    await a.publish([], signal);
    await client.patch(Lease, KEY, { metadata: { labels: { other: "b" } } });
    await assert.rejects(a.leave(signal), /Conflict|precondition/i);
    assert.notEqual(await client.find(Lease, KEY), undefined);
  }));

test("ShardLeases lists the latest state of the members of its group", async () => {
  const transport = new ScriptedTransport(() => ({ body: { items: [] } }));
  const leases = new ShardLeases({
    client: new Client({ transport }),
    clock: new VirtualClock(),
    namespace: "team",
    name: "group",
    identity: "a",
    leaseDuration: 1_000,
  });
  await leases.members(new AbortController().signal);
  const path = "/apis/coordination.k8s.io/v1/namespaces/team/leases";
  const query = "labelSelector=coracle.dev%2Fshard-group%3Dgroup";
  assert.deepEqual(transport.requests.map((request) => request.path), [
    `${path}?${query}`,
  ]);
});

test("MemberTracker counts the silence of members, and forgets who is gone", () => {
  const tracker = new MemberTracker();
  const member = (identity: string, resourceVersion = "1") => ({
    identity,
    members: [],
    duration: 1_000,
    resourceVersion,
  });
  const states = (
    askedAt: number,
    members = [member("b"), member("a")],
    answeredAt = askedAt,
  ) => {
    const { living, expired } = tracker.observe(members, {
      askedAt,
      answeredAt,
    });
    return [living, expired].map((all) =>
      all.map(({ identity }) => identity).join(" ")
    );
  };
  assert.deepEqual(states(0, undefined, 100), ["a b", ""]);
  assert.deepEqual(states(1_099, undefined, 5_000), ["a b", ""]);
  assert.deepEqual(states(1_100), ["", ""]);
  assert.deepEqual(states(10_100), ["", ""]);
  assert.deepEqual(states(10_101), ["", "b a"]);
  assert.deepEqual(states(10_102, [member("b"), member("a", "2")]), ["a", "b"]);
  assert.deepEqual(states(10_103, []), ["", ""]);
  assert.deepEqual(states(10_104), ["a b", ""]);
});
