import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";

/**
 * What a pass, or one step of it, concluded.
 *
 * - `"empty"`: nothing more to say; also what accompanies every error.
 * - `"requeue"`: run again at once.
 * - `"success"`: the desired state is reached.
 */
export type PassResult = "empty" | "requeue" | "success";

/**
 * Folds the results of two steps: requeue beats everything, empty says nothing.
 */
export function foldResults(a: PassResult, b: PassResult): PassResult {
  if (a === "requeue" || b === "requeue") return "requeue";
  return a === "success" || b === "success" ? "success" : "empty";
}

/** How an error is told to people. */
export interface Telling {
  /** Which Kubernetes Event it becomes. */
  readonly event: "None" | "Normal" | "Warning";
  /** Whether the framework logs it, as an error only if the event warns. */
  readonly log: boolean;
  /** Whether a Normal event also goes to the notification receiver. */
  readonly notify: boolean;
}

/** Options of the errors that a step throws. */
export interface OutcomeOptions extends Partial<Telling> {
  /** What went wrong underneath. */
  readonly cause?: unknown;
}

const TELLING_RULES: OptionRules<Partial<Telling>> = {
  event: ["None", "Normal", "Warning", undefined],
  log: "boolean?",
  notify: "boolean?",
};

const BRAND = Symbol.for("@coracle/operator/Outcome");

/** Which of the three errors it is. */
export type OutcomeKind = "stalled" | "waiting" | "failed";

/** What {@linkcode Stalled}, {@linkcode Waiting} and {@linkcode Failed} share. */
export abstract class Outcome extends Error {
  /** Tells the three apart, also between two loaded copies of the library. */
  abstract readonly outcome: OutcomeKind;
  /** Why, as one word for programs: the reason of condition and event. */
  readonly reason: string;
  /** How it is told to people. */
  readonly telling: Telling;

  /**
   * Says why the pass ends.
   *
   * @param reason Why, as one word for programs.
   * @param message Why, as a sentence for people.
   * @param options How it is told, by default as its kind says, and its cause.
   * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
   */
  constructor(
    reason: string,
    message: string,
    options: OutcomeOptions & { readonly defaults: Telling },
  ) {
    const { cause, defaults, ...telling } = options;
    super(message, cause === undefined ? {} : { cause });
    checkOptions(telling, TELLING_RULES, "an outcome");
    this.reason = reason;
    const { event, log, notify } = { ...defaults, ...defined(telling) };
    this.telling = { event, log, notify };
    Object.defineProperty(this, BRAND, { value: true });
  }
}

/** Options that are some; a spread would take anything for none. */
function checked<Options extends OutcomeOptions>(options: Options): Options {
  checkOption(options, "object", { name: "options", subject: "an outcome" });
  return options;
}

function defined(options: Partial<Telling>): Partial<Telling> {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  );
}

/**
 * The pass cannot succeed before somebody changes something: no retry, and
 * Stalled says why.
 *
 * @example A specification that makes no sense
 * ```ts
 * import { isOutcome, Stalled } from "@coracle/operator/workflows";
 *
 * const error: unknown = new Stalled("InvalidURL", "spec.url is not a URL");
 * if (!isOutcome(error, "stalled")) throw new Error("Unexpected");
 * ```
 */
export class Stalled extends Outcome {
  /** Which of the three it is. */
  readonly outcome = "stalled";

  /**
   * Says why it cannot go on.
   *
   * @param options By default a Warning event, logged and notified.
   * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
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
 * Something else must happen first: no failure, come back later.
 *
 * @example Come back in a minute
 * ```ts
 * import { isOutcome, Waiting } from "@coracle/operator/workflows";
 *
 * const error: unknown = new Waiting("NoAddress", "No address yet", {
 *   after: 60_000,
 * });
 * if (!isOutcome(error, "waiting")) throw new Error("Unexpected");
 * ```
 */
export class Waiting extends Outcome {
  /** Which of the three it is. */
  readonly outcome = "waiting";
  /** Milliseconds; undefined leaves it to the cadence. */
  readonly after: number | undefined;

  /**
   * Says what it waits for.
   *
   * @param options By default a Normal event, logged, not notified; `after` is
   * how many milliseconds later to look again, by default as the cadence says.
   * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
   */
  constructor(
    reason: string,
    message: string,
    options: OutcomeOptions & { readonly after?: number | undefined } = {},
  ) {
    const { after, ...telling } = checked(options);
    super(reason, message, {
      ...telling,
      defaults: { event: "Normal", log: true, notify: false },
    });
    checkOption(after, "number?", { name: "after", subject: "an outcome" });
    this.name = "Waiting";
    this.after = after;
  }
}

/**
 * A failure with a name; it is retried, unless it is harmless.
 *
 * @example Name what went wrong
 * ```ts
 * import { Failed, isOutcome } from "@coracle/operator/workflows";
 *
 * const cause = new Error("connect ECONNREFUSED");
 * const error = new Failed("Unreachable", "The registry is away", { cause });
 * if (!isOutcome(error, "failed") || error.harmless) throw error;
 * ```
 */
export class Failed extends Outcome {
  /** Which of the three it is. */
  readonly outcome = "failed";
  /** Whether it stands for "nothing to do" and ends the pass in peace. */
  readonly harmless: boolean;

  /**
   * Says what failed.
   *
   * @param options By default a Warning event, notified; the retry logs it.
   * `harmless` stands for "nothing to do", and ends the pass in peace.
   * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
   */
  constructor(
    reason: string,
    message: string,
    options: OutcomeOptions & { readonly harmless?: boolean | undefined } = {},
  ) {
    const { harmless = false, ...telling } = checked(options);
    super(reason, message, {
      ...telling,
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

/** The three errors by the name of their outcome. */
export interface Outcomes {
  /** Nothing but a change of the object helps. */
  readonly stalled: Stalled;
  /** Something else has to happen first. */
  readonly waiting: Waiting;
  /** It is worth another try. */
  readonly failed: Failed;
}

/** Whether a value is one of the three errors, or a certain one of them. */
export function isOutcome<K extends OutcomeKind = OutcomeKind>(
  value: unknown,
  kind?: K,
): value is Outcomes[K] {
  return typeof value === "object" && value !== null && BRAND in value &&
    (kind === undefined ||
      (value as { readonly outcome?: unknown }).outcome === kind);
}

/** Takes the query out of every URL in a text: signed ones hold secrets there. */
export function withoutUrlQueries(text: string): string {
  return text.replaceAll(/(https?:\/\/[^\s"'<>?]*)\?[^\s"'<>]*/gi, "$1");
}
