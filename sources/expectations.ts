import { type Duration, milliseconds } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyText } from "../core/api/object_key.ts";
import {
  checkOption,
  checkParts,
  type OptionRules,
} from "../core/api/options.ts";
import type { Timer } from "../core/clock.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceContext,
} from "../core/controller/event_source.ts";
import type { Context } from "../core/controller/context.ts";
import type { MaybePromise } from "../core/controller/reconciler.ts";

/** State that a reconciler waits for. */
export interface Expectation<P extends KubernetesObject> {
  /** Name, such as `"deployment ready"`. */
  readonly name: string;
  /** Time limit for reaching the state. */
  readonly timeout: Duration;
  /** Whether the state is reached. */
  isFulfilled(primary: P, ctx: Context<P>): MaybePromise<boolean>;
}

const PARTS: OptionRules<Expectation<never>> = {
  name: "name",
  timeout: "duration",
  isFulfilled: "function",
};

/** Expectation of one primary. */
interface Pending<P extends KubernetesObject> {
  readonly expectation: Expectation<P>;
  /** Time of the timeout by the clock of the controller, in milliseconds. */
  readonly deadline: number;
  readonly timer: Timer;
}

/**
 * Expectations of the reconcilers of a controller: states that they wait for, one
 * for each primary, with a timeout. As an event source of the controller they
 * trigger a run of the primary after the timeout, and are removed when the primary
 * is deleted. Each run checks whether the state is reached, so the resources that
 * it depends on should be watched, too.
 *
 * Expectations are kept in memory: after a restart a reconciler has to set them
 * again.
 *
 * @typeParam P Type of the primaries.
 *
 * @example Wait at most two minutes for a Deployment
 * ```ts
 * import { Operator, patchStatus, untyped, watch } from "@coracle/operator";
 * import { Expectations } from "@coracle/operator/sources";
 * import { Deployment } from "@coracle/operator/kinds";
 *
 * const WebPage = untyped({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "WebPage",
 * });
 * const expectations = new Expectations();
 *
 * new Operator().register(WebPage, {
 *   async reconcile(page, ctx) {
 *     const { status } = await expectations.checkOrSet(page, ctx, {
 *       name: "deployment ready",
 *       timeout: "2m",
 *       async isFulfilled(_page, ctx) {
 *         const deployment = await ctx.secondary(Deployment);
 *         return (deployment?.status?.readyReplicas ?? 0) > 0;
 *       },
 *     });
 *     return patchStatus({ state: status });
 *   },
 * }, { sources: [expectations], watches: [watch(Deployment)] });
 * ```
 */
export class Expectations<P extends KubernetesObject = KubernetesObject>
  implements EventSource<P, never> {
  /** Name of the event source in logs and causes. */
  readonly name: string;
  readonly #pending: Map<string, Pending<P>> = new Map();
  #context: SourceContext<P> | undefined;

  /**
   * Creates an event source without expectations.
   *
   * @param name Name of the source, unique within the controller.
   */
  constructor(name = "expectations") {
    checkOption(name, "name", { name: "name", subject: "Expectations" });
    this.name = name;
  }

  /** Number of primaries with an expectation. */
  get size(): number {
    return this.#pending.size;
  }

  /** Starts the source; called by the controller. */
  start(context: SourceContext<P>): Promise<void> {
    this.#context = context;
    return Promise.resolve();
  }

  /** Removes all expectations; called by the controller. */
  stop(): Promise<void> {
    for (const { timer } of this.#pending.values()) timer.cancel();
    this.#pending.clear();
    this.#context = undefined;
    return Promise.resolve();
  }

  /** Removes the expectation of a deleted primary; called by the controller. */
  onPrimary(event: PrimaryEvent<P>): void {
    if (event.type === "deleted") this.#remove(keyText(event.key));
  }

  /**
   * Sets the expectation of a primary, in place of an earlier one. Ignored for a
   * deleted primary.
   *
   * @throws {Error} If this is not an event source of a running controller.
   * @throws {TypeError | RangeError} If a part of the expectation is invalid.
   */
  set(ctx: Context<P>, expectation: Expectation<P>): void {
    const { clock, primaries, trigger } = this.#started;
    checkParts(expectation, PARTS, "an expectation");
    const key = keyText(ctx.key);
    const timeout = milliseconds(expectation.timeout, "timeout");
    this.#remove(key);
    if (!primaries.has(key)) return;
    this.#pending.set(key, {
      expectation,
      deadline: clock.now() + timeout,
      timer: clock.setTimer(() => trigger(key), timeout),
    });
  }

  /**
   * Checks the expectation of a primary.
   *
   * @returns The name of the expectation and its status: `"fulfilled"` is returned
   * once, after which the expectation is removed; `"timedOut"` until the
   * expectation is removed or replaced; `"none"` without an expectation.
   */
  async check(primary: P, ctx: Context<P>): Promise<{
    readonly status: "none" | "pending" | "fulfilled" | "timedOut";
    readonly name?: string | undefined;
  }> {
    const key = keyText(ctx.key);
    const pending = this.#pending.get(key);
    if (pending === undefined) return { status: "none" };
    const { expectation, deadline } = pending;
    const { name } = expectation;
    if (await expectation.isFulfilled(primary, ctx)) {
      if (this.#pending.get(key) === pending) this.#remove(key);
      return { status: "fulfilled", name };
    }
    const late = this.#started.clock.now() >= deadline;
    return { status: late ? "timedOut" : "pending", name };
  }

  /**
   * Checks the expectation of a primary. Without one, sets it unless the state is
   * already reached.
   */
  async checkOrSet(
    primary: P,
    ctx: Context<P>,
    expectation: Expectation<P>,
  ): ReturnType<Expectations<P>["check"]> {
    const state = await this.check(primary, ctx);
    if (state.status !== "none") return state;
    checkParts(expectation, PARTS, "an expectation");
    const { name } = expectation;
    if (await expectation.isFulfilled(primary, ctx)) {
      return { status: "fulfilled", name };
    }
    this.set(ctx, expectation);
    return { status: "pending", name };
  }

  /** Removes the expectation of a primary. */
  remove(ctx: Context<P>): void {
    this.#remove(keyText(ctx.key));
  }

  #remove(key: string): void {
    this.#pending.get(key)?.timer.cancel();
    this.#pending.delete(key);
  }

  get #started(): SourceContext<P> {
    if (this.#context !== undefined) return this.#context;
    throw new Error(
      `Cannot use the expectations "${this.name}": they are not among the sources of a running controller`,
    );
  }
}
