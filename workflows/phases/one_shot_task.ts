import type { Duration } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../../core/api/options.ts";
import { immediate } from "../../core/callback.ts";
import { type Clock, loadModule } from "../../core/clock.ts";
import { pauseAfter } from "../../core/pace.ts";
import type { Context } from "../../core/controller/context.ts";
import type {
  MaybePromise,
  Reconciler,
} from "../../core/controller/reconciler.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  removeFinalizer,
} from "../../core/controller/result.ts";
import {
  type Condition,
  conditionsIn,
  RECONCILING,
  setReadiness,
  STALLED,
} from "../conditions/condition.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import { errorReport } from "./error_report.ts";
import { ExclusiveStatus } from "./exclusive_status.ts";

/** Object that represents a task. */
export interface TaskObject<Result = unknown> extends KubernetesObject {
  /** Status of the task, which only its reconciler writes. */
  status?: {
    /** State of the task; `Abandoned` if it has become obsolete. */
    state?:
      | "Pending"
      | "InProgress"
      | "Completed"
      | "Failed"
      | "Abandoned"
      | undefined;
    /** Id of the current attempt. */
    attempt?: string | undefined;
    /** Number of failed attempts. */
    failures?: number | undefined;
    /** Time of the next attempt, in milliseconds since the Unix epoch. */
    retryAt?: number | undefined;
    /** Message of the last error. */
    error?: string | undefined;
    /** What the task has returned; absent until then. */
    result?: Result | undefined;
    /** Last generation that was seen since the task has ended. */
    observedGeneration?: number | undefined;
    /** Ready, Reconciling and Stalled. */
    conditions?: Condition[] | undefined;
  } | undefined;
}

type TaskStatus<Result = unknown> = NonNullable<TaskObject<Result>["status"]>;

/** Definition of a one-shot task. */
export interface TaskDefinition<P extends TaskObject<Result>, Result> {
  /**
   * Starts the task. It is called again with the same attempt if the operator
   * crashes before the start is recorded, so the attempt must serve as an
   * idempotency key. An error that it throws is a failure, as with `check`.
   */
  readonly start: (
    run: { readonly object: P; readonly ctx: Context<P> },
    attempt: string,
  ) => MaybePromise<void>;
  /** Checks the progress of an attempt. */
  readonly check: (
    run: { readonly object: P; readonly ctx: Context<P> },
    attempt: string,
  ) => MaybePromise<
    | { readonly state: "running" }
    | { readonly state: "completed"; readonly result: Result }
    | { readonly state: "failed"; readonly message: string }
  >;
  /**
   * Reason why the task has become obsolete, or undefined. By default no task
   * becomes obsolete.
   */
  readonly pointless?:
    | ((
      run: { readonly object: P; readonly ctx: Context<P> },
    ) => MaybePromise<string | undefined>)
    | undefined;
  /**
   * Undoes a completed task before its object is deleted. By default nothing is
   * undone.
   *
   * @returns Whether it is done; undefined counts as done.
   */
  readonly dispose?:
    | ((
      run: { readonly object: P; readonly ctx: Context<P> },
      result: Result,
    ) => MaybePromise<boolean | void>)
    | undefined;
  /** Maximum number of retries after failures. By default there is no limit. */
  readonly retries?: number | ((object: P) => number) | undefined;
  /**
   * Delay of the first retry, at most `maxBackOff`; each further one is twice as
   * long.
   *
   * @default {"10s"}
   */
  readonly backOff?: Duration | undefined;
  /**
   * Maximum delay of a retry.
   *
   * @default {"1h"}
   */
  readonly maxBackOff?: Duration | undefined;
  /**
   * Interval at which a task in progress is checked.
   *
   * @default {"10s"}
   */
  readonly poll?: Duration | undefined;
  /** Clock for delays and conditions. Defaults to that of the operator. */
  readonly clock?: Clock | undefined;
}

type TaskRun<P extends TaskObject> = Parameters<
  TaskDefinition<P, unknown>["start"]
>[0];

type TaskTiming = Pick<
  TaskDefinition<never, never>,
  "backOff" | "maxBackOff" | "poll"
>;
const TIMING: OptionTable<TaskTiming> = {
  backOff: { type: "duration", default: "10s" },
  maxBackOff: { type: "duration", default: "1h" },
  poll: { type: "duration", default: "10s" },
};
const RULES: OptionRules<TaskDefinition<TaskObject<never>, never>> = {
  ...TIMING,
  clock: "clock?",
  start: "function",
  check: "function",
  pointless: "function?",
  dispose: "function?",
  retries: "any?",
};

/**
 * Creates a reconciler for objects that represent a task that runs once, such
 * as a backup: it is started, checked, retried with increasing delays, and then
 * ends. The deletion of an object waits while its task is in progress.
 *
 * @param kind The kind of the objects.
 * @param definition The functions of the task.
 * @throws {TypeError | RangeError} If the kind is invalid, or an option is
 * unknown, missing or invalid.
 *
 * @example A backup
 * ```ts
 * import type { Kind } from "@coracle/operator/core";
 * import { oneShotTask, type TaskObject } from "@coracle/operator/workflows";
 *
 * const Backup: Kind<TaskObject<string>> = {
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Backup",
 * };
 * const running = new Set<string>();
 *
 * const reconciler = oneShotTask(Backup, {
 *   start(_, attempt) {
 *     running.add(attempt);
 *   },
 *   check: (_, attempt) =>
 *     running.has(attempt)
 *       ? { state: "running" }
 *       : { state: "completed", result: `backups/${attempt}` },
 *   retries: 3,
 * });
 * ```
 */
export function oneShotTask<P extends TaskObject<Result>, Result>(
  kind: Kind<P>,
  definition: TaskDefinition<P, Result>,
): Reconciler<P> {
  const task = new TaskReconciler(kind, definition);
  return {
    async reconcile(object, ctx) {
      const after = await task.reconcile({ object, ctx });
      const result = noUpdate({ observed: false });
      return after === undefined ? result : result.rescheduleAfter(after);
    },
    cleanup: (object, ctx) => task.cleanup({ object, ctx }),
  };
}

const FINAL_STATES: ReadonlySet<unknown> = new Set([
  "Completed",
  "Failed",
  "Abandoned",
]);

class TaskReconciler<P extends TaskObject<Result>, Result> {
  readonly #definition: TaskDefinition<P, Result>;
  readonly #statuses: ExclusiveStatus<P>;
  readonly #timing: Settings<TaskTiming>;

  constructor(kind: Kind<P>, definition: TaskDefinition<P, Result>) {
    const subject = "a one-shot task";
    checkKind(kind, subject);
    checkOptions(definition, RULES, subject);
    const { retries } = definition;
    if (typeof retries !== "function" && retries !== Infinity) {
      checkOption(retries, "size?", { name: "retries", subject });
    }
    this.#definition = definition;
    this.#statuses = new ExclusiveStatus(kind);
    this.#timing = resolveOptions(definition, TIMING);
    const { backOff, maxBackOff } = this.#timing;
    if (definition.backOff !== undefined && backOff > maxBackOff) {
      throw new RangeError(
        `Cannot create ${subject}: "backOff" must not be longer than "maxBackOff", ${maxBackOff} ms: received ${backOff} ms`,
      );
    }
  }

  /**
   * Returns the delay of the next run in milliseconds, or undefined when the
   * task has ended.
   */
  async reconcile(run: TaskRun<P>): Promise<number | undefined> {
    const status = await this.#begin(run);
    if (FINAL_STATES.has(status.state)) return await this.#write(run);
    const pointless = await this.#definition.pointless?.(run);
    if (pointless !== undefined) {
      status.state = "Abandoned";
      status.error = pointless;
      run.ctx.events.warning("Abandoned", pointless);
      return await this.#write(run);
    }
    const wait = (status.retryAt ?? 0) - this.#now(run.ctx);
    if (wait > 0) return wait;
    const isNew = status.state === "Pending";
    if (isNew) {
      const { uid = run.object.metadata.name } = run.object.metadata;
      status.attempt = `${uid}-${status.failures ?? 0}`;
      delete status.retryAt;
      await this.#write(run);
    }
    try {
      if (isNew) {
        await this.#definition.start(run, status.attempt!);
        status.state = "InProgress";
      } else await this.#check(run, status);
    } catch (error) {
      run.ctx.signal.throwIfAborted();
      this.#failed(run, errorReport(error).message);
    }
    return await this.#write(run);
  }

  async cleanup(run: TaskRun<P>): Promise<CleanupResult> {
    const { state, attempt, retryAt, result } = await this.#begin(run);
    // A recorded attempt may have been started.
    const isRecorded = state === "Pending" && attempt !== undefined &&
      retryAt === undefined;
    if (state === "InProgress" || isRecorded) {
      const after = await this.reconcile(run);
      const { state: now } = run.object.status!;
      if (now === "InProgress" || now === "Pending") {
        return keepFinalizer().rescheduleAfter(after ?? this.#timing.poll);
      }
      return await this.cleanup(run);
    }
    const { dispose } = this.#definition;
    if (state === "Completed" && dispose !== undefined) {
      const done = await dispose(run, result as Result) ?? true;
      if (!done) return keepFinalizer().rescheduleAfter(this.#timing.poll);
    }
    this.#statuses.forget(run.object);
    return removeFinalizer();
  }

  /**
   * Restores the status that was last written. A user may have edited it while
   * no replica was running: damaged fields are derived from the others.
   */
  async #begin({ object, ctx }: TaskRun<P>): Promise<TaskStatus<Result>> {
    const { repairTask } = await loadModule(import("./stored_status.ts"));
    this.#statuses.adopt(object);
    const status: TaskStatus<Result> = isJsonObject(object.status)
      ? object.status
      : {};
    object.status = status as P["status"];
    const damaged = repairTask(status);
    const latest = this.#now(ctx) + this.#timing.maxBackOff;
    if (Number(status.retryAt) > latest) {
      damaged.push("retryAt");
      delete status.retryAt;
    }
    const { attempt } = status;
    if (damaged.includes("failures")) {
      status.failures = Number(attempt?.match(/-(\d{1,9})$/)?.[1] ?? 0);
    }
    if (damaged.includes("state") && attempt !== undefined) {
      status.state = "InProgress";
    }
    // An attempt is started again with its id, which depends on the failures.
    if (status.state === "InProgress" && attempt === undefined) {
      status.state = "Pending";
    }
    status.state ??= "Pending";
    if (damaged.length > 0) {
      const message = `The status was damaged: ${
        damaged.join(", ")
      } could not be read`;
      ctx.events.warning("StatusInvalid", message);
    }
    return status;
  }

  async #check(run: TaskRun<P>, status: TaskStatus<Result>): Promise<void> {
    const progress = await this.#definition.check(run, status.attempt!);
    if (progress.state === "failed") this.#failed(run, progress.message);
    else if (progress.state === "completed") {
      status.state = "Completed";
      status.result = progress.result;
      delete status.error;
      run.ctx.events.normal("Completed", "The task is completed");
    }
  }

  #failed({ object, ctx }: TaskRun<P>, message: string): void {
    const status: TaskStatus<Result> = object.status!;
    const { retries = Infinity } = this.#definition;
    const limit = typeof retries === "function"
      ? immediate(retries(object), "retries()")
      : retries;
    const failures = (status.failures ?? 0) + 1;
    status.failures = failures;
    status.error = message;
    ctx.events.warning("TaskFailed", message);
    if (failures > limit) {
      status.state = "Failed";
      return;
    }
    status.state = "Pending";
    const { backOff: initial, maxBackOff: max } = this.#timing;
    status.retryAt = this.#now(ctx) + pauseAfter(failures, { initial, max });
  }

  #now(ctx: Context<P>): number {
    return (this.#definition.clock ?? ctx.clock).wallTime();
  }

  async #write({ object, ctx }: TaskRun<P>): Promise<number | undefined> {
    const status: TaskStatus<Result> = object.status!;
    const now = this.#now(ctx);
    const over = FINAL_STATES.has(status.state);
    const { generation } = object.metadata;
    if (over && generation !== undefined) {
      status.observedGeneration = generation;
    }
    const { state = "Pending", error } = status;
    const isDone = state === "Completed";
    status.conditions = setReadiness(conditionsIn(status), {
      status: isDone ? "True" : "False",
      also: isDone ? undefined : over ? STALLED : RECONCILING,
      reason: state,
      message: error ?? `The task is ${state}`,
    }, { now, generation });
    await this.#statuses.write(object, ctx.client, { signal: ctx.signal });
    if (over) return undefined;
    return status.retryAt === undefined
      ? this.#timing.poll
      : status.retryAt - now;
  }
}
