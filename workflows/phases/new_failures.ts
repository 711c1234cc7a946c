import { checkOptions, type OptionRules } from "../../core/api/options.ts";

/** A failure that something keeps in its history. */
export interface PastFailure {
  /** When it happened, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** What it said, and where: one line or many. */
  readonly text: string;
}

/** Options of {@linkcode newFailures}. */
export interface NewFailuresOptions {
  /**
   * Up to when failures were told. Keep it in the status, so that a restart of
   * the operator tells nothing twice.
   */
  readonly after: number | undefined;
  /**
   * How many are told; of more, those that happened last.
   *
   * @default {10}
   */
  readonly most?: number | undefined;
  /**
   * How many lines of each are told.
   *
   * @default {6}
   */
  readonly lines?: number | undefined;
}

const RULES: OptionRules<NewFailuresOptions> = {
  after: "number?",
  most: "size?",
  lines: "count?",
};

/** What is to be told of failures, and up to when it then is told. */
export interface NewFailures {
  /** The texts, the oldest first. */
  readonly told: readonly string[];
  /** When the newest was, which is what to give as `after` the next time. */
  readonly after: number | undefined;
}

/**
 * Which failures of a history are new. Pure; the limits are those of the Flink
 * operator: ten at once, a message and five lines of stack each.
 *
 * @param history What is there, in any order.
 * @param options What was told before, and the limits.
 * @throws {TypeError | RangeError} If an option is unknown, missing or makes no
 * sense.
 *
 * @example Tell each failure once
 * ```ts
 * import { newFailures } from "@coracle/operator/workflows";
 *
 * const history = [{ at: 1, text: "old" }, { at: 2, text: "new" }];
 * const { told, after } = newFailures(history, { after: 1 });
 * if (told.join() !== "new" || after !== 2) throw new Error("Unexpected");
 * ```
 */
export function newFailures(
  history: readonly PastFailure[],
  options: NewFailuresOptions,
): NewFailures {
  checkOptions(options, RULES, "newFailures()");
  const { after, most = 10, lines = 6 } = options;
  const fresh = history
    .filter(({ at }) => after === undefined || at > after)
    .sort((a, b) => a.at - b.at);
  return {
    told: fresh.slice(-most).map(({ text }) =>
      text.split("\n", lines).join("\n")
    ),
    after: fresh.at(-1)?.at ?? after,
  };
}
