import type { Duration } from "../api/duration.ts";
import {
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../api/options.ts";
import type { LogLevel } from "../logger.ts";
import {
  decideLease,
  type LeaseRecord,
  observe,
  type ObservedLease,
} from "./lease_decision.ts";
import type { LeaseLock } from "./lease_lock.ts";
import { RenewedLease, type RenewedLeaseDeps } from "./renewed_lease.ts";

/**
 * Options of leader election. The defaults of the durations are those of the
 * components of Kubernetes.
 */
export interface LeaderElectionOptions {
  /** Name of the Lease; the same for all replicas, and not used elsewhere. */
  readonly name: string;
  /** Namespace of the Lease. Defaults to the namespace of the operator. */
  readonly namespace?: string | undefined;
  /**
   * Identity of this replica, unique among all replicas. Defaults to the host
   * name and a random suffix.
   */
  readonly identity?: string | undefined;
  /**
   * Time after the last renewal at which other replicas may take the Lease.
   *
   * @default {"15s"}
   */
  readonly leaseDuration?: Duration | undefined;
  /**
   * Time in which the leader must renew before it stops leading; shorter than
   * `leaseDuration`.
   *
   * @default {"10s"}
   */
  readonly renewDeadline?: Duration | undefined;
  /**
   * Time between two attempts to acquire or renew; shorter than `renewDeadline`.
   *
   * @default {"2s"}
   */
  readonly retryPeriod?: Duration | undefined;
}

/** Options of leader election that stay undefined when they are left out. */
type Undefined = "namespace" | "identity";

/** Pattern of the names of Leases (DNS subdomains). */
const LEASE_NAME =
  /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** Maximum length of the name of an object. */
const MAX_NAME_LENGTH = 253;
/** Maximum length of a name of a group or a member, which is also a label. */
const MAX_LABEL_LENGTH = 63;

/** Makes the check of a text that names a Lease, as a whole or in part. */
function leaseName(limit: number) {
  return (text: string, subject: string, option: string): void => {
    const cannot = `Cannot read the options of ${subject}: "${option}" must be`;
    if (text.length > limit) {
      throw new TypeError(
        `${cannot} at most ${limit} characters long: received ${text.length}`,
      );
    }
    if (LEASE_NAME.test(text)) return;
    throw new TypeError(
      `${cannot} that of a Lease, of lower-case letters, digits, dashes and dots: received ${
        JSON.stringify(text)
      }`,
    );
  };
}

export const LEADER_ELECTION_OPTIONS: OptionTable<
  LeaderElectionOptions,
  Undefined
> = {
  name: { type: "name", check: leaseName(MAX_NAME_LENGTH) },
  namespace: "name?",
  identity: "name?",
  leaseDuration: { type: "duration", default: "15s" },
  renewDeadline: { type: "duration", default: "10s" },
  retryPeriod: { type: "duration", default: "2s" },
};

const checkShardName = leaseName(MAX_LABEL_LENGTH);

/** Options of sharding: its names are parts of names of Leases, and labels. */
export const SHARDING_OPTIONS: OptionTable<LeaderElectionOptions, Undefined> = {
  ...LEADER_ELECTION_OPTIONS,
  name: { type: "name", check: checkShardName },
  identity: {
    type: "name?",
    check: (identity, subject, option) =>
      checkShardName(identity.toLowerCase(), subject, option),
  },
};

/** Options of leader election with defaults; durations in milliseconds. */
export type LeaderElectionSettings = Settings<LeaderElectionOptions, Undefined>;

/** Maximum random extension of a wait, as a share, to avoid collisions. */
const JITTER = 0.2;

/**
 * Checks that the durations of an election fit each other.
 *
 * @throws {RangeError} If the durations do not fit.
 */
export function checkLeaseTimes(options: LeaderElectionOptions): void {
  const { leaseDuration, renewDeadline, retryPeriod } = resolveOptions(
    options,
    LEADER_ELECTION_OPTIONS,
  );
  if (
    leaseDuration < 1_000 || renewDeadline >= leaseDuration ||
    retryPeriod * (1 + JITTER) >= renewDeadline || retryPeriod <= 0
  ) {
    throw new RangeError(
      `Cannot elect a leader: there must be 1s <= leaseDuration > renewDeadline > 1.2 * retryPeriod > 0: received ${leaseDuration}, ${renewDeadline} and ${retryPeriod} ms`,
    );
  }
}

export interface LeaderElectionDeps extends RenewedLeaseDeps {
  readonly lock: Pick<LeaseLock, "read" | "create" | "acquire" | "release">;
  readonly random: () => number;
  /** Callback for the start of this replica's leadership. */
  readonly onStartedLeading: () => void;
  /** Callback for the end of this replica's leadership; called immediately. */
  readonly onStoppedLeading: () => void;
}

/**
 * Candidate of a leader election. A candidate that loses its leadership remains
 * a candidate until it is stopped. `onStartedLeading` and `onStoppedLeading`
 * alternate.
 */
export class LeaderElection extends RenewedLease<LeaderElectionDeps> {
  readonly role = "the leader";
  #observed: ObservedLease | undefined;
  #leader: string | undefined;

  /** Identity of the leader that was observed last. */
  get leader(): string | undefined {
    return this.#leader;
  }

  protected override retryAt(): number {
    const { clock, times, random } = this.deps;
    return clock.now() + times.retryPeriod * (1 + JITTER * random());
  }

  protected override async renew(
    sentAt: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { lock, identity, clock } = this.deps;
    // The lease has most likely not changed since the leader last wrote it, so
    // that no read is needed.
    if (this.isTaken && this.#observed !== undefined) {
      const { record } = this.#observed;
      const renewed = await lock.acquire(record, false, signal);
      if (renewed !== undefined) return this.#take(renewed, sentAt);
    }
    const record = await lock.read(signal);
    if (record === undefined) {
      this.#observed = undefined;
      return this.#take(await lock.create(signal), sentAt);
    }
    this.#observed = observe(this.#observed, record, clock.now());
    const action = decideLease(this.#observed, identity, clock.now());
    if (action === "wait") {
      this.#observeLeader(record.holder);
      return this.lose("another replica holds the lease");
    }
    const isOther = action === "takeOver";
    this.#take(await lock.acquire(record, isOther, signal), sentAt);
  }

  /** Records the written lease, or its loss if another replica was faster. */
  #take(record: LeaseRecord | undefined, sentAt: number): void {
    if (record === undefined) {
      return this.lose("another replica holds the lease");
    }
    const { clock, identity, log, onStartedLeading } = this.deps;
    const isNew = !this.isTaken;
    this.#observed = { record, seenAt: clock.now() };
    this.renewedAt = sentAt;
    if (!isNew) return;
    log.info("Started leading", { identity });
    this.#observeLeader(identity);
    onStartedLeading();
  }

  #observeLeader(leader: string): void {
    if (leader === this.#leader) return;
    this.#leader = leader;
    this.deps.log.info("A leader was elected", { leader });
  }

  protected override async release(signal: AbortSignal): Promise<void> {
    if (this.#observed === undefined) return;
    await this.deps.lock.release(this.#observed.record, signal);
  }

  protected override onLose(because: string, level: LogLevel): void {
    const { identity, log, onStoppedLeading } = this.deps;
    log[level]("Stopped leading", { identity, because });
    onStoppedLeading();
  }
}
