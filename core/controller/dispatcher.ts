import type { KubernetesObject } from "../api/object.ts";
import type { Logger } from "../logger.ts";
import { inSpan, isPromise, spanFailed, type Tracer } from "../tracing.ts";
import { causeText } from "./cause.ts";
import { kindText } from "../api/kind.ts";
import { hasFinalizer } from "./finalizer.ts";
import type { ManagedWorkflow } from "./managed_workflow.ts";
import { milliseconds } from "../api/duration.ts";
import { mutableCopy } from "./mutable_copy.ts";
import type { Reconciler } from "./reconciler.ts";
import {
  CleanupResult,
  ReconcileResult,
  removeFinalizer,
  type RunOutcome,
} from "./result.ts";
import type { ResultWriter } from "./result_writer.ts";
import type { Run, RunResult } from "./run.ts";
import { RunContext } from "./run_context.ts";
import type { RunEnvironment } from "./run_environment.ts";
import { decideStep, type RunEnd, type RunMode } from "./run_state.ts";

/** What a {@linkcode Dispatcher} works with. */
export interface DispatcherOptions<P extends KubernetesObject> {
  readonly reconciler: Reconciler<P>;
  readonly workflow: ManagedWorkflow<P> | undefined;
  readonly environment: RunEnvironment<P>;
  readonly writer: ResultWriter<P>;
  readonly mode: RunMode;
  /** The finalizer of the controller; undefined when it uses none. */
  readonly finalizer: string | undefined;
  /** The annotation that pauses an object; undefined when none does. */
  readonly pauseAnnotation: string | undefined;
  readonly log: Logger;
  /** Traces runs and their phases; undefined when nobody does. */
  readonly tracer: Tracer | undefined;
}

const DONE: RunEnd = Object.freeze({ type: "done" });
/** What most runs end with; made once. */
const SUCCEEDED: RunResult = Object.freeze({ end: DONE });
const GONE: RunEnd = Object.freeze({ type: "finalizerRemoved" });

/**
 * Does one run: looks at the object, adds the finalizer, calls the workflow and
 * the reconciler or its cleanup, and writes what they ask for.
 */
export class Dispatcher<P extends KubernetesObject> {
  readonly #options: DispatcherOptions<P>;

  /** @param options What it works with. */
  constructor(options: DispatcherOptions<P>) {
    this.#options = options;
  }

  /**
   * Does a run: within the call if nothing in it has to wait, which costs a
   * fraction. Neither throws nor rejects: a failure is a result.
   */
  dispatch(run: Run<P>): RunResult | Promise<RunResult> {
    const { tracer } = this.#options;
    return tracer === undefined ? this.#try(run) : this.#traced(run, tracer);
  }

  /** Puts a run into a span, in which its phases and requests have theirs. */
  async #traced(run: Run<P>, tracer: Tracer): Promise<RunResult> {
    const { controller, kind } = this.#options.environment;
    return await inSpan<RunResult>(tracer, `run ${controller}`, {
      attributes: {
        "coracle.controller": controller,
        "coracle.kind": kindText(kind),
        "coracle.object": run.key,
        "coracle.cause": causeText(run.cause),
        "coracle.attempt": run.retry.attempt,
        "coracle.waited_ms": run.waited,
      },
      onResult(span, { end, error }) {
        if (run.step !== undefined) span.setAttribute("coracle.step", run.step);
        if (run.aborted !== undefined) {
          span.setAttribute("coracle.aborted", run.aborted);
        }
        if (end.type === "failed") spanFailed(span, error);
      },
      work: (span) => {
        run.span = span;
        return this.#try(run);
      },
    });
  }

  #try(run: Run<P>): RunResult | Promise<RunResult> {
    try {
      const result = run.isUnread ? this.#readFirst(run) : this.#dispatch(run);
      return isPromise(result) ? result.catch(failure) : result;
    } catch (error) {
      return failure(error);
    }
  }

  async #readFirst(run: Run<P>): Promise<RunResult> {
    const { primaries } = this.#options.environment;
    const primary = await primaries.read(run.key);
    run.throwIfAborted();
    // If it is gone, an event is on its way that says so.
    if (primary === undefined) return { end: DONE };
    run.primary = primary;
    return await this.#dispatch(run);
  }

  #dispatch(run: Run<P>): RunResult | Promise<RunResult> {
    const { environment, mode, finalizer, pauseAnnotation } = this.#options;
    const { metadata } = run.primary;
    const step = decideStep({
      deleting: metadata.deletionTimestamp !== undefined,
      hasFinalizer: finalizer !== undefined &&
        hasFinalizer(run.primary, finalizer),
      paused: pauseAnnotation !== undefined && !run.deleted &&
        metadata.annotations?.[pauseAnnotation] === "true",
    }, mode);
    run.step = step;
    switch (step) {
      case "nothing":
        return { end: GONE };
      case "paused":
        return { end: DONE };
      case "cleanup":
        return this.#cleanup(run);
      case "reconcile":
        return this.#reconcile(
          run,
          run.primary,
          new RunContext(run, environment),
        );
      case "addFinalizer":
        return this.#addFinalizer(run);
    }
  }

  async #addFinalizer(run: Run<P>): Promise<RunResult> {
    const { environment, writer } = this.#options;
    const primary = await this.#phase("write", () => writer.addFinalizer(run));
    // If it is gone or was marked meanwhile, an event says what to do.
    if (
      primary === undefined ||
      primary.metadata.deletionTimestamp !== undefined
    ) return { end: DONE };
    run.step = "reconcile";
    const context = new RunContext(run, environment);
    return await this.#reconcile(run, primary, context);
  }

  async #cleanup(run: Run<P>): Promise<RunResult> {
    const { reconciler, workflow, environment, writer } = this.#options;
    const context = new RunContext(run, environment);
    const primary = mutableCopy(run.primary);
    await reconciler.initContext?.(primary, context);
    if (!workflow?.explicit || reconciler.cleanup === undefined) {
      context.workflow = await this.#phase(
        "workflow",
        () => workflow?.cleanup(primary, context),
      );
    }
    const result = await this.#phase(
      "cleanup",
      () => reconciler.cleanup?.(primary, context),
    ) ?? removeFinalizer();
    checkResult(result, CleanupResult, "cleanup");
    context.workflow ??= workflow?.resultIn(context);
    if (result.finalizerRemoved && context.workflow?.done !== false) {
      run.isReleasing = true;
      await this.#phase("write", () => writer.removeFinalizer(run));
      return { end: GONE };
    }
    const { delay = workflowDelay(context) } = result;
    return { end: { type: "done", delay } };
  }

  #reconcile(
    run: Run<P>,
    primary: P,
    context: RunContext<P>,
  ): RunResult | Promise<RunResult> {
    try {
      const outcome = this.#outcome(primary, context);
      if (isPromise(outcome)) {
        return this.#reconcileLater(run, primary, [outcome, context]);
      }
      const result = this.#settle(run, primary, [outcome, context]);
      return isPromise(result)
        ? result.catch((error) =>
          this.#failed(primary, error, { run, context })
        )
        : result;
    } catch (error) {
      return this.#failed(primary, error, { run, context });
    }
  }

  /** Goes on with a run that waits; what a reconciler gives may be any thenable. */
  async #reconcileLater(
    run: Run<P>,
    primary: P,
    [outcome, context]: readonly [
      Promise<RunOutcome | void>,
      RunContext<P>,
    ],
  ): Promise<RunResult> {
    try {
      return await this.#settle(run, primary, [await outcome, context]);
    } catch (error) {
      return await this.#failed(primary, error, { run, context });
    }
  }

  /** Calls the reconciler, after what comes before it. */
  #outcome(
    primary: P,
    context: RunContext<P>,
  ): RunOutcome | void | Promise<RunOutcome | void> {
    const { reconciler, workflow } = this.#options;
    const copy = mutableCopy(primary);
    const managed = workflow?.explicit ? undefined : workflow;
    return reconciler.initContext === undefined && managed === undefined
      ? this.#callReconciler(copy, context)
      : this.#prepare(copy, context, managed);
  }

  #callReconciler(
    copy: P,
    context: RunContext<P>,
  ): RunOutcome | void | Promise<RunOutcome | void> {
    const { reconciler } = this.#options;
    return this.#phase("reconcile", () => reconciler.reconcile(copy, context));
  }

  /** Does what comes before the reconciler, and calls it. */
  async #prepare(
    copy: P,
    context: RunContext<P>,
    managed: ManagedWorkflow<P> | undefined,
  ): Promise<RunOutcome | void> {
    await this.#options.reconciler.initContext?.(copy, context);
    if (managed !== undefined) {
      context.workflow = await this.#phase(
        "workflow",
        () => managed.reconcile(copy, context),
      );
    }
    return await this.#callReconciler(copy, context);
  }

  /** Does what a run that went well asks for. */
  #settle(
    run: Run<P>,
    primary: P,
    [outcome, context]: readonly [RunOutcome | void, RunContext<P>],
  ): RunResult | Promise<RunResult> {
    const { workflow, writer } = this.#options;
    context.workflow ??= workflow?.resultIn(context);
    // A run that is out of time is not a success, whatever it says.
    if (run.aborted === "timeout") run.throwIfAborted();
    if (outcome !== undefined) {
      checkResult(outcome, ReconcileResult, "reconcile");
    }
    if (run.deleted) return { end: this.#deletionEnd(run, outcome) };
    const { delay = workflowDelay(context) } = outcome ?? {};
    const result: RunResult = delay === undefined
      ? SUCCEEDED
      : { end: { type: "done", delay } };
    return writer.hasWork(primary, outcome)
      ? this.#write(run, primary, [outcome, result])
      : result;
  }

  /**
   * Writes what a run that went well asks for.
   *
   * @returns Its result.
   */
  async #write(
    run: Run<P>,
    primary: P,
    [outcome, result]: readonly [RunOutcome | void, RunResult],
  ): Promise<RunResult> {
    const { writer } = this.#options;
    const { signal } = run;
    await this.#phase(
      "write",
      () =>
        writer.write(run, { primary, outcome }, { signal, succeeded: true }),
    );
    return result;
  }

  /** Does a part of a run, traced where runs are. */
  #phase<R>(name: string, work: () => R | Promise<R>): R | Promise<R> {
    const { tracer } = this.#options;
    return tracer === undefined ? work() : inSpan<R>(tracer, name, { work });
  }

  /** Of a deleted object nothing can be written, and nothing be revisited. */
  #deletionEnd(run: Run<P>, result: RunOutcome | void): RunEnd {
    const { log } = this.#options;
    if (result === undefined) return DONE;
    if (result.delay !== undefined || result.status || result.resource) {
      log.warn("Result ignored: the object is deleted", { object: run.key });
    }
    return DONE;
  }

  async #failed(
    primary: P,
    error: unknown,
    { run, context }: {
      readonly run: Run<P>;
      readonly context: RunContext<P>;
    },
  ): Promise<RunResult> {
    const { reconciler, log } = this.#options;
    const unhandled: RunResult = {
      end: { type: "failed", final: false },
      error,
    };
    const outOfTime = run.aborted !== undefined && run.aborted !== "timeout";
    if (reconciler.onError === undefined || outOfTime) return unhandled;
    let result: RunOutcome | void;
    try {
      const copy = mutableCopy(primary);
      result = await this.#phase(
        "onError",
        () => reconciler.onError?.(copy, error, context),
      );
      if (result === undefined) return unhandled;
      checkResult(result, ReconcileResult, "onError");
    } catch (second) {
      log.error("onError has thrown", { object: run.key, error: second });
      return unhandled;
    }
    if (!run.deleted) await this.#writeErrorStatus(primary, result, run);
    const { delay } = result;
    const final = !result.retry || delay !== undefined;
    return { end: { type: "failed", final, delay }, error, handled: true };
  }

  /** What this write does wrong must not hide the error that it tells of. */
  async #writeErrorStatus(
    primary: P,
    result: RunOutcome,
    run: Run<P>,
  ): Promise<void> {
    const { writer, log } = this.#options;
    try {
      // The signal of a run that is out of time has fired: it would end this.
      const signal = run.aborted === undefined ? run.signal : NEVER;
      await this.#phase(
        "write",
        () =>
          writer.write(run, { primary, outcome: result }, {
            signal,
            succeeded: false,
          }),
      );
    } catch (error) {
      const level = run.hasNewEvent()
        ? "debug"
        : run.retry.last
        ? "error"
        : "warn";
      log[level]("Cannot write the status of a failed run", {
        object: run.key,
        error,
      });
    }
  }
}

function failure(error: unknown): RunResult {
  return { end: { type: "failed", final: false }, error };
}

const NEVER: AbortSignal = new AbortController().signal;

function workflowDelay<P extends KubernetesObject>(
  context: RunContext<P>,
): number | undefined {
  const delay = context.workflow?.rescheduleAfter;
  return delay === undefined
    ? undefined
    : milliseconds(delay, "workflow.rescheduleAfter");
}

/** Two copies of the library may be loaded: results are known by their shape. */
function checkResult(
  result: unknown,
  type: typeof ReconcileResult | typeof CleanupResult,
  method: string,
): void {
  const mark = type === CleanupResult ? "finalizerRemoved" : "retry";
  if (typeof result === "object" && result !== null && mark in result) return;
  throw new TypeError(
    `Cannot use what "${method}" returned: it must be ${
      type === CleanupResult
        ? "removeFinalizer() or keepFinalizer()"
        : "noUpdate(), patchStatus(…), patchResource(…), patchResourceAndStatus(…)"
    } or nothing: received ${JSON.stringify(result)?.slice(0, 100)}`,
  );
}
