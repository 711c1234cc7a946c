/**
 * Decisions of the run loop as pure functions: what an event leads to, which step
 * a run takes, and what follows a run.
 *
 * @module
 */
import { pauseAfter } from "../../pace.ts";
import type { RetryPolicy } from "../../queue/retry_policy.ts";

/**
 * State of an object between its runs. An object whose last run succeeded has
 * the state {@linkcode FRESH}.
 */
export interface RunState {
  /** Number of the next or last retry of the series; 0 before the first. */
  readonly attempt: number;
  /** Time of the planned retry; in the past if none is planned. */
  readonly retryAt: number;
  /** Number of consecutive failures, including those that used up no attempt. */
  readonly failures: number;
  /** Time of the first of the consecutive failures. */
  readonly failingSince: number;
  /** Whether the consecutive failures were reported as an error. */
  readonly alarmed: boolean;
  /** Whether all retries are used up. */
  readonly exhausted: boolean;
  /** Whether `onError` has ruled out a retry of the last failure. */
  readonly ruledOut: boolean;
  /**
   * Whether the finalizer was removed, so that the object will be deleted: its
   * events with a `deletionTimestamp` are ignored, which may show the finalizer, too.
   */
  readonly leaving: boolean;
}

/** State of an object without failures. */
export const FRESH: RunState = Object.freeze({
  attempt: 0,
  retryAt: -Infinity,
  failures: 0,
  failingSince: Infinity,
  alarmed: false,
  exhausted: false,
  ruledOut: false,
  leaving: false,
});

/** Settings of a controller that decide on the step of a run. */
export interface RunMode {
  /** Whether a finalizer is added before the first run, and removed by cleanup. */
  readonly usesFinalizer: boolean;
  /** Whether `reconcile` is also called for deleted objects. */
  readonly allEvents: boolean;
}

/** Step that a run takes. */
export type RunStep =
  | "nothing"
  | "paused"
  | "cleanup"
  | "addFinalizer"
  | "reconcile";

/**
 * Decides on the step of a run.
 *
 * The finalizer is added first, so that nothing is created for an object that
 * could be deleted without cleanup. An object that is being deleted and lacks
 * it is ignored. A paused object is neither reconciled nor cleaned up.
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

export type RunEnd =
  | {
    readonly type: "done";
    /** Delay until the next run as requested by this run, in milliseconds. */
    readonly delay?: number | undefined;
  }
  | { readonly type: "finalizerRemoved" }
  | {
    readonly type: "failed";
    /** Whether `onError` has ruled out a retry, or planned the next run itself. */
    readonly final: boolean;
    /** Delay until the next run as requested by `onError`, in milliseconds. */
    readonly delay?: number | undefined;
  };

export interface RunCircumstances {
  /** Time by the clock of the controller, in milliseconds. */
  readonly now: number;
  /** Time at which the run began. */
  readonly startedAt: number;
  /** Whether an event has arrived since the run began. */
  readonly eventWaiting: boolean;
  readonly retry: RetryPolicy;
  /** Random number from 0 to below 1. */
  readonly random: number;
  /** Longest time without a run, in milliseconds; may be infinite. */
  readonly maxInterval: number;
}

/**
 * Treatment of a failure: the waiting event causes the next run, the planned
 * retry is kept, a new retry is planned, no retry is left, or `onError` has ruled
 * one out or planned the next run itself.
 */
export type FailurePlan = "event" | "kept" | "retry" | "exhausted" | "final";

/** Plan for an object after a run. */
export interface RunPlan {
  /** New state of the object. */
  readonly state: RunState;
  /** Time of the next run if no event causes an earlier one; or infinity. */
  readonly timerAt: number;
  readonly timerCause: "retry" | "interval";
  /**
   * Time of the run that was requested with `rescheduleAfter`; undefined keeps
   * an earlier time.
   */
  readonly rescheduleAt: number | undefined;
  /** Time before which the object must not run; 0 if it may run at any time. */
  readonly holdUntil: number;
  /** Treatment of the failure; undefined after a success. */
  readonly failure: FailurePlan | undefined;
  /**
   * Whether the failure is to be reported as an error: once for a series of
   * failures, when the longest pause of an endless policy is reached or the last
   * attempt of a finite one has failed. Failures that `onError` plans for are
   * counted in the same way.
   */
  readonly alarm: boolean;
}

/** Pauses between failing runs that are caused by events. */
const FLOOR = { initial: 100, max: 5_000 } as const;

/**
 * Decides on the next step after a run.
 *
 * - A success resets the state.
 * - After a failure the object does not run for 100 ms, doubled up to 5 s with
 *   each further failure, so that events cannot drive a failing reconciler in a
 *   hot loop.
 * - A failure with an event waiting uses up no attempt: the event causes a run
 *   after the pause.
 * - A failure of a run that began before the planned retry, caused by an event,
 *   uses up no attempt either: the planned retry is kept.
 * - A failure that `onError` plans for uses up no attempt and plans no retry, but
 *   is a failure of the series as any other. A run that it reschedules need not
 *   wait for a pause of more than 100 ms.
 * - No pause is longer than the maximal interval.
 * - If all attempts are used up, only an event or the maximal interval causes a
 *   run. Further failures plan no retries until a run succeeds.
 * - A run that was requested with `rescheduleAfter` stays planned until it is
 *   due or replaced by another.
 */
export function decideAfterRun(
  state: RunState,
  end: RunEnd,
  circumstances: RunCircumstances,
): RunPlan {
  const { now } = circumstances;
  if (end.type === "failed") {
    return decideAfterFailure(state, end, circumstances);
  }
  const plan: RunPlan = {
    state: FRESH,
    timerAt: now + circumstances.maxInterval,
    timerCause: "interval",
    rescheduleAt: undefined,
    holdUntil: 0,
    failure: undefined,
    alarm: false,
  };
  if (end.type === "finalizerRemoved") {
    const state = { ...FRESH, leaving: true };
    return { ...plan, state, timerAt: Infinity, rescheduleAt: Infinity };
  }
  return end.delay === undefined
    ? plan
    : { ...plan, rescheduleAt: now + end.delay };
}

function decideAfterFailure(
  state: RunState,
  { final, delay }: Extract<RunEnd, { type: "failed" }>,
  circumstances: RunCircumstances,
): RunPlan {
  const { now, startedAt, retry, maxInterval } = circumstances;
  const failures = state.failures + 1;
  const floor = Math.min(pauseAfter(failures, FLOOR), maxInterval);
  const plan = (
    failure: FailurePlan,
    timerAt: number,
    change: Partial<RunState> = {},
  ): RunPlan => {
    const failingSince = Math.min(state.failingSince, now);
    const ruledOut = failure === "final" && delay === undefined;
    const changed = { ...state, failures, failingSince, ruledOut, ...change };
    return {
      state: changed,
      timerAt,
      timerCause: failure === "exhausted" || failure === "final"
        ? "interval"
        : "retry",
      rescheduleAt: delay === undefined ? undefined : now + delay,
      holdUntil: now +
        Math.min(floor, Math.max(delay ?? floor, FLOOR.initial)),
      failure,
      alarm: changed.alarmed && !state.alarmed,
    };
  };
  const pause = (number: number, random: number) =>
    Math.min(Math.max(retry.delay(number, random), floor), maxInterval);
  /** Whether the pauses grow no further from a retry on. */
  const isLongest = (number: number) =>
    retry.maxAttempts === Infinity &&
    pause(number, 0.5) >= pause(number + 1, 0.5);
  if (final) {
    return plan("final", now + maxInterval, {
      retryAt: -Infinity,
      alarmed: state.alarmed || failures > retry.maxAttempts ||
        isLongest(failures),
    });
  }
  const noRetryIsLeft = () =>
    plan("exhausted", now + maxInterval, { exhausted: true, alarmed: true });
  if (state.exhausted) return noRetryIsLeft();
  if (circumstances.eventWaiting) return plan("event", Infinity);
  if (startedAt < state.retryAt) {
    return plan("kept", Math.max(state.retryAt, now + floor));
  }
  if (state.attempt >= retry.maxAttempts) return noRetryIsLeft();
  const attempt = state.attempt + 1;
  const retryAt = now + pause(attempt, circumstances.random);
  const alarmed = state.alarmed || isLongest(attempt);
  return plan("retry", retryAt, { attempt, retryAt, alarmed });
}

/** Whether a failed run is repeated without a new event. */
export function willRetry(plan: RunPlan): boolean {
  if (plan.failure === "final") return plan.rescheduleAt !== undefined;
  return plan.failure !== undefined &&
    (plan.timerAt !== Infinity || plan.failure === "event");
}
