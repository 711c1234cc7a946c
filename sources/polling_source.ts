import { immediate } from "../core/callback.ts";
import { type Duration, milliseconds } from "../core/api/duration.ts";
import { whyNoKeyOf } from "../core/api/kind.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText } from "../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import type { Context } from "../core/controller/context.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceContext,
} from "../core/controller/event_source.ts";
import {
  CACHE_RULES,
  CachingSource,
  type ExternalCacheOptions,
  resourcesOf,
} from "./external_cache.ts";
import { fetchContext, SourceRun } from "./source_run.ts";
import type { Timer } from "../core/clock.ts";

/** Options of {@linkcode pollingSource}. */
export interface PollingOptions<R> extends ExternalCacheOptions<R> {
  /** Name of the source, unique within the controller. */
  readonly name: string;
  /**
   * Fetches the resources of all primaries, by the keys of the primaries. A
   * primary that is missing from the map has no resources. The context has the
   * client and the caches of the controller; `signal` aborts at the time limit.
   */
  readonly fetch: (
    ctx: Pick<
      Context<KubernetesObject>,
      "signal" | "client" | "log" | "get" | "list"
    >,
  ) =>
    | Promise<ReadonlyMap<string, readonly R[]>>
    | ReadonlyMap<string, readonly R[]>;
  /**
   * Delay between the end of a fetch and the start of the next.
   *
   * @default {"5s"}
   */
  readonly interval?: Duration | undefined;
  /**
   * Time limit of a fetch.
   *
   * @default {"30s"}
   */
  readonly timeout?: Duration | undefined;
  /**
   * Whether only the replica that leads polls, which then starts over when
   * another replica takes over. With sharding each replica does.
   *
   * @default {false}
   */
  readonly leaderOnly?: boolean | undefined;
}

const DEFAULTS = { interval: "5s", timeout: "30s" } as const;

const RULES: OptionRules<PollingOptions<never>> = {
  ...CACHE_RULES,
  name: "name",
  fetch: "function",
  interval: "duration?",
  timeout: "duration?",
  leaderOnly: "boolean?",
};

/** Event source that polls an external system as a whole. */
export interface PollingSource<P extends KubernetesObject, R>
  extends PerResourcePollingSource<P, R> {
  /** Polls immediately instead of at the end of the interval. */
  poll(): Promise<void>;
}

/**
 * Creates an event source that fetches the resources of all primaries from an
 * external system, at start and then at an interval. Changes trigger the
 * primaries of the changed resources.
 *
 * The operator waits for the first fetch, whether it succeeds or not. A fetch
 * that throws, exceeds its time limit or returns an invalid value makes the
 * source unhealthy and keeps the last state; the next fetch follows at the
 * interval. Until one has succeeded, reading the source fails the run. Two
 * fetches never overlap.
 *
 * @param options The fetch function, and the interval.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 * @throws {RangeError} If the interval or the time limit is not positive.
 *
 * @example One request for all primaries
 * ```ts
 * import { Operator } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { pollingSource } from "@coracle/operator/sources";
 *
 * const stock = pollingSource<ConfigMap, number>({
 *   name: "stock",
 *   interval: "30s",
 *   fetch: () => new Map([["default/shop", [3]]]), // for a real system: await fetch(…)
 * });
 * const operator = new Operator();
 * operator.register(ConfigMap, {
 *   async reconcile(_, ctx) {
 *     ctx.log.info("In stock", { pieces: await ctx.secondary(stock) });
 *   },
 * }, { sources: [stock] });
 * ```
 */
export function pollingSource<P extends KubernetesObject, R>(
  options: PollingOptions<R>,
): PollingSource<P, R> {
  return new Polling(options);
}

/** Base class of the polling sources. */
abstract class Poller<P extends KubernetesObject, R>
  extends CachingSource<P, R> {
  /** Marks of the primaries with a failed write since their last fetch, by key. */
  protected readonly unsure: Map<string, object> = new Map();

  ownExternalFailure(primary: P): void {
    const key = keyText(keyOf(primary));
    if (this.isKnown(key)) this.unsure.set(key, {});
  }

  /** Removes a mark after a fetch, unless a later write has failed. */
  protected settle(key: string, mark: object | undefined): void {
    if (this.unsure.get(key) === mark) this.unsure.delete(key);
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.unsure.clear();
  }
}

class Polling<P extends KubernetesObject, R> extends Poller<P, R>
  implements PollingSource<P, R> {
  readonly #fetch: PollingOptions<R>["fetch"];
  readonly #interval: number;
  readonly #timeout: number;
  /** Fetch in progress, shared by the schedule and callers of `poll`. */
  #polling:
    | { readonly run: SourceRun<P>; readonly done: Promise<void> }
    | undefined;

  /** Fetch after a take-over; undefined when it has ended. */
  #takeOver: Promise<void> | undefined;

  constructor(options: PollingOptions<R>) {
    checkOptions(options, RULES, "pollingSource()");
    super(options);
    this.#fetch = options.fetch;
    const { interval = DEFAULTS.interval, timeout = DEFAULTS.timeout } =
      options;
    this.#interval = positive(interval, "interval");
    this.#timeout = positive(timeout, "timeout");
  }

  override async start(context: SourceContext<P>): Promise<void> {
    const run = new SourceRun(context, "no fetch has succeeded yet");
    this.run = run;
    await this.poll();
    this.#schedule(run);
  }

  onLead(): void {
    const { run } = this;
    if (run === undefined) return;
    // A fetch in progress may have begun before the last write of the other.
    const fetched = (this.#polling?.done ?? Promise.resolve()).then(() => {
      run.startOver();
      return this.poll();
    });
    const takeOver = fetched.finally(() => {
      if (this.#takeOver === takeOver) this.#takeOver = undefined;
    });
    this.#takeOver = takeOver;
  }

  secondaries(primary: P): R[] | Promise<R[]> {
    if (this.unsure.has(keyText(keyOf(primary)))) return this.#sure(primary);
    return this.#takeOver?.then(() => this.#known(primary)) ??
      this.#known(primary);
  }

  async #sure(primary: P): Promise<R[]> {
    await this.#takeOver;
    // A fetch in progress may have begun before the write.
    await this.#polling?.done;
    if (this.unsure.has(keyText(keyOf(primary)))) await this.poll();
    return this.#known(primary);
  }

  #known(primary: P): R[] {
    const { hasWorked, health } = this.started;
    if (!hasWorked || this.unsure.has(keyText(keyOf(primary)))) {
      throw new Error(
        `Cannot read "${this.name}": the external system has not answered ${
          hasWorked ? "since a write failed" : "yet"
        }: ${health.message}`,
      );
    }
    return this.cache.of(keyText(keyOf(primary)));
  }

  async poll(): Promise<void> {
    const { run } = this;
    if (run === undefined) return;
    // A fetch of an earlier period, before a restart, gives nothing to this one.
    if (this.#polling?.run !== run) {
      const done = this.#pollOnce(run).finally(() => {
        if (this.#polling?.run === run) this.#polling = undefined;
      });
      this.#polling = { run, done };
    }
    await this.#polling.done;
  }

  #schedule(run: SourceRun<P>): void {
    if (run.ended) return;
    run.after(this.#interval, () => {
      void this.poll().then(() => this.#schedule(run));
    });
  }

  async #pollOnce(run: SourceRun<P>): Promise<void> {
    const marks = new Map(this.unsure);
    try {
      const found = await run.bounded(
        `the fetch of "${this.name}"`,
        this.#timeout,
        (signal) => this.#fetch(fetchContext(run, signal)),
      );
      if (!(found instanceof Map)) {
        throw new TypeError(
          `Cannot use the result of "${this.name}": it must be a Map from primary keys to lists: received ${typeof found}`,
        );
      }
      for (const [key, resources] of found) {
        const why = whyNoKeyOf(run.context.primaryKind, key);
        if (why !== undefined) {
          throw new TypeError(
            `Cannot use the result of "${this.name}": ${why}`,
          );
        }
        resourcesOf(resources, this.name, key);
      }
      if (run.ended) return;
      for (const [key, mark] of marks) this.settle(key, mark);
      const initial = !run.hasWorked;
      const primaries = new Set([...this.cache.primaries(), ...found.keys()]);
      for (const primary of primaries) {
        const changed = this.cache.replace(primary, found.get(primary) ?? []);
        // Own writes during the fetch stay.
        if (this.cache.of(primary).length === 0) this.cache.forget(primary);
        if (changed) run.context.trigger(primary, { initial });
      }
      run.worked();
      // Runs that failed for lack of an answer are repeated.
      if (initial) run.triggerAll();
    } catch (error) {
      run.failed("Cannot poll an external system", error);
    }
  }
}

function positive(duration: Duration, name: string): number {
  const value = milliseconds(duration, name);
  if (value > 0) return value;
  throw new RangeError(
    `Cannot create a polling source: "${name}" must be longer than zero: received ${duration}`,
  );
}

/** Options of {@linkcode perResourcePollingSource}. */
export interface PerResourcePollingOptions<P extends KubernetesObject, R>
  extends Omit<PollingOptions<R>, "fetch" | "interval"> {
  /**
   * Fetches the resources of one primary. The context has the client and the
   * caches of the controller; `signal` aborts at the time limit.
   */
  readonly fetch: (
    primary: P,
    ctx: Pick<Context<P>, "signal" | "client" | "log" | "get" | "list">,
  ) => Promise<Iterable<R>> | Iterable<R>;
  /**
   * Delay between the end of a fetch for a primary and the start of the next; a
   * function computes it from the resources.
   *
   * @default {"5s"}
   */
  readonly interval?:
    | Duration
    | ((resources: readonly R[], primary: P) => Duration)
    | undefined;
  /** Filter of the primaries that are polled. Defaults to all primaries. */
  readonly accepts?: ((primary: P) => boolean) | undefined;
}

const PER_RESOURCE_RULES: OptionRules<PerResourcePollingOptions<never, never>> =
  { ...RULES, fetch: "function", interval: "any?", accepts: "function?" };

/** Event source that polls an external system for each primary. */
export interface PerResourcePollingSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** Updates the cache after the operator has written a resource. */
  ownExternalWrite(primary: P, resource: R): void;
  /** Updates the cache after the operator has deleted a resource. */
  ownExternalDelete(primary: P, resource: R): void;
  /**
   * Fetches again before the next read for a primary, because a write of the
   * operator has failed and may have succeeded outside nevertheless.
   */
  ownExternalFailure(primary: P): void;
}

/**
 * Creates an event source that fetches the resources of each primary from an
 * external system. Each primary has its own schedule, which starts when the
 * primary is created and ends when it is deleted. A read before the first fetch
 * fetches immediately. Changes trigger the primary.
 *
 * A fetch that throws or exceeds its time limit makes the source unhealthy
 * until one succeeds for that primary. It keeps the last state and is retried
 * at the interval; the error is logged once. A read before any fetch has
 * succeeded fails the run.
 *
 * @param options The fetch function, and the interval.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 * @throws {RangeError | SyntaxError} If the interval or the time limit is
 * invalid or not positive.
 *
 * @example Poll often while a build is running
 * ```ts
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { perResourcePollingSource } from "@coracle/operator/sources";
 *
 * const builds = perResourcePollingSource<ConfigMap, { state: string }>({
 *   name: "builds",
 *   accepts: ({ data }) => data?.["build"] !== undefined,
 *   fetch: ({ data }) => [{ state: `${data?.["build"]} runs` }],
 *   interval: ([build]) => build?.state.endsWith("runs") ? "2s" : "1m",
 * });
 * ```
 */
export function perResourcePollingSource<P extends KubernetesObject, R>(
  options: PerResourcePollingOptions<P, R>,
): PerResourcePollingSource<P, R> {
  return new PerResourcePolling(options);
}

/** Schedule of one primary. */
interface Poll<P> {
  primary: P;
  timer: Timer | undefined;
  /** Fetch in progress, shared by the schedule and readers. */
  fetching: Promise<void> | undefined;
  /** Whether it is no longer wanted; a fetch in progress is then ignored. */
  isDeleted: boolean;
}

function newPoll<P>(primary: P): Poll<P> {
  return { primary, timer: undefined, fetching: undefined, isDeleted: false };
}

class PerResourcePolling<P extends KubernetesObject, R> extends Poller<P, R>
  implements PerResourcePollingSource<P, R> {
  readonly #options: PerResourcePollingOptions<P, R>;
  readonly #timeout: number;
  readonly #polls: Map<string, Poll<P>> = new Map();

  constructor(options: PerResourcePollingOptions<P, R>) {
    checkOptions(options, PER_RESOURCE_RULES, "perResourcePollingSource()");
    super(options);
    this.#options = options;
    const { interval = DEFAULTS.interval, timeout = DEFAULTS.timeout } =
      options;
    this.#timeout = positive(timeout, "timeout");
    if (typeof interval !== "function") positive(interval, "interval");
  }

  override async start(context: SourceContext<P>): Promise<void> {
    await super.start(context);
    for (const primary of await context.primaries.readList()) {
      // Events that came while they were read are newer.
      const key = keyText(keyOf(primary));
      const isNew = context.primaries.has(key) && !this.#polls.has(key);
      if (isNew) this.#follow(primary);
    }
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#polls.clear();
  }

  onLead(): void {
    const polls = [...this.#polls.values()];
    this.#polls.clear();
    this.cache.clear();
    for (const poll of polls) {
      // A fetch in progress may have begun before the last write of the other.
      poll.isDeleted = true;
      poll.timer?.cancel();
      this.#follow(poll.primary);
    }
  }

  onPrimary({ type, key, object }: PrimaryEvent<P>): void {
    const text = keyText(key);
    if (type === "deleted") {
      const poll = this.#polls.get(text);
      if (poll !== undefined) poll.isDeleted = true;
      poll?.timer?.cancel();
      this.#polls.delete(text);
      for (const failure of [noPoll(text), noInterval(text)]) {
        this.run?.forget(failure);
      }
      this.cache.forget(text);
      this.unsure.delete(text);
    } else if (object !== undefined) this.#follow(object);
  }

  async secondaries(primary: P): Promise<R[]> {
    const run = this.started;
    const key = keyText(keyOf(primary));
    const poll = this.#polls.get(key) ?? newPoll(primary);
    // A fetch in progress may have begun before the write.
    if (this.unsure.has(key)) await poll.fetching?.catch(() => {});
    if (!this.cache.has(key) || this.unsure.has(key)) {
      await this.#fetch(run, poll);
    }
    return this.cache.of(key);
  }

  /** Starts polling for a primary, or updates the primary of its schedule. */
  #follow(primary: P): void {
    const { run } = this;
    if (run === undefined) return;
    const key = keyText(keyOf(primary));
    const known = this.#polls.get(key);
    if (known !== undefined) known.primary = primary;
    else if (immediate(this.#options.accepts?.(primary), "accepts()") ?? true) {
      const poll = newPoll(primary);
      this.#polls.set(key, poll);
      this.#poll(run, key, poll);
    }
  }

  #poll(run: SourceRun<P>, key: string, poll: Poll<P>): void {
    this.#fetch(run, poll)
      .then(
        () => run.worked(noPoll(key), key),
        (error) => {
          // Failures for a deleted primary do not count.
          if (this.#polls.get(key) === poll) run.failed(noPoll(key), error);
        },
      )
      .finally(() => {
        if (run.ended || this.#polls.get(key) !== poll) return;
        poll.timer = run.after(
          this.#interval(run, key, poll),
          () => this.#poll(run, key, poll),
        );
      });
  }

  #interval(run: SourceRun<P>, key: string, poll: Poll<P>): number {
    const { interval = DEFAULTS.interval } = this.#options;
    if (typeof interval !== "function") return milliseconds(interval);
    try {
      const found = interval(this.cache.of(key), poll.primary);
      const pause = positive(found, "interval");
      run.worked(noInterval(key), key);
      return pause;
    } catch (error) {
      run.failed(noInterval(key), error);
      return milliseconds(DEFAULTS.interval);
    }
  }

  #fetch(run: SourceRun<P>, poll: Poll<P>): Promise<void> {
    poll.fetching ??= this.#fetchOnce(run, poll).finally(() => {
      poll.fetching = undefined;
    });
    return poll.fetching;
  }

  async #fetchOnce(run: SourceRun<P>, poll: Poll<P>): Promise<void> {
    const key = keyText(keyOf(poll.primary));
    const mark = this.unsure.get(key);
    const found = await run.bounded(
      `the fetch of "${this.name}" for ${key}`,
      this.#timeout,
      (signal) =>
        this.#options.fetch(
          poll.primary,
          fetchContext(run, signal, poll.primary),
        ),
    );
    resourcesOf(found, this.name, key);
    const other = this.#polls.get(key) ?? poll;
    if (run.ended || poll.isDeleted || other !== poll) return;
    // A deleted primary that was not polled: nothing would forget its resources.
    if (!run.context.primaries.has(key)) return;
    this.settle(key, mark);
    const first = !this.cache.has(key);
    if (this.cache.replace(key, found)) {
      run.context.trigger(key, { initial: first });
    }
  }
}

function noPoll(key: string): string {
  return `Cannot poll for ${key}`;
}

function noInterval(key: string): string {
  return `Cannot compute when to poll for ${key} again`;
}
