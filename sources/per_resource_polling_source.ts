import { type Duration, milliseconds } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText } from "../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import type { Timer } from "../core/clock.ts";
import type {
  EventSource,
  PrimaryEvent,
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import {
  CACHE_RULES,
  ExternalCache,
  type ExternalCacheOptions,
} from "./external_cache.ts";
import { SourceRun, started } from "./source_run.ts";

/** Options of {@linkcode perResourcePollingSource}. */
export interface PerResourcePollingOptions<P extends KubernetesObject, R>
  extends ExternalCacheOptions<R> {
  /** Unique within the controller. */
  readonly name: string;
  /** Asks for the resources of one primary. */
  readonly fetch: (
    primary: P,
    signal: AbortSignal,
  ) => Promise<Iterable<R>> | Iterable<R>;
  /**
   * How long after one fetch for a primary the next begins; a function computes
   * it from what was found.
   *
   * @default {"5s"}
   */
  readonly interval?:
    | Duration
    | ((resources: readonly R[], primary: P) => Duration)
    | undefined;
  /**
   * Which primaries are asked for.
   *
   * @default {all}
   */
  readonly accepts?: ((primary: P) => boolean) | undefined;
  /**
   * How long a fetch may take.
   *
   * @default {"30s"}
   */
  readonly timeout?: Duration | undefined;
}

const RULES: OptionRules<PerResourcePollingOptions<never, never>> = {
  ...CACHE_RULES,
  name: "name",
  fetch: "function",
  interval: "any?",
  accepts: "function?",
  timeout: "duration?",
};

/** A source that asks for the state of each primary on its own. */
export interface PerResourcePollingSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** Takes in what our own write has made of a resource. */
  ownExternalWrite(primary: P, resource: R): void;
  /** Takes out a resource that we deleted ourselves. */
  ownExternalDelete(primary: P, resource: R): void;
}

/**
 * Asks an outside system for the resources of each primary on a schedule of its
 * own, which begins when the primary appears and ends when it is deleted. A
 * read before the first fetch fetches at once. What changed triggers the
 * primary.
 *
 * A fetch that throws or hangs makes the source unhealthy until it works again
 * for that primary, leaves the last state as it is and is tried again at the
 * interval; what it throws is logged once, not each time. Read before any fetch
 * has succeeded, it fails the run.
 *
 * @param options What to ask, and how often.
 * @throws {TypeError} If an option is unknown, missing or of another type.
 * @throws {RangeError | SyntaxError} If a duration makes no sense.
 *
 * @example Ask often while something is under way
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
 * if (builds.name !== "builds") throw new Error("Unexpected name");
 * ```
 */
export function perResourcePollingSource<P extends KubernetesObject, R>(
  options: PerResourcePollingOptions<P, R>,
): PerResourcePollingSource<P, R> {
  return new PerResourcePolling(options);
}

/** What is known of one primary. */
interface Poll<P> {
  primary: P;
  timer: Timer | undefined;
  /** The fetch under way, shared by the schedule and readers. */
  fetching: Promise<void> | undefined;
}

class PerResourcePolling<P extends KubernetesObject, R>
  implements PerResourcePollingSource<P, R> {
  readonly name: string;
  readonly #options: PerResourcePollingOptions<P, R>;
  readonly #timeout: number;
  readonly #cache: ExternalCache<R>;
  readonly #polls: Map<string, Poll<P>> = new Map();
  #run: SourceRun<P> | undefined;

  constructor(options: PerResourcePollingOptions<P, R>) {
    checkOptions(options, RULES, "perResourcePollingSource()");
    this.name = options.name;
    this.#options = options;
    this.#timeout = milliseconds(options.timeout ?? "30s", "timeout");
    this.#cache = new ExternalCache(options);
    if (typeof options.interval !== "function") {
      milliseconds(options.interval ?? "5s", "interval");
    }
  }

  async start(context: SourceContext<P>): Promise<void> {
    this.#run = new SourceRun(context);
    const primaries = await context.primaries.readList();
    for (const primary of primaries) this.#follow(primary);
  }

  stop(): Promise<void> {
    this.#run?.end();
    this.#run = undefined;
    this.#polls.clear();
    this.#cache.clear();
    return Promise.resolve();
  }

  health(): SourceHealth {
    return this.#run?.health ?? { status: "unknown" };
  }

  onPrimary({ type, key, object }: PrimaryEvent<P>): void {
    const text = keyText(key);
    if (type === "deleted") {
      this.#polls.get(text)?.timer?.cancel();
      this.#polls.delete(text);
      for (const failure of [noPoll(text), noInterval(text)]) {
        this.#run?.forget(failure);
      }
      this.#cache.forget(text);
    } else if (object !== undefined) this.#follow(object);
  }

  async secondaries(primary: P): Promise<R[]> {
    const run = started(this.#run, this.name);
    const key = keyText(keyOf(primary));
    if (!this.#cache.has(key)) {
      const poll = this.#polls.get(key) ??
        { primary, timer: undefined, fetching: undefined };
      await (poll.fetching ?? this.#fetch(run, poll));
    }
    return this.#cache.of(key);
  }

  ownExternalWrite(primary: P, resource: R): void {
    this.#cache.ownWrite(keyText(keyOf(primary)), resource);
  }

  ownExternalDelete(primary: P, resource: R): void {
    this.#cache.ownDelete(keyText(keyOf(primary)), resource);
  }

  /** Begins to poll for a primary, or gives its schedule the newest state. */
  #follow(primary: P): void {
    const run = this.#run;
    if (run === undefined) return;
    const key = keyText(keyOf(primary));
    const known = this.#polls.get(key);
    if (known !== undefined) known.primary = primary;
    else if (this.#options.accepts?.(primary) ?? true) {
      const poll: Poll<P> = { primary, timer: undefined, fetching: undefined };
      this.#polls.set(key, poll);
      this.#poll(run, key, poll);
    }
  }

  #poll(run: SourceRun<P>, key: string, poll: Poll<P>): void {
    this.#fetch(run, poll)
      .then(
        () => run.worked(noPoll(key)),
        (error) => {
          // Nothing is amiss where the primary has gone meanwhile.
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
    const { interval = "5s" } = this.#options;
    if (typeof interval !== "function") return milliseconds(interval);
    try {
      const pause = milliseconds(interval(this.#cache.of(key), poll.primary));
      run.worked(noInterval(key));
      return pause;
    } catch (error) {
      run.failed(noInterval(key), error);
      return 5_000;
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
    const found = await run.bounded(
      `the fetch of "${this.name}" for ${key}`,
      this.#timeout,
      (signal) => this.#options.fetch(poll.primary, signal),
    );
    const gone = this.#polls.has(key) && this.#polls.get(key) !== poll;
    if (run.ended || gone) return;
    const first = !this.#cache.has(key);
    if (this.#cache.replace(key, found)) {
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
