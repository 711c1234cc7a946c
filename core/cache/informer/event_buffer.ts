import type { KubernetesObject } from "../../api/object.ts";
import type { CacheEvent, CurrentEvent } from "./cache_event.ts";

/**
 * Event buffer of a `for await` loop. Its size is bounded by the number of
 * objects, not of events: an event is merged with the waiting one of the same
 * object, and an object that was added and deleted in between leaves nothing. At
 * most a deletion and an addition wait for one object.
 */
export class EventBuffer<T extends KubernetesObject>
  implements AsyncIterableIterator<CacheEvent<T>> {
  /** Callback for the end of the loop. */
  onEnd: () => void = () => {};
  /** Waiting events by object key, one or two each, the oldest first. */
  readonly #waiting: Map<string, CurrentEvent<T>[]> = new Map();
  readonly #readers: ((result: IteratorResult<CacheEvent<T>>) => void)[] = [];
  #ended = false;

  /** Adds a copy of an event. */
  push(event: CurrentEvent<T>): void {
    if (this.#ended) return;
    const reader = this.#readers.shift();
    if (reader !== undefined) {
      reader({ done: false, value: event.detach() });
      return;
    }
    const { key } = event;
    const events = this.#waiting.get(key);
    const last = events?.pop();
    if (events === undefined || last === undefined) {
      this.#waiting.set(key, [event.detach()]);
    } else if (last.type === "deleted") events.push(last, event.detach());
    else if (last.type !== "added" || event.type !== "deleted") {
      events.push(last.mergedWith(event));
    } else if (events.length === 0) this.#waiting.delete(key);
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

  /** Ends the loop and drops waiting events; safe to repeat. */
  return(): Promise<IteratorResult<CacheEvent<T>>> {
    if (!this.#ended) {
      this.#ended = true;
      this.#waiting.clear();
      for (const reader of this.#readers.splice(0)) {
        reader({ done: true, value: undefined });
      }
      this.onEnd();
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
