import type { ByteRange } from "../../json/byte_range.ts";

const FNV_PRIME = 0x01000193;

/** Random start value of a hash, unknown outside this process. */
export function hashSeed(): number {
  return Math.floor(Math.random() * 0xffffffff);
}

export function hashNext(hash: number, value: number): number {
  return Math.imul(hash ^ value, FNV_PRIME);
}

export function hashBytes(
  hash: number,
  { bytes, start, end }: ByteRange,
): number {
  for (let i = start; i < end; i++) {
    hash = Math.imul(hash ^ (bytes[i] as number), FNV_PRIME);
  }
  return hash;
}

/** Finishes a hash: each of its 32 bits then depends on all input. */
export function hashEnd(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Number of bits of a position in a full-size segment, which is split at 7/8. */
const SEGMENT_BITS = 12;
const SEGMENT_ENTRIES = 1 << SEGMENT_BITS;
const FIRST_ENTRIES = 16;
/** Share of the entries that is reserved for keys: segments differ by chance. */
const RESERVED_SHARE = 0.8;
/** Maximum depth of a segment; then it grows: its hashes collide on purpose. */
const MAX_DEPTH = 16;
/** Number of hash bits in an entry; the bits above them are the slot plus one. */
const FINGERPRINT_BITS = 8;
const FINGERPRINT_MASK = (1 << FINGERPRINT_BITS) - 1;

/** Maximum number of slots: 16,777,215. */
export const MAX_SLOTS: number = (1 << (32 - FINGERPRINT_BITS)) - 1;

/** Segment of a table: all keys whose hashes start with the same bits. */
interface Segment {
  entries: Uint32Array;
  used: number;
  /** Number of leading hash bits that the keys share. */
  readonly depth: number;
}

/**
 * Extendible hash table from keys to slots, of four to nine bytes per key.
 *
 * A directory leads to segments, each with open addressing. A full segment is
 * split in two: growing never takes longer than one split, however many keys there
 * are. The table does not store keys: it proposes slots with a matching hash, and
 * the caller compares their keys.
 */
export class KeyTable {
  readonly #hashOf: (slot: number) => number;
  #directory: Segment[];
  /** Number of leading hash bits that select a segment from the directory. */
  #depth = 0;
  /** Segment and position of the current search. */
  #segment: Segment;
  #at = 0;
  #allocatedBytes = 4 * FIRST_ENTRIES;
  #fingerprint = 0;

  /** @param hashOf Computes the 32-bit hash of the key of a slot. */
  constructor(hashOf: (slot: number) => number) {
    this.#hashOf = hashOf;
    this.#segment = makeSegment(FIRST_ENTRIES, 0);
    this.#directory = [this.#segment];
  }

  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /**
   * Makes room for so many keys, so that none is moved until there are more. Only a
   * table without keys is changed.
   */
  reserve(keys: number): void {
    if (this.#depth > 0 || this.#directory[0]?.used !== 0) return;
    let depth = 0;
    let entries = FIRST_ENTRIES;
    while (keys > RESERVED_SHARE * entries && entries < SEGMENT_ENTRIES) {
      entries *= 2;
    }
    while (keys > RESERVED_SHARE * entries * 2 ** depth && depth < MAX_DEPTH) {
      depth++;
    }
    this.#depth = depth;
    this.#directory = Array.from(
      { length: 2 ** depth },
      () => makeSegment(entries, depth),
    );
    this.#allocatedBytes = 4 * entries * 2 ** depth;
  }

  /** First slot whose key may have this hash, or -1. */
  first(hash: number): number {
    const segment = this.#segmentOf(hash);
    this.#segment = segment;
    this.#at = home(hash, segment);
    this.#fingerprint = hash & FINGERPRINT_MASK;
    return this.#search();
  }

  /** Next slot whose key may have the hash of the current search, or -1. */
  next(): number {
    this.#at = (this.#at + 1) & (this.#segment.entries.length - 1);
    return this.#search();
  }

  /** Adds a slot whose key is not in the table. */
  add(hash: number, slot: number): void {
    let segment = this.#segmentOf(hash);
    while (segment.used >= segment.entries.length * 7 / 8) {
      this.#makeRoom(segment, hash);
      segment = this.#segmentOf(hash);
    }
    insert(segment, hash, slot);
  }

  remove(hash: number, slot: number): void {
    let found = this.first(hash);
    while (found !== slot) {
      if (found < 0) {
        throw new Error(
          `Cannot remove a key: it is not in the table: received slot ${slot}`,
        );
      }
      found = this.next();
    }
    this.#closeGap();
  }

  #segmentOf(hash: number): Segment {
    const index = this.#depth === 0 ? 0 : hash >>> (32 - this.#depth);
    return this.#directory[index] as Segment;
  }

  #search(): number {
    const { entries } = this.#segment;
    const mask = entries.length - 1;
    for (;;) {
      const entry = entries[this.#at] as number;
      if (entry === 0) return -1;
      if ((entry & FINGERPRINT_MASK) === this.#fingerprint) {
        return (entry >>> FINGERPRINT_BITS) - 1;
      }
      this.#at = (this.#at + 1) & mask;
    }
  }

  /** Moves entries into the gap of a removed one, so that searches find them. */
  #closeGap(): void {
    const segment = this.#segment;
    const { entries } = segment;
    const mask = entries.length - 1;
    let gap = this.#at;
    for (let at = (gap + 1) & mask; entries[at] !== 0; at = (at + 1) & mask) {
      const entry = entries[at] as number;
      const hash = this.#hashOf((entry >>> FINGERPRINT_BITS) - 1);
      // It may move if its home is not between the gap and its position.
      if (((at - home(hash, segment)) & mask) >= ((at - gap) & mask)) {
        entries[gap] = entry;
        gap = at;
      }
    }
    entries[gap] = 0;
    segment.used--;
  }

  #makeRoom(full: Segment, hash: number): void {
    const { length } = full.entries;
    const parts = length < SEGMENT_ENTRIES || full.depth >= MAX_DEPTH
      ? [makeSegment(length * 2, full.depth)]
      : [
        makeSegment(length, full.depth + 1),
        makeSegment(length, full.depth + 1),
      ];
    this.#replace(full, parts, hash);
    for (const part of parts) this.#allocatedBytes += part.entries.byteLength;
    this.#allocatedBytes -= full.entries.byteLength;
    for (const entry of full.entries) {
      if (entry === 0) continue;
      const slot = (entry >>> FINGERPRINT_BITS) - 1;
      const moved = this.#hashOf(slot);
      insert(this.#segmentOf(moved), moved, slot);
    }
  }

  /** Replaces a segment in the directory by one or two. */
  #replace(full: Segment, parts: readonly Segment[], hash: number): void {
    const depth = parts[0]?.depth ?? 0;
    if (depth > this.#depth) {
      this.#directory = this.#directory.flatMap((part) => [part, part]);
      this.#depth = depth;
    }
    const share = 1 << (this.#depth - full.depth);
    const first = this.#depth === 0
      ? 0
      : Math.floor((hash >>> (32 - this.#depth)) / share) * share;
    for (let i = 0; i < share; i++) {
      const part = Math.floor(i * parts.length / share);
      this.#directory[first + i] = parts[part] as Segment;
    }
  }
}

function makeSegment(entries: number, depth: number): Segment {
  return { entries: new Uint32Array(entries), used: 0, depth };
}

/** First position to search for a hash, from bits that nothing else uses. */
function home(hash: number, segment: Segment): number {
  return (hash >>> FINGERPRINT_BITS) & (segment.entries.length - 1);
}

function insert(segment: Segment, hash: number, slot: number): void {
  const { entries } = segment;
  const mask = entries.length - 1;
  let at = home(hash, segment);
  while (entries[at] !== 0) at = (at + 1) & mask;
  entries[at] = ((slot + 1) << FINGERPRINT_BITS) | (hash & FINGERPRINT_MASK);
  segment.used++;
}
