import type { KubernetesObject } from "../../api/object.ts";
import type { CacheEvent, InformerHandler } from "./cache_event.ts";
import type { EventSource } from "./current_event.ts";
import { EventBuffer } from "./event_buffer.ts";
import type { HandlerRegistration } from "./shared_informer.ts";

/**
 * The loops over the events of an informer. Each has a handler, which goes when
 * the loop ends, whoever ends it.
 *
 * @typeParam T The type of the objects.
 */
export class EventLoops<T extends KubernetesObject> {
  readonly #source: EventSource<T>;
  readonly #loops: Set<EventBuffer<T>> = new Set();

  constructor(source: EventSource<T>) {
    this.#source = source;
  }

  /**
   * Begins a loop.
   *
   * @param listen Adds its handler; gives nothing if there are no events any
   * more: the loop is over then.
   * @param signal Ends it.
   */
  begin(
    listen: (handler: InformerHandler<T>) => HandlerRegistration<T> | undefined,
    signal: AbortSignal | undefined,
  ): AsyncIterableIterator<CacheEvent<T>> {
    const onAbort = () => void loop.return();
    const loop: EventBuffer<T> = new EventBuffer(this.#source, () => {
      signal?.removeEventListener("abort", onAbort);
      this.#loops.delete(loop);
      registration?.remove();
    });
    const registration = signal?.aborted
      ? undefined
      : listen((event) => loop.push(event));
    if (registration === undefined) void loop.return();
    else {
      this.#loops.add(loop);
      signal?.addEventListener("abort", onAbort, { once: true });
    }
    return loop;
  }

  /** Ends all loops. */
  end(): void {
    for (const loop of this.#loops) void loop.return();
  }
}
