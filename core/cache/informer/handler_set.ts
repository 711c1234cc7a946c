import type { KubernetesObject } from "../../api/object.ts";
import type { Clock } from "../../clock.ts";
import type { InformerHandler } from "./cache_event.ts";
import type { CurrentEvent } from "./current_event.ts";
import { HandlerEntry, type HandlerHost } from "./handler_entry.ts";
import type { KnownEvent } from "./store_feed.ts";
import { TimeSlice } from "../watch/time_slice.ts";

/**
 * The handlers of an informer, in the order in which they were added.
 *
 * @typeParam T The type of the objects.
 */
export class HandlerSet<T extends KubernetesObject> {
  readonly #clock: Clock;
  /** Never changed, only replaced, since a handler may add or remove another. */
  #entries: readonly HandlerEntry<T>[] = [];
  #synced = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether anybody listens. */
  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /**
   * Adds a handler and begins to show it what is there.
   *
   * @param handler What to call.
   * @param parts Its name, and what it asks of the informer.
   */
  add(
    handler: InformerHandler<T>,
    parts: { readonly name: string; readonly host: HandlerHost<T> },
  ): HandlerEntry<T> {
    const entry = new HandlerEntry(handler, parts);
    this.#entries = [...this.#entries, entry];
    void this.#replay(entry);
    return entry;
  }

  /** Takes a handler away. */
  delete(entry: HandlerEntry<T>): void {
    this.#entries = this.#entries.filter((other) => other !== entry);
  }

  /** Removes all handlers; none is called again. */
  clear(): void {
    for (const entry of this.#entries) entry.remove();
  }

  /** Tells all handlers of a change, except the one that wrote it. */
  changed(event: CurrentEvent<T>, writer?: HandlerEntry<T>): void {
    for (const entry of this.#entries) {
      if (entry !== writer) entry.changed(event);
    }
  }

  /** Tells those who write the object of an event that changed nothing. */
  known(event: KnownEvent): void {
    for (const entry of this.#entries) entry.known(event);
  }

  /** Tells those who write how far the stream has come. */
  progressed(resourceVersion: string, covers: (key: string) => boolean): void {
    for (const entry of this.#entries) {
      entry.progressed(resourceVersion, covers);
    }
  }

  /** Tells those who write that versions mean other states from now on. */
  restarted(covers: (key: string) => boolean): void {
    for (const entry of this.#entries) entry.restarted(covers);
  }

  /** Forgets what was told of objects that are not watched any more. */
  leave(left: (key: string) => boolean): void {
    for (const entry of this.#entries) entry.leave(left);
  }

  /** The cache is complete. */
  settle(): void {
    this.#synced = true;
    for (const entry of this.#entries) {
      if (entry.isReplayed) entry.settle();
    }
  }

  async #replay(entry: HandlerEntry<T>): Promise<void> {
    const slice = new TimeSlice(this.#clock);
    // Not from within the call that adds it: its owner is not ready yet.
    await slice.rest();
    while (entry.showNext()) {
      if (slice.step(0)) await slice.rest();
    }
    if (this.#synced) entry.settle();
  }
}
