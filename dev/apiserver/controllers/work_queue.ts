/**
 * Work queue of the controllers that run inside the API server: garbage collection,
 * namespaces, custom resource definitions, quotas, roles and policies. They watch
 * the store directly and write through the functions of `write`; they must not
 * import `http` or the client.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { Logger } from "@coracle/operator/client";
import { rethrowMissing, settle } from "../settle.ts";

/** Number of items processed before other tasks of the event loop run. */
const SLICE = 64;

/**
 * Work queue that deduplicates waiting items by key. Processing begins after
 * the current synchronous code and continues in slices, so the server answers
 * requests during a long cascade.
 */
export class WorkQueue<T> {
  readonly #logger: Logger;
  readonly #failure: string;
  readonly #work: (item: T) => void;
  readonly #items: Map<string, T> = new Map();
  #scheduled = false;
  #stopped = false;

  /**
   * Creates an empty queue.
   *
   * @param failure Message of the warning about an item whose work fails.
   * @param work Function that processes one item.
   */
  constructor(logger: Logger, failure: string, work: (item: T) => void) {
    this.#logger = logger;
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
      void settle(() => this.process(item, key));
    }
    setImmediate(() => this.#run());
  }

  /** Processes an item at once; logs a failure. */
  process(item: T, key: string = String(item)): void {
    try {
      this.#work(item);
    } catch (error) {
      rethrowMissing(error);
      this.#logger.warn(this.#failure, { key, error });
    }
  }

  /** Drops the waiting items and ignores later ones. */
  stop(): void {
    this.#stopped = true;
    this.#items.clear();
  }
}
