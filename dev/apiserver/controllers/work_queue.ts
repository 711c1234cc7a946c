/**
 * Work queue of the controllers that run inside the API server: garbage collection,
 * namespaces, custom resource definitions, quotas, roles and policies. They watch
 * the store directly and write through the functions of `write`; they must not
 * import `http` or the client.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Clock, Logger, Timer } from "@coracle/operator/client";
import { rethrowMissing, settle } from "../settle.ts";

/** Number of items processed before other tasks of the event loop run. */
const SLICE = 64;
/** First and longest delay before failed work is tried again, in milliseconds. */
export const RETRY_MS = { first: 5, longest: 1_000_000 };

/** Item whose work has failed, and waits. */
interface Failed {
  readonly timer: Timer;
  readonly failures: number;
}

/**
 * Work queue that deduplicates waiting items by key. Processing begins after
 * the current synchronous code and continues in slices, so the server answers
 * requests during a long cascade. Failed work is tried again, later after each
 * failure, as in kube-controller-manager.
 */
export class WorkQueue<T> {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #failure: string;
  readonly #longest: number;
  readonly #work: (item: T) => void;
  readonly #items: Map<string, T> = new Map();
  /** Items that failed last, by key. */
  readonly #failed: Map<string, Failed> = new Map();
  #scheduled = false;
  #stopped = false;

  /**
   * Creates an empty queue.
   *
   * @param context Logger, and clock of the retries.
   * @param failure Message of the warning about an item whose work fails.
   * @param work Function that processes one item.
   * @param longest Longest delay before failed work is tried again, in milliseconds.
   */
  constructor(
    { logger, clock }: { readonly logger: Logger; readonly clock: Clock },
    failure: string,
    work: (item: T) => void,
    longest: number = RETRY_MS.longest,
  ) {
    this.#longest = longest;
    this.#logger = logger;
    this.#clock = clock;
    this.#failure = failure;
    this.#work = work;
  }

  /** Adds an item; replaces a waiting item with the same key. */
  add(item: T, key: string = String(item)): void {
    if (this.#stopped) return;
    this.#items.set(key, item);
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#run());
  }

  #run(): void {
    for (let done = 0; done < SLICE; done++) {
      const [next] = this.#items;
      if (next === undefined || this.#stopped) {
        this.#scheduled = false;
        return;
      }
      const [key, item] = next;
      this.#items.delete(key);
      // An item whose writes wait for webhooks is processed again with their answers.
      const done = settle(() => this.process(item, key));
      if (done instanceof Promise) {
        done.catch((error) => this.#retry(item, key, error));
      }
    }
    setImmediate(() => this.#run());
  }

  /** Processes an item at once; logs a failure, and tries again later. */
  process(item: T, key: string = String(item)): void {
    try {
      this.#work(item);
    } catch (error) {
      rethrowMissing(error);
      this.#retry(item, key, error);
      return;
    }
    this.#failed.get(key)?.timer.cancel();
    this.#failed.delete(key);
  }

  #retry(item: T, key: string, error: unknown): void {
    if (this.#stopped) return;
    const { timer: earlier, failures = 0 } = this.#failed.get(key) ?? {};
    earlier?.cancel();
    const level = failures === 0 ? "warn" : "debug";
    this.#logger[level](this.#failure, { key, error });
    const timer = this.#clock.setTimer(
      () => this.add(item, key),
      Math.min(RETRY_MS.first * 2 ** failures, this.#longest),
    );
    this.#failed.set(key, { timer, failures: failures + 1 });
  }

  /** Drops the waiting items and ignores later ones. */
  stop(): void {
    this.#stopped = true;
    this.#items.clear();
    for (const { timer } of this.#failed.values()) timer.cancel();
    this.#failed.clear();
  }
}
