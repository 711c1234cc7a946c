import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Clock, Timer } from "../../../core/clock.ts";
import { silentLogger } from "../../../core/logger.ts";
import { leaseTimes } from "../../../core/operator/leader_election.ts";
import type { LeasedMember } from "../../../core/operator/shard_leases.ts";
import { isOurs } from "../../../core/operator/shard_view.ts";
import {
  type MembershipStore,
  Sharding,
} from "../../../core/operator/sharding.ts";
import { VirtualClock } from "../../../core/virtual_clock.ts";

const TIMES = leaseTimes({ name: "shards" });
const KEYS = Array.from({ length: 30 }, (_, index) => `default/${index}`);

test("isOurs waits for a member that may still run the object", () => {
  const [key] = KEYS as [string];
  const state = {
    identity: "a",
    view: ["a"],
    next: undefined,
    others: [] as { identity: string; view: readonly string[] }[],
  };
  assert.equal(isOurs(key, state), true);
  assert.equal(isOurs(key, { ...state, view: [] }), false, "not joined yet");
  const b = { identity: "b", view: ["b"] };
  assert.equal(isOurs(key, { ...state, others: [b] }), false);
  const joining = { identity: "b", view: [] };
  assert.equal(isOurs(key, { ...state, others: [joining] }), true);
  const lost = KEYS.find((key) => !isOurs(key, { ...state, view: ["a", "b"] }));
  const changing = { ...state, next: ["a", "b"] };
  assert.equal(isOurs(lost as string, changing), false, "it is given up");
});

/** What all members have said, with a network between. */
class Group {
  readonly clock: VirtualClock;
  readonly members: Map<string, LeasedMember> = new Map();
  #version = 0;

  constructor(clock: VirtualClock) {
    this.clock = clock;
  }

  publish(identity: string, view: readonly string[]): void {
    this.members.set(identity, {
      identity,
      view,
      resourceVersion: String(++this.#version),
      duration: TIMES.leaseDuration,
    });
  }
}

/** One replica, with its own way to the group and its own time. */
class Replica {
  readonly identity: string;
  readonly group: Group;
  readonly sharding: Sharding;
  latency: number | undefined = 5;
  stoppedUntil = 0;
  /** How long its runs take to end when they must. */
  drain = 0;
  /** What it may still run, from before it was told to end it. */
  running: ReadonlySet<string> = new Set();

  constructor(identity: string, group: Group) {
    this.identity = identity;
    this.group = group;
    this.sharding = new Sharding({
      store: this.#store(),
      identity,
      times: TIMES,
      clock: this.#clock(),
      log: silentLogger,
      onYield: () => this.#yield(),
      onGain: () => this.look(),
      onLost: () => this.running = new Set(),
    });
  }

  /** Begins to run whatever is its own. */
  look(): void {
    const ours = KEYS.filter((key) => this.sharding.owns(key));
    this.running = new Set([...this.running, ...ours]);
  }

  #yield(): Promise<void> {
    return new Promise((resolve) =>
      this.#clock().setTimer(() => {
        this.running = new Set(
          KEYS.filter((key) => this.sharding.owns(key)),
        );
        resolve();
      }, this.drain)
    );
  }

  #clock(): Clock {
    const { clock } = this.group;
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

  #store(): MembershipStore {
    const { group } = this;
    return {
      publish: (view, signal) =>
        this.#send(() => group.publish(this.identity, view), signal),
      members: (signal) =>
        this.#send(() => [...group.members.values()], signal),
      remove: (identity, signal) =>
        this.#send(() => void group.members.delete(identity), signal),
    };
  }

  #send<T>(work: () => T, signal: AbortSignal): Promise<T> {
    const { latency } = this;
    const { clock } = this.group;
    return new Promise((resolve, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason));
      if (latency === undefined) return;
      clock.setTimer(() => {
        const value = work();
        const rest = Math.max(latency, this.stoppedUntil - clock.now());
        clock.setTimer(() => resolve(value), rest / 2);
      }, latency / 2);
    });
  }
}

test("Sharding: never two who run an object, whatever the network and the scheduler do", async () => {
  const trouble = fc.record({
    replica: fc.nat(2),
    latency: fc.option(fc.integer({ min: 2, max: 2_000 }), { nil: undefined }),
    standsStill: fc.constantFrom(0, 0, 0, 5_000, 12_000, 30_000),
    drain: fc.constantFrom(0, 0, 100, 5_000),
    for: fc.integer({ min: 500, max: 20_000 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(trouble, { minLength: 1, maxLength: 10 }),
      async (troubles) => {
        const clock = new VirtualClock({ quietTurns: 1 });
        const group = new Group(clock);
        const replicas = ["a", "b", "c"].map((name) =>
          new Replica(name, group)
        );
        const check = () => {
          for (const replica of replicas) {
            if (replica.stoppedUntil <= clock.now()) replica.look();
          }
          for (const key of KEYS) {
            // A run goes on only while its writes get through.
            const runners = replicas.filter(({ running, sharding }) =>
              running.has(key) && sharding.mandate.holds
            );
            assert.ok(
              runners.length <= 1,
              `${key}: ${runners.map(({ identity }) => identity).join()}`,
            );
          }
        };
        for (const { sharding } of replicas) sharding.start();
        for (const trouble of troubles) {
          const replica = replicas[trouble.replica] as Replica;
          replica.latency = trouble.latency;
          replica.drain = trouble.drain;
          replica.stoppedUntil = clock.now() + trouble.standsStill;
          for (let passed = 0; passed < trouble.for; passed += 500) {
            await clock.advance(500);
            check();
          }
        }
        for (const replica of replicas) {
          replica.latency = 5;
          replica.drain = 0;
        }
        await clock.advance(90_000);
        check();
        for (const key of KEYS) {
          assert.equal(
            replicas.filter(({ sharding }) => sharding.owns(key)).length,
            1,
            `in the end somebody runs ${key}`,
          );
        }
        const stopped = replicas.map(({ sharding }) => sharding.stop());
        await clock.advance(60_000);
        await Promise.all(stopped);
        assert.equal(group.members.size, 0);
      },
    ),
    { numRuns: 25, seed: 1 },
  );
});
