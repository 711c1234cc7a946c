import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkOptions, type OptionRules } from "../../core/api/option_rules.ts";
import { isOutcome, type PassResult } from "./outcome.ts";

/** When to come back, and whether that is because all is well. */
export interface NextRun {
  /** Milliseconds; zero for at once, undefined for not before an event. */
  readonly after: number | undefined;
  /** Whether the pass has reached the desired state. */
  readonly success: boolean;
}

/** Decides when an object is looked at again. */
export interface Cadence {
  /** When to come back after a pass that ended so. */
  next(result: PassResult, error: unknown): NextRun;
  /**
   * Whether a pass that calls itself a success while the object is not Ready
   * has failed, and is retried.
   */
  readonly retryUntilReady: boolean;
}

/**
 * Looks again at a fixed interval, for what tells nobody when it changes.
 *
 * @param interval How long after a success, and after a wait that names no time.
 * @throws {RangeError} If the interval is not a positive duration.
 *
 * @example Every minute, give or take five per cent
 * ```ts
 * import { every, jittered } from "@coracle/operator/workflows";
 *
 * const cadence = every(jittered("1m", { random: () => 0.5 }));
 * if (cadence.next("success", undefined).after !== 60_000) {
 *   throw new Error("Unexpected interval");
 * }
 * ```
 */
export function every(interval: Duration): Cadence {
  const period = milliseconds(interval, "interval");
  if (!(period > 0)) {
    throw new RangeError(
      `Cannot make a cadence: the interval must be longer than zero: received ${interval}`,
    );
  }
  return {
    retryUntilReady: true,
    next(result, error) {
      if (isOutcome(error, "waiting")) {
        return { after: error.after || period, success: false };
      }
      if (isOutcome(error, "failed") && error.harmless) {
        return { after: period, success: true };
      }
      if (result === "requeue") return { after: 0, success: false };
      return result === "success"
        ? { after: period, success: error === undefined }
        : { after: undefined, success: false };
    },
  };
}

/** Looks again only when an event comes, or a wait names a time. */
export function onEvents(): Cadence {
  return {
    retryUntilReady: false,
    next(result, error) {
      if (isOutcome(error, "waiting")) {
        return { after: error.after, success: false };
      }
      if (isOutcome(error, "failed") && error.harmless) {
        return { after: undefined, success: true };
      }
      if (result === "requeue") return { after: 0, success: false };
      return {
        after: undefined,
        success: result === "success" && error === undefined,
      };
    },
  };
}

/** Options of {@linkcode jittered}. */
export interface JitterOptions {
  /**
   * How far the result may be off, in per cent of the duration; less than 100.
   * The default is that of Flux' controllers.
   *
   * @default {5}
   */
  readonly percentage?: number | undefined;
  /**
   * Gives a number from 0 to below 1.
   *
   * @default {Math.random}
   */
  readonly random?: (() => number) | undefined;
}

const JITTER_RULES: OptionRules<JitterOptions> = {
  percentage: "number?",
  random: "function?",
};

/**
 * A duration that is a little longer or shorter, so that many objects do not
 * come due at once. Zero stays zero.
 *
 * @returns Milliseconds.
 * @throws {TypeError} If an option is unknown or of another type.
 * @throws {RangeError} If the percentage is negative, or 100 or more.
 */
export function jittered(
  duration: Duration,
  options: JitterOptions = {},
): number {
  checkOptions(options, JITTER_RULES, "jittered()");
  const { percentage = 5, random = Math.random } = options;
  if (!(percentage >= 0 && percentage < 100)) {
    throw new RangeError(
      `Cannot jitter a duration: "percentage" must be from 0 to below 100: received ${percentage}`,
    );
  }
  return milliseconds(duration) *
    (1 + (percentage / 100) * (2 * random() - 1));
}
