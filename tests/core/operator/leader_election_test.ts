import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Clock, Timer } from "../../../core/clock.ts";
import { silentLogger } from "../../../core/logger.ts";
import {
  type ElectionLock,
  LeaderElection,
  leaseTimes,
} from "../../../core/operator/leader_election.ts";
import {
  decideLease,
  giveUpAt,
  heldUntil,
  type LeaseRecord,
  observe,
} from "../../../core/operator/lease_decision.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";

const TIMES = leaseTimes({ name: "lock" });

function record(holder: string, resourceVersion = "1"): LeaseRecord {
  return { holder, duration: 15_000, resourceVersion };
}

test("leaseTimes has client-go's defaults and refuses what does not fit", () => {
  assert.deepEqual(TIMES, {
    leaseDuration: 15_000,
    renewDeadline: 10_000,
    retryPeriod: 2_000,
  });
  const bad = [
    { leaseDuration: "10s" },
    { renewDeadline: "2s" },
    { retryPeriod: 0 },
    { leaseDuration: 500, renewDeadline: 300, retryPeriod: 100 },
  ];
  for (const options of bad) {
    assert.throws(() => leaseTimes({ name: "lock", ...options }), RangeError);
  }
  assert.throws(() => leaseTimes({ name: "" }), /must name the Lease/);
  const misspelt = { name: "lock", leaseDuraton: "1s" };
  assert.throws(() => leaseTimes(misspelt), /did you mean "leaseDuration"/);
});

test("observe counts from when a record was first seen", () => {
  const first = observe(undefined, record("a"), 100);
  assert.equal(observe(first, record("a"), 900), first);
  assert.equal(observe(first, record("a", "2"), 900)?.seenAt, 900);
  assert.equal(observe(first, undefined, 900), undefined);
});

test("decideLease takes what is ours, free or expired, and waits otherwise", () => {
  const seen = (holder: string) => ({ record: record(holder), seenAt: 1_000 });
  assert.deepEqual(decideLease(undefined, "a", 0), { type: "create" });
  assert.deepEqual(decideLease(seen("a"), "a", 2_000), {
    type: "take",
    transition: false,
  });
  assert.deepEqual(decideLease(seen(""), "a", 2_000), {
    type: "take",
    transition: true,
  });
  assert.deepEqual(decideLease(seen("b"), "a", 2_000), {
    type: "wait",
    until: 16_000,
  });
  assert.deepEqual(decideLease(seen("b"), "a", 16_000), {
    type: "take",
    transition: true,
  });
});

test("giveUpAt is the renew deadline, and later only for an attempt that began late", () => {
  assert.equal(giveUpAt(0, { at: 2_000, previousAt: 0 }, TIMES), 10_000);
  assert.equal(giveUpAt(0, { at: 9_000, previousAt: 7_000 }, TIMES), 10_000);
  assert.equal(giveUpAt(0, { at: 11_000, previousAt: 2_000 }, TIMES), 13_000);
  assert.equal(giveUpAt(0, { at: 12_500, previousAt: 2_000 }, TIMES), 13_500);
  assert.equal(heldUntil(0, TIMES), 13_500);
});

/** A lease that several candidates fight for, with a network between. */
class SharedLease {
  holder: string | undefined;
  version = 0;
  duration = TIMES.leaseDuration;
  readonly clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  record(): LeaseRecord | undefined {
    return this.holder === undefined ? undefined : {
      holder: this.holder,
      duration: this.duration,
      resourceVersion: String(this.version),
    };
  }

  write(holder: string, expected: string): LeaseRecord | undefined {
    if (expected !== String(this.version)) return undefined;
    this.holder = holder;
    this.duration = holder === "" ? 1_000 : TIMES.leaseDuration;
    this.version++;
    return this.record();
  }
}

/** One replica: a way to the lease that may be slow or cut, and its own time. */
class Replica {
  readonly identity: string;
  readonly election: LeaderElection;
  readonly lease: SharedLease;
  /** Milliseconds there and back; undefined when nothing gets through. */
  latency: number | undefined = 5;
  /** Until when the process stands still, as by SIGSTOP. */
  stoppedUntil = 0;
  starts = 0;
  stops = 0;

  constructor(identity: string, lease: SharedLease) {
    this.identity = identity;
    this.lease = lease;
    this.election = new LeaderElection({
      lock: this.#lock(),
      identity,
      times: TIMES,
      clock: this.#clock(),
      random: () => 0.5,
      log: silentLogger,
      onStarted: () => this.starts++,
      onStopped: () => this.stops++,
    });
  }

  /** A clock whose timers do not fire while the process stands still. */
  #clock(): Clock {
    const { clock } = this.lease;
    return {
      now: () => clock.now(),
      wallTime: () => clock.wallTime(),
      setTimer: (callback, delay) => {
        let timer: Timer;
        const fire = () => {
          const rest = this.stoppedUntil - clock.now();
          if (rest > 0) timer = clock.setTimer(fire, rest);
          else callback();
        };
        timer = clock.setTimer(fire, delay);
        return { cancel: () => timer.cancel() };
      },
    };
  }

  #lock(): ElectionLock {
    const { lease } = this;
    return {
      text: "default/lock",
      read: (signal) => this.#send(() => lease.record(), signal),
      create: (signal) =>
        this.#send(
          () =>
            lease.holder === undefined
              ? lease.write(this.identity, String(lease.version))
              : undefined,
          signal,
        ),
      take: ({ resourceVersion }, _transition, signal) =>
        this.#send(() => lease.write(this.identity, resourceVersion), signal),
      release: async ({ resourceVersion }, signal) => {
        await this.#send(() => lease.write("", resourceVersion), signal);
      },
    };
  }

  /** A request: half the time there, then done, then half the time back. */
  #send<T>(work: () => T, signal: AbortSignal): Promise<T> {
    const { latency } = this;
    const { clock } = this.lease;
    return new Promise((resolve, reject) => {
      const back = (settle: () => void) => {
        const wait = Math.max(latency ?? 0, this.stoppedUntil - clock.now());
        clock.setTimer(settle, wait / 2);
      };
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason));
      if (latency === undefined) return;
      clock.setTimer(() => {
        const value = work();
        back(() => resolve(value));
      }, latency / 2);
    });
  }
}

test("LeaderElection elects one, and another when it stops, at once [LeaderElectionE2E]", async () => {
  const clock = new VirtualClock();
  const lease = new SharedLease(clock);
  const [a, b] = ["a", "b"].map((name) => new Replica(name, lease)) as [
    Replica,
    Replica,
  ];
  a.election.start();
  await clock.advance(100);
  b.election.start();
  await clock.advance(60_000);
  assert.equal(a.election.isLeading, true);
  assert.equal(b.election.isLeading, false);
  assert.equal(b.election.leader, "a");
  const stopped = a.election.stop();
  await clock.advance(5_000);
  await stopped;
  assert.equal(b.election.isLeading, true, "it need not wait for the expiry");
  assert.deepEqual([a.starts, a.stops, b.starts], [1, 1, 1]);
  const last = b.election.stop();
  await clock.advance(100);
  await last;
  assert.equal(lease.holder, "");
  assert.equal(clock.pendingTimers, 0);
});

test("LeaderElection steps down at the renew deadline and leads again later [3.9.2]", async () => {
  const clock = new VirtualClock();
  const lease = new SharedLease(clock);
  const a = new Replica("a", lease);
  a.election.start();
  await clock.advance(10_000);
  a.latency = undefined;
  await clock.advance(8_000);
  assert.equal(a.election.isLeading, true, "a short trouble is survived");
  await clock.advance(4_100);
  assert.equal(a.election.isLeading, false);
  assert.deepEqual([a.starts, a.stops], [1, 1]);
  a.latency = 5;
  await clock.advance(20_000);
  assert.equal(a.election.isLeading, true);
  const stopped = a.election.stop();
  await clock.advance(100);
  await stopped;
});

test("LeaderElection survives a process that stands still for less than the lease", async () => {
  const clock = new VirtualClock();
  const lease = new SharedLease(clock);
  const a = new Replica("a", lease);
  const b = new Replica("b", lease);
  a.election.start();
  await clock.advance(10_000);
  b.election.start();
  await clock.advance(10_000);
  a.stoppedUntil = clock.now() + 11_000;
  await clock.advance(30_000);
  assert.equal(a.election.isLeading, true);
  assert.equal(a.stops, 0);
  // Longer than the lease: the other takes over, and this one sees it at once.
  a.stoppedUntil = clock.now() + 40_000;
  await clock.advance(39_000);
  assert.equal(b.election.isLeading, true);
  assert.equal(a.election.holds, false, "although nobody has told it");
  await clock.advance(2_000);
  assert.equal(a.election.isLeading, false);
  const stopped = Promise.all([a.election.stop(), b.election.stop()]);
  await clock.advance(5_000);
  await stopped;
});

test("LeaderElection: never two who hold the lease, whatever the network and the scheduler do [#2056]", async () => {
  const trouble = fc.record({
    replica: fc.nat(2),
    latency: fc.option(fc.integer({ min: 2, max: 3_000 }), { nil: undefined }),
    standsStill: fc.constantFrom(0, 0, 0, 5_000, 12_000, 14_000, 30_000),
    for: fc.integer({ min: 100, max: 20_000 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(trouble, { minLength: 1, maxLength: 12 }),
      async (troubles) => {
        const clock = new VirtualClock({ quietTurns: 1 });
        const lease = new SharedLease(clock);
        const replicas = ["a", "b", "c"].map((name) =>
          new Replica(name, lease)
        );
        const check = () => {
          const holders = replicas.filter(({ election }) => election.holds);
          assert.ok(
            holders.length <= 1,
            holders.map(({ identity }) => identity).join(),
          );
          for (const { starts, stops } of replicas) {
            assert.ok(starts - stops === 0 || starts - stops === 1);
          }
        };
        for (const { election } of replicas) election.start();
        for (const trouble of troubles) {
          const replica = replicas[trouble.replica] as Replica;
          replica.latency = trouble.latency;
          replica.stoppedUntil = clock.now() + trouble.standsStill;
          for (let passed = 0; passed < trouble.for; passed += 500) {
            await clock.advance(500);
            check();
          }
        }
        for (const replica of replicas) replica.latency = 5;
        await clock.advance(60_000);
        check();
        assert.equal(
          replicas.filter(({ election }) => election.isLeading).length,
          1,
          "in the end somebody leads",
        );
        const stopped = replicas.map(({ election }) => election.stop());
        await clock.advance(60_000);
        await Promise.all(stopped);
      },
    ),
    { numRuns: 25 },
  );
});
