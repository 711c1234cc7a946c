import { type Duration, milliseconds } from "../../core/api/duration.ts";
import type { Kind } from "../../core/api/kind.ts";
import { systemClock } from "../../core/clock.ts";
import type { Context, Reconciler } from "../../core/controller/reconciler.ts";
import {
  type CleanupResult,
  keepFinalizer,
  noUpdate,
  removeFinalizer,
} from "../../core/controller/result.ts";
import { isOutcome } from "../conditions/outcome.ts";
import { rolloutError } from "./error_chain.ts";
import { ExclusiveStatus } from "./exclusive_status.ts";
import { lifecycleConditions } from "./lifecycle_conditions.ts";
import type { PhasedDefinition } from "./phased_definition.ts";
import { type PassEnding, PhasedPass } from "./phased_pass.ts";
import { lifecycleOf, type PhasedObject } from "./rollout.ts";

/**
 * A reconciler for what is rolled out in phases, such as a job with state or a
 * database: it observes, validates, and then suspends, deploys, scales or rolls
 * back, with `status.rollout` as its write-ahead log. It may be killed at any
 * moment.
 *
 * It alone writes the status of its objects. `Stalled` and `Failed` that a
 * function throws become the error of the status and an event, and the pass is
 * over; `Waiting` is looked at again; anything else fails the run, which is
 * retried, and what the pass has changed in memory since its last write is
 * dropped.
 *
 * The control flow is that of the Flink Kubernetes operator.
 *
 * @param kind The kind of the objects.
 * @param definition What is known of the subject.
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

class PhasedReconciler<P extends PhasedObject, Seen> {
  readonly #definition: PhasedDefinition<P, Seen>;
  readonly #statuses: ExclusiveStatus<P>;
  readonly #waits: Readonly<Record<PassEnding, number | undefined>>;

  constructor(kind: Kind<P>, definition: PhasedDefinition<P, Seen>) {
    const { poll = "10s", interval = "60s", onStatus } = definition;
    const wait = (duration: Duration, name: string) =>
      milliseconds(duration, name);
    this.#definition = definition;
    this.#statuses = new ExclusiveStatus(kind, { onChange: onStatus });
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
    this.#statuses.adopt(object);
    const flush = () => this.#flush(object, ctx);
    let after: number | undefined;
    try {
      const pass = new PhasedPass(this.#definition, { object, ctx }, flush);
      after = this.#waits[await pass.execute()];
    } catch (error) {
      after = await this.#failed(object, ctx, error);
    }
    return after === undefined ? noUpdate() : noUpdate().rescheduleAfter(after);
  }

  async cleanup(object: P, ctx: Context<P>): Promise<CleanupResult> {
    this.#statuses.adopt(object);
    await this.#flush(object, ctx);
    const done = await this.#definition.cleanup?.({ object, ctx }) ?? true;
    if (!done) return keepFinalizer().rescheduleAfter(this.#waits.poll!);
    this.#statuses.forget(object);
    return removeFinalizer();
  }

  /** Ends a pass that threw. What is not understood is thrown again. */
  async #failed(
    object: P,
    ctx: Context<P>,
    error: unknown,
  ): Promise<number | undefined> {
    if (isOutcome(error, "waiting")) {
      ctx.log.info("Waiting", { reason: error.reason, message: error.message });
      await this.#flush(object, ctx);
      return error.after ?? this.#waits.poll;
    }
    const understood = isOutcome(error);
    // What was not written may be half of a change.
    if (!understood) object.status = this.#lastStatus(object);
    const told = rolloutError(error);
    const status = object.status ??= {};
    const known = status.error?.reason === told.reason &&
      status.error.message === told.message;
    if (!known) ctx.events.warning(told.reason, told.message);
    status.error = told;
    if (!understood) {
      await this.#flush(object, ctx).catch((failure: unknown) => {
        ctx.log.warn("Cannot write why a pass failed", { error: failure });
      });
      throw error;
    }
    await this.#flush(object, ctx);
    return isOutcome(error, "stalled")
      ? this.#waits.event
      : this.#waits.interval;
  }

  #lastStatus(object: P): P["status"] {
    return this.#statuses.last(object) as P["status"];
  }

  async #flush(object: P, ctx: Context<P>): Promise<void> {
    const status = object.status ??= {};
    const lifecycle = lifecycleOf(object);
    const clock = this.#definition.clock ?? systemClock;
    status.lifecycle = lifecycle;
    status.conditions = lifecycleConditions(
      status.conditions ?? [],
      { lifecycle, error: status.error },
      {
        now: clock.wallTime(),
        generation: object.metadata.generation,
      },
    );
    await this.#statuses.write(object, ctx.client, { signal: ctx.signal });
  }
}
