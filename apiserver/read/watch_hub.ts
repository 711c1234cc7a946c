import type { Clock, Timer } from "../../core/clock.ts";
import type { Collection } from "../storage/collection.ts";
import type { Change } from "../storage/history.ts";
import type { Store } from "../storage/store.ts";
import { formatKey } from "./watch_frame.ts";
import type { Frame, WatchCounts, Watcher, WatchRegistry } from "./watcher.ts";

/** Interval of bookmarks, in milliseconds. */
const BOOKMARK_INTERVAL_MS = 60_000;

/**
 * Hub of watches: delivers each change to the watches of its collection,
 * immediately after the change is stored and in order of revisions.
 */
export class WatchHub implements WatchRegistry {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #watchers: Map<Collection, Set<Watcher>> = new Map();
  readonly counts: WatchCounts = { open: 0, dropped: 0, events: 0 };
  #bookmarks: Timer | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    store.listen((change, collection) => this.#publish(change, collection));
  }

  /** All open watches. */
  *all(): Iterable<Watcher> {
    for (const watchers of this.#watchers.values()) yield* watchers;
  }

  add(watcher: Watcher): void {
    const { collection } = watcher;
    const watchers = this.#watchers.get(collection) ?? new Set();
    this.#watchers.set(collection, watchers.add(watcher));
    this.counts.open++;
    this.#bookmarks ??= this.#clock.setTimer(
      () => this.#sendBookmarks(),
      BOOKMARK_INTERVAL_MS,
    );
  }

  delete(watcher: Watcher): void {
    const watchers = this.#watchers.get(watcher.collection);
    if (!watchers?.delete(watcher)) return;
    if (watchers.size === 0) this.#watchers.delete(watcher.collection);
    if (--this.counts.open === 0) {
      this.#bookmarks?.cancel();
      this.#bookmarks = undefined;
    }
  }

  #publish(change: Change, collection: Collection): void {
    const watchers = this.#watchers.get(collection);
    if (watchers === undefined) return;
    // Watches with the same encoding share the bytes of an event.
    const frames = new Map<string, Frame>();
    for (const watcher of [...watchers]) {
      watcher.deliver(change, (form, make) => {
        const key = `${form}:${formatKey(watcher.format)}`;
        let bytes = frames.get(key);
        if (bytes === undefined) frames.set(key, bytes = make());
        return bytes;
      });
    }
  }

  #sendBookmarks(): void {
    this.#bookmarks = this.#clock.setTimer(
      () => this.#sendBookmarks(),
      BOOKMARK_INTERVAL_MS,
    );
    for (const watcher of [...this.all()]) {
      watcher.bookmark(this.#store.revision);
    }
  }

  /**
   * Ends the watches of a collection that is no longer served, or all watches.
   */
  endAll(collection?: Collection): void {
    for (const watcher of [...this.all()]) {
      if (collection === undefined || watcher.collection === collection) {
        watcher.end();
      }
    }
  }
}
