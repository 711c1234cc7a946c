import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import {
  type Cadence,
  type FinishOptions,
  type Roll,
  ROLL_RULES,
} from "./reconcile_result.ts";
import {
  type Conditioned,
  type NewCondition,
  READY,
  RECONCILING,
  STALLED,
} from "./condition.ts";
import type { Notifier } from "./notifier.ts";
import { NEWS_RULES, type NewsOptions } from "./summarized.ts";
import {
  REQUEST_NAME_RULES,
  type RequestNames,
  requestsOf,
} from "./requests.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import { RunInterruptedError } from "../../core/controller/run/run.ts";
import {
  Failed,
  foldResults,
  isOutcome,
  type PassResult,
  withoutUrlQueries,
} from "./outcome.ts";

/** What Ready is never True beside. */
const ALWAYS_ABNORMAL: readonly string[] = [STALLED, RECONCILING];

/** What `summarized` knows of a reconciler beside its steps. */
export interface SummarizedDefinition<P extends Conditioned>
  extends Pick<FinishOptions, "gates"> {
  /**
   * The conditions that sum up others. Ready always sums up Stalled and
   * Reconciling, too, behind what is named here.
   *
   * @default {one of Ready, which sums up what the steps of the pass have set;
   * those of `failing` are bad news and speak first}
   */
  readonly rolls?: readonly Roll[] | undefined;
  /**
   * What Ready says after a success of which no other condition tells.
   *
   * @default {{ reason: "Succeeded", message: "Everything is as asked for" }}
   */
  readonly succeeded?: FinishOptions["succeeded"];
  /**
   * How often an object is looked at, such as `every(object.spec.interval)`.
   * What it throws is told of as Stalled: a person must correct it.
   */
  readonly cadence: (object: P) => Cadence;
  /**
   * Whether an object is to be left alone: its steps do not run, and its status
   * stays as it is, but for Reconciling, which goes.
   *
   * @default {never}
   */
  readonly suspended?: ((object: P) => boolean) | undefined;
  /**
   * What has to be undone before an object may vanish. The finalizer goes when
   * all have ended well, and stays while one throws or asks for another run.
   *
   * @default {nothing: there is no finalizer}
   */
  readonly cleanup?: readonly Step<P>[] | undefined;
  /**
   * Types of conditions that only this reconciler writes, beside those of
   * `rolls` and `gates`, those that its steps set, and Ready, Reconciling and
   * Stalled: its view wins over what others wrote.
   *
   * @default {[]}
   */
  readonly owned?: readonly string[] | undefined;
  /**
   * How the annotations are called by which people ask for runs.
   *
   * @default {as RequestNames says}
   */
  readonly requests?: RequestNames | undefined;
  /**
   * What looks at each end of a pass, after the library's own processors.
   *
   * @default {[]}
   */
  readonly processors?: readonly ResultProcessor<P>[] | undefined;
  /**
   * Which passes that went well are worth an event.
   *
   * @default {none}
   */
  readonly news?: NewsOptions<P> | undefined;
  /**
   * Whom news and failures are told besides.
   *
   * @default {nobody}
   */
  readonly notifier?: Notifier | undefined;
  /**
   * Gives the times of conditions, and measures pauses.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
}

const WORD_RULES = { reason: "name", message: "string" } as const;
const RULES: OptionRules<SummarizedDefinition<never>> = {
  rolls: "array?",
  gates: "strings?",
  succeeded: "object?",
  cadence: "function",
  suspended: "function?",
  cleanup: "functions?",
  owned: "strings?",
  requests: "object?",
  processors: "functions?",
  news: "object?",
  notifier: "object?",
  clock: "clock?",
};

/**
 * Refuses a definition that cannot be one.
 *
 * @throws {TypeError | RangeError} If anything is unknown, missing or makes no
 * sense.
 */
export function checkSummarized<P extends Conditioned>(
  definition: SummarizedDefinition<P>,
  steps: readonly Step<P>[],
): void {
  const subject = "a summarized reconciler";
  checkOptions(definition, RULES, subject);
  checkOption(steps, "functions", { name: "steps", subject });
  const { rolls = [], requests, news, succeeded } = definition;
  if (succeeded !== undefined) {
    checkOptions(succeeded, WORD_RULES, `${subject}, succeeded`);
  }
  for (const roll of rolls) checkOptions(roll, ROLL_RULES, `${subject}, rolls`);
  if (requests !== undefined) {
    checkOptions(requests, REQUEST_NAME_RULES, `${subject}, requests`);
  }
  if (news !== undefined) checkOptions(news, NEWS_RULES, `${subject}, news`);
  if (definition.notifier !== undefined) {
    const parts = { notify: "function" } as const;
    checkParts(definition.notifier, parts, `${subject}, notifier`);
  }
}

/** Which conditions the steps of a pass have dealt with. */
export interface DealtWith {
  /** Those of `failing`, for which True is the bad news. */
  readonly failures: ReadonlySet<string>;
  /** Those that were set. */
  readonly set: ReadonlySet<string>;
}

/**
 * The summaries of a pass: that of Ready is always among them, and takes
 * Reconciling and Stalled into account, behind everything else.
 */
export function readyRolls<P extends Conditioned>(
  { rolls = [] }: SummarizedDefinition<P>,
  { failures, set }: DealtWith,
): readonly Roll[] {
  const named = rolls.some(({ target }) => target === READY) ? rolls : [
    ...rolls,
    { target: READY, of: [...failures, ...set], abnormal: [...failures] },
  ];
  return named.map((roll) => {
    if (roll.target !== READY) return roll;
    const { of, abnormal = [] } = roll;
    return {
      ...roll,
      abnormal: [...new Set([...abnormal, ...ALWAYS_ABNORMAL])],
      ...(of !== undefined && {
        of: [...new Set([...of, ...ALWAYS_ABNORMAL])],
      }),
    };
  });
}

/** The types of conditions that are the reconciler's own in any pass. */
export function ownedTypes<P extends Conditioned>(
  definition: SummarizedDefinition<P>,
): readonly string[] {
  const { rolls = [], gates = [], owned = [] } = definition;
  const summed = rolls.flatMap(({ target, of = [], abnormal = [] }) => [
    target,
    ...of,
    ...abnormal,
  ]);
  return [
    ...new Set([READY, ...ALWAYS_ABNORMAL, ...summed, ...gates, ...owned]),
  ];
}

/**
 * One step of a pass.
 *
 * @returns What it comes to; nothing leaves it to the other steps, and a pass of
 * which no step said anything is a success. `"requeue"` ends the pass.
 * @throws {Stalled | Waiting | Failed} To end the pass; anything else that is
 * thrown fails it, too, under no name.
 */
export type Step<P extends Conditioned> = (
  pass: StepContext<P>,
) => MaybePromise<PassResult | void>;

/** How {@linkcode StepContext.progress} tells of progress. */
export interface ProgressOptions {
  /**
   * Why, as one word for programs.
   *
   * @default {"Progressing"}
   */
  readonly reason?: string | undefined;
  /**
   * Whether the world has moved away from what was Ready, so that Ready becomes
   * Unknown.
   *
   * @default {false}
   */
  readonly drift?: boolean | undefined;
}

/** What a step may use. */
export interface StepContext<P extends Conditioned> {
  /** The object; what a step changes of it is written at the end of the pass. */
  readonly object: P;
  /** The run that the pass is. */
  readonly ctx: Context<P>;
  /** Fires when the run should end, as `ctx.signal`. */
  readonly signal: AbortSignal;
  /**
   * Fires also when another run is asked for: for waiting that may be given up,
   * such as for the health of what was applied. A pass that ends by it is no
   * failure.
   */
  readonly waitSignal: AbortSignal;
  /** Whether somebody asks for a run of this object, for once. */
  readonly requested: boolean;
  /** Whether somebody asks for a run by force, for once. */
  readonly forced: boolean;
  /** Sets a condition, with the present time and the generation of the object. */
  set(condition: NewCondition): void;
  /** Removes a condition. */
  remove(type: string): void;
  /**
   * Does something whose failure has a condition of its own: it is True with
   * what failed, and goes when it succeeds.
   *
   * @param words Its type, and the reason where the error names none.
   * @param body What to do.
   * @throws {Failed} With that reason, if the body throws what is no outcome.
   */
  failing<T>(
    words: { readonly type: string; readonly reason: string },
    body: () => MaybePromise<T>,
  ): Promise<T>;
  /** Says what goes on, and writes it at once. */
  progress(message: string, options?: ProgressOptions): Promise<void>;
}

/** How the steps of a pass ended. */
export interface StepsEnd {
  /** What they came to; with an error that of the step before. */
  readonly result: PassResult;
  /** What a step threw. */
  readonly error?: unknown;
}

/**
 * Runs steps one after the other, until one throws or asks for another run.
 *
 * @param steps In their order.
 * @param pass What each is given.
 */
export async function runSteps<P extends Conditioned>(
  steps: readonly Step<P>[],
  pass: StepContext<P>,
): Promise<StepsEnd> {
  let result: PassResult | undefined;
  for (const step of steps) {
    try {
      const next = await step(pass);
      if (next === "requeue") return { result: next };
      if (next !== undefined) result = foldResults(result ?? "empty", next);
    } catch (error) {
      return { result: "empty", error };
    }
  }
  return { result: result ?? "success" };
}

/** The words of an error, without what URLs in it may hide. */
export function errorText(error: unknown): string {
  return withoutUrlQueries(
    error instanceof Error ? error.message : String(error),
  );
}

/** See {@linkcode StepContext.failing}. */
export async function runFailing<P extends Conditioned, T>(
  pass: Pick<StepContext<P>, "set" | "remove" | "waitSignal">,
  words: { readonly type: string; readonly reason: string },
  body: () => MaybePromise<T>,
): Promise<T> {
  const { type } = words;
  try {
    const value = await body();
    pass.remove(type);
    return value;
  } catch (error) {
    if (isInterruption(error, pass.waitSignal)) throw error;
    const failure = isOutcome(error)
      ? error
      : new Failed(words.reason, errorText(error), { cause: error });
    const { reason } = failure;
    pass.set({ type, status: "True", reason, message: errorText(failure) });
    throw failure;
  }
}

/** How far down an error its causes are looked at. */
const DEEPEST_CAUSE = 8;

/** Whether an error is only that another run is asked for, or this one is over. */
export function isInterruption(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false;
  let cause = error;
  for (let depth = 0; depth < DEEPEST_CAUSE; depth++) {
    if (cause === signal.reason) return true;
    if (!(cause instanceof Error)) return false;
    if (cause.name === "AbortError") return true;
    cause = cause.cause;
  }
  return false;
}

/** Whether a signal fired since another run is asked for. */
export function isInterrupted(signal: AbortSignal): boolean {
  return signal.reason instanceof RunInterruptedError;
}

/** A pass whose steps have ended, before its conditions are summed up. */
export interface PassReport<P extends Conditioned> extends StepsEnd {
  /** The object; what is changed of it is written with the rest. */
  readonly object: P;
  /** The object as the pass was given it. */
  readonly before: P;
  /** The run that the pass is. */
  readonly ctx: Context<P>;
}

/**
 * Looks at the end of a pass, and may change its object. What it throws is
 * logged: it cannot fail the pass.
 */
export type ResultProcessor<P extends Conditioned> = (
  report: PassReport<P>,
) => MaybePromise<void>;

/**
 * Remembers in the status which request the pass has answered: the tokens of the
 * annotations, verbatim, also blank ones. Where there is no annotation the
 * fields stay as they are.
 *
 * @param names How the annotations are called.
 * @throws {TypeError | RangeError} If an option is unknown or no name.
 */
export function recordRequests<P extends Conditioned>(
  names: RequestNames = {},
): ResultProcessor<P> {
  checkOptions(names, REQUEST_NAME_RULES, "recordRequests()");
  return ({ object }) => {
    const { handled } = requestsOf(object, {}, names);
    if (Object.keys(handled).length === 0) return;
    object.status = Object.assign(object.status ?? {}, handled);
  };
}

/**
 * Tells people how a pass ended, as its `Stalled`, `Waiting` or `Failed` wants
 * it told: in the log, as a Kubernetes Event, and to a notifier. What was thrown
 * under no name is left to the framework, which logs it.
 *
 * @param notifier Where warnings go besides, and normal events that want to.
 * @throws {TypeError} If the notifier is no object.
 */
export function tellOutcome<P extends Conditioned>(
  notifier?: Notifier,
): ResultProcessor<P> {
  checkOption(notifier, "object?", {
    name: "notifier",
    subject: "tellOutcome()",
  });
  return ({ object, ctx, error }) => {
    if (!isOutcome(error)) return;
    const { reason, telling: { event, log, notify } } = error;
    const message = errorText(error);
    if (log) {
      const level = event === "Warning" ? "error" : "info";
      ctx.log[level]("The pass has ended early", { reason, message });
    }
    if (event === "None") return;
    const warns = event === "Warning";
    ctx.events[warns ? "warning" : "normal"](reason, message);
    if (warns || notify) {
      const severity = warns ? "error" : "info";
      notifier?.notify(object, { severity, reason, message });
    }
  };
}
