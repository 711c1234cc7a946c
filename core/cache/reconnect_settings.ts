import type { ReconnectOptions } from "./informer_options.ts";

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
  answerTimeout: 75_000,
  initialDelay: 800,
  maxDelay: 30_000,
  resetAfter: 120_000,
};

/**
 * Fills in the defaults.
 *
 * @throws {RangeError} If a number is not positive, or the page size not whole.
 */
export function reconnectSettings(
  options: ReconnectOptions = {},
): ReconnectSettings {
  const given = Object.entries(options).filter(([, value]) =>
    value !== undefined
  );
  const settings: ReconnectSettings = {
    ...DEFAULTS,
    ...Object.fromEntries(given),
  };
  for (const [name, value] of Object.entries(settings)) {
    if (!(name in DEFAULTS)) {
      throw new TypeError(
        `Cannot make an Informer: "reconnect" has the options ${
          Object.keys(DEFAULTS).join(", ")
        }: received "${name}"`,
      );
    }
    if (typeof value === "number" && !(value > 0 && value < Infinity)) {
      throw new RangeError(
        `Cannot make an Informer: "reconnect.${name}" must be positive: received ${value}`,
      );
    }
  }
  if (!Number.isInteger(settings.pageSize)) {
    throw new RangeError(
      `Cannot make an Informer: "reconnect.pageSize" must be whole: received ${settings.pageSize}`,
    );
  }
  return settings;
}
