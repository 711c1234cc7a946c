import { resized } from "./resized.ts";

/** The fewest places that there are. */
const SMALLEST = 64;
/** A place is two numbers: an entry, and the hash of its key. */
const PLACE = 2;

/**
 * Finds the slot of a key: a hash table in typed arrays with linear probing,
 * about 30 bytes a key and several times quicker than a `Map` of many strings.
 *
 * The hash stands beside the slot: of a table that is larger than the caches of
 * the processor, each line that is not read counts, and to compare, to move and
 * to grow it then reads no other.
 *
 * The hash is seeded, so that nobody who may name objects can choose names that
 * all collide.
 */
export class KeyIndex {
  /**
   * Places: the slot plus one, so that zero marks an empty one, and the hash. At
   * most half of them is filled.
   */
  #places: Int32Array = new Int32Array(PLACE * SMALLEST);
  /** The hash of each slot's key. */
  #hashes: Int32Array = new Int32Array(0);
  /** The key of each slot; undefined for slots that are not used. */
  #keys: (string | undefined)[] = [];
  readonly #seed: number = Math.floor(Math.random() * 2 ** 32);
  #size = 0;

  /** How many keys there are. */
  get size(): number {
    return this.#size;
  }

  /** The key of a slot. */
  key(slot: number): string | undefined {
    return this.#keys[slot];
  }

  /** All keys. */
  *keys(): IterableIterator<string> {
    for (const key of this.#keys) if (key !== undefined) yield key;
  }

  /** The slot of a key; -1 if it has none. */
  find(key: string): number {
    const places = this.#places;
    return (places[this.#search(key, this.#hash(key))] as number) - 1;
  }

  /**
   * The slot of a key. A key that has none is given the free slot.
   *
   * @param key The key.
   * @param free A slot that no key has.
   */
  findOrSet(key: string, free: number): number {
    const hash = this.#hash(key);
    const at = this.#search(key, hash);
    const places = this.#places;
    const slot = (places[at] as number) - 1;
    if (slot >= 0) return slot;
    if (free >= this.#hashes.length) {
      this.#hashes = resized(this.#hashes, Math.max(SMALLEST, 2 * free));
    }
    this.#hashes[free] = hash;
    this.#keys[free] = key;
    places[at] = free + 1;
    places[at + 1] = hash;
    if (2 * PLACE * ++this.#size > places.length) this.#grow();
    return free;
  }

  /** Takes the key of a slot away. */
  delete(slot: number): void {
    const places = this.#places;
    const mask = places.length - PLACE;
    let hole = PLACE * (this.#hashes[slot] as number) & mask;
    while (places[hole] !== slot + 1) hole = (hole + PLACE) & mask;
    // Move back what was pushed on by the one that goes, so that no probe
    // stops early and no tombstones gather.
    for (let at = hole;;) {
      at = (at + PLACE) & mask;
      const entry = places[at] as number;
      if (entry === 0) break;
      const hash = places[at + 1] as number;
      const home = PLACE * hash & mask;
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        places[hole] = entry;
        places[hole + 1] = hash;
        hole = at;
      }
    }
    places[hole] = 0;
    this.#keys[slot] = undefined;
    this.#size--;
  }

  /** Gives half of the memory back; there must be no keys. */
  shrink(): void {
    const length = Math.max(PLACE * SMALLEST, this.#places.length >>> 1);
    this.#places = this.#places.slice(0, length);
    this.#hashes = this.#hashes.slice(0, this.#hashes.length >>> 1);
    this.#keys.length >>>= 1;
  }

  /** Where the place of a key is, or the empty one that it would have. */
  #search(key: string, hash: number): number {
    const places = this.#places;
    const mask = places.length - PLACE;
    for (let at = PLACE * hash & mask;; at = (at + PLACE) & mask) {
      const entry = places[at] as number;
      if (
        entry === 0 ||
        (places[at + 1] === hash && this.#keys[entry - 1] === key)
      ) return at;
    }
  }

  /** Doubles the places. */
  #grow(): void {
    const old = this.#places;
    const places = this.#places = new Int32Array(2 * old.length);
    const mask = places.length - PLACE;
    for (let from = 0; from < old.length; from += PLACE) {
      if (old[from] === 0) continue;
      const hash = old[from + 1] as number;
      let at = PLACE * hash & mask;
      while (places[at] !== 0) at = (at + PLACE) & mask;
      places[at] = old[from] as number;
      places[at + 1] = hash;
    }
  }

  #hash(key: string): number {
    let hash = this.#seed | 0;
    for (let index = 0; index < key.length; index++) {
      hash = Math.imul(hash ^ key.charCodeAt(index), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return hash;
  }
}
