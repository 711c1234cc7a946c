import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import { systemClock } from "../../core/clock.ts";
import type { Context, PrimaryEvents } from "../../core/controller/context.ts";
import type { Reconciler } from "../../core/controller/reconciler.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  removeFinalizer,
} from "../../core/controller/result.ts";
import { isOutcome, type Outcome } from "../conditions/outcome.ts";
import { errorReport } from "./error_report.ts";
import { ExclusiveStatus } from "./exclusive_status.ts";
import {
  lifecycleConditions,
  type Pending,
  readyCondition,
} from "./lifecycle_conditions.ts";
import { LifecycleMetrics } from "./lifecycle_metrics.ts";
import {
  checkPhased,
  type PhasedDefinition,
  type PhasedRun,
} from "./phased_definition.ts";
import { type PassEnding, PhasedPass } from "./phased_pass.ts";
import {
  type Lifecycle,
  lifecycleOf,
  type PhasedObject,
  type PhasedStatus,
} from "./phased_status.ts";

/**
 * A reconciler for what is rolled out in phases, such as a job with state or a
 * database: it observes, validates, and then suspends, deploys, scales, recovers
 * or rolls back, with `status.rollout` as its write-ahead log. It may be killed
 * at any moment.
 *
 * It alone writes the status of its objects; what somebody else changes there is
 * undone, with a Warning. Errors that a function throws end the pass and become
 * an event and the error of the status: `Stalled` waits for somebody's help,
 * `Failed` is tried again after the interval, `Waiting` soon. Anything else fails
 * the run, which is retried, and what the pass has changed in memory since its
 * last write is dropped.
 *
 * The control flow is that of the Flink Kubernetes operator.
 *
 * @param kind The kind of the objects.
 * @param definition What is known of the subject.
 * @throws {TypeError | RangeError} If the kind is none, or anything of the
 * definition is unknown, missing or makes no sense.
 *
 * @example The least that works
 * ```ts
 * import type { Kind } from "@coracle/operator/core";
 * import { changeMap, phased, type PhasedObject } from "@coracle/operator/workflows";
 *
 * const Engine: Kind<PhasedObject<{ image: string }>> = {
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Engine",
 * };
 * let engine: { image: string; attempt: string } | undefined;
 *
 * const reconciler = phased(Engine, {
 *   diff: changeMap({}),
 *   observe: () => engine?.image,
 *   stable: (image) => image !== undefined,
 *   landed: (_, attempt) => engine?.attempt === attempt,
 *   deploy(_, { spec, attempt }) {
 *     engine = { image: spec.image, attempt };
 *   },
 * });
 * if (reconciler.cleanup === undefined) throw new Error("Unexpected");
 * ```
 */
export function phased<P extends PhasedObject, Seen>(
  kind: Kind<P>,
  definition: PhasedDefinition<P, Seen>,
): Reconciler<P> {
  const reconciler = new PhasedReconciler(kind, definition);
  const reconcile: Reconciler<P>["reconcile"] = (object, ctx) =>
    reconciler.reconcile(object, ctx);
  return {
    reconcile,
    cleanup: (object, ctx) => reconciler.cleanup(object, ctx),
  };
}

/** The states in which a generation has come to its end, good or bad. */
const ENDS: readonly Lifecycle[] = [
  "Stable",
  "Suspended",
  "RolledBack",
  "Failed",
];

class PhasedReconciler<P extends PhasedObject, Seen> {
  readonly #kind: Kind<P>;
  readonly #definition: PhasedDefinition<P, Seen>;
  readonly #statuses: ExclusiveStatus<P>;
  readonly #metrics: LifecycleMetrics | undefined;
  readonly #waits: Readonly<Record<PassEnding, number | undefined>>;

  constructor(kind: Kind<P>, definition: PhasedDefinition<P, Seen>) {
    checkKind(kind, "a phased reconciler");
    checkPhased(definition);
    const { poll = "10s", interval = "60s", onStatus, metrics } = definition;
    const wait = (duration: Duration, name: string) =>
      milliseconds(duration, name);
    this.#kind = kind;
    this.#definition = definition;
    this.#statuses = new ExclusiveStatus(kind, {
      onChange: onStatus,
      succeeds: (found, ours) => revisionOf(found) > revisionOf(ours),
    });
    this.#metrics = metrics &&
      new LifecycleMetrics(metrics, { kind: kind.kind, clock: this.#clock });
    this.#waits = {
      requeue: 0,
      poll: wait(poll, "poll"),
      interval: wait(interval, "interval"),
      event: undefined,
    };
  }

  async reconcile(
    object: P,
    ctx: Context<P>,
  ): Promise<ReturnType<typeof noUpdate>> {
    const run = this.#begin(object, ctx);
    let after: number | undefined;
    try {
      const pass = this.#pass(run);
      after = this.#waits[await pass.execute()];
    } catch (error) {
      after = await this.#failed(run, error);
    }
    // The pass has said itself which generation it observed.
    const result = noUpdate({ observed: false });
    return after === undefined ? result : result.rescheduleAfter(after);
  }

  async cleanup(object: P, ctx: Context<P>): Promise<CleanupResult> {
    const run = this.#begin(object, ctx);
    let after: number | undefined;
    try {
      if (await this.#undo(run)) {
        this.#statuses.forget(object);
        this.#metrics?.forget(object);
        return removeFinalizer();
      }
      after = this.#waits.poll;
    } catch (error) {
      after = await this.#failed(run, error);
    }
    return after === undefined
      ? keepFinalizer()
      : keepFinalizer().rescheduleAfter(after);
  }

  /** Takes up where the last pass ended. */
  #begin(object: P, ctx: Context<P>): PhasedRun<P> {
    const events = heardEvents(object, ctx.events, this.#definition.onEvent);
    if (this.#statuses.adopt(object)) {
      events.warning(
        "StatusTampered",
        "Somebody else has changed the status: it is restored",
      );
    }
    this.#metrics?.update(object);
    return { object, ctx, events };
  }

  #pass(run: PhasedRun<P>): PhasedPass<P, Seen> {
    return new PhasedPass(this.#definition, {
      run,
      flush: (pending) => this.#flush(run, pending),
      version: this.#kind.version,
    });
  }

  /** Undoes what an object that is to go has asked for. */
  async #undo(run: PhasedRun<P>): Promise<boolean> {
    const { object, ctx, events } = run;
    const status: PhasedStatus = object.status ??= {};
    const begun = status.lifecycle === "Deleting";
    if (!begun) {
      delete status.error;
      events.normal("Cleanup", "The object is being deleted");
    }
    const message = await this.#definition.neededBy?.(run);
    if (message !== undefined) {
      this.#tellOnce(run, { reason: "CleanupBlocked", message }, "Warning");
      await this.#flush(run, { reason: "CleanupBlocked", message });
      return false;
    }
    // Later passes leave the words that say what the deletion waits for.
    if (!begun) await this.#flush(run);
    const seen = await this.#look(run).catch((error: unknown) => {
      ctx.log.info("Cannot look at what runs before it goes", { error });
      return undefined;
    });
    const done = await this.#definition.cleanup?.(run, seen) ?? true;
    if (done) return true;
    delete status.error;
    await this.#flush(run);
    return false;
  }

  async #look(run: PhasedRun<P>): Promise<Seen | undefined> {
    return await this.#pass(run).look();
  }

  /** Ends a pass that threw. What is not understood is thrown again. */
  async #failed(
    run: PhasedRun<P>,
    error: unknown,
  ): Promise<number | undefined> {
    const { object, ctx } = run;
    // A run that was told to end has not failed, and cannot write any more.
    if (ctx.signal.aborted) throw error;
    if (!isOutcome(error)) {
      // What was not written may be half of a change.
      object.status = this.#statuses.last(object) as P["status"];
      this.#blame(run, error);
      await this.#flush(run).catch((failure: unknown) => {
        ctx.log.warn("Cannot write why a pass failed", { error: failure });
      });
      throw error;
    }
    const { reason, message } = error;
    if (error.telling.log) ctx.log.info(message, { reason });
    if (isOutcome(error, "waiting")) {
      this.#tellOnce(run, error, error.telling.event);
      await this.#flush(run, { reason, message });
      return error.after ?? this.#waits.poll;
    }
    if (isOutcome(error, "failed") && error.harmless) {
      delete object.status?.error;
      await this.#flush(run);
      return this.#waits.interval;
    }
    this.#blame(run, error);
    await this.#flush(run);
    return isOutcome(error, "stalled")
      ? this.#waits.event
      : this.#waits.interval;
  }

  /** Makes something thrown the error of the status. */
  #blame(run: PhasedRun<P>, error: unknown): void {
    const report = errorReport(error, this.#definition.errors);
    const stalled = isOutcome(error, "stalled");
    this.#tellOnce(
      run,
      report,
      isOutcome(error) ? (error as Outcome).telling.event : "Warning",
    );
    const status: PhasedStatus = run.object.status ??= {};
    status.error = stalled ? { ...report, stalled } : report;
  }

  /** Tells of something, unless the conditions say it already. */
  #tellOnce(
    { object, events }: PhasedRun<P>,
    { reason, message }: { readonly reason: string; readonly message: string },
    type: Outcome["telling"]["event"],
  ): void {
    if (type === "None") return;
    const ready = readyCondition(object.status?.conditions);
    if (ready?.reason === reason && ready.message === message) return;
    if (type === "Warning") events.warning(reason, message);
    else events.normal(reason, message);
  }

  async #flush(run: PhasedRun<P>, pending?: Pending): Promise<void> {
    const { object, ctx } = run;
    const status: PhasedStatus = object.status ??= {};
    const { error, rollout, conditions } = status;
    const lifecycle = lifecycleOf(object);
    const { generation } = object.metadata;
    const idle = lifecycle === "Created" && error === undefined &&
      this.#definition.parked?.(object.spec);
    const facts = {
      lifecycle: idle ? "Suspended" : lifecycle,
      error,
      pending,
      message: rolledBackText(status),
    } as const;
    const ended = ENDS.includes(facts.lifecycle) && pending === undefined;
    if (ended || error?.stalled) status.observedGeneration = generation;
    status.lifecycle = lifecycle;
    status.conditions = lifecycleConditions(
      Array.isArray(conditions) ? conditions : [],
      facts,
      { now: this.#clock.wallTime(), generation },
    );
    if (rollout !== undefined && this.#statuses.isChanged(object)) {
      rollout.revision = revisionOf(this.#statuses.last(object)) + 1;
    }
    await this.#statuses.write(object, ctx.client, { signal: ctx.signal });
    this.#metrics?.update(object);
  }

  get #clock(): NonNullable<PhasedDefinition<P, Seen>["clock"]> {
    return this.#definition.clock ?? systemClock;
  }
}

/** What was asked for and what runs instead. */
function rolledBackText({ rollout }: PhasedStatus): string | undefined {
  const { phase, target, stable } = rollout ?? {};
  return phase === "RolledBack"
    ? `Generation ${target?.generation} did not become stable: generation ${stable?.generation} runs again`
    : undefined;
}

function revisionOf(status: unknown): number {
  const { rollout } = (status ?? {}) as PhasedStatus;
  return Number(rollout?.revision ?? 0) || 0;
}

/**
 * Events about an object that a listener hears of, too. What it throws is
 * dropped: a listener must not stop a rollout.
 *
 * @param object The object.
 * @param events Where they are written.
 * @param listener Who hears of them.
 */
export function heardEvents<P extends PhasedObject>(
  object: P,
  events: PrimaryEvents,
  listener: PhasedDefinition<P, unknown>["onEvent"],
): PrimaryEvents {
  if (listener === undefined) return events;
  const hear = (
    type: "Normal" | "Warning",
    reason: string,
    message: string,
  ) => {
    try {
      listener(object, { type, reason, message });
    } catch {
      // See PhasedDefinition.onEvent.
    }
  };
  return {
    normal(reason, message, options) {
      events.normal(reason, message, options);
      hear("Normal", reason, message);
    },
    warning(reason, message, options) {
      events.warning(reason, message, options);
      hear("Warning", reason, message);
    },
  };
}
