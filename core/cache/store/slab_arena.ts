import { Buffer } from "node:buffer";
import { currentRuntime } from "../../client/transport/runtime.ts";
import { type ByteRange, NO_BYTES } from "../../json/byte_range.ts";

/** Size of the unit of addresses, in bytes: 32 bits reach 16 GiB. */
const UNIT = 4;
const UNITS_PER_SLAB_BITS = 16;
const SLAB_BYTES = UNIT << UNITS_PER_SLAB_BITS;
const UNIT_MASK = (1 << UNITS_PER_SLAB_BITS) - 1;
const MAX_SLABS = 1 << (32 - UNITS_PER_SLAB_BITS);
/** Size of the first slab: a small store has small slabs. */
const FIRST_SLAB_BYTES = 4 * 1024;
/** Share of the arena that the next slab has, until slabs have their full size. */
const GROWTH = 1 / 3;

/** Number of units in the head of a record: its owner and its length. */
const HEAD_UNITS = 2;
const FREE = 0xffffffff;
/** Maximum number of slabs of the full size that wait for their next use. */
const MAX_UNUSED = 32;
/**
 * Memory of slabs of the full size. V8 collects garbage because its external memory
 * has grown, 20 times in a first list of 200 MiB; shared memory it does not count.
 */
const SlabMemory = currentRuntime() === "node"
  ? SharedArrayBuffer
  : ArrayBuffer;

/** Size of the memory that starts a collection; glibc maps it untouched. */
const UNTOUCHED_BYTES = 32 << 20;

interface Slab {
  readonly memory: ArrayBufferLike;
  readonly bytes: Buffer;
  /** View of the memory in units, for the heads of records. */
  readonly units: Uint32Array;
  /** Index of the first unit that was never used. */
  top: number;
  /** Number of units in live records. */
  live: number;
}

/** Callback for the move of a record to another address. */
export type MoveRecord = (owner: number, address: number) => void;

/**
 * Arena of byte records outside the JavaScript heap, in slabs of 256 KiB.
 *
 * Records are written one after the other. Freed ones leave dead space; when it
 * exceeds a share of the arena, the slab with the most of it is cleared by
 * moving its live records, so that no single call does more than that.
 *
 * The arena itself is the {@linkcode ByteRange} of the record that was looked up
 * last, so that no object is allocated for it.
 */
export class SlabArena implements ByteRange {
  bytes: Buffer = NO_BYTES;
  start = 0;
  end = 0;

  readonly #onMove: MoveRecord;
  readonly #maxDead: number;
  readonly #slabs: (Slab | undefined)[] = [];
  /** Number of the slab that records are written to; -1 before the first. */
  #current = -1;
  #allocatedBytes = 0;
  #liveUnits = 0;
  /** Number of units of freed records. */
  #deadUnits = 0;

  /**
   * @param maxDead Largest share of dead space: records are moved more often the
   * smaller it is.
   */
  constructor(onMove: MoveRecord, maxDead: number = 1 / 4) {
    this.#onMove = onMove;
    this.#maxDead = maxDead;
  }

  /** Allocated memory in bytes, dead space included. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  get liveBytes(): number {
    return this.#liveUnits * UNIT;
  }

  /**
   * Allocates a record and looks it up, for the caller to fill it.
   *
   * @param owner Number of the owner, for the callback when the record moves;
   * less than 2³² − 1.
   * @returns Address of the record, valid until it is freed or moved.
   */
  allocate(owner: number, length: number): number {
    const units = HEAD_UNITS + Math.ceil(length / UNIT);
    let slab = this.#room(units);
    if (slab === undefined) {
      this.reclaim();
      slab = this.#room(units) ?? this.#open(units * UNIT);
    }
    return this.#append(slab, { owner, length, units });
  }

  /**
   * Changes the length of a record if it needs the same space, and looks it up.
   *
   * @returns Whether the length was changed.
   */
  resize(address: number, length: number): boolean {
    const { units } = this.#slab(address);
    const unit = address & UNIT_MASK;
    if (recordUnits(units[unit + 1] as number) !== recordUnits(length)) {
      return false;
    }
    units[unit + 1] = length;
    this.look(address);
    return true;
  }

  /** Range of a record: the arena itself, valid until the next lookup. */
  look(address: number): this {
    const slab = this.#slab(address);
    const unit = address & UNIT_MASK;
    this.bytes = slab.bytes;
    this.start = (unit + HEAD_UNITS) * UNIT;
    this.end = this.start + (slab.units[unit + 1] as number);
    return this;
  }

  free(address: number): void {
    const slab = this.#slab(address);
    const unit = address & UNIT_MASK;
    const units = recordUnits(slab.units[unit + 1] as number);
    slab.units[unit] = FREE;
    slab.live -= units;
    this.#liveUnits -= units;
    this.#deadUnits += units;
    const number = address >>> UNITS_PER_SLAB_BITS;
    if (slab.live > 0) return;
    if (this.#liveUnits === 0) return this.clear();
    if (number === this.#current && slab.bytes.length <= SLAB_BYTES) {
      this.#deadUnits -= slab.top;
      slab.top = 0; // it is written from the start again
    } else this.#release(number);
  }

  /** Frees all records. */
  clear(): void {
    for (const slab of this.#slabs) if (slab !== undefined) discard(slab);
    this.#slabs.length = this.#allocatedBytes = 0;
    this.#liveUnits = this.#deadUnits = 0;
    this.#current = -1;
    this.bytes = NO_BYTES;
  }

  /** Slab that records are written to, if it has enough space. */
  #room(units: number): Slab | undefined {
    const slab = this.#slabs[this.#current];
    return slab !== undefined && slab.top + units <= slab.units.length
      ? slab
      : undefined;
  }

  #slab(address: number): Slab {
    const slab = this.#slabs[address >>> UNITS_PER_SLAB_BITS];
    if (slab === undefined) {
      throw new Error(
        `Cannot look a record up: its slab was freed: received address ${address}`,
      );
    }
    return slab;
  }

  #append(
    slab: Slab,
    record: { owner: number; length: number; units: number },
  ): number {
    const unit = slab.top;
    slab.units[unit] = record.owner;
    slab.units[unit + 1] = record.length;
    slab.top += record.units;
    slab.live += record.units;
    this.#liveUnits += record.units;
    this.bytes = slab.bytes;
    this.start = (unit + HEAD_UNITS) * UNIT;
    this.end = this.start + record.length;
    return ((this.#current << UNITS_PER_SLAB_BITS) | unit) >>> 0;
  }

  /** Opens a slab for writing; a record that is too long for one gets its own. */
  #open(needed: number): Slab {
    let number = this.#slabs.indexOf(undefined);
    if (number < 0) number = this.#slabs.length;
    if (number >= MAX_SLABS) {
      throw new RangeError(
        `Cannot store more objects: the arena holds at most 16 GiB`,
      );
    }
    const wanted = Math.max(FIRST_SLAB_BYTES, this.#allocatedBytes * GROWTH);
    const size = Math.max(Math.min(wanted, SLAB_BYTES), needed);
    const slab = makeSlab(size);
    this.#slabs[number] = slab;
    this.#current = number;
    this.#allocatedBytes += slab.memory.byteLength;
    return slab;
  }

  #release(number: number): void {
    const slab = this.#slabs[number];
    if (slab === undefined) return;
    this.#allocatedBytes -= slab.memory.byteLength;
    this.#deadUnits -= slab.top - slab.live;
    this.#slabs[number] = undefined;
    discard(slab);
  }

  /**
   * Frees the slab with the largest share of freed records, if they take much
   * space: its other records are moved.
   */
  reclaim(): void {
    const dead = this.#deadUnits * UNIT;
    if (dead <= this.#allocatedBytes * this.#maxDead) return;
    let worst = -1;
    let mostShare = this.#maxDead;
    for (let number = 0; number < this.#slabs.length; number++) {
      const slab = this.#slabs[number];
      if (slab === undefined) continue;
      const share = (slab.top - slab.live) / slab.units.length;
      if (share > mostShare) {
        worst = number;
        mostShare = share;
      }
    }
    const slab = this.#slabs[worst];
    if (slab !== undefined) this.#evacuate(slab, worst);
  }

  #evacuate(slab: Slab, number: number): void {
    const current = this.#slabs[this.#current];
    if (number === this.#current || current === undefined) this.#open(0);
    for (let unit = 0; unit < slab.top;) {
      const owner = slab.units[unit] as number;
      const length = slab.units[unit + 1] as number;
      const units = recordUnits(length);
      if (owner !== FREE) {
        const target = this.#room(units) ?? this.#open(units * UNIT);
        this.#liveUnits -= units; // #append counts it again
        const address = this.#append(target, { owner, length, units });
        const from = (unit + HEAD_UNITS) * UNIT;
        this.bytes.set(slab.bytes.subarray(from, from + length), this.start);
        this.#onMove(owner, address);
      }
      unit += units;
    }
    this.#release(number);
  }
}

/**
 * Slabs of the full size that no arena uses: in a full store, bodies are added and
 * compressed at the same rate.
 */
const unused: Slab[] = [];

function makeSlab(size: number): Slab {
  const length = Math.ceil(size / UNIT) * UNIT;
  const slab = length === SLAB_BYTES ? unused.pop() : undefined;
  if (slab !== undefined) {
    slab.top = 0;
    slab.live = 0;
    return slab;
  }
  const memory = length === SLAB_BYTES
    ? new SlabMemory(length)
    : new ArrayBuffer(length);
  return {
    memory,
    bytes: Buffer.from(memory),
    units: new Uint32Array(memory),
    top: 0,
    live: 0,
  };
}

/**
 * Keeps a slab for its next use, or frees its memory immediately. A garbage
 * collection would free it, too, but it starts only when tens of megabytes outside
 * the heap wait for it. Shared memory waits for one, which other memory starts,
 * that is never touched and takes no place.
 */
function discard(slab: Slab): void {
  const { memory } = slab;
  if (memory.byteLength === SLAB_BYTES) {
    unused.push(slab);
    if (unused.length <= MAX_UNUSED) return;
    for (const { memory } of unused.splice(0)) free(memory);
    if (SlabMemory === SharedArrayBuffer) new ArrayBuffer(UNTOUCHED_BYTES);
  } else free(memory);
}

function free(memory: ArrayBufferLike): void {
  if (memory instanceof ArrayBuffer) memory.transfer(0);
}

function recordUnits(length: number): number {
  return HEAD_UNITS + Math.ceil(length / UNIT);
}
