import { milliseconds } from "../../api/duration.ts";
import { kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { typeText } from "../../api/options.ts";
import { failureOf } from "../../conversion/unconverted.ts";
import { mutableCopy } from "../../json/prune.ts";
import { isJsonObject } from "../../patch/json_value.ts";
import { isPromise } from "../../callback.ts";
import { inSpan, spanFailed, type Tracer } from "../../tracing.ts";
import { causeText } from "../cause.ts";
import { hasFinalizer } from "../finalizer.ts";
import type { ManagedWorkflow } from "../managed_workflow.ts";
import type { Reconciler } from "../reconciler.ts";
import { CleanupResult, ReconcileResult, removeFinalizer } from "../result.ts";
import type { ShardAssignment } from "../shard.ts";
import type { ResultWriter } from "./result_writer.ts";
import type { Run, RunResult } from "./run.ts";
import { RunContext } from "./run_context.ts";
import type { RunDeps } from "./run_deps.ts";
import { decideStep, type RunEnd, type RunMode } from "./run_state.ts";

export interface DispatcherDeps<P extends KubernetesObject> {
  readonly reconciler: Reconciler<P>;
  readonly workflow: ManagedWorkflow<P> | undefined;
  readonly runDeps: RunDeps<P>;
  readonly writer: ResultWriter<P>;
  readonly mode: RunMode;
  /** Annotation that pauses an object; undefined if absent. */
  readonly pauseAnnotation: string | undefined;
  /** Whether this replica holds its lease, so that a reconciler may be called. */
  readonly mayRun: () => boolean;
  /** Assignment of primaries to this replica; undefined if it runs all of them. */
  readonly shard: ShardAssignment | undefined;
  readonly tracer: Tracer | undefined;
}

/** Run whose reconciler is called. */
interface ActiveRun<P extends KubernetesObject> {
  readonly run: Run<P>;
  readonly context: RunContext<P>;
}

const DONE: RunEnd = Object.freeze({ type: "done" });
/** Shared result of successful runs that plan nothing. */
const SUCCEEDED: RunResult = Object.freeze({ end: DONE });
const FINALIZER_REMOVED: RunEnd = Object.freeze({ type: "finalizerRemoved" });

/**
 * Executor of single runs: decides on the step, adds the finalizer, calls the workflow
 * and the reconciler or its cleanup, and writes their result.
 */
export class Dispatcher<P extends KubernetesObject> {
  readonly #deps: DispatcherDeps<P>;

  constructor(deps: DispatcherDeps<P>) {
    this.#deps = deps;
  }

  /**
   * Executes a run. A run in which nothing has to wait ends within the call,
   * which is much cheaper than a promise.
   *
   * @returns Result of the run; a failure is a result too, and never thrown.
   */
  dispatch(run: Run<P>): RunResult | Promise<RunResult> {
    const { tracer } = this.#deps;
    return tracer === undefined ? this.#try(run) : this.#traced(run, tracer);
  }

  /** Wraps a run in a span that contains those of its phases and requests. */
  async #traced(run: Run<P>, tracer: Tracer): Promise<RunResult> {
    const { controller, kind } = this.#deps.runDeps;
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
      const result = run.isUnread ? this.#readFirst(run) : this.#step(run);
      return result instanceof Promise ? result.catch(failure) : result;
    } catch (error) {
      return failure(error);
    }
  }

  /** Reads the object from the server, where the cache has only its key. */
  async #readFirst(run: Run<P>): Promise<RunResult> {
    const primary = await this.#deps.runDeps.primaries.cache.read(run.key);
    this.#checkAfterWait(run);
    // The event of its deletion follows.
    if (primary === undefined) return SUCCEEDED;
    run.primary = primary;
    return await this.#step(run);
  }

  /**
   * Checks a run after a wait, before its reconciler is called: the process may
   * have been suspended until its lease expired.
   */
  #checkAfterWait(run: Run<P>): void {
    this.#abortWithoutLease(run);
    run.throwIfAborted();
  }

  /** Aborts a run before its replica has noticed that its lease is lost. */
  #abortWithoutLease(run: Run<P>): void {
    const { mayRun, shard } = this.#deps;
    if (!mayRun()) run.abort("leadership");
    if (shard?.owns(run.key) === false) run.abort("shard");
  }

  /** Takes the step that the state of the object asks for. */
  #step(run: Run<P>): RunResult | Promise<RunResult> {
    const { mode, pauseAnnotation, runDeps } = this.#deps;
    const { keptFinalizer } = runDeps;
    const { metadata } = run.primary;
    if (!run.deleted) requireConverted(run.primary);
    run.step = decideStep({
      deleting: metadata.deletionTimestamp !== undefined,
      hasFinalizer: keptFinalizer !== undefined &&
        hasFinalizer(run.primary, keptFinalizer),
      paused: pauseAnnotation !== undefined && !run.deleted &&
        metadata.annotations?.[pauseAnnotation] === "true",
    }, mode);
    switch (run.step) {
      case "nothing":
        return { end: FINALIZER_REMOVED };
      case "paused":
        return SUCCEEDED;
      case "cleanup":
        return this.#cleanup(this.#activate(run));
      case "reconcile":
        return this.#reconcile(this.#activate(run));
      case "addFinalizer":
        return this.#addFinalizer(this.#activate(run));
    }
  }

  /** Gives a run its context; a run that is paused or has nothing to do needs none. */
  #activate(run: Run<P>): ActiveRun<P> {
    return { run, context: new RunContext(run, this.#deps.runDeps) };
  }

  async #addFinalizer({ run, context }: ActiveRun<P>): Promise<RunResult> {
    const { writer } = this.#deps;
    const primary = await this.#phase(
      "write",
      () => writer.addFinalizer(context, run.primary),
    );
    // After a deletion in the meantime, its event causes the next run.
    if (
      primary === undefined ||
      primary.metadata.deletionTimestamp !== undefined
    ) return SUCCEEDED;
    this.#checkAfterWait(run);
    run.primary = primary;
    run.step = "reconcile";
    return await this.#reconcile({ run, context });
  }

  async #cleanup({ run, context }: ActiveRun<P>): Promise<RunResult> {
    const { writer } = this.#deps;
    let result: CleanupResult;
    try {
      result = await this.#callCleanup({ run, context });
    } catch (error) {
      await context.endWrites()?.catch(() => {}); // Reported by it.
      this.#abortWithoutLease(run);
      throw error;
    }
    await context.endWrites();
    throwCollected(context, result);
    if (result.finalizerRemoved && context.workflow?.done !== false) {
      run.isReleasing = true;
      await this.#phase("write", () => writer.removeFinalizer(context));
      return { end: FINALIZER_REMOVED };
    }
    const { delay = workflowDelay(context) } = result;
    return { end: { type: "done", delay } };
  }

  async #callCleanup({ run, context }: ActiveRun<P>): Promise<CleanupResult> {
    const { reconciler, workflow } = this.#deps;
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
    return result;
  }

  #reconcile(active: ActiveRun<P>): RunResult | Promise<RunResult> {
    try {
      const result = this.#callReconciler(active);
      if (isPromise(result)) return this.#reconcileLater(active, result);
      const writes = active.context.endWrites();
      if (writes !== undefined) {
        return this.#reconcileLater(active, writes.then(() => result));
      }
      const written = this.#finish(active, result);
      return written instanceof Promise
        ? written.catch((error) => this.#handleError(active, error))
        : written;
    } catch (error) {
      return this.#handleError(active, error);
    }
  }

  /** Continues a run when its reconciler, and the writes it left, have ended. */
  async #reconcileLater(
    active: ActiveRun<P>,
    result: Promise<ReconcileResult | void>,
  ): Promise<RunResult> {
    try {
      const returned = await result;
      const writes = active.context.endWrites();
      if (writes !== undefined) await writes;
      return await this.#finish(active, returned);
    } catch (error) {
      return await this.#handleError(active, error);
    }
  }

  #callReconciler(
    { run: { primary }, context }: ActiveRun<P>,
  ): ReconcileResult | void | Promise<ReconcileResult | void> {
    const { reconciler, workflow, tracer } = this.#deps;
    const copy = mutableCopy(primary);
    const managed = workflow?.explicit ||
        primary.metadata.deletionTimestamp !== undefined || context.deleted
      ? undefined // With allEvents a deletion is the reconciler's.
      : workflow;
    return tracer === undefined && managed === undefined &&
        reconciler.initContext === undefined
      ? reconciler.reconcile(copy, context)
      : this.#callPhases(copy, context, managed);
  }

  /** Calls what comes before the reconciler, and then the reconciler. */
  async #callPhases(
    primary: P,
    context: RunContext<P>,
    managed: ManagedWorkflow<P> | undefined,
  ): Promise<ReconcileResult | void> {
    const { reconciler } = this.#deps;
    await reconciler.initContext?.(primary, context);
    if (managed !== undefined) {
      context.workflow = await this.#phase(
        "workflow",
        () => managed.reconcile(primary, context),
      );
    }
    return await this.#phase(
      "reconcile",
      () => reconciler.reconcile(primary, context),
    );
  }

  /** Checks the result of a reconciler, and writes it. */
  #finish(
    { run, run: { primary }, context }: ActiveRun<P>,
    result: ReconcileResult | void,
  ): RunResult | Promise<RunResult> {
    const { workflow, writer } = this.#deps;
    context.workflow ??= workflow?.resultIn(context);
    // A run after its timeout failed, even if its reconciler has succeeded.
    if (run.aborted === "timeout") run.throwIfAborted();
    if (result !== undefined) checkResult(result, ReconcileResult, "reconcile");
    if (run.deleted) {
      throwCollected(context, undefined);
      return this.#finishDeletion(run, result);
    }
    const { delay = workflowDelay(context) } = result ?? {};
    const ended: RunResult = delay === undefined
      ? SUCCEEDED
      : { end: { type: "done", delay } };
    if (!writer.hasWork(primary, result)) {
      throwCollected(context, result);
      return ended;
    }
    const { signal } = run;
    const written = { primary, result, signal, succeeded: true };
    const writing = this.#phase("write", () => writer.write(context, written));
    return Promise.resolve(writing).then(() => {
      throwCollected(context, result);
      return ended;
    });
  }

  /** Ends the run of a deleted object, which has nothing to write or reschedule. */
  #finishDeletion(run: Run<P>, result: ReconcileResult | void): RunResult {
    const { delay, status, resource } = result ?? {};
    if (delay !== undefined || status || resource) {
      this.#deps.runDeps.log.warn("Result ignored: the object is deleted", {
        object: run.key,
      });
    }
    return SUCCEEDED;
  }

  /** Calls `onError`, and writes its result. */
  async #handleError(active: ActiveRun<P>, error: unknown): Promise<RunResult> {
    const { reconciler, runDeps: { log } } = this.#deps;
    const { run, run: { primary }, context } = active;
    await context.endWrites()?.catch(() => {}); // Reported by it.
    this.#abortWithoutLease(run);
    const aborted = run.aborted !== undefined && run.aborted !== "timeout";
    if (reconciler.onError === undefined || aborted) return failure(error);
    let result: ReconcileResult | void;
    try {
      const copy = mutableCopy(primary);
      result = await this.#phase(
        "onError",
        () => reconciler.onError?.(copy, error, context),
      );
      if (result === undefined) return failure(error);
      checkResult(result, ReconcileResult, "onError");
    } catch (second) {
      log.error("onError has thrown", { object: run.key, error: second });
      return failure(error);
    }
    if (!run.deleted) await this.#writeError(active, result);
    const { delay } = result;
    const final = !result.retry || delay !== undefined;
    return { end: { type: "failed", final, delay }, error };
  }

  /** Writes the result of `onError`; if that fails, it is logged. */
  async #writeError(
    { run, run: { primary }, context }: ActiveRun<P>,
    result: ReconcileResult,
  ): Promise<void> {
    const { writer, runDeps: { log } } = this.#deps;
    try {
      // After a timeout, the aborted signal of the run would end this write.
      const signal = run.aborted === undefined ? run.signal : NEVER;
      const written = { primary, result, signal, succeeded: false };
      await this.#phase("write", () => writer.write(context, written));
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

  /** Executes a part of a run, in a span if there is a tracer. */
  #phase<R>(name: string, work: () => R | Promise<R>): R | Promise<R> {
    const { tracer } = this.#deps;
    return tracer === undefined ? work() : inSpan<R>(tracer, name, { work });
  }
}

function failure(error: unknown): RunResult {
  return { end: { type: "failed", final: false }, error };
}

const NEVER: AbortSignal = new AbortController().signal;

/**
 * Fails a run by the errors that its workflow has collected, so that they are
 * counted and retried, unless its result plans the next run.
 */
function throwCollected<P extends KubernetesObject>(
  context: RunContext<P>,
  result: ReconcileResult | CleanupResult | void,
): void {
  if (result?.delay === undefined) context.workflow?.throwIfFailed?.();
}

function workflowDelay<P extends KubernetesObject>(
  context: RunContext<P>,
): number | undefined {
  const delay = context.workflow?.rescheduleAfter;
  return delay === undefined
    ? undefined
    : milliseconds(delay, "workflow.rescheduleAfter");
}

/** Checks the shape of a result: its class may be that of another copy of this library. */
function checkResult(
  result: unknown,
  type: typeof ReconcileResult | typeof CleanupResult,
  method: string,
): void {
  const mark = type === CleanupResult ? "finalizerRemoved" : "observed";
  if (isJsonObject(result) && mark in result) return;
  // Its values may be those of a Secret.
  const names = Object.keys(isJsonObject(result) ? result : {}).slice(0, 8);
  throw new TypeError(
    `Cannot use the result of "${method}": it must be ${
      type === CleanupResult
        ? "removeFinalizer() or keepFinalizer()"
        : "noUpdate(), patchStatus(…), setStatus(…), patchResource(…), patchResourceAndStatus(…)"
    } or nothing: received ${
      [typeText(result), names.join(", ")].filter(Boolean).join(" with ")
    }`,
  );
}

/**
 * Refuses an object that could not be converted to the version of the controller:
 * its spec is empty, and means nothing.
 */
function requireConverted(object: KubernetesObject): void {
  const reason = failureOf(object);
  if (reason === undefined) return;
  throw new Error(
    `Cannot reconcile ${object.metadata.name}: it could not be converted to the version of the controller: received ${reason}`,
  );
}
