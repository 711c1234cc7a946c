import type { OptionTable, Settings } from "../../api/options.ts";
import type { Clock } from "../../clock.ts";

/**
 * Options for connecting, and for recovering from failures. All durations are in
 * milliseconds. Watch timeout, pauses and page size default to those of client-go.
 */
export interface ReconnectOptions {
  /**
   * Whether the initial state is requested as a stream (WatchList) first. Where
   * the server cannot stream it, it is listed in pages instead.
   *
   * @default {true}
   */
  readonly watchList?: boolean | undefined;
  /**
   * Maximum number of objects in a page of a list.
   *
   * @default {500}
   */
  readonly pageSize?: number | undefined;
  /**
   * Minimum time after which the server ends a watch; each watch has a random
   * timeout from this value to twice as long.
   *
   * @default {300_000}
   */
  readonly minWatchTimeout?: number | undefined;
  /**
   * Time for which a stream may exceed its timeout, or be silent while data is
   * due, before the connection counts as dead.
   *
   * @default {10_000}
   */
  readonly grace?: number | undefined;
  /**
   * Time limit for the head of a response.
   *
   * @default {75_000}
   */
  readonly responseTimeout?: number | undefined;
  /**
   * First pause after a failure; it doubles with every failure, with jitter.
   *
   * @default {800}
   */
  readonly initialDelay?: number | undefined;
  /**
   * Longest pause after a failure, before jitter.
   *
   * @default {30_000}
   */
  readonly maxDelay?: number | undefined;
  /**
   * Time without a failure after which pauses start again from `initialDelay`.
   *
   * @default {120_000}
   */
  readonly resetAfter?: number | undefined;
}

/** Reconnect options with every default filled in. */
export type ReconnectSettings = Settings<ReconnectOptions>;

/** Types and defaults of the reconnect options. */
export const RECONNECT_OPTIONS: OptionTable<ReconnectOptions> = {
  watchList: { type: "boolean", default: true },
  pageSize: { type: "count", default: 500 },
  minWatchTimeout: { type: "positive", default: 300_000 },
  grace: { type: "positive", default: 10_000 },
  responseTimeout: { type: "positive", default: 75_000 },
  initialDelay: { type: "positive", default: 800 },
  maxDelay: { type: "positive", default: 30_000 },
  resetAfter: { type: "positive", default: 120_000 },
};

/** Longest pause that a server may request, in milliseconds. */
const MAX_REQUESTED_MS = 5 * 60_000;

type BackOffSettings = Pick<
  ReconnectSettings,
  "initialDelay" | "maxDelay" | "resetAfter"
>;

/**
 * Exponential backoff between connection attempts: pauses double up to a cap, are
 * lengthened by up to themselves at random so that the clients of a server that
 * restarts do not reconnect together, and start again from the first after a time
 * without failures.
 *
 * That time is measured from the end of the last pause, not from a successful
 * connection: a server that accepts and drops connections must be protected.
 */
export class BackOff {
  readonly #settings: BackOffSettings;
  readonly #clock: Clock;
  readonly #random: () => number;
  #delay: number;
  /** Time at which the last pause ended; undefined before the first pause. */
  #resumed: number | undefined;

  constructor(settings: BackOffSettings, clock: Clock, random: () => number) {
    this.#settings = settings;
    this.#clock = clock;
    this.#random = random;
    this.#delay = settings.initialDelay;
  }

  /**
   * Next pause in milliseconds.
   *
   * @param atLeast Pause that the server requested, of which at most five minutes
   * count; jitter is added to it.
   */
  next(atLeast = 0): number {
    const { initialDelay, maxDelay, resetAfter } = this.#settings;
    const now = this.#clock.now();
    // NaN, from an error of other middleware, would be no pause at all.
    const requested = atLeast > 0 ? Math.min(atLeast, MAX_REQUESTED_MS) : 0;
    if (this.#resumed !== undefined && now - this.#resumed >= resetAfter) {
      this.#delay = initialDelay;
    }
    const pause = Math.max(
      this.#delay * (1 + this.#random()),
      requested * (1 + this.#random() / 10),
    );
    this.#delay = Math.min(this.#delay * 2, maxDelay);
    this.#resumed = now + pause;
    return pause;
  }

  /** Pause as after the first failure, with jitter; the next one is not longer. */
  short(): number {
    return this.#settings.initialDelay * (1 + this.#random());
  }
}
