import type { KubernetesObject } from "../../api/object.ts";
import type { RetryPolicy } from "../../queue/retry_policy.ts";

/**
 * What is remembered of an object between its runs, where there is anything to
 * remember. An object whose last run went well has none.
 */
export interface RunState {
  /** Which retry of the series runs next or ran last; 0 before the first. */
  readonly attempt: number;
  /** When the planned retry is due; in the past when none is planned. */
  readonly retryAt: number;
  /** Failed runs in a row, whether they used up an attempt or not. */
  readonly failures: number;
  /** Whether all attempts are used up. */
  readonly exhausted: boolean;
  /** Whether our finalizer was removed, so that the object should vanish. */
  readonly leaving: boolean;
}

/** The state of an object of which nothing is remembered. */
export const FRESH: RunState = Object.freeze({
  attempt: 0,
  retryAt: -Infinity,
  failures: 0,
  exhausted: false,
  leaving: false,
});

/** How a controller treats its primaries. */
export interface RunMode {
  /** Whether a finalizer is added before the first run and awaits cleanup. */
  readonly usesFinalizer: boolean;
  /** Whether `reconcile` is called for deleted objects, too. */
  readonly allEvents: boolean;
}

/** What one run does with the object that it finds. */
export type RunStep =
  | "nothing"
  | "paused"
  | "cleanup"
  | "addFinalizer"
  | "reconcile";

/**
 * Decides what a run does.
 *
 * The finalizer is added before anything else, so that nothing is made for an
 * object that could vanish without cleanup. A marked object without our
 * finalizer is none of our business any more. A paused object is left alone as it
 * is: its cleanup waits, too.
 */
export function decideStep(
  object: {
    readonly deleting: boolean;
    readonly hasFinalizer: boolean;
    readonly paused: boolean;
  },
  mode: RunMode,
): RunStep {
  if (object.paused) return "paused";
  if (mode.allEvents) return "reconcile";
  if (object.deleting) {
    return mode.usesFinalizer && object.hasFinalizer ? "cleanup" : "nothing";
  }
  return mode.usesFinalizer && !object.hasFinalizer
    ? "addFinalizer"
    : "reconcile";
}

/** What an event asks for: a run, nothing, or a run as if seen first. */
export type EventDecision = "run" | "ignore" | "runAfresh";

/**
 * Decides whether an event that passed the filters makes its object run.
 *
 * After our finalizer was removed, whatever happens to the object until it is
 * gone is no concern of ours; but if it turns up unmarked, its deletion and
 * re-creation were both missed, and it is a new one.
 *
 * @param state What is remembered of the object.
 * @param primary Whether the event is about the primary itself, and if so
 * whether it is marked for deletion.
 */
export function decideEvent(
  state: RunState,
  primary: { readonly deleting: boolean } | undefined,
): EventDecision {
  if (!state.leaving) return "run";
  return primary !== undefined && !primary.deleting ? "runAfresh" : "ignore";
}

/**
 * Whether an object only waits to vanish: our finalizer was removed. What came
 * meanwhile is no concern of ours any more, though the cache may show the
 * finalizer until the object is gone.
 */
export function isLeaving(
  state: RunState,
  { metadata }: KubernetesObject,
): boolean {
  return state.leaving && metadata.deletionTimestamp !== undefined;
}

/** How a run ended. */
export type RunEnd =
  | {
    readonly type: "done";
    /** When the run wants the next one, in milliseconds. */
    readonly delay?: number | undefined;
  }
  | { readonly type: "finalizerRemoved" }
  | {
    readonly type: "failed";
    /** Whether the reconciler declared the error final. */
    readonly final: boolean;
    readonly delay?: number | undefined;
  };

/** What else the plan depends on. */
export interface RunSituation {
  readonly now: number;
  /** Whether an event came since the run began. */
  readonly eventWaiting: boolean;
  readonly retry: RetryPolicy;
  /** A number from 0 to below 1. */
  readonly random: number;
  /** The longest time without a run, in milliseconds; infinite for none. */
  readonly maxInterval: number;
}

/** How a failure is dealt with. */
export type FailurePlan = "event" | "kept" | "retry" | "exhausted" | "final";

/** What happens to an object after a run. */
export interface RunPlan {
  /** What is remembered from now on. */
  readonly state: RunState;
  /** When the object runs again if nothing happens; infinite for never. */
  readonly timerAt: number;
  readonly timerCause: "retry" | "interval";
  /** A visit that the run asked for; undefined leaves an earlier one alone. */
  readonly rescheduleAt: number | undefined;
  /** Before when the object does not run, whatever happens; 0 for no limit. */
  readonly holdUntil: number;
  /** How a failure is dealt with; undefined when there was none. */
  readonly failure: FailurePlan | undefined;
}

/** The first pause between failing runs that events drive, in milliseconds. */
const FLOOR = 100;
/** The longest such pause, in milliseconds. */
const HIGHEST_FLOOR = 5_000;
/** A retry planned more milliseconds ahead is kept by a failure before it. */
const KEPT_RETRY = 5_000;

/**
 * Decides what happens to an object after a run.
 *
 * - After success nothing is remembered.
 * - After a failure the object does not run for a floor of 100 ms, doubling up
 *   to 5 s with each further failure, so that events cannot drive a failing
 *   reconciler in a hot loop.
 * - A failure with an event waiting uses up no attempt: the event runs when the
 *   floor is over.
 * - A failure well before the planned retry, of a run that an event caused, uses
 *   up no attempt either: the retry stays planned.
 * - When all attempts are used up, only an event or the maximal interval makes
 *   the object run. Further failures plan no retries until a run succeeds.
 * - A visit that a run asked for is kept until it is due or another replaces it.
 */
export function decideAfterRun(
  state: RunState,
  end: RunEnd,
  situation: RunSituation,
): RunPlan {
  const { now } = situation;
  if (end.type === "failed" && !end.final) {
    return decideAfterFailure(state, situation);
  }
  if (end.type === "finalizerRemoved") {
    return {
      state: { ...FRESH, leaving: true },
      timerAt: Infinity,
      timerCause: "interval",
      rescheduleAt: Infinity,
      holdUntil: 0,
      failure: undefined,
    };
  }
  return {
    state: FRESH,
    timerAt: now + situation.maxInterval,
    timerCause: "interval",
    rescheduleAt: end.delay === undefined ? undefined : now + end.delay,
    holdUntil: 0,
    failure: end.type === "failed" ? "final" : undefined,
  };
}

function decideAfterFailure(
  state: RunState,
  situation: RunSituation,
): RunPlan {
  const { now, retry } = situation;
  const failures = state.failures + 1;
  const floor = Math.min(
    FLOOR * 2 ** Math.min(failures - 1, 10),
    HIGHEST_FLOOR,
  );
  const plan = (
    failure: FailurePlan,
    change: Partial<RunState>,
    timerAt: number,
  ): RunPlan => ({
    state: { ...state, failures, ...change },
    timerAt,
    timerCause: failure === "exhausted" ? "interval" : "retry",
    rescheduleAt: undefined,
    holdUntil: now + floor,
    failure,
  });
  if (state.exhausted || state.attempt >= retry.maxAttempts) {
    return plan("exhausted", { exhausted: true }, now + situation.maxInterval);
  }
  if (situation.eventWaiting) return plan("event", {}, Infinity);
  if (state.retryAt - now > KEPT_RETRY) return plan("kept", {}, state.retryAt);
  const attempt = state.attempt + 1;
  const delay = retry.delay(attempt, situation.random);
  const retryAt = now + Math.max(delay, floor);
  return plan("retry", { attempt, retryAt }, retryAt);
}

/** Whether a failed run is repeated by itself sooner or later. */
export function willRetry(plan: RunPlan): boolean {
  return plan.failure !== undefined && plan.failure !== "final" &&
    (plan.timerAt !== Infinity || plan.failure === "event");
}
