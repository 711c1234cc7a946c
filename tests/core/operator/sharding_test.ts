import assert from "node:assert/strict";
import { test } from "node:test";
import type { Transport } from "@coracle/operator/client";
import { fc } from "../../support/property.ts";
import { Client } from "../../../core/client/client.ts";
import { silentLogger } from "../../../core/logger.ts";
import { LEADER_ELECTION_OPTIONS } from "../../../core/operator/leader_election.ts";
import { resolveOptions } from "../../../core/api/options.ts";
import { Lease } from "../../../core/operator/lease_lock.ts";
import {
  type LeasedMember,
  MemberTracker,
  ShardLeases,
} from "../../../core/operator/shard_leases.ts";
import {
  isOwned,
  type MembershipStore,
  Sharding,
} from "../../../core/operator/sharding.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import {
  anyWay,
  atDistance,
  DistantProcess,
  GOOD_WAY,
  type Surroundings,
} from "../../support/distant_process.ts";

const TIMES = resolveOptions({ name: "shards" }, LEADER_ELECTION_OPTIONS);
const KEYS = Array.from({ length: 12 }, (_, index) => `default/${index}`);

test("isOwned waits for a member that may still run the object", () => {
  const [key] = KEYS as [string];
  const state = {
    identity: "a",
    members: ["a"],
    nextMembers: undefined,
    others: [] as { identity: string; members: readonly string[] }[],
  };
  assert.equal(isOwned(key, state), true);
  assert.equal(
    isOwned(key, { ...state, members: [] }),
    false,
    "not joined yet",
  );
  const b = { identity: "b", members: ["b"] };
  assert.equal(isOwned(key, { ...state, others: [b] }), false);
  const joining = { identity: "b", members: [] };
  assert.equal(isOwned(key, { ...state, others: [joining] }), true);
  const lost = KEYS.find((key) =>
    !isOwned(key, { ...state, members: ["a", "b"] })
  );
  const changing = { ...state, nextMembers: ["a", "b"] };
  assert.equal(isOwned(lost as string, changing), false, "it is given up");
});

test("MemberTracker measures silence between an answer and the next request", () => {
  const member = (resourceVersion: string): LeasedMember => ({
    identity: "a",
    members: [],
    resourceVersion,
    duration: 15_000,
  });
  const seen = new MemberTracker();
  const look = (version: string, askedAt: number, answeredAt: number) =>
    seen.observe([member(version)], { askedAt, answeredAt });
  assert.equal(look("1", 0, 1_000).living.length, 1);
  assert.equal(look("1", 15_500, 30_000).living.length, 1, "an old answer");
  assert.equal(look("1", 16_000, 16_000).living.length, 0);
  assert.equal(look("2", 20_000, 20_000).living.length, 1, "it is back");
  assert.deepEqual(look("2", 170_000, 170_000).expired, []);
  assert.equal(look("2", 170_001, 170_001).expired.length, 1);
});

const nothing = (): Promise<void> => Promise.resolve();

/** A group as one member, `a`, sees it: the test says what the others do. */
class StagedGroup implements MembershipStore {
  readonly clock: VirtualClock = new VirtualClock();
  readonly sharding: Sharding;
  /** What `a` has published, the last at the end. */
  readonly published: (readonly string[])[] = [];
  /** Other members, as shown to `a`. */
  others: { readonly identity: string; readonly members: readonly string[] }[] =
    [];
  /** Awaited before the publishing of a view is answered. */
  publishing: (members: readonly string[]) => Promise<void> = nothing;
  /** Awaited before the other members are listed, after a view is published. */
  looking: (members: readonly string[]) => Promise<void> = nothing;
  /** Awaited before the runs that a view takes away have ended. */
  releasing: () => Promise<void> = nothing;
  losses = 0;
  /** How many objects were not owned before, each time that some may be gained. */
  readonly acquired: number[] = [];
  /** Memberships that it has logged. */
  readonly logged: unknown[] = [];
  /** Whether the Lease of `a` is still there when it is renewed. */
  hasLease = true;
  /** Members whose Leases `a` has removed. */
  readonly removed: string[] = [];
  /** How often it has left the group. */
  left = 0;
  /** Whether the Leases of the others are renewed each time that they are listed. */
  areOthersAlive = true;
  #version = 0;

  constructor() {
    this.sharding = new Sharding({
      store: this,
      identity: "a",
      times: TIMES,
      clock: this.clock,
      log: {
        ...silentLogger,
        info: (_message, fields) => void this.logged.push(fields?.["members"]),
      },
      onRelease: () => this.releasing(),
      onAcquire: (wasOwned) =>
        this.acquired.push(KEYS.filter((key) => !wasOwned(key)).length),
      onLost: () => this.losses++,
    });
  }

  get owned(): number {
    return KEYS.filter((key) => this.sharding.owns(key)).length;
  }

  async publish(
    members: readonly string[],
  ): Promise<boolean> {
    const isFirst = this.published.push(members) === 1;
    await this.publishing(members);
    return !isFirst && this.hasLease;
  }

  async members(): Promise<readonly LeasedMember[]> {
    await this.looking(this.published.at(-1) ?? []);
    const own = { identity: "a", members: this.published.at(-1) ?? [] };
    return [own, ...this.others].map((member) => ({
      ...member,
      resourceVersion: String(
        this.areOthersAlive ? ++this.#version : this.#version,
      ),
      duration: TIMES.leaseDuration,
    }));
  }

  leave(): Promise<void> {
    this.left++;
    return nothing();
  }

  remove({ identity }: { readonly identity: string }): Promise<void> {
    this.removed.push(identity);
    return nothing();
  }
}

test("Sharding runs gained objects only after checking the claims of others", async () => {
  const group = new StagedGroup();
  const { clock, sharding } = group;
  group.others = [{ identity: "b", members: ["a", "b"] }];
  sharding.start();
  await clock.advance(1_000);
  const part = group.owned;
  assert.ok(part > 0 && part < KEYS.length);

  // B has left and A announces the takeover, but C joins before A lists members.
  group.others = [];
  let look = () => {};
  group.looking = (view) =>
    view.length === 1
      ? new Promise((resolve) => look = resolve)
      : Promise.resolve();
  await clock.advance(3_000);
  assert.deepEqual(group.published.at(-1), ["a"]);
  assert.equal(group.owned, part);
  group.others = [{ identity: "c", members: ["c"] }];
  look();
  await clock.settle();
  assert.equal(group.owned, 0, "C claims everything");
  group.others = [{ identity: "c", members: ["a", "c"] }];
  await clock.advance(3_000);
  assert.ok(group.owned > 0 && group.owned < KEYS.length);
  await sharding.stop();
});

test("Sharding stops if a renewal is answered after its lease could have expired", async () => {
  const group = new StagedGroup();
  const { clock, sharding } = group;
  sharding.start();
  await clock.advance(1_000);
  assert.equal(group.owned, KEYS.length);
  let answer = () => {};
  group.publishing = () => new Promise((resolve) => answer = resolve);
  await clock.advance(13_400);
  assert.equal(group.losses, 0);
  await clock.advance(200);
  group.publishing = nothing;
  answer();
  await clock.settle();
  assert.equal(group.losses, 1);
  assert.equal(group.owned, 0);
  await clock.advance(3_000);
  assert.deepEqual(group.published.slice(-3), [[], ["a"], ["a"]]);
  assert.equal(group.owned, KEYS.length);
  await sharding.stop();
});

test("Sharding counts its lease from the request that renewed it, not the answer", async () => {
  const group = new StagedGroup();
  const { clock, sharding } = group;
  sharding.start();
  await clock.advance(1_000);
  let answer = () => {};
  group.publishing = () => new Promise((resolve) => answer = resolve);
  await clock.advance(5_000);
  answer();
  await clock.advance(1);
  assert.equal(group.owned, KEYS.length);
  // Sent after 2 s, answered after 6 s: held for nine tenths of 15 s.
  await clock.advance(9_400);
  assert.equal(group.owned, KEYS.length);
  await clock.advance(200);
  assert.equal(group.owned, 0);
  answer();
  await sharding.stop();
});

test("Sharding takes over from a member whose Lease stood still from answer to request", async () => {
  const group = new StagedGroup();
  const { clock, sharding } = group;
  group.others = [{ identity: "b", members: ["b"] }];
  group.areOthersAlive = false;
  let answer = () => {};
  group.looking = () => new Promise((resolve) => answer = resolve);
  sharding.start();
  // Each list takes 4 s. The first shows the Lease after 4 s; those asked for
  // until 16 s are too early to tell that it stood still for 15 s.
  for (let second = 4; second <= 20; second += 4) {
    await clock.advance(4_000);
    answer();
    await clock.settle();
    assert.equal(group.owned, 0, `after ${second} s`);
  }
  await clock.advance(4_000);
  answer();
  await clock.settle();
  assert.ok(group.owned > 0);
  group.looking = nothing;
  answer();
  await clock.advance(6_000);
  assert.equal(group.owned, KEYS.length);
  await sharding.stop();
});

test("Sharding announces objects each time that it may gain some, and at no other", async () => {
  const group = new StagedGroup();
  const { clock, sharding, acquired } = group;
  group.others = [{ identity: "b", members: ["b"] }];
  sharding.start();
  await clock.advance(1_000);
  assert.equal(group.owned, 0, "B still claims everything");
  acquired.length = 0;
  await clock.advance(10_000);
  assert.deepEqual(acquired, []);
  group.others = [{ identity: "b", members: ["a", "b"] }];
  await clock.advance(3_000);
  const part = group.owned;
  assert.ok(part > 0 && part < KEYS.length);
  assert.deepEqual(acquired, [KEYS.length]);
  // B has left: first its claims end, then the membership has one member.
  group.others = [];
  await clock.advance(30_000);
  assert.equal(group.owned, KEYS.length);
  assert.equal(acquired.at(-1), KEYS.length - part);
  const { length } = acquired;
  await clock.advance(30_000);
  assert.equal(acquired.length, length);
  assert.deepEqual(group.logged, [["a", "b"], ["a"]]);
  await sharding.stop();
  assert.equal(group.left, 1);
});

test("Sharding joins again only when its runs of the lost membership have ended", async () => {
  const group = new StagedGroup();
  const { clock, sharding } = group;
  sharding.start();
  await clock.advance(1_000);
  let end = () => {};
  group.releasing = () => new Promise((resolve) => end = resolve);
  group.publishing = () => Promise.reject(new Error("no route"));
  await clock.advance(15_000);
  assert.equal(group.losses, 1);
  group.publishing = nothing;
  const { length } = group.published;
  await clock.advance(60_000);
  assert.equal(group.published.length, length, "its runs go on");
  group.releasing = nothing;
  end();
  await clock.advance(6_000);
  assert.equal(group.owned, KEYS.length);
  await sharding.stop();
});

test("Sharding takes no view over whose runs have ended for a view given up before", async () => {
  const group = new StagedGroup();
  const { clock, sharding } = group;
  sharding.start();
  await clock.advance(1_000);
  const releases: PromiseWithResolvers<void>[] = [];
  group.releasing = () => {
    const release = Promise.withResolvers<void>();
    releases.push(release);
    return release.promise;
  };
  group.others = [{ identity: "b", members: ["a", "b"] }];
  await clock.advance(2_000);
  assert.equal(releases.length, 1, "for the view of a and b");
  group.publishing = () => Promise.reject(new Error("no route"));
  await clock.advance(15_000);
  assert.equal(group.losses, 1);
  group.publishing = nothing;
  releases[1]?.resolve();
  await clock.advance(5_000);
  assert.equal(
    releases.length,
    3,
    "for the same view, after it has joined again",
  );
  assert.deepEqual(group.published.at(-1), []);
  releases[0]?.resolve();
  await clock.advance(5_000);
  assert.deepEqual(group.published.at(-1), []);
  releases[2]?.resolve();
  await clock.advance(5_000);
  assert.deepEqual(group.published.at(-1), ["a", "b"]);
  await sharding.stop();
});

/** The replicas of one operator. */
class Group {
  readonly surroundings: Surroundings;
  /** Replicas in use. */
  readonly replicas: Replica[] = [];
  readonly keys: readonly string[];
  #names = 0;

  constructor(surroundings: Surroundings, keys: readonly string[] = KEYS) {
    this.surroundings = surroundings;
    this.keys = keys;
  }

  join(): Replica {
    const replica = new Replica(`r${++this.#names}`, this);
    this.replicas.push(replica);
    replica.sharding.start();
    return replica;
  }

  /** Replicas that run an object and whose writes reach the server. */
  runners(key: string): readonly string[] {
    return this.replicas
      .filter(({ running, sharding }) => running.has(key) && sharding.isHeld)
      .map(({ identity }) => identity);
  }

  /** Lets every replica that is not paused run its objects. */
  look(): void {
    for (const replica of this.replicas) replica.look();
    for (const key of this.keys) {
      const runners = this.runners(key);
      assert.ok(runners.length <= 1, `${key}: ${runners.join()}`);
    }
  }
}

/** One replica, whose runs never end unless they must. */
class Replica {
  readonly identity: string;
  readonly group: Group;
  readonly process: DistantProcess;
  readonly sharding: Sharding;
  /** Time that its runs need to end, in milliseconds. */
  drain = 0;
  running: ReadonlySet<string> = new Set();

  constructor(identity: string, group: Group) {
    this.identity = identity;
    this.group = group;
    this.process = new DistantProcess(group.surroundings);
    const { client, clock } = this.process;
    this.sharding = new Sharding({
      store: new ShardLeases({
        client,
        clock,
        namespace: "default",
        name: "shards",
        identity,
        leaseDuration: TIMES.leaseDuration,
      }),
      identity,
      times: TIMES,
      clock,
      log: silentLogger,
      onRelease: () => this.#yield(),
      onAcquire: () => this.look(),
      onLost: () => {}, // Its runs take their time.
    });
  }

  /** Starts runs of the owned objects. */
  look(): void {
    if (!this.process.isAwake) return;
    for (const key of this.#owned) {
      if (this.running.has(key)) continue;
      this.running = new Set([...this.running, key]);
      const runners = this.group.runners(key);
      assert.deepEqual(runners, [this.identity], `${key} begins`);
    }
  }

  /** Leaves in order. */
  async leave(): Promise<void> {
    this.running = new Set();
    await this.sharding.stop();
  }

  kill(): void {
    this.process.kill();
    this.running = new Set();
  }

  get #owned(): readonly string[] {
    return this.group.keys.filter((key) => this.sharding.owns(key));
  }

  #yield(): Promise<void> {
    return new Promise((resolve) =>
      this.process.clock.setTimer(() => {
        const owned = new Set(this.#owned);
        this.running = new Set(
          [...this.running].filter((key) => owned.has(key)),
        );
        resolve();
      }, this.drain)
    );
  }
}

/** Faults of a replica. */
const trouble = fc.record({
  replica: fc.nat(2),
  way: anyWay,
  standsStill: fc.constantFrom(0, 0, 0, 5_000, 12_000, 16_000, 30_000),
  drain: fc.constantFrom(0, 0, 100, 5_000),
  end: fc.constantFrom(
    "no" as const,
    "no" as const,
    "no" as const,
    "leave" as const,
    "kill" as const,
  ),
  for: fc.integer({ min: 500, max: 20_000 }),
});

test("Sharding never runs an object twice under network and scheduler faults", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(trouble, { minLength: 1, maxLength: 10 }),
      (troubles) =>
        atDistance(async (surroundings) => {
          const { clock, server } = surroundings;
          const group = new Group(surroundings);
          const { replicas } = group;
          for (let count = 0; count < 3; count++) group.join();
          const leaving: Promise<void>[] = [];
          for (const trouble of troubles) {
            const replica = replicas[trouble.replica] as Replica;
            replica.process.way = trouble.way;
            replica.drain = trouble.drain;
            replica.process.stoppedUntil = clock.now() + trouble.standsStill;
            if (trouble.end !== "no") {
              replicas.splice(trouble.replica, 1);
              if (trouble.end === "kill") replica.kill();
              else leaving.push(replica.leave());
              group.join();
            }
            for (let passed = 0; passed < trouble.for; passed += 250) {
              await clock.advance(250);
              group.look();
            }
          }
          for (const replica of replicas) {
            replica.process.way = GOOD_WAY;
            replica.drain = 0;
          }
          await clock.advance(90_000);
          group.look();
          for (const key of KEYS) {
            const runners = group.runners(key);
            assert.equal(runners.length, 1, `in the end somebody runs ${key}`);
          }
          leaving.push(...replicas.map((replica) => replica.leave()));
          await clock.advance(60_000);
          await Promise.all(leaving);
          const members = await leases(server);
          for (const { identity } of replicas) {
            assert.ok(!members.includes(identity), `${identity} has left`);
          }
        }),
    ),
    { numRuns: 15 },
  );
});

for (const end of ["leaves", "is killed"] as const) {
  test(`Of ten replicas one ${end}: only its keys move, and none runs twice`, () =>
    atDistance(async (surroundings) => {
      const { clock } = surroundings;
      const keys = Array.from({ length: 60 }, (_, at) => `default/${at}`);
      const group = new Group(surroundings, keys);
      const { replicas } = group;
      for (let count = 0; count < 10; count++) group.join();
      const pass = async (time: number, look = () => {}) => {
        for (let passed = 0; passed < time; passed += 4_000) {
          await clock.advance(4_000);
          group.look();
          look();
        }
      };
      await pass(30_000);
      const before = new Map(keys.map((key) => [key, group.runners(key)[0]]));
      assert.equal(new Set(before.values()).size, 10, "each has a share");
      const [gone] = replicas.splice(4, 1) as [Replica];
      const left = end === "leaves" ? gone.leave() : gone.kill();
      // The keys of the others stay where they are, all the time.
      await pass(40_000, () => {
        for (const [key, owner] of before) {
          if (owner === gone.identity) continue;
          assert.deepEqual(group.runners(key), [owner], key);
        }
      });
      await left;
      const moved = keys.filter((key) => before.get(key) === gone.identity);
      const heirs = new Set(moved.flatMap((key) => group.runners(key)));
      assert.ok(moved.every((key) => group.runners(key).length === 1));
      assert.ok(heirs.size > 1, "several replicas take its keys over");
      const leaving = replicas.map((replica) => replica.leave());
      await clock.advance(20_000);
      await Promise.all(leaving);
    }));
}

/** Holders of Leases, as stored on the server. */
async function leases(server: Transport): Promise<readonly string[]> {
  const client = new Client({ transport: server, namespace: "default" });
  const { items } = await client.list(Lease);
  return items.map(({ spec }) => spec?.holderIdentity ?? "");
}

test("Sharding ends its runs when somebody has deleted its Lease", async () => {
  const group = new StagedGroup();
  group.sharding.start();
  await group.clock.advance(1_000);
  assert.ok(group.owned > 0);
  group.hasLease = false;
  await group.clock.advance(2_000);
  assert.equal(group.losses, 1);
  await group.sharding.stop();
});

test("Sharding publishes each member once, in an order that all share", async () => {
  const group = new StagedGroup();
  group.others = [{ identity: "0", members: ["0", "a"] }];
  group.sharding.start();
  await group.clock.advance(5_000);
  assert.deepEqual(group.published.at(-1), ["0", "a"]);
  await group.sharding.stop();
});

test("Sharding removes a member that was silent for ten durations", async () => {
  const group = new StagedGroup();
  group.others = [{ identity: "b", members: ["b"] }];
  group.areOthersAlive = false;
  group.sharding.start();
  await group.clock.advance(10 * TIMES.leaseDuration);
  assert.deepEqual(group.removed, []);
  await group.clock.advance(TIMES.retryPeriod);
  assert.ok(group.removed.length > 0);
  assert.deepEqual(new Set(group.removed), new Set(["b"]));
  await group.sharding.stop();
});
