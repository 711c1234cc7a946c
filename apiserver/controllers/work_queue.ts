/**
 * Work queue of the controllers that run inside the API server: garbage collection,
 * namespaces, custom resource definitions, volume protection and simulated
 * readiness. They watch the store directly and write through the functions of
 * `apiserver/write`; they must not import `apiserver/http` or the client.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import { settle } from "../settle.ts";

/** Number of items processed before other tasks of the event loop run. */
const SLICE = 64;

/**
 * Work queue that deduplicates waiting items by key. Processing begins after
 * the current synchronous code and continues in slices, so the server answers
 * requests during a long cascade.
 */
export class WorkQueue<T> {
  readonly #work: (item: T) => void;
  readonly #items: Map<string, T> = new Map();
  #scheduled = false;
  #stopped = false;

  /**
   * Creates an empty queue.
   *
   * @param work Function that processes one item; must not throw.
   */
  constructor(work: (item: T) => void) {
    this.#work = work;
  }

  /** Adds an item; replaces a waiting item with the same key. */
  add(key: string, item: T): void {
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
      this.#items.delete(next[0]);
      // An item whose writes wait for webhooks is processed again with their answers.
      void settle(() => this.#work(next[1]));
    }
    setImmediate(() => this.#run());
  }

  /** Drops the waiting items and ignores later ones. */
  stop(): void {
    this.#stopped = true;
    this.#items.clear();
  }
}
