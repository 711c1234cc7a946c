import { type Duration, milliseconds } from "../api/duration.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText } from "../api/object_key.ts";
import type { Clock, Timer } from "../clock.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceContext,
} from "./event_source.ts";
import type { Context } from "./context.ts";
import type { MaybePromise } from "./reconciler.ts";

/** Something that a reconciler waits for. */
export interface Expectation<P extends KubernetesObject> {
  /** What is waited for, such as `"deployment ready"`. */
  readonly name: string;
  /** After how long it is given up. */
  readonly timeout: Duration;
  /** Whether it has come true. */
  isFulfilled(primary: P, ctx: Context<P>): MaybePromise<boolean>;
}

/** How an expectation fares. */
export interface ExpectationState {
  /**
   * `"fulfilled"` is told once, then the expectation is forgotten; `"timedOut"`
   * until it is removed or another is set; `"none"` when there is none.
   */
  readonly status: "none" | "pending" | "fulfilled" | "timedOut";
  /** The name of the expectation; absent for `"none"`. */
  readonly name?: string | undefined;
}

interface Waiting<P extends KubernetesObject> {
  readonly expectation: Expectation<P>;
  readonly deadline: number;
  readonly timer: Timer;
}

const NONE: ExpectationState = Object.freeze({ status: "none" });

/**
 * What the reconcilers of a controller wait for, one thing for each primary, with
 * a time limit. As an event source of the controller it makes the primary run
 * when the time is up, and forgets it when it is deleted; whether something came
 * true is looked at in each run, so what it depends on should be watched too.
 *
 * It is kept in memory: after a restart a reconciler finds none and sets it anew.
 *
 * @typeParam P The type of the primaries.
 *
 * @example Wait for a Deployment, but not for ever
 * ```ts ignore
 * const expectations = new Expectations<WebPage>();
 *
 * operator.register(WebPage, {
 *   async reconcile(page, ctx) {
 *     const state = await expectations.checkOrSet(page, ctx, {
 *       name: "deployment ready",
 *       timeout: "2m",
 *       async isFulfilled(_page, ctx) {
 *         const deployment = await ctx.secondary(Deployment);
 *         return (deployment?.status?.readyReplicas ?? 0) > 0;
 *       },
 *     });
 *     return patchStatus({ state: state.status });
 *   },
 * }, { sources: [expectations, watch(Deployment)] });
 * ```
 */
export class Expectations<P extends KubernetesObject>
  implements EventSource<P, never> {
  /** What the source is called in logs and causes. */
  readonly name: string;
  readonly #waiting: Map<string, Waiting<P>> = new Map();
  #context: SourceContext<P> | undefined;

  /**
   * Makes a source that expects nothing yet.
   *
   * @param name Unique among the sources of the controller.
   */
  constructor(name = "expectations") {
    this.name = name;
  }

  /** How many primaries have an expectation. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Begins to look at what is expected; the controller calls it. */
  start(context: SourceContext<P>): Promise<void> {
    this.#context = context;
    return Promise.resolve();
  }

  /** Forgets everything; the controller calls it. */
  stop(): Promise<void> {
    for (const { timer } of this.#waiting.values()) timer.cancel();
    this.#waiting.clear();
    this.#context = undefined;
    return Promise.resolve();
  }

  /** Forgets what was expected of a primary that is gone. */
  onPrimary(event: PrimaryEvent<P>): void {
    if (event.type === "deleted") this.#remove(keyText(event.key));
  }

  /**
   * Waits for something from now on, in place of what was waited for before.
   *
   * @throws {Error} If this is not among the sources of the running controller.
   * @throws {RangeError | SyntaxError} If the timeout is no duration.
   */
  set(ctx: Context<P>, expectation: Expectation<P>): void {
    const { clock, trigger } = this.#started;
    const key = keyText(ctx.key);
    const timeout = milliseconds(expectation.timeout, "timeout");
    this.#remove(key);
    this.#waiting.set(key, {
      expectation,
      deadline: clock.now() + timeout,
      timer: clock.setTimer(() => trigger(key), timeout),
    });
  }

  /** How what is waited for fares. */
  async check(primary: P, ctx: Context<P>): Promise<ExpectationState> {
    const key = keyText(ctx.key);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return NONE;
    const { expectation, deadline } = waiting;
    const { name } = expectation;
    if (await expectation.isFulfilled(primary, ctx)) {
      if (this.#waiting.get(key) === waiting) this.#remove(key);
      return { status: "fulfilled", name };
    }
    const late = this.#clock.now() >= deadline;
    return { status: late ? "timedOut" : "pending", name };
  }

  /**
   * How what is waited for fares; if nothing is, waits from now on, unless it
   * is so already.
   */
  async checkOrSet(
    primary: P,
    ctx: Context<P>,
    expectation: Expectation<P>,
  ): Promise<ExpectationState> {
    const state = await this.check(primary, ctx);
    if (state.status !== "none") return state;
    const { name } = expectation;
    if (await expectation.isFulfilled(primary, ctx)) {
      return { status: "fulfilled", name };
    }
    this.set(ctx, expectation);
    return { status: "pending", name };
  }

  /** Waits for nothing any more. */
  remove(ctx: Context<P>): void {
    this.#remove(keyText(ctx.key));
  }

  #remove(key: string): void {
    this.#waiting.get(key)?.timer.cancel();
    this.#waiting.delete(key);
  }

  get #clock(): Clock {
    return this.#started.clock;
  }

  get #started(): SourceContext<P> {
    if (this.#context !== undefined) return this.#context;
    throw new Error(
      `Cannot wait for anything: the expectations must be among the sources of a running controller: received "${this.name}" that is not`,
    );
  }
}
