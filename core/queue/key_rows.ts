/** Arrays of so few numbers are in V8's heap, which takes a third of the memory. */
const FIRST_CAPACITY = 16;
/** Capacity that is never given back: there may be a thousand queues. */
const KEPT_CAPACITY = 64;
/** Columns of a table without rows, shared by all. */
const NO_INTS = new Int32Array(0);
const NO_BYTES = new Uint8Array(0);
const NO_COUNTS = new Uint32Array(0);
const NO_TIMES = new Float64Array(0);
/** Numbers of an entry of the index: the row plus one, and the hash of its key. */
const ENTRY = 2;

/** State of a key apart from its deadlines. */
export type RowState = 0 | 1 | 2 | 3;

/** Neither waits nor runs. */
export const IDLE: RowState = 0;
/** Waits to be taken. */
export const WAITING: RowState = 1;
/** Was taken. */
export const RUNNING: RowState = 2;
/** Was taken, and removed since. */
export const REMOVED: RowState = 3;

/** Row, or place, that does not exist. */
export const NONE = -1;
/** Interval of a key without a place. */
export const UNPLACED = -2;

/**
 * Table of the keys that are not idle: a row of typed arrays for each, some 100
 * bytes with its share of the index, beside the text of the key. Rows are used
 * again, and after a burst the memory is given back.
 *
 * The index is a hash table with linear probing. The hash of a key stands beside
 * its row: comparing, moving and growing then read no other memory, which a table
 * that is larger than the caches of the processor is made of. It is seeded, so
 * that nobody who may name objects can choose keys that collide.
 */
export class KeyRows {
  readonly #seed: number = Math.floor(Math.random() * 2 ** 32);
  /** Key that was hashed last, and its hash: an event looks it up several times. */
  #hashed: string | undefined;
  #lastHash = 0;
  #index: Int32Array = new Int32Array(ENTRY * FIRST_CAPACITY);
  #keys: (string | undefined)[] = [];
  #free: Int32Array = NO_INTS;
  #freeCount = 0;
  /** Number of rows that are or were used since the table was empty. */
  #used = 0;
  #size = 0;
  #capacity = 0;

  hashes: Int32Array = NO_INTS;
  states: Uint8Array = NO_BYTES;
  /** Next run: its number of adds, and the one that counts; none if that is zero. */
  events: Uint32Array = NO_COUNTS;
  adds: unknown[] = [];
  /** Value that the owner of the key keeps in its row; undefined if absent. */
  values: unknown[] = [];
  /** Time when the key began to wait. */
  addedAt: Float64Array = NO_TIMES;
  /** Deadlines, infinite if absent. */
  timerAt: Float64Array = NO_TIMES;
  plannedAt: Float64Array = NO_TIMES;
  heldUntil: Float64Array = NO_TIMES;
  /** Places of keys whose timer is their interval, not their retry. */
  intervals: Float64Array = NO_TIMES;
  /** Neighbours in a list of waiting keys. */
  previous: Int32Array = NO_INTS;
  next: Int32Array = NO_INTS;

  /** Number of keys. */
  get size(): number {
    return this.#size;
  }

  /** Key of a row; undefined if the row is free. */
  key(row: number): string | undefined {
    return this.#keys[row];
  }

  /** Rows in use. */
  *rows(): Generator<number, void, undefined> {
    for (let row = 0; row < this.#used; row++) {
      if (this.#keys[row] !== undefined) yield row;
    }
  }

  /** Row of a key, or {@linkcode NONE}. */
  find(key: string): number {
    if (this.#size === 0) return NONE;
    return (this.#index[this.#search(key, this.#hash(key))] as number) - 1;
  }

  /** Row of a key; a new one, idle and without deadlines, if it had none. */
  findOrAdd(key: string): number {
    const hash = this.#hash(key);
    const at = this.#search(key, hash);
    const found = (this.#index[at] as number) - 1;
    if (found >= 0) return found;
    if (this.#freeCount === 0 && this.#used === this.#capacity) {
      this.#resize(Math.max(FIRST_CAPACITY, 2 * this.#capacity));
      return this.findOrAdd(key);
    }
    const row = this.#freeCount > 0
      ? this.#free[--this.#freeCount] as number
      : this.#used++;
    this.#index[at] = row + 1;
    this.#index[at + 1] = hash;
    this.hashes[row] = hash;
    this.#keys[row] = key;
    this.states[row] = IDLE;
    this.events[row] = 0;
    this.timerAt[row] = this.plannedAt[row] = Infinity;
    this.heldUntil[row] = 0;
    this.intervals[row] = NONE;
    this.#size++;
    return row;
  }

  /** Frees the row of a key that is idle. */
  remove(row: number): void {
    this.#closeGap(row);
    this.#keys[row] = undefined;
    this.adds[row] = this.values[row] = undefined;
    this.#free[this.#freeCount++] = row;
    if (--this.#size === 0) this.#rewind();
  }

  /** Position of the entry of a key, or of the gap where it would be. */
  #search(key: string, hash: number): number {
    const index = this.#index;
    const mask = index.length - ENTRY;
    for (let at = ENTRY * hash & mask;; at = (at + ENTRY) & mask) {
      const entry = index[at] as number;
      if (
        entry === 0 ||
        (index[at + 1] === hash && this.#keys[entry - 1] === key)
      ) return at;
    }
  }

  /** Removes the entry of a row; later entries move back, so that searches find them. */
  #closeGap(row: number): void {
    const index = this.#index;
    const mask = index.length - ENTRY;
    let gap = ENTRY * (this.hashes[row] as number) & mask;
    while (index[gap] !== row + 1) gap = (gap + ENTRY) & mask;
    for (let at = gap;;) {
      at = (at + ENTRY) & mask;
      const entry = index[at] as number;
      if (entry === 0) break;
      const hash = index[at + 1] as number;
      const home = ENTRY * hash & mask;
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      index[gap] = entry;
      index[gap + 1] = hash;
      gap = at;
    }
    index[gap] = 0;
  }

  /** Begins with the first row again, as all are free. */
  #rewind(): void {
    const used = this.#used;
    this.#used = this.#freeCount = 0;
    // Bursts that recur find their room; after the last one it is given back.
    if (this.#capacity <= KEPT_CAPACITY || used >= this.#capacity >>> 2) {
      return;
    }
    this.#keys = [];
    this.adds = [];
    this.values = [];
    this.#resize(this.#capacity >>> 1);
  }

  /** Changes the number of rows that there is memory for. */
  #resize(capacity: number): void {
    this.#capacity = capacity;
    this.#free = resized(this.#free, capacity);
    for (const [name, column] of Object.entries(this)) {
      if (!ArrayBuffer.isView(column)) continue;
      Object.assign(this, { [name]: resized(column as Column, capacity) });
    }
    this.#fillIndex();
  }

  /** Creates the index for twice as many keys as there are rows. */
  #fillIndex(): void {
    const index = new Int32Array(2 * ENTRY * this.#capacity);
    const mask = index.length - ENTRY;
    for (let row = 0; row < this.#used; row++) {
      if (this.#keys[row] === undefined) continue;
      const hash = this.hashes[row] as number;
      let at = ENTRY * hash & mask;
      while (index[at] !== 0) at = (at + ENTRY) & mask;
      index[at] = row + 1;
      index[at + 1] = hash;
    }
    this.#index = index;
  }

  /** Hash of a key, two characters at a time, as MurmurHash3 does. */
  #hash(key: string): number {
    if (key === this.#hashed) return this.#lastHash;
    const { length } = key;
    let hash = this.#seed | 0;
    let at = 0;
    for (; at + 1 < length; at += 2) {
      const pair = key.charCodeAt(at) | key.charCodeAt(at + 1) << 16;
      const mixed = Math.imul(hash ^ pair, 0x9e3779b1);
      hash = mixed << 15 | mixed >>> 17;
    }
    if (at < length) hash = Math.imul(hash ^ key.charCodeAt(at), 0x9e3779b1);
    hash = Math.imul(hash ^ hash >>> 16, 0x85ebca6b);
    this.#hashed = key;
    return this.#lastHash = hash ^ hash >>> 13;
  }
}

type Column = Int32Array | Uint8Array | Uint32Array | Float64Array;

/** Array of another length with the same numbers, as far as there is room. */
function resized<A extends Column>(from: A, length: number): A {
  const to = new (from.constructor as new (length: number) => A)(length);
  to.set(from.subarray(0, length));
  return to;
}
