import type { ByteRange } from "../../json/byte_range.ts";
import type { BodyCopy, BodyWriter } from "./bodies.ts";
import {
  DICTIONARY_OBJECTS,
  PAGE_BYTES,
  PAGE_OBJECTS,
  PageStore,
} from "./page_store.ts";
import { SlabArena } from "./slab_arena.ts";
import { PAGE_MASK } from "./slot_page.ts";
import type { ObjectTable } from "./object_table.ts";
import type { TierUsage } from "./store_usage.ts";

/** Tier of a body: the lower bits of the state of its slot. */
const TIER_MASK = 3;
const BYTES = 1;
const COMPRESSED = 2;
const KEY_ONLY = 3;
/** Bit set when a body is written or read: it is not demoted for one round. */
const USED = 4;

const CHECKS_PER_STEP = 64 * 1024;
const DROPS_PER_STEP = 512;

/**
 * Memory tiers of a store: the body of each object is stored as bytes, in a
 * compressed page, or not at all. The columns `state` and `body` of the table
 * belong to this class.
 *
 * Cold bodies are found by the clock algorithm: a hand goes round the slots,
 * clears the mark of use where it is set, and demotes bodies without it.
 */
export class Tiers {
  readonly #slots: ObjectTable;
  readonly #arena: SlabArena;
  readonly #pages: PageStore = new PageStore();
  /** Number of bodies by tier. */
  readonly #counts: Uint32Array = new Uint32Array(TIER_MASK + 1);
  #hand = 0;
  #dropHand = 0;

  constructor(slots: ObjectTable) {
    this.#slots = slots;
    this.#arena = new SlabArena((slot, address) => {
      slots.page(slot).body[slot & PAGE_MASK] = address;
    });
  }

  get bytes(): TierUsage {
    const { allocatedBytes } = this.#arena;
    return { objects: this.#counts[BYTES] as number, bytes: allocatedBytes };
  }

  get compressed(): TierUsage {
    const { objects, allocatedBytes } = this.#pages;
    return { objects, bytes: allocatedBytes };
  }

  /** Number of objects without a body. */
  get keyOnly(): TierUsage {
    return { objects: this.#counts[KEY_ONLY] as number, bytes: 0 };
  }

  get allocatedBytes(): number {
    return this.#arena.allocatedBytes + this.#pages.allocatedBytes;
  }

  /** Writes the body of a slot, in place of its former one if it has one. */
  write(slot: number, body: BodyWriter): void {
    this.#store(slot, body);
    this.touch(slot);
  }

  /**
   * Body of a slot, valid until the next call of any method; undefined if it was
   * dropped.
   */
  read(slot: number): ByteRange | undefined {
    const address = this.#addressOf(slot);
    switch (this.#tierOf(slot)) {
      case BYTES:
        return this.#arena.look(address);
      case COMPRESSED:
        return this.#pages.read(address);
      default:
        return undefined;
    }
  }

  /**
   * Copies the body of a slot.
   *
   * @returns Whether there is a body.
   */
  copy(slot: number, copy: BodyCopy): boolean {
    const address = this.#addressOf(slot);
    switch (this.#tierOf(slot)) {
      case BYTES:
        copy.keep(this.#arena.look(address));
        return true;
      case COMPRESSED:
        this.#pages.copy(address, copy);
        return true;
      default:
        return false;
    }
  }

  touch(slot: number): void {
    const { state } = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    state[at] = (state[at] as number) | USED;
  }

  /** Removes the body of a slot that is about to be freed. */
  remove(slot: number): void {
    const tier = this.#tierOf(slot);
    this.#setTier(slot, 0);
    this.#release(tier, this.#addressOf(slot));
  }

  /** Number of bytes to compress; 0 if pages would have only a few bodies. */
  get compressibleBytes(): number {
    const objects = this.#counts[BYTES] as number;
    const { liveBytes, allocatedBytes } = this.#arena;
    return objects >= PAGE_OBJECTS || liveBytes >= 2 * PAGE_BYTES
      ? allocatedBytes
      : 0;
  }

  /**
   * Compresses some cold bodies into a page, in about a millisecond. A step that
   * only finds used bodies marks them as cold for the next one.
   */
  compress(): void {
    const cold = this.#findCold();
    if (cold.length > 0) {
      const bodyOf = (slot: number) => this.read(slot) as ByteRange;
      this.#pages.ensureDictionary(this.#samples());
      let address = this.#pages.add(cold, bodyOf);
      for (const slot of cold) {
        this.#arena.free(this.#addressOf(slot));
        this.#place(slot, COMPRESSED, address++);
      }
      this.#arena.reclaim();
    }
  }

  /** Drops some cold bodies of a tier, in about a millisecond. */
  drop(from: "bytes" | "compressed"): void {
    const tier = from === "bytes" ? BYTES : COMPRESSED;
    let left = Math.min(DROPS_PER_STEP, this.#counts[tier] as number);
    for (let checks = this.#checksOf(tier); checks > 0 && left > 0; checks--) {
      const slot = this.#nextIn(tier, this.#dropHand);
      this.#dropHand = slot + 1;
      if (this.#wasUsed(slot)) continue;
      const address = this.#addressOf(slot);
      if (tier === BYTES) this.#arena.free(address);
      else this.#pages.remove(address);
      this.#setTier(slot, KEY_ONLY);
      left--;
    }
    if (tier === BYTES) this.#arena.reclaim();
    else this.#pages.reclaim();
  }

  /** A few bodies, evenly distributed over the slots. */
  *#samples(): Generator<ByteRange> {
    const { top } = this.#slots;
    for (let i = 0; i < DICTIONARY_OBJECTS; i++) {
      const slot = this.#slots.nextUsed(
        Math.floor(i * top / DICTIONARY_OBJECTS),
      );
      const body = slot < 0 ? undefined : this.read(slot);
      if (body !== undefined) yield body;
    }
  }

  /** Slots of the next bodies that were not used since the hand passed them. */
  #findCold(): number[] {
    const cold: number[] = [];
    let bytes = 0;
    for (let checks = this.#checksOf(BYTES); checks > 0; checks--) {
      const slot = this.#nextIn(BYTES, this.#hand);
      this.#hand = slot + 1;
      if (slot === cold[0]) break; // a full round
      if (this.#wasUsed(slot)) continue;
      const { start, end } = this.#arena.look(this.#addressOf(slot));
      cold.push(slot);
      bytes += end - start;
      if (cold.length === PAGE_OBJECTS || bytes >= PAGE_BYTES) break;
    }
    return cold;
  }

  /** Maximum number of bodies that one step checks: twice those of the tier. */
  #checksOf(tier: number): number {
    return Math.min(CHECKS_PER_STEP, 2 * (this.#counts[tier] as number));
  }

  /** Next slot with a body in a tier, which must not be empty. */
  #nextIn(tier: number, from: number): number {
    const { top } = this.#slots;
    for (let slot = from < top ? from : 0;;) {
      const { bodies, state } = this.#slots.page(slot);
      const end = Math.min((slot | PAGE_MASK) + 1, top);
      for (; slot < end && (bodies[tier] as number) > 0; slot++) {
        const found = (state[slot & PAGE_MASK] as number) & TIER_MASK;
        if (found === tier) return slot;
      }
      slot = end < top ? end : 0;
    }
  }

  /** Clears the mark of use; returns whether it was set. */
  #wasUsed(slot: number): boolean {
    const { state } = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const used = ((state[at] as number) & USED) !== 0;
    state[at] = (state[at] as number) & ~USED;
    return used;
  }

  #store(slot: number, body: BodyWriter): void {
    const arena = this.#arena;
    const { length } = body;
    const tier = this.#tierOf(slot);
    if (tier === BYTES && arena.resize(this.#addressOf(slot), length)) {
      body.writeTo(arena.bytes, arena.start);
      return;
    }
    const address = arena.allocate(slot, length);
    body.writeTo(arena.bytes, arena.start);
    const former = this.#addressOf(slot); // allocating may have moved it
    this.#place(slot, BYTES, address);
    this.#release(tier, former);
  }

  #release(tier: number, address: number): void {
    if (tier === BYTES) this.#arena.free(address);
    if (tier === COMPRESSED && this.#pages.remove(address)) {
      this.#rescue(address);
    }
  }

  /** Moves the live bodies of a page that is half dead back to bytes. */
  #rescue(first: number): void {
    for (const { slot, address } of this.#pages.slots(first)) {
      if (
        this.#tierOf(slot) !== COMPRESSED || this.#addressOf(slot) !== address
      ) continue;
      const { bytes, start, end } = this.#pages.read(address);
      this.#place(slot, BYTES, this.#arena.allocate(slot, end - start));
      this.#arena.bytes.set(bytes.subarray(start, end), this.#arena.start);
      this.#pages.remove(address);
    }
  }

  #tierOf(slot: number): number {
    const { state } = this.#slots.page(slot);
    return (state[slot & PAGE_MASK] as number) & TIER_MASK;
  }

  #addressOf(slot: number): number {
    return this.#slots.page(slot).body[slot & PAGE_MASK] as number;
  }

  #place(slot: number, tier: number, address: number): void {
    this.#slots.page(slot).body[slot & PAGE_MASK] = address;
    this.#setTier(slot, tier);
  }

  #setTier(slot: number, tier: number): void {
    const { state, bodies } = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const former = (state[at] as number) & TIER_MASK;
    for (const counts of [this.#counts, bodies]) {
      counts[former] = (counts[former] as number) - 1;
      counts[tier] = (counts[tier] as number) + 1;
    }
    state[at] = ((state[at] as number) & ~TIER_MASK) | tier;
  }
}
