import assert from "node:assert/strict";
import { test } from "node:test";
import type { LeaderElectionOptions, Transport } from "@coracle/operator/core";
import { ApiServer } from "../../../dev/apiserver/server.ts";
import { resolveOptions } from "../../../core/api/options.ts";
import { operatorSettings } from "../../../core/operator/operator_options.ts";
import { fc } from "../../support/property.ts";
import { Client } from "../../../core/client/client.ts";
import { silentLogger } from "../../../core/logger.ts";
import { abortable } from "../../../core/signals.ts";
import { VirtualClock } from "../../../dev/testing/virtual_clock.ts";
import {
  checkLeaseTimes,
  LEADER_ELECTION_OPTIONS,
  LeaderElection,
} from "../../../core/operator/leader_election.ts";
import {
  decideLease,
  giveUpAt,
  heldUntil,
  type LeaseRecord,
  observe,
} from "../../../core/operator/lease_decision.ts";
import {
  Lease,
  LeaseLock,
  leaseSeconds,
} from "../../../core/operator/lease_lock.ts";
import { LeakGuard } from "../../support/leaks.ts";
import {
  anyWay,
  atDistance,
  DistantProcess,
  GOOD_WAY,
  type Surroundings,
} from "../../support/distant_process.ts";

const LOCK: LeaderElectionOptions & { readonly namespace: string } = {
  namespace: "default",
  name: "lock",
};
const TIMES = resolveOptions(LOCK, LEADER_ELECTION_OPTIONS);

function record(holder: string, resourceVersion = "1"): LeaseRecord {
  return { holder, duration: 15_000, resourceVersion };
}

test("Leader election has client-go's defaults and rejects invalid options", () => {
  const { leaseDuration, renewDeadline, retryPeriod } = TIMES;
  assert.deepEqual({ leaseDuration, renewDeadline, retryPeriod }, {
    leaseDuration: 15_000,
    renewDeadline: 10_000,
    retryPeriod: 2_000,
  });
  const bad = [
    { leaseDuration: "10s" },
    { renewDeadline: "2s" },
    { retryPeriod: 0 },
    { retryPeriod: "9s" },
    { leaseDuration: 500, renewDeadline: 300, retryPeriod: 100 },
  ] as const;
  for (const options of bad) {
    assert.throws(
      () => checkLeaseTimes({ name: "lock", ...options }),
      RangeError,
    );
  }
  const elected = (leaderElection: LeaderElectionOptions) => () =>
    operatorSettings({ leaderElection }, undefined);
  assert.throws(
    elected({ name: "" }),
    /"name" must be a string that is not empty/,
  );
  const shared = (sharding: LeaderElectionOptions) => () =>
    operatorSettings({ sharding }, undefined);
  for (const name of ["Shop", "a_b", "a..b", "-a"]) {
    const use = { name };
    assert.throws(elected(use), /"name" must be that of a Lease, .*received "/);
    assert.throws(shared(use), /sharding: "name" must be that of a Lease/);
    const member = { name: "shop", identity: name };
    elected(member)();
    if (name === "Shop") shared(member)(); // Becomes lower case.
    else {assert.throws(
        shared(member),
        /sharding: "identity" must be that of a/,
      );}
  }
  elected({ name: "shop.example.com" })();
  const misspelt = { name: "lock", leaseDuraton: "1s" };
  assert.throws(elected(misspelt), /did you mean "leaseDuration"/);
});

test("Names of Leases have the limits of the server, for sharding those of labels", async () => {
  const server = await ApiServer.start({ port: false });
  const create = async (name: string, label: string) => {
    const labels = { group: label };
    const metadata = { namespace: "default", name, labels };
    await server.client.create(Lease, { metadata });
  };
  const elect = (name: string) =>
    operatorSettings({ leaderElection: { name } }, undefined);
  const share = (name: string, identity?: string) =>
    operatorSettings({ sharding: { name, identity } }, undefined);
  const text = (length: number) => "a".repeat(length);
  try {
    elect(text(253));
    await create(text(253), "");
    assert.throws(() => elect(text(254)), /"name" must be at most 253 char/);
    await assert.rejects(create(text(254), ""));
    share(text(63), text(63));
    await create(`${text(63)}-${text(63)}-12345678`, text(63));
    assert.throws(
      () => share(text(64)),
      /sharding: "name" must be at most 63 char/,
    );
    await assert.rejects(create("b", text(64)));
    assert.throws(
      () => share("shop", text(64)),
      /sharding: "identity" must be at most 63 char/,
    );
  } finally {
    await server.stop();
  }
});

test("observe counts from the first observation of a record", () => {
  const first = observe(undefined, record("a"), 100);
  assert.equal(observe(first, record("a"), 900), first);
  assert.equal(observe(first, record("a", "2"), 900).seenAt, 900);
  const ninth = observe(undefined, record("a", "9"), 100);
  assert.equal(observe(ninth, record("a", "10"), 900).seenAt, 900);
  assert.equal(observe(ninth, record("a", "8"), 900).seenAt, 900);
});

test("decideLease takes an own, free or expired lease, and waits otherwise", () => {
  const seen = (holder: string) => ({ record: record(holder), seenAt: 1_000 });
  assert.equal(decideLease(seen("a"), "a", 2_000), "renew");
  assert.equal(decideLease(seen(""), "a", 2_000), "takeOver");
  assert.equal(decideLease(seen("b"), "a", 15_999), "wait");
  assert.equal(decideLease(seen("b"), "a", 16_000), "takeOver");
});

test("giveUpAt is the renew deadline, and later only for an attempt that began late", () => {
  assert.equal(giveUpAt(0, { at: 2_000, previousAt: 0 }, TIMES), 10_000);
  assert.equal(giveUpAt(0, { at: 9_000, previousAt: 7_000 }, TIMES), 10_000);
  assert.equal(giveUpAt(0, { at: 9_500, previousAt: 5_500 }, TIMES), 10_000);
  assert.equal(giveUpAt(0, { at: 11_000, previousAt: 2_000 }, TIMES), 13_000);
  assert.equal(giveUpAt(0, { at: 12_500, previousAt: 2_000 }, TIMES), 13_500);
  assert.equal(heldUntil(0, TIMES), 13_500);
  const late = { ...TIMES, renewDeadline: 14_500 };
  assert.equal(giveUpAt(0, { at: 2_000, previousAt: 0 }, late), 13_500);
});

test("leaseSeconds is never shorter than the holder's lease duration", () => {
  assert.deepEqual([1_000, 1_400, 1_500, 15_000].map(leaseSeconds), [
    1,
    2,
    2,
    15,
  ]);
});

/** A replica "a" whose lock the test plays; its calls are recorded. */
function played(lock: {
  readonly read?: () => LeaseRecord | undefined;
  readonly acquire?: () => LeaseRecord | undefined;
  readonly release?: () => Promise<void>;
}, answered = (_signal: AbortSignal) => Promise.resolve()) {
  const logged: string[] = [];
  const note = (level: string) => (text: string) =>
    void logged.push(`${level}: ${text}`);
  const calls: string[] = [];
  const clock = new VirtualClock();
  const call = (text: string) => calls.push(`${clock.now()} ${text}`);
  const election = new LeaderElection({
    identity: "a",
    times: TIMES,
    clock,
    log: { ...silentLogger, info: note("info"), warn: note("warn") },
    random: () => 0.5,
    lock: {
      async read(signal) {
        call("read");
        await answered(signal);
        return lock.read?.();
      },
      create() {
        call("create");
        return Promise.resolve(record("a"));
      },
      acquire(_record, transition) {
        call(transition ? "take over" : "renew");
        return Promise.resolve(lock.acquire?.());
      },
      release() {
        call("release");
        return lock.release?.() ?? Promise.resolve();
      },
    },
    onStartedLeading: () => call("leads"),
    onStoppedLeading: () => call("stops"),
  });
  return { election, clock, calls, logged };
}

test("LeaderElection that waits asks after the retry period, with jitter", async () => {
  const { election, clock, calls } = played({ read: () => record("b") });
  election.start();
  election.start();
  await clock.advance(5_000);
  assert.deepEqual(calls, ["0 read", "2200 read", "4400 read"]);
  assert.equal(election.leader, "b");
  await election.stop();
  assert.equal(clock.pendingTimers, 0);
  assert.equal(calls.length, 3, "it has nothing to release");
});

test("LeaderElection stops leading when it sees another holder", async () => {
  let stored = record("");
  const { election, clock, calls } = played({
    read: () => stored,
    acquire: () => calls.length === 2 ? record("a", "2") : undefined,
  });
  election.start();
  await clock.advance(1_000);
  stored = record("b", "3");
  await clock.advance(1_000);
  assert.deepEqual(calls, [
    "0 read",
    "0 take over",
    "0 leads",
    "2000 renew",
    "2000 read",
    "2000 stops",
  ]);
  assert.deepEqual([election.isTaken, election.leader], [false, "b"]);
  await election.stop();
});

test("LeaderElection stops leading when another was faster to write", async () => {
  const { election, clock, calls } = played({
    read: () => record("a", "1"),
    acquire: () => calls.length === 2 ? record("a", "2") : undefined,
  });
  election.start();
  await clock.advance(2_000);
  assert.deepEqual(calls, [
    "0 read",
    "0 renew",
    "0 leads",
    "2000 renew",
    "2000 read",
    "2000 renew",
    "2000 stops",
  ]);
  await election.stop();
});

test("LeaderElection that stops waits a retry period for its release", async () => {
  const { election, clock, calls } = played({
    release: () => new Promise(() => {}),
  });
  election.start();
  await clock.advance(1_000);
  let hasStopped = false;
  const stopped = election.stop().then(() => hasStopped = true);
  await clock.advance(1_999);
  assert.equal(hasStopped, false);
  await clock.advance(1);
  assert.equal(hasStopped, true);
  await stopped;
  const begin = ["0 read", "0 create", "0 leads"];
  assert.deepEqual(calls, [...begin, "1000 stops", "1000 release"]);
});

/** Holder of the lease, as stored on the server. */
async function holder(server: Transport): Promise<string | undefined> {
  const client = new Client({ transport: server, namespace: "default" });
  return (await client.find(Lease, LOCK))?.spec?.holderIdentity;
}

/** One replica. */
class Replica {
  readonly identity: string;
  readonly process: DistantProcess;
  readonly election: LeaderElection;
  starts = 0;
  stops = 0;

  constructor(identity: string, surroundings: Surroundings, rate = 1) {
    this.identity = identity;
    this.process = new DistantProcess(surroundings, rate);
    const { client, clock } = this.process;
    this.election = new LeaderElection({
      lock: new LeaseLock({
        client,
        clock,
        ...LOCK,
        identity,
        leaseDuration: TIMES.leaseDuration,
      }),
      identity,
      times: TIMES,
      clock,
      random: () => 0.5,
      log: silentLogger,
      onStartedLeading: () => this.starts++,
      onStoppedLeading: () => this.stops++,
    });
  }
}

/** Leading replica and candidate. */
async function leaderAndNext(
  surroundings: Surroundings,
): Promise<{ readonly a: Replica; readonly b: Replica }> {
  const a = new Replica("a", surroundings);
  const b = new Replica("b", surroundings);
  a.election.start();
  await surroundings.clock.advance(100);
  b.election.start();
  return { a, b };
}

test("LeaderElection elects the next leader as soon as one stops [LeaderElectionE2E]", () =>
  atDistance(async (surroundings) => {
    const { clock } = surroundings;
    const { a, b } = await leaderAndNext(surroundings);
    await clock.advance(60_000);
    assert.equal(a.election.isTaken, true);
    assert.equal(b.election.isTaken, false);
    assert.deepEqual([a.election.leader, b.election.leader], ["a", "a"]);
    const stopped = a.election.stop();
    await clock.advance(5_000);
    await stopped;
    assert.equal(b.election.isTaken, true, "it need not wait for the expiry");
    assert.equal(b.election.leader, "b");
    assert.deepEqual([a.starts, a.stops, b.starts], [1, 1, 1]);
    const last = b.election.stop();
    await clock.advance(100);
    await last;
    assert.equal(await holder(surroundings.server), "");
    assert.equal(clock.pendingTimers, 0);
  }));

test("LeaderElection goes on leading when somebody deletes its Lease", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const a = new Replica("a", surroundings);
    a.election.start();
    await clock.advance(5_000);
    const client = new Client({ transport: server, namespace: "default" });
    await client.delete(Lease, LOCK);
    await clock.advance(5_000);
    assert.equal(await holder(server), "a");
    assert.deepEqual([a.starts, a.stops], [1, 0]);
    const stopped = a.election.stop();
    await clock.advance(100);
    await stopped;
  }));

test("LeaderElection goes on leading when somebody else changes its Lease", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const a = new Replica("a", surroundings);
    a.election.start();
    await clock.advance(5_000);
    const client = new Client({ transport: server, namespace: "default" });
    await client.patch(Lease, LOCK, { metadata: { labels: { seen: "yes" } } });
    await clock.advance(4_500);
    assert.equal(a.election.isTaken, true);
    assert.deepEqual([a.starts, a.stops], [1, 0]);
    const stopped = a.election.stop();
    await clock.advance(100);
    await stopped;
    assert.equal(await holder(server), "", "the latest version is released");
  }));

test("LeaderElection that stops amid a renewal releases the lease", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const a = new Replica("a", surroundings);
    a.election.start();
    await clock.advance(1_000);
    a.process.way = { there: 50, back: 9_000 };
    await clock.advance(4_000);
    a.process.way = GOOD_WAY;
    const stopped = a.election.stop();
    await clock.advance(1_000);
    await stopped;
    assert.equal(await holder(server), "");
  }));

test("LeaderElection keeps the lease when it stops while a run continues", () =>
  atDistance(async (surroundings) => {
    const { clock } = surroundings;
    const { a, b } = await leaderAndNext(surroundings);
    await clock.advance(5_000);
    await a.election.stop({ release: false });
    assert.equal(a.election.isTaken, false);
    assert.equal(await holder(surroundings.server), "a");
    await clock.advance(10_000);
    assert.equal(b.election.isTaken, false);
    await clock.advance(10_000);
    assert.equal(b.election.isTaken, true, "the lease has expired");
    const last = b.election.stop();
    await clock.advance(100);
    await last;
  }));

test("LeaderElection steps down at the renew deadline and leads again later [3.9.2]", () =>
  atDistance(async (surroundings) => {
    const { clock } = surroundings;
    const a = new Replica("a", surroundings);
    a.election.start();
    await clock.advance(10_000);
    a.process.way = { there: undefined, back: undefined };
    await clock.advance(8_000);
    assert.equal(a.election.isTaken, true, "a short trouble is survived");
    await clock.advance(4_100);
    assert.equal(a.election.isTaken, false);
    assert.deepEqual([a.starts, a.stops], [1, 1]);
    a.process.way = GOOD_WAY;
    await clock.advance(20_000);
    assert.equal(a.election.isTaken, true);
    assert.equal(a.election.signal.aborted, false, "writes go on");
    const stopped = a.election.stop();
    await clock.advance(100);
    await stopped;
  }));

/** Election with a lock whose answers wait for promises of the test. */
function slowElection(retryPeriod = TIMES.retryPeriod) {
  const clock = new VirtualClock();
  const starts: number[] = [];
  const stops: number[] = [];
  const released: LeaseRecord[] = [];
  const slow = {
    answers: Promise.resolve() as Promise<unknown>,
    comesTooLate: false,
  };
  const answer = async (signal: AbortSignal) => {
    // An answer may be there already when its request is aborted.
    await (slow.comesTooLate ? slow.answers : abortable(slow.answers, signal));
    return record("a");
  };
  const election = new LeaderElection({
    lock: {
      read: () => Promise.resolve(undefined),
      create: answer,
      acquire: (_record, _transition, signal) => answer(signal),
      release: (lease) => {
        released.push(lease);
        return Promise.resolve();
      },
    },
    identity: "a",
    times: { ...TIMES, retryPeriod },
    clock,
    random: () => 0.5,
    log: silentLogger,
    onStartedLeading: () => starts.push(clock.now()),
    onStoppedLeading: () => stops.push(clock.now()),
  });
  return { clock, election, slow, starts, stops, released };
}

test("LeaderElection stops at the renew deadline if one renewal gets no answer", async () => {
  const { clock, election, slow, stops } = slowElection();
  election.start();
  await clock.advance(1_000);
  slow.answers = new Promise(() => {});
  await clock.advance(20_000);
  assert.deepEqual(stops, [10_000]);
  await election.stop();
});

test("LeaderElection stops at the renew deadline if renewals fail quickly", async () => {
  const { clock, election, slow, stops } = slowElection(3_000);
  election.start();
  await clock.advance(1_000);
  const refused = Promise.reject(new Error("refused"));
  refused.catch(() => {}); // it is not awaited before the next renewal
  slow.answers = refused;
  await clock.advance(20_000);
  assert.deepEqual(stops, [10_000]);
  await election.stop();
});

test("LeaderElection counts its term from the request, not from a slow answer", async () => {
  const { clock, election, slow, stops } = slowElection();
  election.start();
  await clock.advance(1_000);
  assert.equal(election.isTaken, true);
  // The renewal of second 2 is answered in second 8, the next one never.
  const answered = Promise.withResolvers<void>();
  slow.answers = answered.promise;
  await clock.advance(7_000);
  slow.answers = new Promise(() => {});
  answered.resolve();
  await clock.advance(3_900);
  assert.equal(election.isTaken, true);
  await clock.advance(200);
  assert.equal(election.isTaken, false);
  assert.deepEqual(stops, [12_000]);
  await election.stop();
});

test("LeaderElection takes over a lease duration after the answer that showed it", () =>
  atDistance(async (surroundings) => {
    const { clock } = surroundings;
    const a = new Replica("a", surroundings);
    const b = new Replica("b", surroundings);
    a.election.start();
    await clock.advance(100);
    // Its first request is under way for 9 s, and A renews for 8 s of them.
    b.process.way = { there: 9_000, back: 2 };
    b.election.start();
    await clock.advance(10);
    b.process.way = GOOD_WAY;
    await clock.advance(8_400);
    a.process.way = { there: undefined, back: undefined };
    for (let passed = 0; passed < 30_000; passed += 100) {
      await clock.advance(100);
      assert.equal(a.election.isHeld && b.election.isHeld, false);
    }
    assert.equal(b.election.isTaken, true);
    const stopped = b.election.stop();
    await clock.advance(100);
    await stopped;
    a.process.kill();
  }));

test("LeaderElection that stops releases the lease of an answer under way", async () => {
  const { clock, election, slow, starts, stops, released } = slowElection();
  const answered = Promise.withResolvers<void>();
  slow.answers = answered.promise;
  slow.comesTooLate = true;
  election.start();
  await clock.advance(1_000);
  const stopped = election.stop();
  await clock.advance(100);
  answered.resolve();
  await stopped;
  assert.equal(election.isTaken, false);
  assert.deepEqual({ starts, stops, released }, {
    starts: [1_100],
    stops: [1_100],
    released: [record("a")],
  });
});

test("LeaderElection survives a pause of the process shorter than the lease", () =>
  atDistance(async (surroundings) => {
    const { clock } = surroundings;
    const { a, b } = await leaderAndNext(surroundings);
    await clock.advance(10_000);
    a.process.stoppedUntil = clock.now() + 11_000;
    await clock.advance(30_000);
    assert.equal(a.election.isTaken, true);
    assert.equal(a.stops, 0);
    // Longer than the lease: the other replica takes over, and this one notices.
    a.process.stoppedUntil = clock.now() + 40_000;
    await clock.advance(39_000);
    assert.equal(b.election.isTaken, true);
    assert.equal(a.election.isHeld, false, "although nobody has told it");
    await clock.advance(2_000);
    assert.equal(a.election.isTaken, false);
    const stopped = Promise.all([a.election.stop(), b.election.stop()]);
    await clock.advance(5_000);
    await stopped;
  }));

for (const skew of [-3_600_000, 3_600_000]) {
  test(`LeaderElection is not misled by a clock that is wrong by ${skew} ms`, () =>
    atDistance(async (surroundings) => {
      const { clock } = surroundings;
      const { a, b } = await leaderAndNext(surroundings);
      b.process.skew = skew;
      await clock.advance(60_000);
      assert.equal(a.election.isHeld, true);
      assert.deepEqual([a.stops, b.starts], [0, 0]);
      a.process.skew = -skew;
      await clock.advance(60_000);
      assert.deepEqual([a.stops, b.starts], [0, 0]);
      a.process.kill();
      await clock.advance(30_000);
      assert.equal(b.election.isHeld, true, "it need not wait for the skew");
      const stopped = b.election.stop();
      await clock.advance(100);
      await stopped;
    }));
}

/** Faults of a replica. */
const trouble = fc.record({
  replica: fc.nat(2),
  way: anyWay,
  standsStill: fc.constantFrom(0, 0, 0, 5_000, 12_000, 14_000, 30_000),
  isKilled: fc.constantFrom(false, false, false, true),
  for: fc.integer({ min: 100, max: 20_000 }),
  skew: fc.constantFrom(0, 0, -3_600_000, 25 * 3_600_000),
});

test("LeaderElection never has two holders under faults of network and clocks [#2056]", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(trouble, { minLength: 1, maxLength: 12 }),
      (troubles) =>
        atDistance(async (surroundings) => {
          const { clock } = surroundings;
          const replicas: Replica[] = [];
          let names = 0;
          const join = () => {
            // A leader stops a tenth of the time earlier than others start.
            const rate = [1, 0.96, 1.04][names % 3];
            const replica = new Replica(`r${++names}`, surroundings, rate);
            replica.election.start();
            return replica;
          };
          for (let count = 0; count < 3; count++) replicas.push(join());
          const check = () => {
            const holders = replicas.filter(({ election }) => election.isHeld);
            const text = holders.map(({ identity }) => identity).join();
            assert.ok(holders.length <= 1, text);
            for (const { starts, stops } of replicas) {
              assert.ok(starts - stops === 0 || starts - stops === 1);
            }
          };
          for (const trouble of troubles) {
            const replica = replicas[trouble.replica] as Replica;
            replica.process.way = trouble.way;
            replica.process.skew = trouble.skew;
            replica.process.stoppedUntil = clock.now() + trouble.standsStill;
            if (trouble.isKilled) {
              replica.process.kill();
              replicas[trouble.replica] = join();
            }
            for (let passed = 0; passed < trouble.for; passed += 500) {
              await clock.advance(500);
              check();
            }
          }
          for (const { process } of replicas) process.way = GOOD_WAY;
          await clock.advance(60_000);
          check();
          assert.equal(
            replicas.filter(({ election }) => election.isTaken).length,
            1,
            "in the end somebody leads",
          );
          const stopped = replicas.map(({ election }) => election.stop());
          await clock.advance(60_000);
          await Promise.all(stopped);
        }),
    ),
    { numRuns: 25 },
  );
});

test("LeaderElection creates a lease again that somebody deletes, and leads on", () =>
  atDistance(async (surroundings) => {
    const { clock, server } = surroundings;
    const a = new Replica("a", surroundings);
    a.election.start();
    await clock.advance(10_000);
    await new Client({ transport: server }).delete(Lease, LOCK);
    await clock.advance(3_000);
    assert.equal(await holder(server), "a");
    await clock.advance(20_000);
    assert.equal(a.election.isTaken, true);
    assert.deepEqual([a.starts, a.stops], [1, 0]);
    const stopped = a.election.stop();
    await clock.advance(100);
    await stopped;
  }));

test("LeaderElection logs its stop as expected, and each leader once", async () => {
  for (const isLost of [false, true]) {
    let holder = "a";
    const { election, clock, logged } = played({
      read: () => record(holder, holder === "a" ? "1" : "2"),
      acquire: () => holder === "a" ? record("a") : undefined,
    });
    election.start();
    await clock.advance(5_000);
    if (isLost) holder = "b";
    await clock.advance(10_000);
    await election.stop();
    assert.deepEqual(logged, [
      "info: Started leading",
      "info: A leader was elected",
      ...isLost
        ? ["info: A leader was elected", "warn: Stopped leading"]
        : ["info: Stopped leading"],
    ]);
  }
});

test("LeaderElection gives up an attempt to lead that gets no answer", async () => {
  const { election, clock, calls } = played(
    {},
    (signal) => abortable(new Promise<void>(() => {}), signal),
  );
  election.start();
  await clock.advance(TIMES.renewDeadline + 3_000);
  assert.deepEqual(calls, ["0 read", "12200 read"]);
  await election.stop();
});

test("LeaderElection leaves no listener behind by its renewals", async () => {
  const guard = new LeakGuard();
  const { election, clock } = played({ acquire: () => record("a") });
  election.start();
  await clock.advance(60_000);
  await election.stop();
  guard.check(clock);
});
