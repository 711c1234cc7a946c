import type { Duration } from "../api/duration.ts";
import {
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../api/options.ts";
import { type Clock, deadline, sleep } from "../clock.ts";
import type { Logger } from "../logger.ts";
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

/** The lock that is fought for; a Lease, or a stand-in for tests. */
export interface ElectionLock {
  /** Where it is, for logs. */
  readonly text: string;
  read(signal: AbortSignal): Promise<LeaseRecord | undefined>;
  create(signal: AbortSignal): Promise<LeaseRecord | undefined>;
  take(
    record: LeaseRecord,
    transition: boolean,
    signal: AbortSignal,
  ): Promise<LeaseRecord | undefined>;
  release(record: LeaseRecord, signal: AbortSignal): Promise<void>;
}

/** What a {@linkcode LeaderElection} works with. */
export interface ElectionSetting {
  readonly lock: ElectionLock;
  readonly identity: string;
  readonly times: LeaseTimes;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Called when this replica begins to lead. */
  readonly onStarted: () => void;
  /** Called, at once, when it leads no more. */
  readonly onStopped: () => void;
  /** Called when somebody else is seen to lead. */
  readonly onNewLeader?: ((identity: string) => void) | undefined;
}

/**
 * One candidate of an election. It tries for ever: after a lost leadership it is
 * a candidate again.
 *
 * Guarantees
 * - `onStarted` and `onStopped` alternate.
 * - {@linkcode LeaderElection.holds} is only true while nobody else can have
 *   taken over, whatever the event loop was busy with: it looks at the clock, not
 *   at whether a timer has fired.
 * - A leader whose event loop was busy, or whose process stood still, past its
 *   renew deadline still renews, if that is well before the lease expires. There
 *   is no thread that renews meanwhile: others could not take over from a leader
 *   that does nothing any more.
 */
export class LeaderElection {
  readonly #setting: ElectionSetting;
  readonly #ending: AbortController = new AbortController();
  #observed: ObservedLease | undefined;
  #leading = false;
  /** When the last renewal that succeeded was sent. */
  #renewedAt = -Infinity;
  #leader: string | undefined;
  #loop: Promise<void> | undefined;

  /** @param setting What it works with. */
  constructor(setting: ElectionSetting) {
    this.#setting = setting;
  }

  /** Whether this replica has been elected, and not lost it as far as it knows. */
  get isLeading(): boolean {
    return this.#leading;
  }

  /** Whether it leads, and nobody else can at this moment. */
  get holds(): boolean {
    const { clock, times } = this.#setting;
    return this.#leading && clock.now() < heldUntil(this.#renewedAt, times);
  }

  /** Who leads, as far as it is known. */
  get leader(): string | undefined {
    return this.#leader;
  }

  /** Becomes a candidate; returns at once. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /**
   * Is no candidate any more, and leads no more.
   *
   * @param options Whether the lease is given back.
   */
  async stop(options: ReleaseOptions = {}): Promise<void> {
    const { log, lock, times, clock } = this.#setting;
    this.#ending.abort();
    await this.#loop;
    const held = this.#leading ? this.#observed : undefined;
    this.#lose("the operator stops");
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
    const { times, random, clock } = this.#setting;
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

  /** Tries once to get or to keep the lease. */
  async #attempt(
    attempt: { readonly at: number; readonly previousAt: number },
  ): Promise<void> {
    const { times, clock, log, lock } = this.#setting;
    const began = attempt.at;
    const giveUp = this.#leading
      ? giveUpAt(this.#renewedAt, attempt, times)
      : began + times.renewDeadline;
    if (giveUp <= began) {
      this.#lose("it could not be renewed in time");
      return;
    }
    const { signal } = this.#ending;
    try {
      const won = await deadline(
        (signal) => this.#tryLock(began, signal),
        giveUp - began,
        { clock, signal, awaitsEnd: true },
      );
      if (!won) this.#lose("somebody else holds the lease");
    } catch (error) {
      if (signal.aborted) return;
      log.warn("Cannot reach the lease", { lease: lock.text, error });
      if (this.#leading && clock.now() >= giveUp) {
        this.#lose("it could not be renewed in time");
      }
    }
  }

  /** Whether the lease is ours after this attempt. */
  async #tryLock(began: number, signal: AbortSignal): Promise<boolean> {
    const { lock, identity, clock } = this.#setting;
    // What a leader wrote last is most likely still there: no read is needed.
    if (this.#leading && this.#observed !== undefined) {
      const { record } = this.#observed;
      if (this.#won(await lock.take(record, false, signal), began)) return true;
    }
    this.#observed = observe(
      this.#observed,
      await lock.read(signal),
      clock.now(),
    );
    const action = decideLease(this.#observed, identity, clock.now());
    if (action.type === "wait") {
      this.#sawLeader(this.#observed?.record.holder);
      return false;
    }
    const record = action.type === "create"
      ? await lock.create(signal)
      : await lock.take(
        (this.#observed as ObservedLease).record,
        action.transition,
        signal,
      );
    return this.#won(record, began);
  }

  #won(record: LeaseRecord | undefined, began: number): boolean {
    if (record === undefined) return false;
    const { clock, identity, log, lock, onStarted } = this.#setting;
    this.#observed = { record, seenAt: clock.now() };
    this.#renewedAt = began;
    if (this.#leading) return true;
    this.#leading = true;
    log.info("This replica leads", { lease: lock.text, identity });
    this.#sawLeader(identity);
    onStarted();
    return true;
  }

  #lose(because: string): void {
    if (!this.#leading) return;
    const { identity, log, lock, onStopped } = this.#setting;
    this.#leading = false;
    this.#renewedAt = -Infinity;
    log.warn("This replica leads no more", {
      lease: lock.text,
      identity,
      because,
    });
    onStopped();
  }

  #sawLeader(leader: string | undefined): void {
    if (leader === this.#leader || leader === undefined) return;
    this.#leader = leader;
    this.#setting.onNewLeader?.(leader);
  }
}
