import type { ByteRange } from "../../json/byte_range.ts";
import type { BodyCopy } from "./bodies.ts";
import type { UnwrittenBody } from "./bodies.ts";
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

/** In which tier a body is: the lower bits of its slot's state. */
const TIER_MASK = 3;
const BYTES = 1;
const COMPRESSED = 2;
const KEY_ONLY = 3;
/** Set when a body is written or read: it does not sink for one round. */
const USED = 4;

/** How many bodies one step looks at, at most. */
const LOOKS_PER_STEP = 64 * 1024;
/** How many bodies one step gives up, at most. */
const DROPS_PER_STEP = 512;

/**
 * The bodies of a store's objects, each in one of three tiers: as bytes, in a
 * compressed page, or given up. The columns `state` and `body` of the store's
 * slots belong to this class.
 *
 * Which bodies are cold is found as by a clock: a hand goes round over the
 * slots, takes the mark of use away where there is one, and what it meets
 * without a mark sinks.
 */
export class Tiers {
  readonly #slots: ObjectTable;
  readonly #arena: SlabArena;
  readonly #pages: PageStore = new PageStore();
  /** How many bodies each tier has. */
  readonly #counts: Uint32Array = new Uint32Array(TIER_MASK + 1);
  #hand = 0;
  #dropHand = 0;

  constructor(slots: ObjectTable) {
    this.#slots = slots;
    this.#arena = new SlabArena((slot, address) => {
      slots.page(slot).body[slot & PAGE_MASK] = address;
    });
  }

  /** Bodies as bytes. */
  get bytes(): TierUsage {
    const { allocatedBytes } = this.#arena;
    return { objects: this.#counts[BYTES] as number, bytes: allocatedBytes };
  }

  /** Bodies in compressed pages. */
  get compressed(): TierUsage {
    const { objects, allocatedBytes } = this.#pages;
    return { objects, bytes: allocatedBytes };
  }

  /** Bodies given up. */
  get keyOnly(): TierUsage {
    return { objects: this.#counts[KEY_ONLY] as number, bytes: 0 };
  }

  /** The memory that is held. */
  get allocatedBytes(): number {
    return this.#arena.allocatedBytes + this.#pages.allocatedBytes;
  }

  /** Keeps a body in place of the slot's former one, if it had one. */
  write(slot: number, body: UnwrittenBody): void {
    this.#store(slot, body);
    this.touch(slot);
  }

  /**
   * The body of a slot, valid until the next call of any method; undefined if
   * it was given up.
   */
  read(slot: number): ByteRange | undefined {
    const page = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const address = page.body[at] as number;
    switch ((page.state[at] as number) & TIER_MASK) {
      case BYTES:
        return this.#arena.look(address);
      case COMPRESSED:
        return this.#pages.read(address);
      default:
        return undefined;
    }
  }

  /**
   * Keeps the body of a slot in a copy that outlives it.
   *
   * @returns Whether there is one.
   */
  copy(slot: number, copy: BodyCopy): boolean {
    const page = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const address = page.body[at] as number;
    switch ((page.state[at] as number) & TIER_MASK) {
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

  /** Marks a body as used. */
  touch(slot: number): void {
    const { state } = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    state[at] = (state[at] as number) | USED;
  }

  /** Forgets the body of a slot that is about to be freed. */
  remove(slot: number): void {
    const { state, body } = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const tier = (state[at] as number) & TIER_MASK;
    this.#setTier(slot, 0);
    this.#release(tier, body[at] as number);
  }

  /** How many bytes may sink: pages of a few bodies would not be worth it. */
  get sinkableBytes(): number {
    const objects = this.#counts[BYTES] as number;
    const { liveBytes, allocatedBytes } = this.#arena;
    return objects >= PAGE_OBJECTS || liveBytes >= 2 * PAGE_BYTES
      ? allocatedBytes
      : 0;
  }

  /**
   * Moves cold bodies into a compressed page: a step of about a millisecond. A
   * step that only finds bodies in use makes them cold for the next one.
   */
  sink(): void {
    const cold = this.#findCold();
    if (cold.length > 0) {
      const bodyOf = (slot: number) => this.read(slot) as ByteRange;
      if (!this.#pages.hasDictionary) {
        this.#pages.setDictionary(this.#samples());
      }
      let address = this.#pages.add(cold, bodyOf);
      for (const slot of cold) {
        const { body } = this.#slots.page(slot);
        const at = slot & PAGE_MASK;
        this.#arena.free(body[at] as number);
        body[at] = address++;
        this.#setTier(slot, COMPRESSED);
      }
      this.#arena.reclaim();
    }
  }

  /** Gives cold bodies up: a step of about a millisecond. */
  drop(from: "bytes" | "compressed"): void {
    const tier = from === "bytes" ? BYTES : COMPRESSED;
    let left = Math.min(DROPS_PER_STEP, this.#counts[tier] as number);
    for (let looks = this.#looksAt(tier); looks > 0 && left > 0; looks--) {
      const slot = this.#nextIn(tier, this.#dropHand);
      this.#dropHand = slot + 1;
      if (this.#wasUsed(slot)) continue;
      const address = this.#slots.page(slot).body[slot & PAGE_MASK] as number;
      if (tier === BYTES) this.#arena.free(address);
      else this.#pages.remove(address);
      this.#setTier(slot, KEY_ONLY);
      left--;
    }
    if (tier === BYTES) this.#arena.reclaim();
    else this.#pages.reclaim();
  }

  /** A few bodies from all over the store. */
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

  /** The next bodies that were not used since the hand passed them. */
  #findCold(): number[] {
    const cold: number[] = [];
    let bytes = 0;
    for (let looks = this.#looksAt(BYTES); looks > 0; looks--) {
      const slot = this.#nextIn(BYTES, this.#hand);
      this.#hand = slot + 1;
      if (slot === cold[0]) break; // once round
      if (this.#wasUsed(slot)) continue;
      const address = this.#slots.page(slot).body[slot & PAGE_MASK] as number;
      const { start, end } = this.#arena.look(address);
      cold.push(slot);
      bytes += end - start;
      if (cold.length === PAGE_OBJECTS || bytes >= PAGE_BYTES) break;
    }
    return cold;
  }

  /** How many bodies of a tier a step may look at: all of them twice. */
  #looksAt(tier: number): number {
    return Math.min(LOOKS_PER_STEP, 2 * (this.#counts[tier] as number));
  }

  /** The next slot with a body in a tier, which must have one, from a slot on. */
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

  /** Takes the mark of use away; tells whether there was one. */
  #wasUsed(slot: number): boolean {
    const { state } = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const used = ((state[at] as number) & USED) !== 0;
    state[at] = (state[at] as number) & ~USED;
    return used;
  }

  #store(slot: number, body: UnwrittenBody): void {
    const arena = this.#arena;
    const page = this.#slots.page(slot);
    const at = slot & PAGE_MASK;
    const { length } = body;
    const tier = (page.state[at] as number) & TIER_MASK;
    if (tier === BYTES && arena.resize(page.body[at] as number, length)) {
      body.writeTo(arena.bytes, arena.start);
      return;
    }
    const address = arena.allocate(slot, length);
    body.writeTo(arena.bytes, arena.start);
    const former = page.body[at] as number; // allocating may have moved it
    page.body[at] = address;
    this.#setTier(slot, BYTES);
    this.#release(tier, former);
  }

  #release(tier: number, address: number): void {
    if (tier === BYTES) this.#arena.free(address);
    if (tier === COMPRESSED && this.#pages.remove(address)) {
      this.#rescue(address);
    }
  }

  /** Moves what lives of a page that is half dead back to the bytes. */
  #rescue(address: number): void {
    for (const member of this.#pages.slots(address)) {
      const { state, body } = this.#slots.page(member.slot);
      const at = member.slot & PAGE_MASK;
      if (
        ((state[at] as number) & TIER_MASK) !== COMPRESSED ||
        body[at] !== member.address
      ) continue;
      const { bytes, start, end } = this.#pages.read(member.address);
      body[at] = this.#arena.allocate(member.slot, end - start);
      this.#arena.bytes.set(bytes.subarray(start, end), this.#arena.start);
      this.#setTier(member.slot, BYTES);
      this.#pages.remove(member.address);
    }
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
