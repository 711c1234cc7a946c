import { type Duration, milliseconds } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText } from "../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import type { Context } from "../core/controller/context.ts";
import type {
  EventSource,
  SourceContext,
} from "../core/controller/event_source.ts";
import {
  CACHE_RULES,
  CachingSource,
  type ExternalCacheOptions,
} from "./external_cache.ts";
import { fetchContext, SourceRun } from "./source_run.ts";

/** Options of {@linkcode pollingSource}. */
export interface PollingOptions<R> extends ExternalCacheOptions<R> {
  /** Name of the source, unique within the controller. */
  readonly name: string;
  /**
   * Fetches the resources of all primaries, by the keys of the primaries. A
   * primary that is missing from the map has none. The context has the client and
   * the caches of the controller; `signal` fires at the time limit.
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
}

const RULES: OptionRules<PollingOptions<never>> = {
  ...CACHE_RULES,
  name: "name",
  fetch: "function",
  interval: "duration?",
  timeout: "duration?",
};

/** Event source that polls an external system as a whole. */
export interface PollingSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** Updates the cache after an own write of a resource. */
  ownExternalWrite(primary: P, resource: R): void;
  /** Updates the cache after an own deletion of a resource. */
  ownExternalDelete(primary: P, resource: R): void;
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

class Polling<P extends KubernetesObject, R> extends CachingSource<P, R>
  implements PollingSource<P, R> {
  readonly #fetch: PollingOptions<R>["fetch"];
  readonly #interval: number;
  readonly #timeout: number;
  /** Fetch in progress, shared by the schedule and callers of `poll`. */
  #polling:
    | { readonly run: SourceRun<P>; readonly done: Promise<void> }
    | undefined;

  constructor(options: PollingOptions<R>) {
    checkOptions(options, RULES, "pollingSource()");
    super(options);
    this.#fetch = options.fetch;
    this.#interval = positive(options.interval ?? "5s", "interval");
    this.#timeout = positive(options.timeout ?? "30s", "timeout");
  }

  override async start(context: SourceContext<P>): Promise<void> {
    const run = new SourceRun(context, "no fetch has succeeded yet");
    this.run = run;
    await this.poll();
    this.#schedule(run);
  }

  secondaries(primary: P): R[] {
    const { hasWorked, health } = this.started;
    if (!hasWorked) {
      throw new Error(
        `Cannot read "${this.name}": the external system has not answered yet: received ${health.message}`,
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
      if (run.ended) return;
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
