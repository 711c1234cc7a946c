import type { KubernetesObject } from "../core/api/object.ts";
import type { CacheEvent } from "../core/cache/informer/cache_event.ts";

/**
 * The primaries of each secondary, as they were mapped last. A bounded cache may
 * have given up what a secondary was before it changed, so that the primaries
 * from before the change are known from here alone; it costs about a hundred
 * bytes a secondary.
 */
export class RememberedMapping {
  readonly #primaries: Map<string, readonly string[]> = new Map();

  /**
   * Takes note of an event.
   *
   * @param event What happened.
   * @param map Maps the object of the event; not called where that cannot be
   * read at once.
   * @returns The primaries from before the event and those from after it.
   */
  follow<S extends KubernetesObject>(
    event: CacheEvent<S>,
    map: () => Iterable<string>,
  ): Set<string> {
    const { key, type, header } = event;
    const before = this.of(key);
    const after = header.isPartial ? [] : [...map()];
    if (type === "deleted") this.#primaries.delete(key);
    else if (!header.isPartial) this.set(key, after);
    return new Set([...before, ...after]);
  }

  /** The primaries of a secondary. */
  of(secondary: string): readonly string[] {
    return this.#primaries.get(secondary) ?? [];
  }

  /** Sets the primaries of a secondary. */
  set(secondary: string, primaries: readonly string[]): void {
    if (primaries.length > 0) this.#primaries.set(secondary, primaries);
    else this.#primaries.delete(secondary);
  }
}
