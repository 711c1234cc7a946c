import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { messageWithCause } from "../../core/error_text.ts";

/**
 * Result of a run, or of one of its steps.
 *
 * - `"empty"`: no result; accompanies every error.
 * - `"requeue"`: run again, at once for the first time; requests in a row get
 *   pauses from 100 ms, doubled up to a minute.
 * - `"success"`: the desired state is reached.
 */
export type StepResult = "empty" | "requeue" | "success";

export interface StepsResult {
  /** Combined result of the steps; `"empty"` if one threw. */
  readonly result: StepResult;
  /** Error that a step threw; undefined if none did. */
  readonly error?: unknown;
}

/**
 * Combines the results of two steps: `"requeue"` takes precedence over
 * `"success"`, which takes precedence over `"empty"`.
 */
export function combineResults(a: StepResult, b: StepResult): StepResult {
  if (a === "requeue" || b === "requeue") return "requeue";
  return a === "success" || b === "success" ? "success" : "empty";
}

/** Options of the errors that a step throws. */
export interface OutcomeOptions extends Partial<Outcome["reporting"]> {
  /** Underlying error. */
  readonly cause?: unknown;
}

const REPORTING_RULES: OptionRules<Partial<Outcome["reporting"]>> = {
  event: ["None", "Normal", "Warning", undefined],
  log: "boolean?",
  notify: "boolean?",
};

const BRAND = Symbol.for("@coracle/operator/Outcome");

/** Base class of {@linkcode Stalled}, {@linkcode Waiting} and {@linkcode Failed}. */
export abstract class Outcome extends Error {
  /** Discriminant; also works between two loaded copies of the library. */
  abstract readonly outcome: "stalled" | "waiting" | "failed";
  /** Machine-readable reason of the condition and the event. */
  readonly reason: string;
  /** Channels that report the error. */
  readonly reporting: {
    /** Type of the Kubernetes Event. */
    readonly event: "None" | "Normal" | "Warning";
    /** Whether the outcome is logged, as an error if the event is a Warning. */
    readonly log: boolean;
    /** Whether a Normal event is also sent to the notifier. */
    readonly notify: boolean;
  };

  /**
   * Creates the error.
   *
   * @param reason Machine-readable reason.
   * @param message Human-readable message.
   * @param options Channels that report the error, and its cause.
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   */
  constructor(
    reason: string,
    message: string,
    options: OutcomeOptions & { readonly defaults: Outcome["reporting"] },
  ) {
    const { cause, defaults, ...reporting } = options;
    super(message, cause === undefined ? {} : { cause });
    checkOptions(reporting, REPORTING_RULES, "an outcome");
    this.reason = reason;
    this.reporting = {
      event: reporting.event ?? defaults.event,
      log: reporting.log ?? defaults.log,
      notify: reporting.notify ?? defaults.notify,
    };
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** Checks that options are an object: spreading accepts any value. */
function checked<Options extends OutcomeOptions>(options: Options): Options {
  checkOption(options, "object", { name: "options", subject: "an outcome" });
  return options;
}

/**
 * Error for a run that cannot succeed until a user changes something. It is
 * not retried, and sets the Stalled condition.
 *
 * @example An invalid spec
 * ```ts
 * import { Stalled } from "@coracle/operator/workflows";
 *
 * const error: unknown = new Stalled("InvalidURL", "spec.url is not a URL");
 * if (!(error instanceof Stalled)) throw new Error("Unexpected");
 * ```
 */
export class Stalled extends Outcome {
  /** Kind of the outcome: an `if` on it gives the type. */
  readonly outcome = "stalled";

  /**
   * Creates the error.
   *
   * @param options By default a Warning event, a log line and a notification.
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   */
  constructor(reason: string, message: string, options: OutcomeOptions = {}) {
    super(reason, message, {
      ...checked(options),
      defaults: { event: "Warning", log: true, notify: true },
    });
    this.name = "Stalled";
  }
}

/**
 * Error for a run that waits for something else. It is not a failure; the run
 * is repeated later.
 *
 * @example Run again in a minute
 * ```ts
 * import { Waiting } from "@coracle/operator/workflows";
 *
 * const error: unknown = new Waiting("NoAddress", "No address yet", {
 *   after: 60_000,
 * });
 * if (!(error instanceof Waiting)) throw new Error("Unexpected");
 * ```
 */
export class Waiting extends Outcome {
  /** Kind of the outcome: an `if` on it gives the type. */
  readonly outcome = "waiting";
  /** Delay of the next run in milliseconds; by default that of the schedule. */
  readonly after: number | undefined;

  /**
   * Creates the error.
   *
   * @param options By default a Normal event and a log line, no notification;
   * `after` is the delay of the next run in milliseconds, by default that of the
   * schedule.
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   */
  constructor(
    reason: string,
    message: string,
    options: OutcomeOptions & { readonly after?: number | undefined } = {},
  ) {
    const { after, ...reporting } = checked(options);
    super(reason, message, {
      ...reporting,
      defaults: { event: "Normal", log: true, notify: false },
    });
    checkOption(after, "number?", { name: "after", subject: "an outcome" });
    this.name = "Waiting";
    this.after = after;
  }
}

/**
 * Error for a failure with a reason. It is retried, unless it is harmless.
 *
 * @example Give a failure a reason
 * ```ts
 * import { Failed } from "@coracle/operator/workflows";
 *
 * const cause = new Error("connect ECONNREFUSED");
 * const error = new Failed("Unreachable", "The registry is down", { cause });
 * if (error.reason !== "Unreachable" || error.harmless) throw error;
 * ```
 */
export class Failed extends Outcome {
  /** Kind of the outcome: an `if` on it gives the type. */
  readonly outcome = "failed";
  /** Whether there was nothing to do, so that the run counts as a success. */
  readonly harmless: boolean;

  /**
   * Creates the error.
   *
   * @param options By default a Warning event and a notification; the retry logs
   * it. `harmless` says that there was nothing to do, so that the run counts as
   * a success (false by default).
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   */
  constructor(
    reason: string,
    message: string,
    options: OutcomeOptions & { readonly harmless?: boolean | undefined } = {},
  ) {
    const { harmless = false, ...reporting } = checked(options);
    super(reason, message, {
      ...reporting,
      defaults: { event: "Warning", log: false, notify: true },
    });
    checkOption(harmless, "boolean", {
      name: "harmless",
      subject: "an outcome",
    });
    this.name = "Failed";
    this.harmless = harmless;
  }
}

/** Whether a value is an {@linkcode Outcome}, or one of the given type. */
export function isOutcome<
  K extends Outcome["outcome"] = Outcome["outcome"],
>(
  value: unknown,
  kind?: K,
): value is {
  readonly stalled: Stalled;
  readonly waiting: Waiting;
  readonly failed: Failed;
}[K] {
  return typeof value === "object" && value !== null && BRAND in value &&
    (kind === undefined ||
      (value as { readonly outcome?: unknown }).outcome === kind);
}

/** Maximum length of a chain of causes, which may be circular. */
const MAX_CHAIN = 16;

/** List of an error and its causes, the outermost first. */
export function chainOf(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let current = error;
  while (current !== undefined && chain.length < MAX_CHAIN) {
    chain.push(current);
    current = current instanceof Error ? current.cause : undefined;
  }
  return chain;
}

/** Message of an error and its system error, without the secrets of URLs. */
export function errorText(error: unknown): string {
  return withoutUrlSecrets(messageWithCause(error));
}

/**
 * Removes user, password and query of every URL in a text: signed URLs hold secrets
 * in the query, and Node's `fetch` quotes a URL with a password.
 */
export function withoutUrlSecrets(text: string): string {
  return text.replaceAll(
    /(https?:\/\/)(?:[^\s"'<>?#/]*@)?([^\s"'<>?]*)(?:\?[^\s"'<>]*)?/gi,
    "$1$2",
  );
}
