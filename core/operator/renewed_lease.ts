import { type Clock, deadline, sleep } from "../clock.ts";
import { messageWithCause } from "../error_text.ts";
import type { Logger, LogLevel } from "../logger.ts";
import { linkedSignal } from "../signals.ts";
import type { ReplicaLease } from "./fence.ts";
import {
  giveUpAt,
  heldUntil,
  type LeaseTimes,
  renewBy,
} from "./lease_decision.ts";

export interface RenewedLeaseDeps {
  /** Identity of this replica. */
  readonly identity: string;
  readonly times: LeaseTimes;
  readonly clock: Clock;
  /** Logger with the name of the lease among its fields. */
  readonly log: Logger;
}

/** Failure to read or renew a lease that has not ended. */
export interface LeaseFailure {
  /** Time since the first failure, in milliseconds. */
  readonly duration: number;
  /** Message of the last failure. */
  readonly message: string;
}

/**
 * Lease that this replica takes and then renews until it is stopped: that of the
 * leader, or that of a member of a shard group. A replica that loses its lease
 * tries to take it again.
 *
 * Guarantees
 * - {@linkcode RenewedLease.isHeld} is only true while no other replica can have
 *   taken over, however busy the event loop was: it depends on the clock and not
 *   on a timer that may fire late.
 * - A replica whose event loop was busy, or whose process was suspended, beyond
 *   its renew deadline still renews if the lease is far enough from its expiry.
 *   No thread renews in the background, which would keep the lease of a replica
 *   that does nothing.
 */
export abstract class RenewedLease<Deps extends RenewedLeaseDeps>
  implements ReplicaLease {
  abstract readonly role: string;
  protected readonly deps: Deps;
  /** Time of the last successful renewal; -Infinity without a lease. */
  protected renewedAt: number = -Infinity;
  readonly #ending: AbortController = new AbortController();
  #term: AbortController = new AbortController();
  /** Abort controller that ends the pause between two attempts. */
  #wake: AbortController = new AbortController();
  #loop: Promise<void> | undefined;
  /** Time of the first failure since the lease was last read or renewed. */
  #failingSince: number | undefined;
  #failure = "";
  #isReported = false;

  constructor(deps: Deps) {
    this.deps = deps;
  }

  /** Whether this replica has taken the lease and does not know that it lost it. */
  get isTaken(): boolean {
    return this.renewedAt !== -Infinity;
  }

  /** Failure to read or renew the lease; undefined while that works. */
  get failure(): LeaseFailure | undefined {
    if (this.#failingSince === undefined) return undefined;
    const duration = this.deps.clock.now() - this.#failingSince;
    return { duration, message: this.#failure };
  }

  get isHeld(): boolean {
    const { clock, times } = this.deps;
    return clock.now() < heldUntil(this.renewedAt, times);
  }

  get signal(): AbortSignal {
    return this.#term.signal;
  }

  /** Starts to take the lease; returns immediately. */
  start(): void {
    this.#loop ??= this.#run();
  }

  /**
   * Gives up the lease.
   *
   * @param options Whether the lease is released, so that others take it
   * immediately; otherwise they wait until it expires. Nothing that depends on
   * the lease may still run then.
   */
  async stop(
    { release = true }: { readonly release?: boolean | undefined } = {},
  ): Promise<void> {
    const { log, times, clock } = this.deps;
    this.#ending.abort();
    await this.#loop;
    if (!this.isTaken) return;
    this.lose("the operator stops", "info");
    if (!release) return;
    try {
      await deadline((signal) => this.release(signal), times.retryPeriod, {
        clock,
      });
    } catch (error) {
      log.warn("Cannot release the lease, others wait until it expires", {
        error,
      });
    }
  }

  /** Signal that aborts when the replica stops renewing. */
  protected get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /**
   * Tries once to take or renew the lease, and sets the time of the renewal.
   *
   * @param sentAt Time of this attempt.
   */
  protected abstract renew(sentAt: number, signal: AbortSignal): Promise<void>;

  /** Releases the lease on the server. */
  protected abstract release(signal: AbortSignal): Promise<void>;

  /** Handles the loss of the lease: nothing that depends on it may continue. */
  protected abstract onLose(because: string, level: LogLevel): void;

  /** Time of the next attempt to take a lease that this replica does not have. */
  protected retryAt(attemptedAt: number): number {
    return attemptedAt + this.deps.times.retryPeriod;
  }

  /** Ends the pause before the next attempt. */
  protected wake(): void {
    this.#wake.abort();
  }

  /** Records the loss of the lease, and aborts the pending writes. */
  protected lose(because: string, level: LogLevel = "warn"): void {
    if (!this.isTaken) return;
    this.renewedAt = -Infinity;
    this.#term.abort(
      new Error(`Cannot go on: this replica is no longer ${this.role}`),
    );
    this.#term = new AbortController();
    this.onLose(because, level);
  }

  async #run(): Promise<void> {
    const { clock, times } = this.deps;
    let previousAt = clock.now();
    while (!this.ending.aborted) {
      const at = clock.now();
      this.#wake = new AbortController();
      await this.#attempt({ at, previousAt });
      previousAt = at;
      const next = this.isTaken
        ? Math.min(at + times.retryPeriod, renewBy(this.renewedAt, times))
        : this.retryAt(at);
      const { signal, unlink } = linkedSignal(this.ending, this.#wake.signal);
      const pause = Math.max(0, next - clock.now());
      await sleep(pause, { clock, signal }).catch(() => {}); // Woken, or stopped.
      unlink();
    }
  }

  /**
   * Tries once to renew the lease; after its deadline the lease counts as lost.
   */
  async #attempt(
    attempt: { readonly at: number; readonly previousAt: number },
  ): Promise<void> {
    const { clock, times } = this.deps;
    const { at } = attempt;
    const limit = this.isTaken
      ? giveUpAt(this.renewedAt, attempt, times)
      : at + times.renewDeadline;
    if (limit <= at) return this.lose("it could not be renewed in time");
    try {
      await deadline((signal) => this.renew(at, signal), limit - at, {
        clock,
        signal: this.ending,
        awaitsEnd: true,
      });
      this.#failingSince = undefined;
      this.#isReported = false;
    } catch (error) {
      if (this.ending.aborted) return;
      this.#failed(error, at);
      if (clock.now() >= limit) this.lose("it could not be renewed in time");
    }
  }

  /** Logs a failure; as an error once it has lasted as long as the lease. */
  #failed(error: unknown, at: number): void {
    const { clock, times, log } = this.deps;
    this.#failingSince ??= at;
    this.#failure = messageWithCause(error);
    const failingFor = clock.now() - this.#failingSince;
    const isLong = failingFor >= times.leaseDuration && !this.#isReported;
    this.#isReported ||= isLong;
    log[isLong ? "error" : "warn"](
      isLong
        ? "Cannot reach the lease: no replica without one runs anything"
        : "Cannot reach the lease",
      { failingFor, error },
    );
  }
}
