import { builtIn } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import { host } from "../client/host.ts";
import { type Clock, deadline } from "../clock.ts";
import type { ShardAssignment } from "../controller/shard.ts";
import type { Logger } from "../logger.ts";
import type { ManagedController } from "./controller_start.ts";
import { Fence } from "./fence.ts";
import {
  LeaderElection,
  type LeaderElectionSettings,
} from "./leader_election.ts";
import { Lease, LEASE_VERBS, LeaseLock } from "./lease_lock.ts";
import type { StartErrorPolicy } from "./operator_options.ts";
import { ShardLeases } from "./shard_leases.ts";
import { Sharding } from "./sharding.ts";
import { isInTime } from "./shutdown.ts";

/**
 * Time that a stop waits for pending writes. Afterwards they are aborted and the
 * Lease is not released, so that other replicas wait until it expires.
 */
const SETTLE_LIMIT_MS = 10_000;

/** Health of the Lease of a replica. */
export interface LeaseHealth {
  /** Lease as `namespace/name`; with sharding, the name of the group. */
  readonly name: string;
  /** Whether this replica holds its Lease: it is the leader, or a member. */
  readonly held: boolean;
  /**
   * Whether the Lease can be read and renewed, or could be within the last lease
   * duration. A replica that cannot runs nothing.
   */
  readonly healthy: boolean;
  /**
   * Time since the Lease could last be read or renewed, in milliseconds; 0 while
   * it can.
   */
  readonly failingFor: number;
  /** Message of the last failure, while the Lease cannot be read or renewed. */
  readonly error: string | undefined;
}

/** Dependencies of a {@linkcode Coordination}. */
export interface CoordinationDeps {
  readonly leaderElection: LeaderElectionSettings | undefined;
  readonly sharding: LeaderElectionSettings | undefined;
  readonly client: Client;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly syncTimeout: number;
  /** Policy for a right on Leases that is missing or cannot be checked. */
  readonly startErrors: StartErrorPolicy;
  /** Returns the controllers that the operator has at the time of the call. */
  readonly controllers: () => Iterable<ManagedController>;
  /** Called when this replica begins to lead, with leader election. */
  readonly onLeading?: (() => void) | undefined;
}

/**
 * Coordination of the replicas of an operator, according to its options: leader
 * election, sharding or none.
 */
export class Coordination {
  /** Client whose writes are only sent while this replica may write. */
  readonly client: Client;
  /** Objects that this replica runs; undefined for all. */
  readonly shard: ShardAssignment | undefined;
  readonly #deps: CoordinationDeps;
  readonly #election: LeaderElection | undefined;
  /** Lease of this replica; undefined without leader election and sharding. */
  readonly #lease: LeaderElection | Sharding | undefined;
  readonly #fence: Fence | undefined;

  constructor(deps: CoordinationDeps) {
    const { client, clock, leaderElection, sharding } = deps;
    this.#deps = deps;
    this.#election = leaderElection && this.#elect(leaderElection);
    const shard = sharding && this.#share(sharding);
    this.shard = shard;
    this.#lease = this.#election ?? shard;
    this.#fence = this.#lease &&
      new Fence({ client, clock, lease: this.#lease });
    this.client = this.#fence?.client ?? client;
  }

  /** Derives a client of another cluster that only writes while this replica may. */
  around(client: Client): Client {
    return this.#fence?.around(client) ?? client;
  }

  /** Resolves when the writes that are pending now have ended. */
  async settled(): Promise<void> {
    await this.#fence?.settled();
  }

  /** Whether a run may begin: no other replica can lead at this moment. */
  get mayRun(): boolean {
    return this.#election?.isHeld ?? true;
  }

  /** Whether this replica runs the controllers, or its share of the objects. */
  get isLeading(): boolean {
    return this.#lease?.isTaken ?? true;
  }

  /** Health of the Lease; undefined without leader election and sharding. */
  health(): LeaseHealth | undefined {
    const { client, leaderElection, sharding } = this.#deps;
    const settings = leaderElection ?? sharding;
    if (settings === undefined || this.#lease === undefined) return undefined;
    const { namespace = client.namespace, name, leaseDuration } = settings;
    const { isTaken, failure } = this.#lease;
    const { duration = 0, message } = failure ?? {};
    return {
      name: `${namespace}/${name}`,
      held: isTaken,
      healthy: duration < leaseDuration,
      failingFor: duration,
      error: message,
    };
  }

  /** Identity of the leader that was observed last, with leader election. */
  get leader(): string | undefined {
    return this.#election?.leader;
  }

  /**
   * Starts to take the Lease. With the policy `"wait"` a missing right is only
   * logged: the replica tries to acquire its Lease again and again.
   *
   * @throws {Error} If a right on Leases is missing.
   */
  async start(): Promise<void> {
    const { client, clock, startErrors, log, syncTimeout } = this.#deps;
    for (const use of ["leaderElection", "sharding"] as const) {
      const settings = this.#deps[use];
      if (settings === undefined) continue;
      try {
        const late =
          `Cannot start with "${use}": received no answer from the server within ${syncTimeout} ms`;
        const onTimeout = () => new Error(late);
        const checked = checkLeaseRights(client, use, settings);
        await deadline(checked, syncTimeout, { clock, onTimeout });
      } catch (error) {
        if (startErrors === "fail") throw error;
        log.warn("Leases cannot be used yet, retrying", { error });
      }
    }
    this.#lease?.start();
  }

  /** Releases the Lease, unless runs were left behind or writes are pending. */
  async stop(): Promise<void> {
    if (this.#lease === undefined) return;
    const { clock, controllers } = this.#deps;
    const settled = await isInTime(this.settled(), SETTLE_LIMIT_MS, { clock });
    const release = settled &&
      [...controllers()].every(({ runningKeys }) => runningKeys.length === 0);
    await this.#lease.stop({ release });
  }

  #elect(settings: LeaderElectionSettings): LeaderElection {
    const { controllers, onLeading } = this.#deps;
    const { leaderClock, hostname } = host();
    const identity = settings.identity ?? `${hostname()}_${randomSuffix()}`;
    const common = this.#leaseDeps(settings, identity);
    const lease = { ...common, clock: leaderClock?.() ?? common.clock };
    return new LeaderElection({
      ...lease,
      random: this.#deps.random,
      lock: new LeaseLock(lease),
      onStartedLeading() {
        for (const controller of controllers()) controller.startLeading();
        onLeading?.();
      },
      onStoppedLeading() {
        for (const controller of controllers()) controller.stopLeading();
      },
    });
  }

  #share(settings: LeaderElectionSettings): Sharding {
    const { controllers } = this.#deps;
    // A replica that was killed and starts again under its name is another member:
    // its earlier runs are only over for certain when their Lease has expired.
    const name = host().hostname().slice(0, 63).replace(/[^a-z0-9]+/gi, "-")
      .replace(/^-|-$/g, "");
    const identity = `${settings.identity ?? name}-${randomSuffix()}`
      .toLowerCase();
    const lease = this.#leaseDeps(settings, identity);
    return new Sharding({
      ...lease,
      store: new ShardLeases(lease),
      onRelease: async () => {
        const all = [...controllers()];
        await Promise.all(all.map((controller) => controller.releaseShard()));
        await this.settled();
      },
      onAcquire(wasOwned) {
        for (const controller of controllers()) {
          controller.acquireShard(wasOwned);
        }
      },
      onLost() {
        for (const controller of controllers()) controller.abort("shard");
      },
    });
  }

  #leaseDeps(settings: LeaderElectionSettings, identity: string) {
    const { client, clock, log } = this.#deps;
    const { name, namespace = client.namespace, leaseDuration } = settings;
    return {
      client,
      clock,
      namespace,
      name,
      identity,
      leaseDuration,
      times: settings,
      log: log.with({ lease: `${namespace}/${name}` }),
    };
  }
}

function randomSuffix(): string {
  return crypto.randomUUID().slice(0, 8);
}

/** SelfSubjectAccessReview: a request to check a right of the account. */
interface AccessReview extends KubernetesObject {
  spec: { resourceAttributes: Record<string, string> };
  status?: { allowed: boolean } | undefined;
}

const ACCESS_REVIEW = builtIn<AccessReview>(
  "SelfSubjectAccessReview",
  "Cluster",
  "authorization.k8s.io",
);

/**
 * Checks the rights on Leases for leader election or for sharding.
 *
 * @throws {Error} If a right is missing; the error names the rule to grant it.
 */
async function checkLeaseRights(
  client: Client,
  use: keyof typeof LEASE_VERBS,
  { name, namespace = client.namespace }: LeaderElectionSettings,
): Promise<void> {
  const { group, plural } = Lease;
  const verbs = LEASE_VERBS[use];
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
  const action = use === "sharding"
    ? `share objects by Leases ${namespace}/${name}-…`
    : `elect a leader by Lease ${namespace}/${name}`;
  throw new Error(
    `Cannot ${action}: the right to ${
      missing.join(", ")
    } is missing, so give the operator's account a Role in namespace ${namespace} with { apiGroups: ["${group}"], resources: ["${plural}"], verbs: ${
      JSON.stringify(verbs).replaceAll(",", ", ")
    } }`,
  );
}
