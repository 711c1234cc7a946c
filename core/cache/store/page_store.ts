import { Buffer } from "node:buffer";
import type { ByteRange } from "../../json/byte_range.ts";
import type { BodyCopy } from "./bodies.ts";
import { Carry } from "../../json/carry.ts";
import {
  compressPage,
  decompressPage,
  discardPage,
  type PageDictionary,
  usableDictionary,
} from "./page_codec.ts";
import { PagedInts } from "./paged_ints.ts";
import { SlabArena } from "./slab_arena.ts";

/** Bits of the ordinal of an object in its page, within an address. */
const ORDINAL_BITS = 4;
const ORDINAL_MASK = (1 << ORDINAL_BITS) - 1;
export const PAGE_OBJECTS: number = 1 << ORDINAL_BITS;
/** Maximum size of a page in bytes; a page that reaches it gets no further object. */
export const PAGE_BYTES: number = 96 * 1024;

export const DICTIONARY_OBJECTS = 8;
const DICTIONARY_BYTES = 64 * 1024;

/** Head of a page: the number of bodies, then slot and length of each. */
const COUNT_BYTES = 4;
const ENTRY_BYTES = 8;

/**
 * Store of the bodies of cold objects in compressed pages of up to 16. Neighbours
 * share most of their text, so that each takes a few per cent of its bytes. Text
 * that unrelated objects share is in a dictionary of a few objects, which is
 * created before the first page.
 *
 * Reading a body decompresses its page; the last page stays decompressed.
 */
export class PageStore {
  readonly #arena: SlabArena = new SlabArena((page, address) => {
    this.#addresses.set(page, address);
  });
  /**
   * Address, size before compression, number of objects and number of live
   * objects, by page.
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
  #open: Buffer = Buffer.alloc(0);

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
   * Creates the dictionary before the first page, if that was not tried so far.
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

  /**
   * Adds a page of up to {@linkcode PAGE_OBJECTS} objects.
   *
   * @returns Address of the first body; those of the others follow by one.
   */
  add(slots: readonly number[], bodyOf: (slot: number) => ByteRange): number {
    const bytes = this.#compose(slots, bodyOf);
    const frame = compressPage(bytes, this.#dictionary);
    const page = this.#free.pop() ?? this.#top++;
    this.#lengths.set(page, bytes.length);
    this.#addresses.set(page, this.#arena.allocate(page, frame.length));
    this.#arena.bytes.set(frame, this.#arena.start);
    this.#counts.set(page, slots.length);
    this.#live.set(page, slots.length);
    this.#objects += slots.length;
    return (page << ORDINAL_BITS) >>> 0;
  }

  #compose(
    slots: readonly number[],
    bodyOf: (slot: number) => ByteRange,
  ): Buffer {
    const page = this.#scratch;
    page.length = 0;
    page.append(Buffer.alloc(COUNT_BYTES + ENTRY_BYTES * slots.length));
    let head = page.bytes.writeUInt32LE(slots.length, 0);
    for (const slot of slots) {
      const { bytes, start, end } = bodyOf(slot);
      page.append(bytes.subarray(start, end));
      head = page.bytes.writeUInt32LE(slot, head);
      head = page.bytes.writeUInt32LE(end - start, head);
    }
    return page.bytes.subarray(0, page.length);
  }

  /** Body at an address, valid until another page is decompressed. */
  read(address: number): ByteRange {
    const page = this.#opened(address >>> ORDINAL_BITS);
    return bodyIn(page, address & ORDINAL_MASK);
  }

  /** Copies a body; its page is decompressed only when the copy is read. */
  copy(address: number, copy: BodyCopy): void {
    const page = address >>> ORDINAL_BITS;
    if (page === this.#openPage) return copy.keep(this.read(address));
    const ordinal = address & ORDINAL_MASK;
    const format = {
      length: this.#lengths.get(page),
      dictionary: this.#dictionary,
    };
    copy.keep(
      this.#lookAt(page),
      (frame) => bodyIn(decompressPage(frame, format), ordinal),
    );
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
   * Slots of all objects that the page of an address was created from, with their
   * addresses. Objects with another address by now have left the page.
   */
  slots(address: number): { slot: number; address: number }[] {
    const page = address >>> ORDINAL_BITS;
    const bytes = this.#opened(page);
    return Array.from({ length: bytes.readUInt32LE(0) }, (_, i) => ({
      slot: bytes.readUInt32LE(COUNT_BYTES + ENTRY_BYTES * i),
      address: ((page << ORDINAL_BITS) | i) >>> 0,
    }));
  }

  reclaim(): void {
    this.#arena.reclaim();
  }

  #opened(page: number): Buffer {
    if (page !== this.#openPage) {
      const { bytes, start, end } = this.#lookAt(page);
      this.#close();
      this.#open = decompressPage(bytes.subarray(start, end), {
        length: this.#lengths.get(page),
        dictionary: this.#dictionary,
      });
      this.#openPage = page;
    }
    return this.#open;
  }

  /** Compressed frame of a page. */
  #lookAt(page: number): ByteRange {
    return this.#arena.look(this.#addressOf(page));
  }

  /** Address of a page, as an unsigned integer. */
  #addressOf(page: number): number {
    return this.#addresses.get(page) >>> 0;
  }

  #close(): void {
    discardPage(this.#open);
    this.#openPage = -1;
    this.#open = Buffer.alloc(0);
  }
}

/** Body of an ordinal in a decompressed page. */
function bodyIn(page: Buffer, ordinal: number): ByteRange {
  let start = COUNT_BYTES + ENTRY_BYTES * page.readUInt32LE(0);
  const lengthAt = (i: number) =>
    page.readUInt32LE(COUNT_BYTES + ENTRY_BYTES * i + 4);
  for (let i = 0; i < ordinal; i++) start += lengthAt(i);
  return { bytes: page, start, end: start + lengthAt(ordinal) };
}
