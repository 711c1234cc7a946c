import type { OptionTable, Settings } from "../../api/options.ts";

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
