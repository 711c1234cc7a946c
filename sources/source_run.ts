import type { Kind } from "../core/api/kind.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyToRead } from "../core/api/object_key.ts";
import { deadline, type Timer } from "../core/clock.ts";
import type { Context } from "../core/controller/context.ts";
import type { LogFields } from "../core/logger.ts";
import type {
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { errorMessage } from "../core/error_text.ts";

/** Minimum time in milliseconds between equal warnings of external causes. */
const WARNING_PAUSE_MS = 60_000;

/**
 * Period of an event source from start to stop: its context, its timers, a
 * signal that aborts at the end, and its current failures. A restarted source
 * has a new period, which the previous one cannot affect.
 */
export class SourceRun<P extends KubernetesObject> {
  /** Context that the controller passed to the source. */
  readonly context: SourceContext<P>;
  readonly #ended: AbortController = new AbortController();
  readonly #timers: Set<Timer> = new Set();
  /** Messages of current failures, by the operation that failed. */
  readonly #failures: Map<string, string> = new Map();
  /** Last time of each warning, and how many were omitted since. */
  readonly #warnings: Map<string, { readonly at: number; omitted: number }> =
    new Map();
  readonly #pending: string | undefined;
  #hasWorked = false;

  /**
   * Starts a period of an event source.
   *
   * @param pending Health message until the source first works.
   */
  constructor(context: SourceContext<P>, pending?: string) {
    this.context = context;
    this.#pending = pending;
  }

  /** Signal that aborts when the source is stopped. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  get ended(): boolean {
    return this.#ended.signal.aborted;
  }

  get hasWorked(): boolean {
    return this.#hasWorked;
  }

  get health(): SourceHealth {
    const [first] = this.#failures;
    if (first === undefined) {
      return this.#pending === undefined || this.#hasWorked
        ? { status: "healthy" }
        : { status: "unhealthy", message: this.#pending };
    }
    const others = this.#failures.size - 1;
    const more = others === 0 ? "" : `, and ${others} more`;
    return { status: "unhealthy", message: `${first.join(": ")}${more}` };
  }

  /** Forgets that the source has worked: what it has read may be old. */
  startOver(): void {
    this.#hasWorked = false;
  }

  /** Calls back after a delay in milliseconds, unless the source is stopped. */
  after(delay: number, callback: () => void): Timer {
    const timer = this.context.clock.setTimer(() => {
      this.#timers.delete(timer);
      if (!this.ended) callback();
    }, delay);
    this.#timers.add(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }

  /**
   * Runs a user's function until a time limit or the end of the source; its
   * result is ignored after either, even if the function is still running.
   *
   * @throws {Error} If the function throws or exceeds the limit.
   */
  async bounded<T>(
    name: string,
    limit: number,
    task: (signal: AbortSignal) => Promise<T> | T,
  ): Promise<T> {
    return await deadline(task, limit, {
      clock: this.context.clock,
      signal: this.signal,
      onTimeout: () =>
        new Error(
          `Cannot finish ${name}: it did not answer within ${limit} ms`,
        ),
    });
  }

  /**
   * Records a failure of an operation, for the health. It is logged as a
   * warning once, not each time it recurs, because outages are long and polls
   * frequent.
   */
  failed(operation: string, error: unknown): void {
    if (this.ended) return;
    const message = errorMessage(error);
    const level = this.#failures.get(operation) === message ? "debug" : "warn";
    this.#failures.set(operation, message);
    this.context.log[level](operation, { error });
  }

  /**
   * Logs a warning that external systems can cause, at most once a minute; the
   * next warning has the number of omitted ones.
   */
  warn(message: string, fields: LogFields): void {
    const now = this.context.clock.now();
    const last = this.#warnings.get(message);
    if (last !== undefined && now - last.at < WARNING_PAUSE_MS) {
      last.omitted++;
      return;
    }
    const { omitted = 0 } = last ?? {};
    this.#warnings.set(message, { at: now, omitted: 0 });
    this.context.log.warn(message, { ...fields, ...(omitted && { omitted }) });
  }

  /** Requests a run of every primary, with lower priority than live changes. */
  triggerAll(): void {
    for (const key of this.context.primaries.keys()) {
      this.context.trigger(key, { initial: true });
    }
  }

  /**
   * Records that an operation works, or by default all of them. After a failure
   * the failed runs are repeated.
   *
   * @param key Key of the primary that the operation is for; by default all.
   */
  worked(operation?: string, key?: string): void {
    this.#hasWorked = true;
    const operations = operation === undefined
      ? [...this.#failures.keys()]
      : [operation];
    let recovered = false;
    for (const failure of operations) {
      if (!this.#failures.delete(failure)) continue;
      recovered = true;
      this.context.log.info("Source works again", { after: failure });
    }
    if (recovered) this.context.retryFailed(key);
  }

  /** Removes an operation that is no longer needed from the health. */
  forget(operation: string): void {
    this.#failures.delete(operation);
  }

  /** Ends the period: aborts the signal and cancels every timer. */
  end(): void {
    this.#ended.abort();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}

/**
 * Context of a fetch: a part of the context of a run.
 *
 * @param primary Primary that the fetch is for; names and namespaces default to
 * its own. Without a primary there is no default name, and lists are of all
 * namespaces.
 */
export function fetchContext<P extends KubernetesObject>(
  { context }: SourceRun<P>,
  signal: AbortSignal,
  primary?: P,
): Pick<Context<P>, "signal" | "client" | "log" | "get" | "list"> {
  const { client, log } = context;
  const own = primary?.metadata;
  return {
    signal,
    client,
    log,
    async get<T extends KubernetesObject>(
      kind: Kind<T>,
      ...names: readonly [name?: string, namespace?: string]
    ): Promise<T | undefined> {
      if (names.length === 0 && own === undefined) {
        throw new TypeError(
          `Cannot read ${kind.kind}: without a primary its name must be given`,
        );
      }
      return await context.get(kind, keyToRead(kind, names, own));
    },
    list: (kind, namespace = own?.namespace) =>
      context.list(kind, namespace === "*" ? undefined : namespace),
  };
}

/** Base class of event sources: start, stop and health. */
export abstract class BaseSource<P extends KubernetesObject> {
  readonly name: string;
  readonly leaderOnly: boolean;
  /** Current period; undefined while the source is stopped. */
  protected run: SourceRun<P> | undefined;

  constructor(name: string, leaderOnly = false) {
    this.name = name;
    this.leaderOnly = leaderOnly;
  }

  start(context: SourceContext<P>): Promise<void> {
    this.run = new SourceRun(context);
    return Promise.resolve();
  }

  stop(): Promise<void> {
    this.run?.end();
    this.run = undefined;
    return Promise.resolve();
  }

  health(): SourceHealth {
    return this.run?.health ?? { status: "unknown" };
  }

  /**
   * State of the source between its start and its stop.
   *
   * @throws {Error} If the source is stopped.
   */
  protected get started(): SourceRun<P> {
    if (this.run !== undefined) return this.run;
    throw new Error(
      `Cannot use the source "${this.name}": it is not started: register it with a controller and start the operator`,
    );
  }
}
