import { Buffer } from "node:buffer";
import type { ByteRange } from "../../json/byte_range.ts";
import type { BodyCopy } from "./bodies.ts";
import {
  discardPage,
  pageCodec,
  type PageDictionary,
  usableDictionary,
} from "./page_codec.ts";
import { PagedInts } from "./paged_ints.ts";
import { SlabArena } from "./slab_arena.ts";

/** How many objects a page has at most; four bits of an address. */
const ORDINAL_BITS = 4;
const ORDINAL_MASK = (1 << ORDINAL_BITS) - 1;
export const PAGE_OBJECTS: number = 1 << ORDINAL_BITS;
/** A page is closed when it is this long, though it has fewer objects. */
export const PAGE_BYTES: number = 96 * 1024;

/** What all pages may refer to: a few objects, and not more than this. */
export const DICTIONARY_OBJECTS = 8;
const DICTIONARY_BYTES = 64 * 1024;

/** Before the bodies: how many there are, then each one's slot and length. */
const COUNT_BYTES = 4;
const ENTRY_BYTES = 8;
const FIRST_SCRATCH_BYTES = 16 * 1024;

/**
 * Bodies of cold objects in compressed pages of up to 16: neighbours share most
 * of their text, so that one of them takes a few per cent of its bytes. What
 * strangers share, too, is in a dictionary of a few objects, made before the
 * first page, which no page then has to have for itself.
 *
 * Reading one opens its page; the page opened last stays open.
 */
export class PageStore {
  readonly #arena: SlabArena = new SlabArena((page, address) => {
    this.#addresses.set(page, address);
  });
  /**
   * For each page: where it is, how long it was before it was compressed, how
   * many objects it had, and how many live.
   */
  readonly #addresses: PagedInts = new PagedInts(0);
  readonly #lengths: PagedInts = new PagedInts(0);
  readonly #counts: PagedInts = new PagedInts(0);
  readonly #live: PagedInts = new PagedInts(0);
  /** Numbers of pages that are gone. */
  readonly #free: number[] = [];
  #top = 0;
  #objects = 0;
  #dictionary: PageDictionary;
  #hasDictionary = false;
  /** Where pages are put together. */
  #scratch: Buffer = Buffer.alloc(0);
  /** The page opened last, decompressed. */
  #openPage = -1;
  #open: Buffer = Buffer.alloc(0);

  /** How many objects there are. */
  get objects(): number {
    return this.#objects;
  }

  /** The memory that is held. */
  get allocatedBytes(): number {
    return this.#arena.allocatedBytes + this.#open.length +
      (this.#dictionary?.length ?? 0) + this.#addresses.allocatedBytes +
      this.#lengths.allocatedBytes + this.#counts.allocatedBytes +
      this.#live.allocatedBytes;
  }

  /** Whether there is a dictionary, or it was found that there cannot be one. */
  get hasDictionary(): boolean {
    return this.#hasDictionary;
  }

  /**
   * Makes the dictionary, once and before the first page.
   *
   * @param samples Objects as different as can be.
   */
  setDictionary(samples: Iterable<ByteRange>): void {
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
   * Makes a page of up to {@linkcode PAGE_OBJECTS} objects.
   *
   * @param slots Their slots, which {@linkcode PageStore.slots} tells later.
   * @param bodyOf Tells the bytes of a slot.
   * @returns The address of the first; those of the others follow by one.
   */
  add(slots: readonly number[], bodyOf: (slot: number) => ByteRange): number {
    const bytes = this.#compose(slots, bodyOf);
    const frame = pageCodec.compress(bytes, this.#dictionary);
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
    let end = COUNT_BYTES + ENTRY_BYTES * slots.length;
    let head = 0;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] as number;
      const body = bodyOf(slot);
      const length = body.end - body.start;
      const page = this.#room(end, length);
      page.set(body.bytes.subarray(body.start, body.end), end);
      if (i === 0) head = page.writeUInt32LE(slots.length, 0);
      head = page.writeUInt32LE(slot, head);
      head = page.writeUInt32LE(length, head);
      end += length;
    }
    return this.#scratch.subarray(0, end);
  }

  /** The scratch memory with room behind what it holds already. */
  #room(held: number, more: number): Buffer {
    if (held + more > this.#scratch.length) {
      const grown = Buffer.alloc(
        Math.max(held + more, FIRST_SCRATCH_BYTES, 2 * held),
      );
      this.#scratch.copy(grown, 0, 0, held);
      this.#scratch = grown;
    }
    return this.#scratch;
  }

  /** The body at an address, valid until another page is opened. */
  read(address: number): ByteRange {
    const page = this.#opened(address >>> ORDINAL_BITS);
    return bodyIn(page, address & ORDINAL_MASK);
  }

  /** Keeps a body in a copy that outlives it; its page is not opened for it. */
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
      (frame) => bodyIn(pageCodec.decompress(frame, format), ordinal),
    );
  }

  /**
   * Removes an object from its page.
   *
   * @returns Whether half of the page or more is dead now: its objects should
   * move, see {@linkcode PageStore.slots}.
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
   * The slots of all objects that the page of an address was made of, with the
   * addresses they got: those that have others by now are not meant any more.
   */
  slots(address: number): { slot: number; address: number }[] {
    const page = address >>> ORDINAL_BITS;
    const bytes = this.#opened(page);
    return Array.from({ length: bytes.readUInt32LE(0) }, (_, i) => ({
      slot: bytes.readUInt32LE(COUNT_BYTES + ENTRY_BYTES * i),
      address: ((page << ORDINAL_BITS) | i) >>> 0,
    }));
  }

  /** Gives dead space back. */
  reclaim(): void {
    this.#arena.reclaim();
  }

  #opened(page: number): Buffer {
    if (page !== this.#openPage) {
      const { bytes, start, end } = this.#lookAt(page);
      this.#close();
      this.#open = pageCodec.decompress(bytes.subarray(start, end), {
        length: this.#lengths.get(page),
        dictionary: this.#dictionary,
      });
      this.#openPage = page;
    }
    return this.#open;
  }

  /** The frame of a page. */
  #lookAt(page: number): ByteRange {
    return this.#arena.look(this.#addressOf(page));
  }

  /** Addresses have 32 bits without a sign. */
  #addressOf(page: number): number {
    return this.#addresses.get(page) >>> 0;
  }

  #close(): void {
    discardPage(this.#open);
    this.#openPage = -1;
    this.#open = Buffer.alloc(0);
  }
}

/** The body of an ordinal in a page that is open. */
function bodyIn(page: Buffer, ordinal: number): ByteRange {
  let start = COUNT_BYTES + ENTRY_BYTES * page.readUInt32LE(0);
  const lengthAt = (i: number) =>
    page.readUInt32LE(COUNT_BYTES + ENTRY_BYTES * i + 4);
  for (let i = 0; i < ordinal; i++) start += lengthAt(i);
  return { bytes: page, start, end: start + lengthAt(ordinal) };
}
