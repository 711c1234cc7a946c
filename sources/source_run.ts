import type { KubernetesObject } from "../core/api/object.ts";
import type {
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import { deadline, type Timer } from "../core/clock.ts";

/**
 * One life of a source, from start to stop: its context, its timers, a signal
 * that fires when it ends, and what went wrong last. A restarted source has a
 * new one, so that nothing of the old life reaches the new.
 */
export class SourceRun<P extends KubernetesObject> {
  /** What the controller gave the source. */
  readonly context: SourceContext<P>;
  readonly #ended: AbortController = new AbortController();
  readonly #timers: Set<Timer> = new Set();
  /** Why it does not work, by what it cannot do. */
  readonly #failures: Map<string, string> = new Map();
  readonly #pending: string | undefined;
  #hasWorked = false;

  /**
   * Begins a life.
   *
   * @param context What the controller gave.
   * @param pending What the source waits for before it is healthy.
   */
  constructor(context: SourceContext<P>, pending?: string) {
    this.context = context;
    this.#pending = pending;
  }

  /** Fires when the source is stopped. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the source was stopped. */
  get ended(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Whether it has ever worked. */
  get hasWorked(): boolean {
    return this.#hasWorked;
  }

  /** What the source says of itself. */
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

  /** Resolves after a delay in milliseconds, or when the source is stopped. */
  pause(delay: number): Promise<void> {
    if (this.ended) return Promise.resolve();
    return new Promise((resolve) => {
      const onEnd = () => {
        timer.cancel();
        resolve();
      };
      const timer = this.after(delay, () => {
        this.signal.removeEventListener("abort", onEnd);
        resolve();
      });
      this.signal.addEventListener("abort", onEnd, { once: true });
    });
  }

  /**
   * Runs a task of the user's under a time limit and the end of the source; its
   * result is dropped once either is over, even if the task goes on.
   *
   * @throws {Error} What the task throws, or that it took too long.
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
   * Notes that something failed; it shows in health until it works again. What
   * fails as it did before is told of once: outages are long, polls frequent.
   */
  failed(what: string, error: unknown): void {
    if (this.ended) return;
    const message = error instanceof Error ? error.message : String(error);
    const level = this.#failures.get(what) === message ? "debug" : "warn";
    this.#failures.set(what, message);
    this.context.log[level](what, { error });
  }

  /** Asks for a run of every primary, in their turn behind live changes. */
  triggerAll(): void {
    for (const key of this.context.primaries.keys()) {
      this.context.trigger(key, { initial: true });
    }
  }

  /** Notes that something works, or, if nothing is named, that all does. */
  worked(what?: string): void {
    this.#hasWorked = true;
    const over = what === undefined ? [...this.#failures.keys()] : [what];
    for (const failure of over) {
      if (!this.#failures.delete(failure)) continue;
      this.context.log.info("Source works again", { after: failure });
    }
  }

  /** Leaves out of its health what nobody asks for any more. */
  forget(what: string): void {
    this.#failures.delete(what);
  }

  /** Ends the life: fires the signal and frees every timer. */
  end(): void {
    this.#ended.abort();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}

/** The run of a source that must be started. */
export function started<P extends KubernetesObject>(
  run: SourceRun<P> | undefined,
  name: string,
): SourceRun<P> {
  if (run === undefined || run.ended) {
    throw new Error(
      `Cannot use the source "${name}": it is not started: register it with a controller and start the operator`,
    );
  }
  return run;
}
