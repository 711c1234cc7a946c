import type { Duration } from "../api/duration.ts";
import {
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../api/options.ts";
import { type Clock, deadline, sleep } from "../clock.ts";
import type { Logger, LogLevel } from "../logger.ts";
import {
  decideLease,
  giveUpAt,
  heldUntil,
  type LeaseRecord,
  type LeaseTimes,
  observe,
  type ObservedLease,
  type ReleaseOptions,
  renewBy,
} from "./lease_decision.ts";

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

/** Table of {@linkcode LeaderElectionOptions}. */
export const LEADER_ELECTION_OPTIONS: OptionTable<
  LeaderElectionOptions,
  Undefined
> = {
  name: "name",
  namespace: "name?",
  identity: "name?",
  leaseDuration: { type: "duration", default: "15s" },
  renewDeadline: { type: "duration", default: "10s" },
  retryPeriod: { type: "duration", default: "2s" },
};

/** Options of leader election with defaults; durations in milliseconds. */
export type LeaderElectionSettings = Settings<LeaderElectionOptions, Undefined>;

/** Share by which candidates wait longer at random, so that they do not collide. */
const JITTER = 0.2;

/**
 * Checks that the durations of an election fit each other.
 *
 * @param options Options that their table allows.
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

/** Lock of an election: a Lease, or a replacement in tests. */
export interface ElectionLock {
  /** Namespace and name of the lock, for logs. */
  readonly text: string;
  /** Reads the lock; undefined if it does not exist. */
  read(signal: AbortSignal): Promise<LeaseRecord | undefined>;
  /** Creates the lock as its holder; undefined if another was faster. */
  create(signal: AbortSignal): Promise<LeaseRecord | undefined>;
  /**
   * Acquires or renews the lock if it is unchanged; undefined if it is not.
   *
   * @param record The lock as it was last read or written.
   * @param transition Whether another candidate held it before.
   */
  acquire(
    record: LeaseRecord,
    transition: boolean,
    signal: AbortSignal,
  ): Promise<LeaseRecord | undefined>;
  /** Releases the lock, so that others can acquire it immediately. */
  release(record: LeaseRecord, signal: AbortSignal): Promise<void>;
}

/** Dependencies of a {@linkcode LeaderElection}. */
export interface LeaderElectionDeps {
  readonly lock: ElectionLock;
  readonly identity: string;
  readonly times: LeaseTimes;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Called when this replica starts to lead. */
  readonly onStartedLeading: () => void;
  /** Called immediately when this replica stops leading. */
  readonly onStoppedLeading: () => void;
  /** Called when another leader is observed. */
  readonly onNewLeader?: ((identity: string) => void) | undefined;
}

/**
 * One candidate of a leader election. A candidate that loses its leadership
 * remains a candidate until it is stopped.
 *
 * Guarantees
 * - `onStartedLeading` and `onStoppedLeading` alternate.
 * - {@linkcode LeaderElection.isLeaseHeld} is only true while no other candidate
 *   can have taken over, however busy the event loop was: it depends on the
 *   clock and not on a timer that may fire late.
 * - A leader whose event loop was busy, or whose process was suspended, beyond
 *   its renew deadline still renews if the lease is far enough from its expiry.
 *   No thread renews in the background, which would keep a leader in office that
 *   does nothing.
 */
export class LeaderElection {
  readonly #deps: LeaderElectionDeps;
  readonly #ending: AbortController = new AbortController();
  #observed: ObservedLease | undefined;
  #leading = false;
  /** Time at which the last successful renewal was sent. */
  #renewedAt = -Infinity;
  #leader: string | undefined;
  #loop: Promise<void> | undefined;

  constructor(deps: LeaderElectionDeps) {
    this.#deps = deps;
  }

  /** Whether this replica was elected and does not know that it lost. */
  get isLeading(): boolean {
    return this.#leading;
  }

  /** Whether this replica leads and no other can lead at this moment. */
  get isLeaseHeld(): boolean {
    const { clock, times } = this.#deps;
    return this.#leading && clock.now() < heldUntil(this.#renewedAt, times);
  }

  /** Identity of the leader that was observed last. */
  get leader(): string | undefined {
    return this.#leader;
  }

  /** Becomes a candidate; returns immediately. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /**
   * Stops leading and being a candidate.
   *
   * @param options Whether the lease is released.
   */
  async stop(options: ReleaseOptions = {}): Promise<void> {
    const { log, lock, times, clock } = this.#deps;
    this.#ending.abort();
    await this.#loop;
    const held = this.#leading ? this.#observed : undefined;
    this.#stopLeading("the operator stops", "info");
    if (held === undefined || options.release === false) return;
    try {
      await deadline(
        (signal) => lock.release(held.record, signal),
        times.retryPeriod,
        { clock },
      );
    } catch (error) {
      log.warn("Cannot release the lease, others wait until it expires", {
        lease: lock.text,
        error,
      });
    }
  }

  async #run(): Promise<void> {
    const { times, random, clock } = this.#deps;
    let previousAt = clock.now();
    while (!this.#ending.signal.aborted) {
      const at = clock.now();
      await this.#attempt({ at, previousAt });
      previousAt = at;
      const pause = this.#leading
        ? Math.min(
          at + times.retryPeriod,
          renewBy(this.#renewedAt, times),
        ) - clock.now()
        : times.retryPeriod * (1 + JITTER * random());
      await sleep(Math.max(0, pause), { clock, signal: this.#ending.signal })
        .catch(() => {}); // Stopped.
    }
  }

  /** Tries once to acquire or renew the lease. */
  async #attempt(
    attempt: { readonly at: number; readonly previousAt: number },
  ): Promise<void> {
    const { times, clock, log, lock } = this.#deps;
    const began = attempt.at;
    const limit = this.#leading
      ? giveUpAt(this.#renewedAt, attempt, times)
      : began + times.renewDeadline;
    if (limit <= began) {
      this.#stopLeading("it could not be renewed in time");
      return;
    }
    const { signal } = this.#ending;
    try {
      const acquired = await deadline(
        (signal) => this.#tryAcquire(began, signal),
        limit - began,
        { clock, signal, awaitsEnd: true },
      );
      if (!acquired) this.#stopLeading("another replica holds the lease");
    } catch (error) {
      if (signal.aborted) return;
      log.warn("Cannot reach the lease", { lease: lock.text, error });
      if (this.#leading && clock.now() >= limit) {
        this.#stopLeading("it could not be renewed in time");
      }
    }
  }

  /** Tries to acquire or renew; returns whether this replica holds the lease. */
  async #tryAcquire(began: number, signal: AbortSignal): Promise<boolean> {
    const { lock, identity, clock } = this.#deps;
    // The lease has most likely not changed since the leader last wrote it, so
    // that no read is needed.
    if (this.#leading && this.#observed !== undefined) {
      const { record } = this.#observed;
      const renewed = await lock.acquire(record, false, signal);
      if (this.#isAcquired(renewed, began)) return true;
    }
    this.#observed = observe(
      this.#observed,
      await lock.read(signal),
      clock.now(),
    );
    const action = decideLease(this.#observed, identity, clock.now());
    if (action.type === "wait") {
      this.#observeLeader(this.#observed?.record.holder);
      return false;
    }
    const record = action.type === "create"
      ? await lock.create(signal)
      : await lock.acquire(
        (this.#observed as ObservedLease).record,
        action.transition,
        signal,
      );
    return this.#isAcquired(record, began);
  }

  #isAcquired(record: LeaseRecord | undefined, began: number): boolean {
    if (record === undefined) return false;
    const { clock, identity, log, lock, onStartedLeading } = this.#deps;
    this.#observed = { record, seenAt: clock.now() };
    this.#renewedAt = began;
    if (this.#leading) return true;
    this.#leading = true;
    log.info("Started leading", { lease: lock.text, identity });
    this.#observeLeader(identity);
    onStartedLeading();
    return true;
  }

  #stopLeading(because: string, level: LogLevel = "warn"): void {
    if (!this.#leading) return;
    const { identity, log, lock, onStoppedLeading } = this.#deps;
    this.#leading = false;
    log[level]("Stopped leading", { lease: lock.text, identity, because });
    onStoppedLeading();
  }

  #observeLeader(leader: string | undefined): void {
    if (leader === this.#leader || leader === undefined) return;
    this.#leader = leader;
    this.#deps.onNewLeader?.(leader);
  }
}
