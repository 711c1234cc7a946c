import { type ByteRange, NO_BYTES } from "../../json/byte_range.ts";
import type { BodyCopy, BodyWriter } from "./bodies.ts";
import { SlabArena } from "./slab_arena.ts";
import { type ObjectTable, PAGE_MASK } from "./object_table.ts";
import type { TierUsage } from "./store_usage.ts";
import { Buffer } from "node:buffer";
import { Carry } from "../../json/carry.ts";
import {
  compressPage,
  decompressPage,
  discardPage,
  type PageDictionary,
  type PageFormat,
  usableDictionary,
} from "./page_codec.ts";
import { PagedInts } from "./paged_ints.ts";
import { bodyIn, composePage, type UidOf } from "./page_layout.ts";

/** Bits of the state of a slot that contain the tier of its body. */
const TIER_MASK = 3;
const BYTES = 1;
const COMPRESSED = 2;
const KEY_ONLY = 3;
/** Mark of use, set by writes and reads: the body keeps its tier for one round. */
const USED = 4;

const CHECKS_PER_STEP = 64 * 1024;
/** Largest share of uncompressed bodies, of the others, that return to their pages. */
const MAX_RETURNING_SHARE = 1 / 8;
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
  #pages: PageStore;
  /** Number of bodies by tier. */
  readonly #counts: Uint32Array = new Uint32Array(TIER_MASK + 1);
  #hand = 0;
  #dropHand = 0;

  constructor(slots: ObjectTable) {
    this.#slots = slots;
    this.#pages = this.#noPages();
    this.#arena = new SlabArena((slot, address) => {
      slots.page(slot).body[slot & PAGE_MASK] = address;
    });
  }

  #noPages(): PageStore {
    return new PageStore((slot) => this.#slots.uidBytes(slot));
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

  /** Writes the body of a slot and replaces the former one, if any. */
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
   * Body of a slot, as for {@linkcode Tiers.read}; undefined, too, if its page cannot
   * be read: pages of snapshots are taken over unread.
   */
  tryRead(slot: number): ByteRange | undefined {
    try {
      return this.read(slot);
    } catch {
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
        return this.#pages.copy(address, copy);
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

  /** Drops the bodies of all slots, which are removed with them. */
  clear(): void {
    this.#arena.clear();
    this.#pages.clear();
    this.#pages = this.#noPages();
    this.#counts.fill(0);
    this.#hand = this.#dropHand = 0;
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
   * finds only used bodies marks them as cold for the next one.
   */
  compress(): void {
    const cold = this.#findCold();
    if (cold.length > 0) {
      const bodyOf = (slot: number) => this.read(slot) as ByteRange;
      if (this.#slots.size >= MIN_DICTIONARY_OBJECTS) this.ensureDictionary();
      let address = this.#pages.add(cold, bodyOf);
      for (const slot of cold) {
        const former = this.#addressOf(slot);
        if (this.#tierOf(slot) === BYTES) this.#arena.free(former);
        else this.#pages.remove(former);
        this.#place(slot, COMPRESSED, address++);
      }
      this.#arena.reclaim();
      this.#pages.reclaim();
    }
  }

  /** Dictionary of the pages; undefined if they have none. */
  get dictionary(): PageDictionary {
    return this.#pages.dictionary;
  }

  /** Creates the dictionary of the pages, unless that was tried before. */
  ensureDictionary(): void {
    this.#pages.ensureDictionary(this.#samples());
  }

  /** Takes over the dictionary of a snapshot, for its pages and later ones. */
  adoptDictionary(dictionary: Uint8Array): void {
    this.#pages.adoptDictionary(dictionary);
  }

  /**
   * Compressed page with the body of a slot, and the slots of its live bodies, or -1,
   * in their order; undefined if the body is not compressed. Both are valid until the
   * next call.
   */
  storedPage(
    slot: number,
  ): { readonly page: StoredPage; readonly slots: number[] } | undefined {
    if (this.#tierOf(slot) !== COMPRESSED) return undefined;
    const address = this.#addressOf(slot);
    const page = this.#pages.stored(address);
    const slots = new Array<number>(page.count).fill(-1);
    for (const one of this.#pages.slots(address)) {
      if (this.#isAt(one.slot, one.address)) {
        slots[one.address & ORDINAL_MASK] = one.slot;
      }
    }
    return { page, slots };
  }

  /**
   * Adds a compressed page of a snapshot as it is.
   *
   * @returns Address of its first body; each must be placed or skipped.
   */
  adopt(page: StoredPage): number {
    return this.#pages.adopt(page);
  }

  /** Places the body of an adopted page in a slot. */
  placeAdopted(slot: number, address: number): void {
    this.#pages.setSlot(address, slot);
    this.#place(slot, COMPRESSED, address);
  }

  /**
   * Leaves out the body of an adopted page.
   *
   * @returns Whether the others should be moved, by {@linkcode Tiers.rescuePage}.
   */
  skipAdopted(address: number): boolean {
    return this.#pages.remove(address);
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
      const body = slot < 0 ? undefined : this.tryRead(slot);
      if (body !== undefined) yield body;
    }
  }

  /**
   * Slots of the next bodies that were not used since the hand passed them, and of
   * those that the first of them returns to.
   */
  #findCold(): number[] {
    let cold: number[] = [];
    let first = -1;
    let bytes = 0;
    for (let checks = this.#checksOf(BYTES); checks > 0; checks--) {
      const slot = this.#nextIn(BYTES, this.#hand);
      if (slot === first) break; // a full round
      const isStranger = first >= 0 && cold[0] !== first &&
        Math.abs(slot - first) >= PAGE_OBJECTS;
      if (isStranger) break;
      this.#hand = slot + 1;
      if (this.#wasUsed(slot)) continue;
      if (first < 0) {
        first = slot;
        ({ slots: cold, bytes } = this.#homeOf(slot));
      }
      const { start, end } = this.#arena.look(this.#addressOf(slot));
      cold.push(slot);
      bytes += end - start;
      if (cold.length === PAGE_OBJECTS || bytes >= PAGE_BYTES) break;
    }
    return cold;
  }

  /**
   * Bodies of the page of a neighbour in which a slot has room. A body that has
   * changed returns to its neighbours once nearly all are compressed: among strangers
   * it takes more than twice the memory, but a tenth of the time.
   */
  #homeOf(slot: number): { slots: number[]; bytes: number } {
    const most = (this.#counts[COMPRESSED] as number) * MAX_RETURNING_SHARE;
    const isNear = (this.#counts[BYTES] as number) <= most;
    for (const neighbour of isNear ? [slot + 1, slot - 1] : []) {
      if (
        neighbour < 0 || neighbour >= this.#slots.top ||
        this.#tierOf(neighbour) !== COMPRESSED
      ) continue;
      const address = this.#addressOf(neighbour);
      const { live, bytes } = this.#pages.fillOf(address);
      if (live === PAGE_OBJECTS || bytes >= PAGE_BYTES) continue;
      const slots = this.#pages.slots(address)
        .filter((body) => this.#isAt(body.slot, body.address))
        .map((body) => body.slot)
        .filter((slot) => this.tryRead(slot) !== undefined);
      return { slots, bytes };
    }
    return { slots: [], bytes: 0 };
  }

  /** Maximum number of bodies that one step checks: two rounds of the tier. */
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

  /** Moves the bodies of the page with that of a slot to uncompressed bytes. */
  rescuePage(slot: number): void {
    if (this.#tierOf(slot) === COMPRESSED) this.#rescue(this.#addressOf(slot));
  }

  /** Moves the live bodies of a half-dead page back to uncompressed bytes. */
  #rescue(first: number): void {
    for (const { slot, address } of this.#pages.slots(first)) {
      if (!this.#isAt(slot, address)) continue;
      const body = this.tryRead(slot);
      if (body === undefined) continue; // it stays where it is
      const { bytes, start, end } = body;
      this.#place(slot, BYTES, this.#arena.allocate(slot, end - start));
      this.#arena.bytes.set(bytes.subarray(start, end), this.#arena.start);
      this.#pages.remove(address);
    }
  }

  #tierOf(slot: number): number {
    const { state } = this.#slots.page(slot);
    return (state[slot & PAGE_MASK] as number) & TIER_MASK;
  }

  /** Whether the body of a slot is at an address of the pages. */
  #isAt(slot: number, address: number): boolean {
    return this.#tierOf(slot) === COMPRESSED &&
      this.#addressOf(slot) === address;
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

/** Number of bits in an address for the ordinal of an object in its page. */
const ORDINAL_BITS = 4;
const ORDINAL_MASK = (1 << ORDINAL_BITS) - 1;
export const PAGE_OBJECTS: number = 1 << ORDINAL_BITS;
/** Maximum size of a page in bytes; a page of this size gets no further object. */
export const PAGE_BYTES: number = 96 * 1024;

/** Share of dead space: moving pages is little beside compressing one. */
const MAX_DEAD_SHARE = 1 / 32;

const DICTIONARY_OBJECTS = 8;
/** Number of objects from which on a dictionary saves more than it takes. */
const MIN_DICTIONARY_OBJECTS = 256;
export const DICTIONARY_BYTES: number = 64 * 1024;

/** Size of the slot of a body in the record of a page. */
const SLOT_BYTES = 4;
/** Slot of a body that is not placed. */
const NO_SLOT = 0xffffffff;

/** Compressed page of bodies, as snapshots keep it. */
export interface StoredPage {
  /** Number of bodies. */
  readonly count: number;
  /** Size before compression, in bytes. */
  readonly length: number;
  /** Whether it was compressed without the dictionary. */
  readonly isPlain: boolean;
  readonly bytes: Uint8Array;
}

/**
 * Store of the bodies of cold objects in compressed pages of up to 16. Neighbours
 * share most of their text, so that each takes a few per cent of its bytes. Text
 * that unrelated objects share is in a dictionary of a few objects, which is
 * created before the first page. The UIDs of the bodies are left out.
 *
 * Reading a body decompresses its page; the last page stays decompressed.
 */
export class PageStore {
  /** Records of pages: the slots of the bodies, and the compressed page. */
  readonly #arena: SlabArena = new SlabArena((page, address) => {
    this.#addresses.set(page, address);
  }, MAX_DEAD_SHARE);
  /**
   * Address, size before compression (negative without the dictionary), number of
   * objects and number of live objects, by page.
   */
  readonly #addresses: PagedInts = new PagedInts(0);
  readonly #lengths: PagedInts = new PagedInts(0);
  readonly #counts: PagedInts = new PagedInts(0);
  readonly #live: PagedInts = new PagedInts(0);
  readonly #free: number[] = [];
  #top = 0;
  #objects = 0;
  #dictionary: PageDictionary;
  #hasDictionary = false;
  /** Memory in which pages are composed. */
  readonly #scratch: Carry = new Carry();
  /** Number and content of the page that was decompressed last. */
  #openPage = -1;
  #open: Buffer = NO_BYTES;
  readonly #uidOf: UidOf;

  /** @param uidOf Returns UIDs that pages leave out, always the same for a slot. */
  constructor(uidOf: UidOf = () => undefined) {
    this.#uidOf = uidOf;
  }

  get objects(): number {
    return this.#objects;
  }

  get allocatedBytes(): number {
    return this.#arena.allocatedBytes + this.#open.length +
      (this.#dictionary?.length ?? 0) + this.#addresses.allocatedBytes +
      this.#lengths.allocatedBytes + this.#counts.allocatedBytes +
      this.#live.allocatedBytes;
  }

  /**
   * Creates the dictionary before the first page, unless that was tried before.
   *
   * @param samples Bodies that are as different as possible.
   */
  ensureDictionary(samples: Iterable<ByteRange>): void {
    if (this.#hasDictionary) return;
    const parts: Uint8Array[] = [];
    let length = 0;
    for (const { bytes, start, end } of samples) {
      length += end - start;
      if (length > DICTIONARY_BYTES) break;
      // A copy: the next sample may be read into the same memory.
      parts.push(new Uint8Array(bytes.subarray(start, end)));
    }
    this.#dictionary = usableDictionary(Buffer.concat(parts));
    this.#hasDictionary = true;
  }

  get dictionary(): PageDictionary {
    return this.#dictionary;
  }

  /** @throws {RangeError} If pages have been compressed with another one. */
  adoptDictionary(dictionary: Uint8Array): void {
    const known = this.#dictionary;
    const isSame = known !== undefined &&
      Buffer.compare(known, dictionary) === 0;
    if (isSame) return;
    if (known !== undefined && this.#objects > 0) {
      throw new RangeError(
        "Cannot take over a dictionary: the cache has pages with another one",
      );
    }
    this.#dictionary = dictionary;
    this.#hasDictionary = true;
  }

  /**
   * Adds a page of up to {@linkcode PAGE_OBJECTS} objects.
   *
   * @returns Address of the first body; the other bodies have the next addresses.
   */
  add(slots: readonly number[], bodyOf: (slot: number) => ByteRange): number {
    const { length: count } = slots;
    const page = composePage(
      this.#scratch,
      count,
      (i) => bodyOf(slots[i] as number),
      (i) => this.#uidOf(slots[i] as number),
    );
    const bytes = compressPage(page, this.#dictionary);
    const isPlain = this.#dictionary === undefined;
    const first = this.adopt({ count, length: page.length, isPlain, bytes });
    for (const [i, slot] of slots.entries()) this.setSlot(first + i, slot);
    return first;
  }

  /**
   * Adds a page that is compressed, with the dictionary of the store or without.
   *
   * @returns Address of the first body; the other bodies have the next addresses.
   */
  adopt({ count, length, isPlain, bytes }: StoredPage): number {
    const page = this.#free.pop() ?? this.#top++;
    const head = SLOT_BYTES * count;
    const arena = this.#arena;
    this.#lengths.set(page, isPlain ? -length : length);
    this.#addresses.set(page, arena.allocate(page, head + bytes.length));
    arena.bytes.fill(0xff, arena.start, arena.start + head);
    arena.bytes.set(bytes, arena.start + head);
    this.#counts.set(page, count);
    this.#live.set(page, count);
    this.#objects += count;
    return (page << ORDINAL_BITS) >>> 0;
  }

  /** Notes the slot of the body at an address. */
  setSlot(address: number, slot: number): void {
    const { bytes, start } = this.#recordOf(address >>> ORDINAL_BITS);
    const ordinal = address & ORDINAL_MASK;
    bytes.writeUInt32LE(slot, start + SLOT_BYTES * ordinal);
  }

  #uidAt(address: number): Buffer | undefined {
    const { bytes, start } = this.#recordOf(address >>> ORDINAL_BITS);
    const ordinal = address & ORDINAL_MASK;
    return this.#uidOf(bytes.readUInt32LE(start + SLOT_BYTES * ordinal));
  }

  /** Compressed page of an address, valid until the next call. */
  stored(address: number): StoredPage {
    const page = address >>> ORDINAL_BITS;
    const { bytes, start, end } = this.#lookAt(page);
    const { length, dictionary } = this.#formatOf(page);
    return {
      count: this.#counts.get(page),
      length,
      isPlain: dictionary === undefined,
      bytes: bytes.subarray(start, end),
    };
  }

  /** Body at an address, valid until another page is decompressed. */
  read(address: number): ByteRange {
    const page = this.#opened(address >>> ORDINAL_BITS);
    return bodyIn(page, address & ORDINAL_MASK, () => this.#uidAt(address));
  }

  /**
   * Copies a body; its page is decompressed only when the copy is read.
   *
   * @returns False if the page is known to have no such body.
   */
  copy(address: number, copy: BodyCopy): boolean {
    const page = address >>> ORDINAL_BITS;
    if (page === this.#openPage) {
      try {
        copy.keep(this.read(address));
        return true;
      } catch {
        return false;
      }
    }
    const ordinal = address & ORDINAL_MASK;
    const format = this.#formatOf(page);
    const shared = this.#uidAt(address);
    const uid = shared && Buffer.from(shared);
    copy.keep(
      this.#lookAt(page),
      (frame) => bodyIn(decompressPage(frame, format), ordinal, () => uid),
    );
    return true;
  }

  /** Number of the live bodies in the page of an address, and about their size. */
  fillOf(address: number): { readonly live: number; readonly bytes: number } {
    const page = address >>> ORDINAL_BITS;
    const live = this.#live.get(page);
    const { length } = this.#formatOf(page);
    return { live, bytes: length * live / this.#counts.get(page) };
  }

  /**
   * Removes an object from its page.
   *
   * @returns Whether half of the page or more is dead now: its objects should be
   * moved, see {@linkcode PageStore.slots}.
   */
  remove(address: number): boolean {
    const page = address >>> ORDINAL_BITS;
    const live = this.#live.get(page) - 1;
    this.#live.set(page, live);
    this.#objects--;
    if (live > 0) return live <= this.#counts.get(page) / 2;
    this.#arena.free(this.#addressOf(page));
    this.#free.push(page);
    if (page === this.#openPage) this.#close();
    return false;
  }

  /**
   * Slots of all objects that were placed in the page of an address, with their
   * addresses. Objects with another address by now have left the page.
   */
  slots(address: number): { slot: number; address: number }[] {
    const page = address >>> ORDINAL_BITS;
    const count = this.#counts.get(page);
    const { bytes, start } = this.#recordOf(page);
    const slots: { slot: number; address: number }[] = [];
    for (let i = 0; i < count; i++) {
      const slot = bytes.readUInt32LE(start + SLOT_BYTES * i);
      if (slot === NO_SLOT) continue;
      slots.push({ slot, address: ((page << ORDINAL_BITS) | i) >>> 0 });
    }
    return slots;
  }

  reclaim(): void {
    this.#arena.reclaim();
  }

  /** Frees the memory of all pages; no call may follow. */
  clear(): void {
    this.#arena.clear();
    this.#close();
  }

  #opened(page: number): Buffer {
    if (page !== this.#openPage) {
      const { bytes, start, end } = this.#lookAt(page);
      this.#close();
      this.#open = decompressPage(
        bytes.subarray(start, end),
        this.#formatOf(page),
      );
      this.#openPage = page;
    }
    return this.#open;
  }

  #formatOf(page: number): PageFormat {
    const length = this.#lengths.get(page);
    return length < 0
      ? { length: -length, dictionary: undefined }
      : { length, dictionary: this.#dictionary };
  }

  /** Compressed frame of a page. */
  #lookAt(page: number): ByteRange {
    const { bytes, start, end } = this.#recordOf(page);
    return {
      bytes,
      start: start + SLOT_BYTES * this.#counts.get(page),
      end,
    };
  }

  #recordOf(page: number): SlabArena {
    return this.#arena.look(this.#addressOf(page));
  }

  /** Address of a page, as an unsigned integer. */
  #addressOf(page: number): number {
    return this.#addresses.get(page) >>> 0;
  }

  #close(): void {
    discardPage(this.#open);
    this.#openPage = -1;
    this.#open = NO_BYTES;
  }
}
