/**
 * Reconciler for stateful systems that are rolled out in phases
 * ({@linkcode phased}), by the rules of the Flink Kubernetes operator.
 *
 * The folder also holds `oneShotTask` for tasks that run once, `states` for
 * state machines, and `Canary`. All of them own the status of their objects
 * exclusively ({@linkcode ExclusiveStatus}), and guarantee that a crash at any
 * time loses no state. It must import only `conditions` of `workflows`.
 *
 * @module
 */

import { attempt, immediate } from "../../core/callback.ts";
import { milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import { checkOptions } from "../../core/api/options.ts";
import { loadModule } from "../../core/clock.ts";
import type { Context, PrimaryEvents } from "../../core/controller/context.ts";
import type { Reconciler } from "../../core/controller/reconciler.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  removeFinalizer,
} from "../../core/controller/result.ts";
import { isOutcome, type Outcome } from "../conditions/outcome.ts";
import {
  type Lifecycle,
  lifecycleConditions,
  lifecycleOf,
  type PendingReason,
  type PhasedObject,
  type PhasedStatus,
  readyCondition,
  revisionOf,
} from "./phased_status.ts";
import { errorReport } from "./error_report.ts";
import { ExclusiveStatus } from "./exclusive_status.ts";
import { LifecycleMetrics } from "./lifecycle_metrics.ts";
import {
  PHASED_RULES,
  type PhasedDefinition,
  type PhasedRun,
} from "./phased_definition.ts";
import { type NextRun, PhasedExecutor } from "./phased_executor.ts";

/**
 * Creates a reconciler for stateful systems that are rolled out in phases, such
 * as a streaming job or a database: it observes, validates, and then suspends,
 * deploys, scales, recovers or rolls back, with `status.rollout` as its
 * write-ahead log. The operator may crash at any time.
 *
 * Only this reconciler writes the status of its objects; changes by others are
 * reverted, with a Warning event, as long as the replica remembers what it wrote:
 * the statuses of the 50,000 objects written last, or more. An error that a function throws ends the run
 * and becomes an event and the error of the status: `Stalled` waits for a user,
 * `Failed` is retried after the interval, `Waiting` soon. Any other error fails
 * the run, which is retried, and discards the changes to the object since the
 * last write.
 *
 * The control flow is that of the Flink Kubernetes operator.
 *
 * @param kind The kind of the objects.
 * @param definition The functions that observe and change the system.
 * @throws {TypeError | RangeError} If the kind is invalid, or an option is
 * unknown, missing or invalid.
 *
 * @example The required functions
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
 *   isDeployed: (_, attempt) => engine?.attempt === attempt,
 *   deploy(_, { spec, attempt }) {
 *     engine = { image: spec.image, attempt };
 *   },
 * });
 * ```
 */
export function phased<P extends PhasedObject, Observed>(
  kind: Kind<P>,
  definition: PhasedDefinition<P, Observed>,
): Reconciler<P> {
  const reconciler = new PhasedReconciler(kind, definition);
  return {
    reconcile: (object, ctx) => reconciler.reconcile(object, ctx),
    cleanup: (object, ctx) => reconciler.cleanup(object, ctx),
  };
}

/** Lifecycle states in which the rollout of a generation has ended. */
const FINAL_STATES: readonly Lifecycle[] = [
  "Stable",
  "Suspended",
  "RolledBack",
  "Failed",
];

class PhasedReconciler<P extends PhasedObject, Observed> {
  readonly #kind: Kind<P>;
  readonly #definition: PhasedDefinition<P, Observed>;
  readonly #statuses: ExclusiveStatus<P>;
  readonly #metrics: LifecycleMetrics | undefined;
  readonly #delays: Readonly<Record<NextRun, number | undefined>>;

  constructor(kind: Kind<P>, definition: PhasedDefinition<P, Observed>) {
    checkKind(kind, "a phased reconciler");
    checkOptions(definition, PHASED_RULES, "a phased reconciler");
    const { poll = "10s", interval = "60s", onStatus, metrics } = definition;
    this.#kind = kind;
    this.#definition = definition;
    this.#statuses = new ExclusiveStatus(kind, {
      onChange: onStatus,
      succeeds: (found, ours) => revisionOf(found) > revisionOf(ours),
    });
    this.#metrics = metrics &&
      new LifecycleMetrics(metrics, { kind: kind.kind });
    this.#delays = {
      requeue: 0,
      poll: milliseconds(poll, "poll"),
      interval: milliseconds(interval, "interval"),
      event: undefined,
    };
  }

  async reconcile(
    object: P,
    ctx: Context<P>,
  ): Promise<ReturnType<typeof noUpdate>> {
    const run = await this.#begin(object, ctx);
    let after: number | undefined;
    try {
      after = this.#delays[await (await this.#executor(run)).execute()];
    } catch (error) {
      after = await this.#failed(run, error);
    }
    // The run has written `observedGeneration` itself.
    const result = noUpdate({ observed: false });
    return after === undefined ? result : result.rescheduleAfter(after);
  }

  async cleanup(object: P, ctx: Context<P>): Promise<CleanupResult> {
    const run = await this.#begin(object, ctx);
    let after: number | undefined;
    try {
      if (await this.#cleanUp(run)) {
        this.#statuses.forget(object);
        this.#metrics?.forget(object);
        return removeFinalizer();
      }
      after = this.#delays.poll;
    } catch (error) {
      after = await this.#failed(run, error);
    }
    return after === undefined
      ? keepFinalizer()
      : keepFinalizer().rescheduleAfter(after);
  }

  /** Restores the status that was last written. */
  async #begin(object: P, ctx: Context<P>): Promise<PhasedRun<P>> {
    const { readStatus } = await loadStatus();
    const { onEvent, clock = ctx.clock } = this.#definition;
    const events = eventsWithListener(object, ctx.events, onEvent);
    if (this.#statuses.adopt(object)) {
      events.warning(
        "StatusTampered",
        "Another writer has changed the status: it is restored",
      );
    }
    object.status = readStatus(object.status) as P["status"];
    this.#metrics?.update(object, clock.wallTime());
    return { object, ctx, events };
  }

  async #executor(run: PhasedRun<P>): Promise<PhasedExecutor<P, Observed>> {
    const { readRollout } = await loadStatus();
    const { object } = run;
    const { rollout } = object.status ??= {};
    return new PhasedExecutor(this.#definition, {
      run,
      flush: (pending) => this.#flush(run, pending),
      version: this.#kind.version,
      stored: readRollout(rollout, object.spec),
    });
  }

  async #cleanUp(run: PhasedRun<P>): Promise<boolean> {
    const { object, ctx, events } = run;
    const status: PhasedStatus = object.status ??= {};
    const begun = status.lifecycle === "Deleting";
    if (!begun) {
      delete status.error;
      events.normal("Cleanup", "The object is being deleted");
    }
    const message = await this.#definition.neededBy?.(run);
    if (message !== undefined) {
      this.#emitOnce(run, { reason: "CleanupBlocked", message }, "Warning");
      await this.#flush(run, { reason: "CleanupBlocked", message });
      return false;
    }
    // Later runs keep the reason that the deletion waits for.
    if (!begun) await this.#flush(run);
    let observed: Observed | undefined;
    try {
      observed = await (await this.#executor(run)).observe();
    } catch (error) {
      const message = "Cannot observe the deployment before the cleanup";
      ctx.log.info(message, { error });
    }
    const done = await this.#definition.cleanup?.(run, observed) ?? true;
    if (done) return true;
    delete status.error;
    await this.#flush(run);
    return false;
  }

  /** Ends a run whose function threw. An error without a reason is rethrown. */
  async #failed(
    run: PhasedRun<P>,
    error: unknown,
  ): Promise<number | undefined> {
    const { object, ctx } = run;
    // An aborted run has not failed, and can no longer write.
    if (ctx.signal.aborted) throw error;
    if (!isOutcome(error)) {
      // Unwritten changes may be incomplete.
      object.status = this.#statuses.last(object) as P["status"];
      this.#setError(run, error);
      await this.#flush(run).catch((failure: unknown) => {
        ctx.log.warn("Cannot write the error of a run", { error: failure });
      });
      throw error;
    }
    const { reason, message } = error;
    if (error.reporting.log) ctx.log.info(message, { reason });
    if (isOutcome(error, "waiting")) {
      this.#emitOnce(run, error, error.reporting.event);
      await this.#flush(run, { reason, message });
      return error.after ?? this.#delays.poll;
    }
    if (isOutcome(error, "failed") && error.harmless) {
      delete object.status?.error;
      await this.#flush(run);
      return this.#delays.interval;
    }
    this.#setError(run, error);
    await this.#flush(run);
    return isOutcome(error, "stalled")
      ? this.#delays.event
      : this.#delays.interval;
  }

  #setError(run: PhasedRun<P>, error: unknown): void {
    const report = errorReport(error, this.#definition.errors);
    const type = isOutcome(error) ? error.reporting.event : "Warning";
    this.#emitOnce(run, report, type);
    const status: PhasedStatus = run.object.status ??= {};
    const stalled = isOutcome(error, "stalled");
    status.error = stalled ? { ...report, stalled } : report;
  }

  /** Emits an event, unless Ready has the same reason and message. */
  #emitOnce(
    { object, events }: PhasedRun<P>,
    { reason, message }: { readonly reason: string; readonly message: string },
    type: Outcome["reporting"]["event"],
  ): void {
    if (type === "None") return;
    const ready = readyCondition(object.status?.conditions);
    if (ready?.reason === reason && ready.message === message) return;
    if (type === "Warning") events.warning(reason, message);
    else events.normal(reason, message);
  }

  async #flush(run: PhasedRun<P>, pending?: PendingReason): Promise<void> {
    const { object, ctx } = run;
    const { clock = ctx.clock } = this.#definition;
    const status: PhasedStatus = object.status ??= {};
    const { error, rollout, conditions } = status;
    const lifecycle = lifecycleOf(object);
    const { generation } = object.metadata;
    const idle = lifecycle === "Created" && error === undefined &&
      immediate(this.#definition.suspended?.(object.spec), "suspended()");
    const shown = idle ? "Suspended" : lifecycle;
    const isEnded = FINAL_STATES.includes(shown) && pending === undefined;
    if (isEnded || error?.stalled) status.observedGeneration = generation;
    status.lifecycle = lifecycle;
    status.conditions = lifecycleConditions(
      conditions ?? [],
      { lifecycle: shown, error, pending, message: rolledBackText(status) },
      { now: clock.wallTime(), generation },
    );
    if (rollout !== undefined && this.#statuses.isChanged(object)) {
      rollout.revision = revisionOf(status) + 1;
    }
    await this.#statuses.write(object, ctx.client, { signal: ctx.signal });
    this.#metrics?.update(object, clock.wallTime());
  }
}

/** Message after a rollback: the failed and the running generation. */
function rolledBackText({ rollout }: PhasedStatus): string | undefined {
  const { phase, target, stable } = rollout ?? {};
  return phase === "RolledBack"
    ? `Generation ${target?.generation} did not become stable: generation ${stable?.generation} runs again`
    : undefined;
}

/**
 * Wraps the event recorder so that a listener is called for each event. Errors
 * of the listener are ignored: they must not stop a rollout.
 */
function eventsWithListener<P extends PhasedObject>(
  object: P,
  events: PrimaryEvents,
  listener: PhasedDefinition<P, unknown>["onEvent"],
): PrimaryEvents {
  if (listener === undefined) return events;
  const emit =
    (name: "normal" | "warning"): PrimaryEvents["normal"] =>
    (reason, message, options) => {
      events[name](reason, message, options);
      const type = name === "normal" ? "Normal" : "Warning";
      // See PhasedDefinition.onEvent.
      attempt(() => listener(object, { type, reason, message }));
    };
  return { normal: emit("normal"), warning: emit("warning") };
}

/** Loads the checks of statuses with the first run, as they need zod. */
function loadStatus(): Promise<typeof import("./stored_status.ts")> {
  return loadModule(import("./stored_status.ts"));
}
