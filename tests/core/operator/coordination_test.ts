import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import {
  Client,
  type Clock,
  silentLogger,
  systemClock,
} from "@coracle/operator/client";
import type { LeaderElectionOptions } from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { resolveOptions } from "../../../core/api/options.ts";
import type { ManagedController } from "../../../core/operator/controller_start.ts";
import {
  Coordination,
  type CoordinationDeps,
} from "../../../core/operator/coordination.ts";
import { LEADER_ELECTION_OPTIONS } from "../../../core/operator/leader_election.ts";
import { Lease } from "../../../core/operator/lease_lock.ts";
import { until } from "../../support/until.ts";
import { ScriptedTransport } from "../../support/scripted_transport.ts";
import {
  atDistance,
  DistantProcess,
  GOOD_WAY,
} from "../../support/distant_process.ts";

const LOCK: LeaderElectionOptions & { readonly namespace: string } = {
  namespace: "default",
  name: "lock",
  identity: "a",
};

/** Coordination of one replica, by default without leader election and sharding. */
function coordinationWith(
  deps: Pick<CoordinationDeps, "client" | "clock"> & Partial<CoordinationDeps>,
): Coordination {
  return new Coordination({
    leaderElection: undefined,
    sharding: undefined,
    random: () => 0.5,
    log: silentLogger,
    syncTimeout: 120_000,
    startErrors: "fail",
    controllers: () => [],
    ...deps,
  });
}

for (
  const [end, back, holder] of [
    ["is released after a slow write", 8_000, ""],
    ["is kept if a write gets no answer for ten seconds", undefined, "a"],
  ] as const
) {
  test(`The Lease of an operator that stops ${end}`, () =>
    atDistance(async (surroundings) => {
      const { clock, server } = surroundings;
      const process = new DistantProcess(surroundings);
      const coordination = coordinationWith({
        leaderElection: resolveOptions(LOCK, LEADER_ELECTION_OPTIONS),
        client: process.client,
        clock: process.clock,
      });
      const started = coordination.start();
      await clock.advance(1_000);
      await started;
      assert.equal(coordination.isLeading, true);
      process.way = { there: 3, back };
      const metadata = { namespace: "default", name: "x" };
      const write = coordination.client.create(ConfigMap, { metadata }).then(
        () => "answered",
        () => "unanswered",
      );
      await clock.advance(10);
      process.way = GOOD_WAY;
      const stopped = coordination.stop();
      await clock.advance(11_000);
      await stopped;
      assert.equal(await write, back ? "answered" : "unanswered");
      const client = new Client({ transport: server, namespace: "default" });
      const lease = await client.get(Lease, LOCK);
      assert.equal(lease.spec?.holderIdentity, holder);
      assert.equal(coordination.isLeading, false);
    }));
}

test("The Lease of an operator is kept while any of its controllers runs an object", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const process = new DistantProcess(surroundings);
    const calls: string[] = [];
    const controller = (name: string, runningKeys: readonly string[]) =>
      ({
        runningKeys,
        startLeading: () => void calls.push(`start ${name}`),
        stopLeading: () => void calls.push(`stop ${name}`),
      }) as unknown as ManagedController;
    const controllers = [controller("a", []), controller("b", ["default/x"])];
    const coordination = coordinationWith({
      leaderElection: resolveOptions(LOCK, LEADER_ELECTION_OPTIONS),
      client: process.client,
      clock: process.clock,
      controllers: () => controllers,
    });
    assert.equal(coordination.mayRun, false);
    const started = coordination.start();
    await clock.advance(1_000);
    await started;
    assert.equal(coordination.mayRun, true);
    const stopped = coordination.stop();
    await clock.advance(1_000);
    await stopped;
    const client = new Client({ transport: server, namespace: "default" });
    const lease = await client.get(Lease, LOCK);
    assert.equal(lease.spec?.holderIdentity, "a");
    assert.deepEqual(calls, ["start a", "start b", "stop a", "stop b"]);
  }));

test("A replica that cannot renew its membership aborts its runs for its shard", () =>
  atDistance(async (surroundings) => {
    const process = new DistantProcess(surroundings);
    const aborts: unknown[] = [];
    const controller = {
      runningKeys: [],
      abort: (cause: unknown) => void aborts.push(cause),
      acquireShard() {},
      releaseShard: () => Promise.resolve(),
    } as unknown as ManagedController;
    const coordination = coordinationWith({
      sharding: resolveOptions(LOCK, LEADER_ELECTION_OPTIONS),
      client: process.client,
      clock: process.clock,
      controllers: () => [controller],
    });
    const started = coordination.start();
    await surroundings.clock.advance(5_000);
    await started;
    assert.deepEqual(aborts, []);
    process.way = { there: undefined, back: undefined };
    await surroundings.clock.advance(15_000);
    assert.deepEqual(aborts, ["shard"]);
    process.way = GOOD_WAY;
    const stopped = coordination.stop();
    await surroundings.clock.advance(11_000);
    await stopped;
  }));

test("A replica hands objects over only when its pending writes have ended", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const client = new Client({ transport: server, namespace: "default" });
    const metadata = { namespace: "default", name: "x" };
    let handsOver = false;
    let write: Promise<unknown> | undefined;
    const replica = (identity: string) => {
      const process = new DistantProcess(surroundings);
      const controller = {
        runningKeys: [],
        acquireShard() {},
        abort() {},
        // The run that ends for the release writes once more.
        releaseShard() {
          if (identity !== "a" || !handsOver) return Promise.resolve();
          handsOver = false;
          process.way = { there: 3, back: 9_000 };
          clock.setTimer(() => process.way = GOOD_WAY, 10);
          write = coordination.client.create(ConfigMap, { metadata });
          return Promise.resolve();
        },
      } as unknown as ManagedController;
      const coordination = coordinationWith({
        controllers: () => [controller],
        sharding: resolveOptions(
          { ...LOCK, identity },
          LEADER_ELECTION_OPTIONS,
        ),
        client: process.client,
        clock: process.clock,
      });
      return coordination;
    };
    /** Number of members in the view that the first replica has published. */
    const viewOfFirst = async () => {
      const { items } = await client.list(Lease, { namespace: "default" });
      const lease = items.find(({ metadata }) =>
        metadata.name.startsWith("lock-a-")
      );
      const view = lease?.metadata.annotations?.["coracle.dev/shard-view"];
      return (JSON.parse(view ?? "[]") as string[]).length;
    };
    const coordination = replica("a");
    const started = coordination.start();
    await clock.advance(5_000);
    await started;
    assert.equal(await viewOfFirst(), 1);
    handsOver = true;
    const second = replica("b");
    const joined = second.start();
    await clock.advance(7_000);
    await joined;
    assert.equal(await viewOfFirst(), 1, "the write is pending");
    await clock.advance(5_000);
    await write;
    assert.equal(await viewOfFirst(), 2);
    const stopped = Promise.all([coordination.stop(), second.stop()]);
    await clock.advance(1_000);
    await stopped;
  }));

test("A replica without leader election and sharding runs everything, unfenced", async () => {
  const client = new Client({ transport: new ScriptedTransport(() => ({})) });
  const coordination = coordinationWith({ client, clock: systemClock });
  const { mayRun, isLeading, shard, leader } = coordination;
  assert.deepEqual([mayRun, isLeading, shard, leader], [
    true,
    true,
    undefined,
    undefined,
  ]);
  assert.equal(coordination.client, client);
  await coordination.stop();
});

test("A replica asks for its rights in the namespace of its client, and may wait", async () => {
  for (const startErrors of ["fail", "wait"] as const) {
    const warned: unknown[] = [];
    const transport = new ScriptedTransport(({ method, path, body }) => {
      // The review has no answer yet; the Lease does not exist.
      if (method === "POST") return { body: JSON.parse(String(body)) };
      assert.match(path, /\/namespaces\/team\/leases\/lock$/);
      return { status: 404, body: { kind: "Status", reason: "NotFound" } };
    });
    const client = new Client({ transport, namespace: "team" });
    const options: LeaderElectionOptions = { name: "lock" };
    const coordination = coordinationWith({
      leaderElection: resolveOptions(options, LEADER_ELECTION_OPTIONS),
      client,
      clock: new VirtualClock(),
      log: {
        ...silentLogger,
        with: () => silentLogger,
        warn: (...line) => void warned.push(line),
      },
      startErrors,
    });
    const started = coordination.start();
    if (startErrors === "fail") {
      await assert.rejects(
        started,
        /^Error: Cannot elect a leader by Lease team\/lock: the right to get, create, update is missing, .* in namespace team with /,
      );
      assert.equal(transport.requests.length, 3);
      continue;
    }
    await started;
    assert.equal(warned.length, 1);
    await until("it leads", () => coordination.isLeading);
    const { spec } = JSON.parse(String(transport.requests.at(-1)?.body));
    assert.match(
      spec.holderIdentity,
      /._[0-9a-f]{8}$/,
      "no other has the name",
    );
    transport.script = ({ body }) => ({ body: JSON.parse(String(body)) });
    await coordination.stop();
  }
});

test("A replica does not start with only some of the rights that it needs", async () => {
  const { coordination } = answered(({ body }) => {
    const object = JSON.parse(String(body));
    const allowed = object.spec.resourceAttributes.verb !== "update";
    return { body: { ...object, status: { allowed } } };
  }, { leaderElection: SETTINGS });
  await assert.rejects(coordination.start(), /the right to update is missing/);
});

/** Coordination before a server that a function answers. */
function answered(
  answer: ConstructorParameters<typeof ScriptedTransport>[0],
  changes: Partial<ConstructorParameters<typeof Coordination>[0]>,
) {
  const transport = new ScriptedTransport(answer);
  const clock = new VirtualClock();
  const client = new Client({ transport, namespace: "team" }, { clock });
  const coordination = coordinationWith({ client, clock, ...changes });
  return { transport, clock, coordination };
}

const SETTINGS = resolveOptions<
  LeaderElectionOptions,
  "namespace" | "identity"
>(
  { name: "lock", identity: "Pod-A" },
  LEADER_ELECTION_OPTIONS,
);

test("A replica gives up the check of its rights after the limit of its start", async () => {
  const { clock, coordination } = answered(() => new Promise(() => {}), {
    leaderElection: SETTINGS,
  });
  const rejected = assert.rejects(
    coordination.start(),
    /received no answer from the server within 120000 ms$/,
  );
  await clock.advance(120_000);
  await rejected;
});

test("A leader starts no run once its Lease may have expired, and leads on", async () => {
  const time = new VirtualClock();
  let ahead = 0;
  const clock: Clock = {
    now: () => time.now() + ahead,
    wallTime: () => time.wallTime() + ahead,
    setTimer: (callback, delay) => time.setTimer(callback, delay),
  };
  const { transport, coordination } = answered(({ path, method, body }) => {
    if (method === "GET") return { status: 404, body: { kind: "Status" } };
    const object = JSON.parse(String(body));
    return path.includes("accessreviews")
      ? { body: { ...object, status: { allowed: true } } }
      : { body: object };
  }, { leaderElection: SETTINGS, clock });
  await coordination.start();
  await time.advance(1_000);
  const [review] = transport.requests;
  const { spec } = JSON.parse(String(review?.body));
  assert.equal(spec.resourceAttributes.namespace, "team");
  assert.deepEqual([coordination.mayRun, coordination.isLeading], [true, true]);
  // The process was suspended.
  ahead = 14_000;
  assert.deepEqual([coordination.mayRun, coordination.isLeading], [
    false,
    true,
  ]);
  ahead = 0;
  await coordination.stop();
});

test("A member of a shard group aborts its runs without a Lease, and knows what it had", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const client = new Client({ transport: server, namespace: "default" });
    const acquired: number[] = [];
    let aborts = 0;
    const keys = Array.from({ length: 20 }, (_, index) => `default/${index}`);
    const controller = {
      runningKeys: [],
      releaseShard: () => Promise.resolve(),
      acquireShard: (wasOwned: (key: string) => boolean) =>
        acquired.push(keys.filter(wasOwned).length),
      abort: () => aborts++,
    } as unknown as ManagedController;
    const replica = (controllers: readonly ManagedController[]) => {
      const process = new DistantProcess(surroundings);
      return coordinationWith({
        sharding: resolveOptions(
          { ...LOCK, identity: "Pod-A" },
          LEADER_ELECTION_OPTIONS,
        ),
        client: process.client,
        clock: process.clock,
        controllers: () => controllers,
      });
    };
    const first = replica([controller]);
    const started = first.start();
    await clock.advance(5_000);
    await started;
    const second = replica([]);
    const joined = second.start();
    await clock.advance(10_000);
    await joined;
    const left = second.stop();
    await clock.advance(10_000);
    await left;
    const last = acquired.at(-1) ?? 0;
    assert.ok(last > 0 && last < keys.length, "a part was its own before");
    assert.equal(aborts, 0);
    const { items } = await client.list(Lease, { namespace: "default" });
    assert.equal(items.length, 1);
    for (const { metadata } of items) {
      assert.match(metadata.name, /^lock-pod-a-[0-9a-f]{8}$/);
      await client.delete(Lease, metadata);
    }
    await clock.advance(10_000);
    assert.equal(aborts, 1);
    const stopped = first.stop();
    await clock.advance(1_000);
    await stopped;
  }));
