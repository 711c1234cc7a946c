import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import { RunInterruptedError } from "../../core/controller/run.ts";
import type { NewCondition } from "./condition.ts";
import {
  Failed,
  foldResults,
  isOutcome,
  type PassResult,
  withoutUrlQueries,
} from "./outcome.ts";
import type { Conditioned } from "./status_lint.ts";

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
