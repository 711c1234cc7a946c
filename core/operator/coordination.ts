import { hostname } from "node:os";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { ShardAssignment } from "../controller/shard.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";
import { Fence } from "./fence.ts";
import type { LeaderElectionSettings } from "./leader_election.ts";
import { Leadership } from "./leadership.ts";
import { checkLeaseRights } from "./lease_rights.ts";
import type { StartErrorPolicy } from "./operator_options.ts";
import { isInTime } from "./shutdown.ts";
import { ShardLeases } from "./shard_leases.ts";
import { Sharding } from "./sharding.ts";

/**
 * Time that a stop waits for the writes under way. After it they are aborted and
 * the Lease is not released, so that other replicas wait until it expires.
 */
const SETTLE_LIMIT_MS = 10_000;

/** What {@linkcode coordinate} works with. */
export interface CoordinationOptions {
  readonly leaderElection: LeaderElectionSettings | undefined;
  readonly sharding: LeaderElectionSettings | undefined;
  readonly client: Client;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** What follows if a right is missing, or cannot be asked for. */
  readonly startErrors: StartErrorPolicy;
  /** The controllers of the operator, now and later. */
  readonly controllers: () => Iterable<ManagedController>;
}

/** How replicas of an operator keep out of each other's way. */
export interface Coordination {
  /** A client whose writes only get through while this replica may write. */
  readonly client: Client;
  /** Which objects this replica runs, while it runs any. */
  readonly shard: ShardAssignment | undefined;
  /** Whether this replica runs anything. */
  readonly isLeading: boolean;
  /** Who leads, as far as it is known; only with leader election. */
  readonly leader: string | undefined;
  /** @throws {Error} If a right is missing. */
  start(): Promise<void>;
  /** Lets others take over: at once, unless runs were left behind. */
  stop(): Promise<void>;
}

/** By leader election, by sharding, or not at all. */
export function coordinate(options: CoordinationOptions): Coordination {
  const { leaderElection, sharding } = options;
  if (leaderElection !== undefined) return byElection(leaderElection, options);
  if (sharding !== undefined) return bySharding(sharding, options);
  const nothing = () => Promise.resolve();
  return {
    client: options.client,
    shard: undefined,
    isLeading: true,
    leader: undefined,
    start: nothing,
    stop: nothing,
  };
}

function byElection(
  leaderElection: LeaderElectionSettings,
  options: CoordinationOptions,
): Coordination {
  const { client, clock, random, log, controllers } = options;
  const leadership = new Leadership({
    options: leaderElection,
    client,
    clock,
    random,
    log,
    onChange(leading) {
      for (const controller of controllers()) {
        if (leading) controller.startLeading();
        else controller.stopLeading();
      }
    },
  });
  const fence = new Fence({ client, clock, mandate: leadership.mandate });
  return {
    client: fence.client,
    shard: undefined,
    get isLeading() {
      return leadership.isLeading;
    },
    get leader() {
      return leadership.leader;
    },
    async start() {
      await checkRights(() => leadership.check(), options);
      leadership.start();
    },
    async stop() {
      const settled = await isInTime(fence.settled(), SETTLE_LIMIT_MS, {
        clock,
      });
      await leadership.stop({ release: settled && isIdle(controllers) });
    },
  };
}

function bySharding(
  options: LeaderElectionSettings,
  coordination: CoordinationOptions,
): Coordination {
  const { client, clock, log, controllers } = coordination;
  const { name, namespace = client.namespace } = options;
  // A replica that was killed, and comes back under its name, is another member:
  // its runs from before are only over for certain when their lease is.
  const identity = `${options.identity ?? hostname()}-${
    crypto.randomUUID().slice(0, 8)
  }`.toLowerCase();
  const sharding = new Sharding({
    store: new ShardLeases({
      client,
      clock,
      namespace,
      name,
      identity,
      leaseDuration: options.leaseDuration,
    }),
    identity,
    times: options,
    clock,
    log,
    async onYield() {
      const all = [...controllers()];
      await Promise.all(all.map((controller) => controller.releaseShard()));
      await fence.settled();
    },
    onGain(wasOwned) {
      for (const controller of controllers()) controller.acquireShard(wasOwned);
    },
    onLost() {
      for (const controller of controllers()) controller.abort();
    },
  });
  const fence = new Fence({ client, clock, mandate: sharding.mandate });
  return {
    client: fence.client,
    shard: sharding,
    isLeading: true,
    leader: undefined,
    async start() {
      const check = () =>
        checkLeaseRights(client, {
          namespace,
          verbs: ["get", "list", "create", "update", "delete"],
          purpose: `share objects by Leases ${namespace}/${name}-…`,
        });
      await checkRights(check, coordination);
      sharding.start();
    },
    async stop() {
      const settled = await isInTime(fence.settled(), SETTLE_LIMIT_MS, {
        clock,
      });
      await sharding.stop({ release: settled && isIdle(controllers) });
    },
  };
}

/**
 * Looks whether Leases may be used. An operator that waits for what is missing goes
 * on without: it tries to get its Lease again and again.
 */
async function checkRights(
  check: () => Promise<void>,
  { startErrors, log }: CoordinationOptions,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    if (startErrors === "fail") throw error;
    log.warn("Leases cannot be used yet, it is tried again", { error });
  }
}

/** Whether nothing runs any more; what was left behind may still do something. */
function isIdle(controllers: () => Iterable<ManagedController>): boolean {
  return [...controllers()].every(({ runningKeys }) =>
    runningKeys.length === 0
  );
}
