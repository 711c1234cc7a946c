import { setImmediate } from "node:timers";

/** How many items are worked on before others get a turn. */
const SLICE = 64;

/**
 * Items to work on, each once however often it was added while it waited. Work
 * begins after the present piece of synchronous work, and goes on in slices, so
 * that a long cascade does not stop the server from answering.
 */
export class WorkQueue<T> {
  readonly #work: (item: T) => void;
  readonly #items: Map<string, T> = new Map();
  #scheduled = false;
  #stopped = false;

  /** @param work Does one item; it must not throw. */
  constructor(work: (item: T) => void) {
    this.#work = work;
  }

  /** Adds an item; a waiting one of the same key is replaced. */
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
      this.#work(next[1]);
    }
    setImmediate(() => this.#run());
  }

  /** Forgets what waits, and takes nothing more. */
  stop(): void {
    this.#stopped = true;
    this.#items.clear();
  }
}
