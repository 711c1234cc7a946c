import { checkOptions, type OptionRules } from "../../api/options.ts";
import type { ReconnectOptions } from "../informer/informer_options.ts";

/** {@linkcode ReconnectOptions} with every default filled in. */
export type ReconnectSettings = {
  readonly [K in keyof ReconnectOptions]-?: Exclude<
    ReconnectOptions[K],
    undefined
  >;
};

const DEFAULTS: ReconnectSettings = {
  watchList: true,
  pageSize: 500,
  minWatchTimeout: 300_000,
  grace: 10_000,
  responseTimeout: 75_000,
  initialDelay: 800,
  maxDelay: 30_000,
  resetAfter: 120_000,
};

const RULES: OptionRules<ReconnectOptions> = {
  watchList: "boolean?",
  pageSize: "count?",
  minWatchTimeout: "positive?",
  grace: "positive?",
  responseTimeout: "positive?",
  initialDelay: "positive?",
  maxDelay: "positive?",
  resetAfter: "positive?",
};

/**
 * Fills in the defaults.
 *
 * @throws {TypeError} If an option is unknown or of another type.
 * @throws {RangeError} If a number is not positive, or the page size not whole.
 */
export function reconnectSettings(
  options: ReconnectOptions = {},
): ReconnectSettings {
  checkOptions(options, RULES, "an informer, reconnect");
  const given = Object.entries(options).filter(([, value]) =>
    value !== undefined
  );
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}
