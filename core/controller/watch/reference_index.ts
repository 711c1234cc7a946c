/**
 * Index of the references from primaries to secondaries, by key, in both
 * directions.
 *
 * Invariant: a secondary is listed as long as a primary refers to it, and no
 * longer.
 */
export class ReferenceIndex {
  readonly #secondaries: Map<string, ReadonlySet<string>> = new Map();
  readonly #primaries: Map<string, Set<string>> = new Map();

  /** Primaries that refer to a secondary. */
  primariesOf(secondary: string): string[] {
    return [...this.#primaries.get(secondary) ?? []];
  }

  /** Sets the references of a primary; an empty list removes the primary. */
  set(primary: string, secondaries: Iterable<string>): void {
    for (const secondary of this.#secondaries.get(primary) ?? []) {
      const primaries = this.#primaries.get(secondary)!;
      primaries.delete(primary);
      if (primaries.size === 0) this.#primaries.delete(secondary);
    }
    const next = new Set(secondaries);
    for (const secondary of next) {
      const primaries = this.#primaries.get(secondary) ?? new Set();
      primaries.add(primary);
      this.#primaries.set(secondary, primaries);
    }
    if (next.size === 0) this.#secondaries.delete(primary);
    else this.#secondaries.set(primary, next);
  }

  /** Removes all references. */
  clear(): void {
    this.#secondaries.clear();
    this.#primaries.clear();
  }
}
