/**
 * Reconciler that is a list of steps, with a status that follows the
 * conventions of kstatus ({@linkcode summarized}).
 *
 * The folder holds conditions in the manner of Flux: setting and merging them,
 * computing the result of a run, and writing a status beside other writers.
 * Everything but {@linkcode SharedStatus}, the notifier and the run itself is
 * pure. It must not import any other folder of `workflows`.
 *
 * @module
 */

import { attempt, immediate } from "../../core/callback.ts";
import { ApiError } from "../../core/api/api_error.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  typeText,
} from "../../core/api/options.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import type { Context } from "../../core/controller/context.ts";
import { LatestMap } from "../../core/controller/latest_map.ts";
import type {
  MaybePromise,
  Reconciler,
} from "../../core/controller/reconciler.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  type ReconcileResult,
  removeFinalizer,
} from "../../core/controller/result.ts";
import type { Logger } from "../../core/logger.ts";
import { pauseAfter } from "../../core/pace.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import { type LinkedSignal, linkedSignal } from "../../core/signals.ts";
import {
  type Condition,
  type Conditioned,
  type ConditionMoment,
  conditionsIn,
  findCondition,
  type NewCondition,
  READY,
  RECONCILING,
  removeCondition,
  sameState,
  setCondition,
  wordsOf,
} from "./condition.ts";
import type { Notification, Notifier } from "./notifier.ts";
import {
  chainOf,
  combineResults,
  errorText,
  Failed,
  isOutcome,
  Stalled,
  type StepResult,
  type StepsResult,
  Waiting,
  withoutUrlSecrets,
} from "./outcome.ts";
import {
  type ComputedResult,
  eventSchedule,
  hasRecovered,
  PROGRESSING_WITH_RETRY,
  progressiveStatus,
  summarizeResult,
} from "./reconcile_result.ts";
import {
  ownedTypes,
  readySummaries,
  requestsOf,
  type ResultProcessor,
  type Step,
  type StepContext,
  SUMMARIZED_RULES,
  type SummarizedDefinition,
} from "./summarized_definition.ts";
import { accessByContext, SharedStatus } from "./shared_status.ts";

/**
 * Creates a reconciler from a list of steps. By the end of each run the
 * conditions Ready, Reconciling and Stalled report its result to users, to
 * kubectl and to every program that reads conditions as kstatus does.
 *
 * A run
 * 1. sets Reconciling, and writes it before any slow work if the generation is
 *    new, which makes Ready Unknown, or if a user has requested the run;
 * 2. executes the steps, until one throws or requests another run;
 * 3. calls the processors with the result of the steps;
 * 4. computes the conditions, the next run and the error from it, by the rules
 *    of Flux' `ComputeReconcileResult`, and the summaries;
 * 5. writes by {@linkcode SharedStatus} what has changed in the object: its
 *    conditions, its metadata and spec, its status;
 * 6. reports a new revision, or the end of a failure.
 *
 * The conditions and `status.observedGeneration` name the generation that the
 * run was given. A run that is aborted by a stop or by the loss of leadership
 * writes nothing. Error messages are written without the queries of URLs, which
 * may hold secrets.
 *
 * The controller needs the annotation that requests runs as
 * `requestAnnotations`.
 *
 * @param kind The kind of the objects; its status needs `conditions` and
 * `observedGeneration`, and `lastHandledReconcileAt` if users may request runs.
 * @param definition The schedule and the other options.
 * @param steps The steps in their order.
 * @throws {TypeError | RangeError} If the kind is invalid, a step is no function,
 * or an option is unknown, missing or invalid.
 *
 * @example A certificate that is renewed
 * ```ts
 * import type { Kind } from "@coracle/operator/core";
 * import {
 *   type Conditioned,
 *   intervalSchedule,
 *   Stalled,
 *   summarized,
 * } from "@coracle/operator/workflows";
 *
 * interface Certificate extends Conditioned {
 *   spec: { host: string };
 * }
 * const kind: Kind<Certificate> = {
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Certificate",
 * };
 * const reconciler = summarized(
 *   kind,
 *   { schedule: () => intervalSchedule("1h") },
 *   [(step) => {
 *     if (!step.object.spec.host.includes(".")) {
 *       throw new Stalled("InvalidHost", "spec.host is no host name");
 *     }
 *     step.set({ type: "Issued", status: "True", reason: "Done" });
 *   }],
 * );
 * ```
 */
export function summarized<P extends Conditioned>(
  kind: Kind<P>,
  definition: SummarizedDefinition<P>,
  steps: readonly Step<P>[],
): Reconciler<P> {
  checkKind(kind, "a summarized reconciler");
  const subject = "a summarized reconciler";
  checkOptions(definition, SUMMARIZED_RULES, subject);
  checkOption(steps, "functions", { name: "steps", subject });
  const { cleanup } = definition;
  const requeues = new LatestMap<number>(REMEMBERED_REQUEUES);
  const run = (object: P, ctx: Context<P>) =>
    new SummarizedRun(kind, definition, { object, ctx, requeues });
  const reconcile: Reconciler<P>["reconcile"] = (object, ctx) =>
    run(object, ctx).reconcile(steps);
  if (cleanup === undefined) return { reconcile };
  return {
    reconcile,
    cleanup: (object, ctx) => run(object, ctx).cleanUp(cleanup),
  };
}

/**
 * Default Event and condition reason of a successful run; a recovery has the
 * same.
 */
const SUCCEEDED = {
  reason: "Succeeded",
  message: "The object is in its desired state",
} as const;

/**
 * Number of objects whose requests for another run are counted. Of more objects
 * in turn each request has the first pause.
 */
const REMEMBERED_REQUEUES = 50_000;
/** Pauses after the second request in a row and each further one. */
const PAUSE = { initial: 100, max: 60_000 } as const;

/** Result of a run that has written `observedGeneration` itself. */
const OBSERVED_ALREADY = noUpdate({ observed: false });

/** One run of a `summarized` reconciler for one object. */
class SummarizedRun<P extends Conditioned> implements StepContext<P> {
  readonly object: P;
  readonly ctx: Context<P>;
  readonly requested: boolean;
  readonly forced: boolean;
  readonly #definition: SummarizedDefinition<P>;
  /** Number of runs in a row that have asked for another one, by UID. */
  readonly #requeues: LatestMap<number>;
  readonly #status: SharedStatus<P>;
  readonly #touched: { failures: Set<string>; set: Set<string> } = {
    failures: new Set(),
    set: new Set(),
  };
  /** Condition types for which the values of the run win. */
  readonly #owned: string[];
  readonly #before: P;
  #initialReady: Condition | undefined;
  #waiting: LinkedSignal | undefined;

  constructor(
    kind: Kind<P>,
    definition: SummarizedDefinition<P>,
    { object, ctx, requeues }: {
      readonly object: P;
      readonly ctx: Context<P>;
      readonly requeues: LatestMap<number>;
    },
  ) {
    const { clock = ctx.clock, requests } = definition;
    this.object = object;
    this.ctx = ctx;
    this.#definition = definition;
    this.#requeues = requeues;
    this.#owned = [...ownedTypes(definition)];
    this.#status = new SharedStatus(object, {
      access: accessByContext(kind, ctx),
      owned: this.#owned,
      clock,
    });
    this.#before = this.#status.base;
    if (!isJsonObject(object.status)) delete object.status;
    const { requested, forced } = requestsOf(object, object.status, requests);
    this.requested = requested;
    this.forced = forced;
    this.#initialReady = findCondition(this.#conditions, READY);
  }

  get signal(): AbortSignal {
    return this.ctx.signal;
  }

  get waitSignal(): AbortSignal {
    this.#waiting ??= linkedSignal(this.ctx.signal, this.ctx.interrupted);
    return this.#waiting.signal;
  }

  set(condition: NewCondition): void {
    this.#own(condition.type, "set");
    const moment = this.#moment();
    this.#conditions = setCondition(this.#conditions, condition, moment);
  }

  remove(type: string): void {
    this.#own(type);
    this.#conditions = removeCondition(this.#conditions, type);
  }

  async failing<T>(
    { type, reason }: { readonly type: string; readonly reason: string },
    body: () => MaybePromise<T>,
  ): Promise<T> {
    this.#own(type, "failures");
    try {
      const value = await body();
      this.remove(type);
      return value;
    } catch (error) {
      if (isInterruption(error, this.waitSignal)) throw error;
      const failure = isOutcome(error)
        ? error
        : new Failed(reason, errorText(error), { cause: error });
      const message = errorText(failure);
      this.set({ type, status: "True", reason: failure.reason, message });
      throw failure;
    }
  }

  async progress(
    message: string,
    options?: Parameters<StepContext<P>["progress"]>[1],
  ): Promise<void> {
    this.#setProgress(message, options);
    await this.#status.write(this.object);
  }

  async reconcile(
    steps: readonly Step<P>[],
  ): Promise<ReconcileResult<never, never>> {
    const suspended =
      immediate(this.#definition.suspended?.(this.object), "suspended()") ??
        false;
    if (suspended) this.remove(RECONCILING);
    try {
      if (suspended || this.#begin()) await this.#status.write(this.object);
    } catch (failure) {
      if (this.#isDeleted(failure)) return OBSERVED_ALREADY;
      throw failure;
    }
    if (suspended) return OBSERVED_ALREADY;
    const result = await this.#summarizeAndPatch(await this.#runSteps(steps));
    if (result !== undefined) this.#report();
    const after = result?.next.after;
    return after === undefined
      ? OBSERVED_ALREADY
      : OBSERVED_ALREADY.rescheduleAfter(after);
  }

  async cleanUp(steps: readonly Step<P>[]): Promise<CleanupResult> {
    this.#setProgress("Cleaning up before the deletion of the object");
    const end = await this.#runSteps(steps);
    if (end.error === undefined && end.result !== "requeue") {
      return removeFinalizer();
    }
    const result = await this.#summarizeAndPatch(end);
    const after = result?.next.after;
    return after === undefined
      ? keepFinalizer()
      : keepFinalizer().rescheduleAfter(after);
  }

  get #conditions(): readonly Condition[] {
    return conditionsIn(this.object.status);
  }

  set #conditions(conditions: readonly Condition[]) {
    this.object.status ??= {};
    this.object.status.conditions = [...conditions];
  }

  #moment(): ConditionMoment {
    const { clock = this.ctx.clock } = this.#definition;
    const { generation } = this.object.metadata;
    return { now: clock.wallTime(), generation };
  }

  #own(type: string, as?: "set" | "failures"): void {
    if (!this.#owned.includes(type)) this.#owned.push(type);
    const { failures, set } = this.#touched;
    if (as === "failures") failures.add(type);
    else if (as === "set" && !failures.has(type) && type !== READY) {
      set.add(type);
    }
  }

  /** Sets Reconciling; returns whether to write it before the steps. */
  #begin(): boolean {
    const { generation } = this.object.metadata;
    const observed = this.object.status?.observedGeneration;
    const isNew = generation !== undefined && generation !== observed;
    // Ready of another generation says nothing about this one.
    const drift = isNew && !this.#isReported();
    this.#setProgress(
      isNew
        ? `Reconciling generation ${generation}`
        : "Checking that the object is in its desired state",
      { drift },
    );
    return this.requested || drift;
  }

  /** Sets Reconciling in memory. */
  #setProgress(
    message: string,
    { reason = "Progressing", drift }: NonNullable<
      Parameters<StepContext<P>["progress"]>[1]
    > = {},
  ): void {
    const isInitial = this.#isReadyInitial;
    const text = withoutUrlSecrets(message);
    this.#conditions = progressiveStatus(
      this.#conditions,
      { reason, message: text, drift },
      this.#moment(),
    );
    // Progress does not determine how the run ends.
    if (isInitial) this.#initialReady = findCondition(this.#conditions, READY);
  }

  /** Whether an earlier run has reported Reconciling for this generation. */
  #isReported(): boolean {
    const before = conditionsIn(this.#before.status);
    const reported = findCondition(before, RECONCILING);
    return reported?.status === "True" &&
      reported.observedGeneration === this.object.metadata.generation;
  }

  /** Executes the steps. An aborted run throws, and is not reported. */
  async #runSteps(steps: readonly Step<P>[]): Promise<StepsResult> {
    try {
      let result: StepResult | undefined;
      for (const step of steps) {
        const next = await step(this);
        if (next === "requeue") return { result: next };
        if (next === undefined) continue;
        if (next !== "empty" && next !== "success") {
          throw new TypeError(
            `Cannot use the result of a step: it must be "empty", "requeue", "success" or nothing: received ${
              typeText(next)
            }`,
          );
        }
        result = combineResults(result ?? "empty", next);
      }
      return { result: result ?? "success" };
    } catch (error) {
      if (this.signal.aborted) throw error;
      if (!isInterruption(error, this.waitSignal)) {
        return { result: "empty", error };
      }
      // Not reported: the next run follows immediately.
      const unreported = { event: "None", log: false, cause: error } as const;
      const waiting = new Waiting("Interrupted", errorText(error), unreported);
      return { result: "empty", error: waiting };
    } finally {
      this.#waiting?.unlink();
    }
  }

  /**
   * Computes the final conditions and writes them.
   *
   * @returns Undefined if the object was deleted.
   */
  async #summarizeAndPatch(
    steps: StepsResult,
  ): Promise<ComputedResult | undefined> {
    const { gates, succeeded = SUCCEEDED } = this.#definition;
    let end = steps;
    let schedule = eventSchedule();
    try {
      const given = immediate(
        this.#definition.schedule(this.object),
        "schedule()",
      );
      checkParts(given, { next: "function" }, "the schedule of an object");
      schedule = given;
    } catch (cause) {
      // A user must correct an invalid schedule, such as a misspelled interval.
      const why = errorText(cause);
      const stalled = new Stalled("InvalidSchedule", why, { cause });
      end = { result: "empty", error: steps.error ?? stalled };
    }
    await this.#process(end);
    // An earlier Ready does not describe a success that no condition describes.
    const isUndescribed = this.#isReadyInitial && end.error === undefined &&
      end.result === "success";
    const conditions = isUndescribed
      ? removeCondition(this.#conditions, READY)
      : this.#conditions;
    const moment = this.#moment();
    const computed = summarizeResult(conditions, end, {
      schedule,
      moment,
      summaries: readySummaries(this.#definition, this.#touched),
      gates,
      succeeded,
    });
    this.#conditions = finalConditions(
      conditionsIn(this.#status.base.status),
      withFailure(computed.conditions, end.error, moment),
    );
    const { observed, error } = computed;
    try {
      await this.#status.write(this.object, { observed });
    } catch (failure) {
      if (this.#isDeleted(failure)) return undefined;
      if (error === undefined) throw failure;
      const key = keyText(keyOf(this.object));
      const texts = `${errorText(error)}; ${errorText(failure)}`;
      throw new AggregateError(
        [error, failure],
        `Cannot finish the run for ${key}: it failed, and its status could not be written: received ${texts}`,
      );
    }
    if (error !== undefined) throw error;
    const { next } = computed;
    const after = this.#paused(end.result, next.after);
    return { ...computed, next: { ...next, after } };
  }

  /** Delay of the next run, longer if runs ask for another one again and again. */
  #paused(result: StepResult, after: number | undefined): number | undefined {
    const { uid = "" } = this.object.metadata;
    if (result !== "requeue") {
      this.#requeues.delete(uid);
      return after;
    }
    const before = this.#requeues.get(uid) ??
      (this.#requeues.hasForgotten ? 1 : 0);
    this.#requeues.set(uid, before + 1);
    if (before === 0) return after;
    return Math.max(after ?? 0, pauseAfter(before, PAUSE));
  }

  /** Whether no step has changed Ready. */
  get #isReadyInitial(): boolean {
    return findCondition(this.#conditions, READY) === this.#initialReady;
  }

  async #process(end: StepsResult): Promise<void> {
    const { requests, notifier, processors = [] } = this.#definition;
    const { object, ctx } = this;
    const report = { ...end, object, ctx, before: this.#before };
    const { handled } = requestsOf(object, {}, requests);
    if (Object.keys(handled).length > 0) {
      object.status = Object.assign(object.status ?? {}, handled);
    }
    for (const process of [reportOutcome<P>(notifier), ...processors]) {
      try {
        await process(report);
      } catch (error) {
        ctx.log.warn("A result processor threw an error", { error });
      }
    }
  }

  /** Notifies; the run has ended well, and its status is written. */
  #report(): void {
    try {
      this.#notify();
    } catch (error) {
      this.ctx.log.warn("Cannot report the end of a run", { error });
    }
  }

  /**
   * Reports a new revision, or the end of a failure. A run that changed nothing
   * reports nothing, so that events stay relevant.
   */
  #notify(): void {
    const { notification, notifier } = this.#definition;
    const { object } = this;
    if (notification === undefined) return;
    const revisionOf = (object: P) =>
      immediate(notification.revision(object), "notification.revision()");
    const now = revisionOf(object);
    if (now === undefined) return;
    const { reason: usual = "NewArtifact", failures = [] } = notification;
    const before = this.#before;
    const isNew = revisionOf(before) !== now;
    const old = conditionsIn(before.status);
    if (!isNew && !hasRecovered(old, this.#conditions, failures)) return;
    const reason = isNew ? usual : SUCCEEDED.reason;
    const own = notification.message?.(object);
    const message = immediate(own, "notification.message()") ?? `Has ${now}`;
    this.ctx.events.normal(reason, message);
    const notice = { severity: "info", reason, message } as const;
    notifyOf(notifier, { object, notice, log: this.ctx.log });
  }

  /**
   * Whether a write failed because the object was deleted, or recreated. A 404
   * that names no object means that the kind has no status subresource.
   */
  #isDeleted(failure: unknown): boolean {
    if (failure instanceof AggregateError) {
      return failure.errors.every((error) => this.#isDeleted(error));
    }
    return ApiError.is(failure) && failure.isNotFound &&
      failure.details?.name === this.object.metadata.name;
  }
}

/** Whether an error was caused by a signal that has fired. */
function isInterruption(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted &&
    chainOf(error).some((cause) =>
      cause === signal.reason ||
      cause instanceof Error && cause.name === "AbortError"
    );
}

/**
 * Creates the processor that reports `Stalled`, `Waiting` and `Failed`: in the
 * log, as a Kubernetes Event, and to a notifier. Any other error is left to the
 * controller, which logs it.
 */
function reportOutcome<P extends Conditioned>(
  notifier?: Notifier,
): ResultProcessor<P> {
  return ({ object, ctx, error }) => {
    if (!isOutcome(error)) return;
    const { reason, reporting: { event, log, notify } } = error;
    const message = errorText(error);
    if (log) {
      const level = event === "Warning" ? "error" : "info";
      ctx.log[level]("A step has ended the run", { reason, message });
    }
    if (event === "None") return;
    const isWarning = event === "Warning";
    ctx.events[isWarning ? "warning" : "normal"](reason, message);
    if (isWarning || notify) {
      const severity = isWarning ? "error" : "info";
      const notice = { severity, reason, message } as const;
      notifyOf(notifier, { object, notice, log: ctx.log });
    }
  };
}

/** Calls a notifier; it must not end a run, even if it is async. */
function notifyOf(
  notifier: Notifier | undefined,
  { object, notice, log }: {
    readonly object: KubernetesObject;
    readonly notice: Notification;
    readonly log: Logger;
  },
): void {
  attempt(
    () => notifier?.notify(object, notice),
    (error) => log.warn("A notifier failed", { error }),
  );
}

/** Makes Ready report an error that no other condition describes. */
function withFailure(
  conditions: readonly Condition[],
  error: unknown,
  moment: ConditionMoment,
): readonly Condition[] {
  const ready = findCondition(conditions, READY);
  if (error === undefined || ready?.reason !== PROGRESSING_WITH_RETRY) {
    return conditions;
  }
  const reason = isOutcome(error) ? error.reason : "Failed";
  const message = errorText(error);
  const failed = { type: READY, status: "False", reason, message } as const;
  return setCondition(conditions, failed, moment);
}

/**
 * Conditions to write: without the queries of URLs, unless they are there already.
 * {@linkcode SharedStatus} keeps the transition times of those that are the same.
 */
function finalConditions(
  before: readonly Condition[],
  after: readonly Condition[],
): Condition[] {
  return after.map((condition) => {
    const old = findCondition(before, condition.type);
    if (old !== undefined && sameState(old, condition)) return condition;
    const message = withoutUrlSecrets(wordsOf(condition).message);
    return { ...condition, message };
  });
}
