import type { KubernetesObject } from "../../api/object.ts";
import type { CacheEvent } from "./cache_event.ts";
import { CurrentEvent, type EventSource } from "./current_event.ts";

/**
 * Events that wait for a loop. What waits is bounded by the number of objects,
 * not of events: an event is merged with the one before of the same object, and
 * an object that came and went while nobody looked leaves nothing. At most a
 * deletion and an addition wait for one object.
 *
 * @typeParam T The type of the objects.
 */
export class EventBuffer<T extends KubernetesObject>
  implements AsyncIterableIterator<CacheEvent<T>> {
  readonly #source: EventSource<T>;
  readonly #onEnd: () => void;
  /** One or two events of each object, in the order of their first arrival. */
  readonly #waiting: Map<string, CacheEvent<T>[]> = new Map();
  readonly #readers: ((result: IteratorResult<CacheEvent<T>>) => void)[] = [];
  #ended = false;

  /**
   * @param source How events find the objects.
   * @param onEnd Called once, when nobody will read any more.
   */
  constructor(source: EventSource<T>, onEnd: () => void) {
    this.#source = source;
    this.#onEnd = onEnd;
  }

  /** Adds an event; it is copied. */
  push(event: CacheEvent<T>): void {
    if (this.#ended) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ done: false, value: event.detach() });
      return;
    }
    const events = this.#waiting.get(event.key);
    const last = events?.pop();
    if (events === undefined || last === undefined) {
      this.#waiting.set(event.key, [event.detach()]);
      return;
    }
    events.push(...this.#merge(last, event));
    if (events.length === 0) this.#waiting.delete(event.key);
  }

  next(): Promise<IteratorResult<CacheEvent<T>>> {
    const [first] = this.#waiting;
    if (first !== undefined) {
      const [key, events] = first;
      const value = events.shift() as CacheEvent<T>;
      if (events.length === 0) this.#waiting.delete(key);
      return Promise.resolve({ done: false, value });
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve) => this.#readers.push(resolve));
  }

  /** Ends the loop; what waits is dropped. Safe to repeat. */
  return(): Promise<IteratorResult<CacheEvent<T>>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#waiting.clear();
      for (const reader of this.#readers.splice(0)) {
        reader({ done: true, value: undefined });
      }
      this.#onEnd();
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #merge(last: CacheEvent<T>, event: CacheEvent<T>): CacheEvent<T>[] {
    if (last.type === "deleted") return [last, event.detach()];
    if (last.type === "added" && event.type === "deleted") return [];
    const type = event.type === "deleted" ? "deleted" : last.type;
    return [
      new CurrentEvent(this.#source, {
        type,
        header: event.header.copy(),
        previous: last.previousHeader,
        initial: last.initial && event.initial,
        relist: last.relist || event.relist,
        finalStateUnknown: event.finalStateUnknown,
      }),
    ];
  }
}
