import { hostname } from "node:os";
import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { ShardAssignment } from "../controller/shard.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";
import { Fence } from "./fence.ts";
import {
  LeaderElection,
  type LeaderElectionSettings,
} from "./leader_election.ts";
import { Lease, LeaseLock } from "./lease_lock.ts";
import type { StartErrorPolicy } from "./operator_options.ts";
import { ShardLeases } from "./shard_leases.ts";
import { Sharding } from "./sharding.ts";
import { isInTime } from "./shutdown.ts";

/**
 * Time that a stop waits for pending writes. Afterwards they are aborted and the
 * Lease is not released, so that other replicas wait until it expires.
 */
const SETTLE_LIMIT_MS = 10_000;

/** Dependencies of {@linkcode coordinate}. */
export interface CoordinationDeps {
  readonly leaderElection: LeaderElectionSettings | undefined;
  readonly sharding: LeaderElectionSettings | undefined;
  readonly client: Client;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Policy for a right on Leases that is missing or cannot be checked. */
  readonly startErrors: StartErrorPolicy;
  /** Returns the controllers that the operator has at the time of the call. */
  readonly controllers: () => Iterable<ManagedController>;
}

/** Coordination of the replicas of an operator. */
export interface Coordination {
  /** Client whose writes are only sent while this replica may write. */
  readonly client: Client;
  /** Objects that this replica runs; undefined for all. */
  readonly shard: ShardAssignment | undefined;
  /** Whether a run may begin: no other replica can lead at this moment. */
  readonly mayRun: () => boolean;
  /** Whether this replica runs the controllers. */
  readonly isLeading: boolean;
  /** Identity of the leader that was observed last, with leader election. */
  readonly leader: string | undefined;
  /** @throws {Error} If a right on Leases is missing. */
  start(): Promise<void>;
  /** Releases the Lease, unless runs were left behind or writes are pending. */
  stop(): Promise<void>;
}

/**
 * Starts the coordination that the options ask for: leader election, sharding
 * or none.
 */
export function coordinate(deps: CoordinationDeps): Coordination {
  const { leaderElection, sharding } = deps;
  if (leaderElection !== undefined) return byElection(leaderElection, deps);
  if (sharding !== undefined) return bySharding(sharding, deps);
  const nothing = () => Promise.resolve();
  return {
    client: deps.client,
    shard: undefined,
    mayRun: () => true,
    isLeading: true,
    leader: undefined,
    start: nothing,
    stop: nothing,
  };
}

function byElection(
  settings: LeaderElectionSettings,
  deps: CoordinationDeps,
): Coordination {
  const { client, clock, random, log, controllers } = deps;
  const { name, namespace = client.namespace, leaseDuration } = settings;
  const identity = settings.identity ?? `${hostname()}_${randomSuffix()}`;
  let term = new AbortController();
  const election = new LeaderElection({
    lock: new LeaseLock({
      client,
      clock,
      namespace,
      name,
      identity,
      leaseDuration,
    }),
    identity,
    times: settings,
    clock,
    random,
    log,
    onStartedLeading() {
      term = new AbortController();
      for (const controller of controllers()) controller.startLeading();
    },
    onStoppedLeading() {
      term.abort(
        new Error("Cannot go on: this replica is no longer the leader"),
      );
      for (const controller of controllers()) controller.stopLeading();
    },
    onNewLeader: (leader) => log.info("A leader was elected", { leader }),
  });
  const fence = new Fence({
    client,
    clock,
    lease: {
      get isHeld() {
        return election.isLeaseHeld;
      },
      get signal() {
        return term.signal;
      },
      refusal: "is not the leader",
    },
  });
  return {
    client: fence.client,
    shard: undefined,
    mayRun: () => election.isLeaseHeld,
    get isLeading() {
      return election.isLeading;
    },
    get leader() {
      return election.leader;
    },
    async start() {
      await checkLeaseRights(deps, {
        namespace,
        verbs: ["get", "create", "update"],
        purpose: `elect a leader by Lease ${namespace}/${name}`,
      });
      election.start();
    },
    async stop() {
      await election.stop({ release: await mayRelease(fence, deps) });
    },
  };
}

function bySharding(
  settings: LeaderElectionSettings,
  deps: CoordinationDeps,
): Coordination {
  const { client, clock, log, controllers } = deps;
  const { name, namespace = client.namespace, leaseDuration } = settings;
  // A replica that was killed and starts again under its name is another member:
  // its earlier runs are only over for certain when their Lease has expired.
  const identity = `${settings.identity ?? hostname()}-${randomSuffix()}`
    .toLowerCase();
  const sharding = new Sharding({
    store: new ShardLeases({
      client,
      clock,
      namespace,
      name,
      identity,
      leaseDuration,
    }),
    identity,
    times: settings,
    clock,
    log,
    async onRelease() {
      const all = [...controllers()];
      await Promise.all(all.map((controller) => controller.releaseShard()));
      await fence.settled();
    },
    onAcquire(wasOwned) {
      for (const controller of controllers()) controller.acquireShard(wasOwned);
    },
    onLost() {
      for (const controller of controllers()) controller.abort();
    },
  });
  const fence = new Fence({ client, clock, lease: sharding.lease });
  return {
    client: fence.client,
    shard: sharding,
    mayRun: () => true,
    isLeading: true,
    leader: undefined,
    async start() {
      await checkLeaseRights(deps, {
        namespace,
        verbs: ["get", "list", "create", "update", "delete"],
        purpose: `share objects by Leases ${namespace}/${name}-…`,
      });
      sharding.start();
    },
    async stop() {
      await sharding.stop({ release: await mayRelease(fence, deps) });
    },
  };
}

function randomSuffix(): string {
  return crypto.randomUUID().slice(0, 8);
}

/** Whether no write is pending and no run was left behind. */
async function mayRelease(
  fence: Fence,
  { clock, controllers }: CoordinationDeps,
): Promise<boolean> {
  const settled = await isInTime(fence.settled(), SETTLE_LIMIT_MS, { clock });
  return settled &&
    [...controllers()].every(({ runningKeys }) => runningKeys.length === 0);
}

/** A SelfSubjectAccessReview: a request whether the account may do something. */
interface AccessReview extends KubernetesObject {
  spec: { resourceAttributes: Record<string, string> };
  status?: { allowed: boolean } | undefined;
}

const ACCESS_REVIEW: ResolvedKind<AccessReview> = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SelfSubjectAccessReview",
  plural: "selfsubjectaccessreviews",
  scope: "Cluster",
};

/** Rights on Leases that a coordination needs. */
interface LeaseRights {
  readonly namespace: string;
  readonly verbs: readonly string[];
  /** Action that needs the rights, such as `elect a leader by Lease a/b`. */
  readonly purpose: string;
}

/**
 * Checks the rights on Leases. With the policy `"wait"` a missing right is only
 * logged: the replica tries to acquire its Lease again and again.
 *
 * @throws {Error} If a right is missing; the error names the rule that grants it.
 */
async function checkLeaseRights(
  { client, startErrors, log }: CoordinationDeps,
  rights: LeaseRights,
): Promise<void> {
  try {
    await reviewLeaseRights(client, rights);
  } catch (error) {
    if (startErrors === "fail") throw error;
    log.warn("Leases cannot be used yet, retrying", { error });
  }
}

async function reviewLeaseRights(
  client: Client,
  { namespace, verbs, purpose }: LeaseRights,
): Promise<void> {
  const { group, plural } = Lease;
  const missing: string[] = [];
  for (const verb of verbs) {
    const review = await client.create(ACCESS_REVIEW, {
      metadata: {},
      spec: {
        resourceAttributes: { verb, group, resource: plural, namespace },
      },
    });
    if (review.status?.allowed !== true) missing.push(verb);
  }
  if (missing.length === 0) return;
  throw new Error(
    `Cannot ${purpose}: the right to ${
      missing.join(", ")
    } is missing, so give the operator's account a Role in namespace ${namespace} with { apiGroups: ["${group}"], resources: ["${plural}"], verbs: ${
      JSON.stringify(verbs).replaceAll(",", ", ")
    } }`,
  );
}
