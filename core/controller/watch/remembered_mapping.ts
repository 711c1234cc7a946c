import type { KubernetesObject } from "../../api/object.ts";
import type { CacheEvent } from "../../cache/informer/cache_event.ts";

/**
 * Primaries that each secondary was last mapped to. A bounded cache may have
 * evicted the previous state of a secondary, so that only this mapping has its
 * primaries before a change; it costs about a hundred bytes per secondary.
 */
export class RememberedMapping {
  readonly #primaries: Map<string, readonly string[]> = new Map();

  /**
   * Updates the mapping of a secondary after an event.
   *
   * @param map Maps the object of the event; not called where only the key of
   * the object is cached.
   * @returns Primaries of the previous and of the new state.
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

  /** Primaries of a secondary. */
  of(secondary: string): readonly string[] {
    return this.#primaries.get(secondary) ?? [];
  }

  set(secondary: string, primaries: readonly string[]): void {
    if (primaries.length > 0) this.#primaries.set(secondary, primaries);
    else this.#primaries.delete(secondary);
  }

  /** Removes the mapping of all secondaries. */
  clear(): void {
    this.#primaries.clear();
  }
}
