import { type Duration, milliseconds } from "../core/api/duration.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText } from "../core/api/object_key.ts";
import { checkOptions, type OptionRules } from "../core/api/options.ts";
import type { Timer } from "../core/clock.ts";
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
} from "./external_cache.ts";
import { fetchContext, type SourceRun } from "./source_run.ts";

/** Options of {@linkcode perResourcePollingSource}. */
export interface PerResourcePollingOptions<P extends KubernetesObject, R>
  extends ExternalCacheOptions<R> {
  /** Name of the source, unique within the controller. */
  readonly name: string;
  /**
   * Fetches the resources of one primary. The context has the client and the
   * caches of the controller; `signal` fires at the time limit.
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
  /** Filter of the primaries that are polled. By default all are. */
  readonly accepts?: ((primary: P) => boolean) | undefined;
  /**
   * Time limit of a fetch.
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

/** Event source that polls an external system for each primary. */
export interface PerResourcePollingSource<P extends KubernetesObject, R>
  extends EventSource<P, R> {
  /** Updates the cache after an own write of a resource. */
  ownExternalWrite(primary: P, resource: R): void;
  /** Updates the cache after an own deletion of a resource. */
  ownExternalDelete(primary: P, resource: R): void;
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
 * @throws {RangeError | SyntaxError} If a duration is invalid.
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
  /** Whether the primary was deleted; a fetch in progress then gives nothing. */
  isDeleted: boolean;
}

function newPoll<P>(primary: P): Poll<P> {
  return { primary, timer: undefined, fetching: undefined, isDeleted: false };
}

class PerResourcePolling<P extends KubernetesObject, R>
  extends CachingSource<P, R>
  implements PerResourcePollingSource<P, R> {
  readonly #options: PerResourcePollingOptions<P, R>;
  readonly #timeout: number;
  readonly #polls: Map<string, Poll<P>> = new Map();

  constructor(options: PerResourcePollingOptions<P, R>) {
    checkOptions(options, RULES, "perResourcePollingSource()");
    super(options);
    this.#options = options;
    this.#timeout = milliseconds(options.timeout ?? "30s", "timeout");
    if (typeof options.interval !== "function") {
      milliseconds(options.interval ?? "5s", "interval");
    }
  }

  override async start(context: SourceContext<P>): Promise<void> {
    await super.start(context);
    const primaries = await context.primaries.readList();
    for (const primary of primaries) this.#follow(primary);
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.#polls.clear();
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
    } else if (object !== undefined) this.#follow(object);
  }

  async secondaries(primary: P): Promise<R[]> {
    const run = this.started;
    const key = keyText(keyOf(primary));
    if (!this.cache.has(key)) {
      const poll = this.#polls.get(key) ?? newPoll(primary);
      await (poll.fetching ?? this.#fetch(run, poll));
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
    else if (this.#options.accepts?.(primary) ?? true) {
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
    const { interval = "5s" } = this.#options;
    if (typeof interval !== "function") return milliseconds(interval);
    try {
      const pause = milliseconds(interval(this.cache.of(key), poll.primary));
      run.worked(noInterval(key), key);
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
      (signal) =>
        this.#options.fetch(
          poll.primary,
          fetchContext(run, signal, poll.primary),
        ),
    );
    const other = this.#polls.get(key) ?? poll;
    if (run.ended || poll.isDeleted || other !== poll) return;
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
