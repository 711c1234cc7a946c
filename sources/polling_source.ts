import { type Duration, milliseconds } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText } from "../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import type {
  EventSource,
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import {
  CACHE_RULES,
  ExternalCache,
  type ExternalCacheOptions,
} from "./external_cache.ts";
import { SourceRun, started } from "./source_run.ts";

/** Options of {@linkcode pollingSource}. */
export interface PollingOptions<R> extends ExternalCacheOptions<R> {
  /** Unique within the controller. */
  readonly name: string;
  /**
   * Asks for the resources of all primaries at once, by the keys of the
   * primaries. A primary that is not among them has none.
   */
  readonly fetch: (
    signal: AbortSignal,
  ) =>
    | Promise<ReadonlyMap<string, readonly R[]>>
    | ReadonlyMap<string, readonly R[]>;
  /**
   * How long after one fetch the next begins.
   *
   * @default {"5s"}
   */
  readonly interval?: Duration | undefined;
  /**
   * How long a fetch may take.
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

/** A source that asks for the state of everything, again and again. */
export interface PollingSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** Takes in what our own write has made of a resource. */
  ownExternalWrite(primary: P, resource: R): void;
  /** Takes out a resource that we deleted ourselves. */
  ownExternalDelete(primary: P, resource: R): void;
  /** Asks now instead of at the end of the interval. */
  poll(): Promise<void>;
}

/**
 * Asks an outside system for the resources of all primaries, at start and then
 * at an interval; what changed triggers the primaries that it belongs to.
 *
 * The operator waits for the first fetch, whatever comes of it. A fetch that
 * throws, hangs or gives rubbish makes the source unhealthy and leaves the last
 * state as it is; the next one comes at the interval. Until one has succeeded,
 * reading the source fails the run. Two fetches never overlap.
 *
 * @param options What to ask, and how often.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 * @throws {RangeError} If the interval or the time limit is not positive.
 *
 * @example Ask one question for all
 * ```ts
 * import { Operator } from "@coracle/operator/core";
 * import { ConfigMap } from "@coracle/operator/kinds";
 * import { pollingSource } from "@coracle/operator/sources";
 *
 * const stock = pollingSource<ConfigMap, number>({
 *   name: "stock",
 *   interval: "30s",
 *   fetch: () => new Map([["default/shop", [3]]]), // of a real system: await fetch(…)
 * });
 * const operator = new Operator();
 * operator.register(ConfigMap, {
 *   async reconcile(_, ctx) {
 *     ctx.log.info("In stock", { pieces: await ctx.secondary(stock) });
 *   },
 * }, { sources: [stock] });
 * if (stock.health?.().status !== "unknown") throw new Error("Not started yet");
 * ```
 */
export function pollingSource<P extends KubernetesObject, R>(
  options: PollingOptions<R>,
): PollingSource<P, R> {
  return new Polling(options);
}

class Polling<P extends KubernetesObject, R> implements PollingSource<P, R> {
  readonly name: string;
  readonly #fetch: PollingOptions<R>["fetch"];
  readonly #interval: number;
  readonly #timeout: number;
  readonly #cache: ExternalCache<R>;
  #run: SourceRun<P> | undefined;
  #polling: Promise<void> | undefined;

  constructor(options: PollingOptions<R>) {
    checkOptions(options, RULES, "pollingSource()");
    this.name = options.name;
    this.#fetch = options.fetch;
    this.#interval = positive(options.interval ?? "5s", "interval");
    this.#timeout = positive(options.timeout ?? "30s", "timeout");
    this.#cache = new ExternalCache(options);
  }

  async start(context: SourceContext<P>): Promise<void> {
    const run = new SourceRun(context, "no fetch has succeeded yet");
    this.#run = run;
    await this.#pollOnce(run);
    this.#schedule(run);
  }

  stop(): Promise<void> {
    this.#run?.end();
    this.#run = undefined;
    this.#cache.clear();
    return Promise.resolve();
  }

  health(): SourceHealth {
    return this.#run?.health ?? { status: "unknown" };
  }

  secondaries(primary: P): R[] {
    const { hasWorked, health } = started(this.#run, this.name);
    if (!hasWorked) {
      throw new Error(
        `Cannot read "${this.name}": nothing is known of the outside system yet: received ${health.message}`,
      );
    }
    return this.#cache.of(keyText(keyOf(primary)));
  }

  ownExternalWrite(primary: P, resource: R): void {
    this.#cache.ownWrite(keyText(keyOf(primary)), resource);
  }

  ownExternalDelete(primary: P, resource: R): void {
    this.#cache.ownDelete(keyText(keyOf(primary)), resource);
  }

  async poll(): Promise<void> {
    const run = this.#run;
    if (run === undefined) return;
    this.#polling ??= this.#pollOnce(run)
      .finally(() => {
        this.#polling = undefined;
      });
    await this.#polling;
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
        this.#fetch,
      );
      if (!(found instanceof Map)) {
        throw new TypeError(
          `Cannot take in what "${this.name}" fetched: it must be a Map from primary keys to lists: received ${typeof found}`,
        );
      }
      if (run.ended) return;
      const initial = !run.hasWorked;
      const primaries = new Set([...this.#cache.primaries(), ...found.keys()]);
      for (const primary of primaries) {
        const changed = this.#cache.replace(primary, found.get(primary) ?? []);
        if (!found.has(primary)) this.#cache.forget(primary);
        if (changed) run.context.trigger(primary, { initial });
      }
      run.worked();
      // Runs that were in want of an answer can go on.
      if (initial) run.triggerAll();
    } catch (error) {
      run.failed("Cannot poll an outside system", error);
    }
  }
}

function positive(duration: Duration, name: string): number {
  const value = milliseconds(duration, name);
  if (value > 0) return value;
  throw new RangeError(
    `Cannot make a polling source: "${name}" must be longer than zero: received ${duration}`,
  );
}
