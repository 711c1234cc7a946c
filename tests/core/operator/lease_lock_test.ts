import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { ApiError, type Client } from "@coracle/operator/client";
import { ConfigMap } from "@coracle/operator/kinds";
import { Lease, LeaseLock } from "../../../core/operator/lease_lock.ts";

const { signal } = new AbortController();
const NAME = { namespace: "default", name: "lock" };

/** Lock whose requests a function answers. */
function lockOf(
  answer: (lease: Lease) => Lease | Promise<Lease>,
  found?: Lease,
) {
  const clock = new VirtualClock({ start: new Date("2026-01-01T00:00:00Z") });
  const sent: Lease[] = [];
  const send = async (_kind: unknown, lease: Lease) => {
    sent.push(lease);
    return await answer(lease);
  };
  const client = {
    find: () => Promise.resolve(found),
    create: send,
    replace: send,
  } as unknown as Client;
  const deps = { client, clock, ...NAME, identity: "b" };
  return {
    clock,
    sent,
    lock: new LeaseLock({ ...deps, leaseDuration: 1_500 }),
  };
}

const AT = (second: number) => `2026-01-01T00:00:0${second}.000000Z`;

test("LeaseLock writes holder, times and transitions as client-go does", async () => {
  const strategy = { strategy: "OldestEmulationVersion" };
  const foreign: Lease = {
    metadata: { ...NAME, resourceVersion: "1" },
    spec: {
      holderIdentity: "a",
      leaseDurationSeconds: 9,
      acquireTime: AT(0),
      renewTime: AT(0),
      leaseTransitions: 4,
      ...strategy,
    },
  };
  let version = 1;
  const { clock, sent, lock } = lockOf(
    (lease) => ({
      ...lease,
      metadata: { ...lease.metadata, resourceVersion: String(++version) },
    }),
    foreign,
  );
  const first = await lock.read(signal);
  assert.deepEqual(first, {
    holder: "a",
    duration: 9_000,
    resourceVersion: "1",
  });
  await clock.advance(1_000);
  const taken = await lock.acquire(first!, true, signal);
  assert.deepEqual(taken, {
    holder: "b",
    duration: 2_000,
    resourceVersion: "2",
  });
  await clock.advance(1_000);
  const renewed = await lock.acquire(taken!, false, signal);
  await clock.advance(1_000);
  await lock.release(renewed!, signal);
  assert.deepEqual(
    sent.map(({ metadata: { resourceVersion }, spec }) => [
      resourceVersion,
      spec,
    ]),
    ([
      ["1", "b", 2, AT(1), AT(1)],
      ["2", "b", 2, AT(1), AT(2)],
      ["3", "", 1, AT(3), AT(3)],
    ] as const).map((
      [read, holder, seconds, acquireTime, renewTime],
    ) => [read, {
      ...strategy,
      holderIdentity: holder,
      leaseDurationSeconds: seconds,
      acquireTime,
      renewTime,
      leaseTransitions: 5,
    }]),
  );
});

test("LeaseLock creates a Lease that it holds, without a transition", async () => {
  const { sent, lock } = lockOf((lease) => lease);
  assert.equal(await lock.read(signal), undefined);
  await lock.create(signal);
  assert.deepEqual(sent, [{
    metadata: NAME,
    spec: {
      holderIdentity: "b",
      leaseDurationSeconds: 2,
      acquireTime: AT(0),
      renewTime: AT(0),
      leaseTransitions: 0,
    },
  }]);
});

test("LeaseLock leaves a Lease alone that another has when it releases it", async () => {
  const theirs = { ...NAME, resourceVersion: "2" };
  const spec = { holderIdentity: "a", leaseTransitions: 4 };
  const conflict = new ApiError("No", { status: 409, reason: "Conflict" });
  const { sent, lock } = lockOf((lease) => {
    if (lease.metadata.resourceVersion === "1") throw conflict;
    return lease;
  }, { metadata: theirs, spec });
  const own = { holder: "b", duration: 2_000, resourceVersion: "1" };
  await lock.release(own, signal);
  assert.equal(sent.length, 1);
  // It was deleted since, and begins from zero.
  await lock.create(signal);
  assert.equal(sent[1]?.spec?.leaseTransitions, 0);
});

test("LeaseLock is late if another wrote, and fails if it may not write", async () => {
  const refused = (status: number, reason: string) => {
    const error = new ApiError("Refused", { status, reason });
    return lockOf(() => Promise.reject(error)).lock.create(signal);
  };
  assert.equal(await refused(409, "Conflict"), undefined);
  assert.equal(await refused(409, "AlreadyExists"), undefined);
  assert.equal(await refused(404, "NotFound"), undefined);
  await assert.rejects(refused(403, "Forbidden"), /Refused/);
  await assert.rejects(refused(500, "InternalError"), /Refused/);
});

test("LeaseLock takes fields that somebody has damaged for absent", async () => {
  const damaged: readonly unknown[] = [
    { holderIdentity: 5, leaseDurationSeconds: "x", leaseTransitions: -1 },
    { holderIdentity: null, leaseDurationSeconds: -5, leaseTransitions: "2" },
    { holderIdentity: {}, leaseDurationSeconds: 1.5, leaseTransitions: null },
  ];
  for (const spec of damaged) {
    const { lock, sent } = lockOf((lease) => lease, {
      metadata: { ...NAME, resourceVersion: "1" },
      spec: spec as object,
    });
    const found = await lock.read(signal);
    assert.deepEqual(found, {
      holder: "",
      duration: 1_000,
      resourceVersion: "1",
    });
    await lock.acquire(found!, true, signal);
    assert.equal(sent[0]?.spec?.leaseTransitions, 0);
  }
});

test("LeaseLock writes back what others have put into the metadata of a Lease", async () => {
  const server = await ApiServer.start({ port: false });
  const { client } = server;
  // Owners that do not exist would have the Lease collected as garbage.
  const owner = await client.create(ConfigMap, {
    metadata: { namespace: "default", name: "owner" },
  });
  const foreign = {
    labels: { "app.kubernetes.io/part-of": "shop" },
    annotations: { "example.com/owner": "team-a" },
    finalizers: ["example.com/keep"],
    ownerReferences: [{
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "owner",
      uid: owner.metadata.uid!,
    }],
  };
  await client.create(Lease, { metadata: { ...NAME, ...foreign } });
  const lock = new LeaseLock({
    client,
    clock: new VirtualClock(),
    ...NAME,
    identity: "b",
    leaseDuration: 1_500,
  });
  try {
    const metadata = async () => {
      const { labels, annotations, finalizers, ownerReferences } =
        (await client.get(Lease, NAME)).metadata;
      return { labels, annotations, finalizers, ownerReferences };
    };
    const taken = await lock.acquire((await lock.read(signal))!, true, signal);
    assert.deepEqual(await metadata(), foreign, "taken");
    const renewed = await lock.acquire(taken!, false, signal);
    assert.deepEqual(await metadata(), foreign, "renewed");
    // One that came since the last renewal is read before the release.
    await client.patch(Lease, NAME, { metadata: { labels: { late: "yes" } } });
    await lock.release(renewed!, signal);
    const labels = { ...foreign.labels, late: "yes" };
    assert.deepEqual(await metadata(), { ...foreign, labels }, "released");
    assert.equal((await client.get(Lease, NAME)).spec?.holderIdentity, "");
  } finally {
    await server.stop();
  }
});
