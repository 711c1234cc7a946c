import { Buffer } from "node:buffer";
import { type ByteRange, rangeText } from "../../json/byte_range.ts";
import {
  hashBytes,
  hashEnd,
  hashSeed,
  KeyTable,
  MAX_SLOTS,
} from "./key_table.ts";
import { MAX_NAME_BYTES, NameTable } from "./name_table.ts";
import { PagedInts } from "./paged_ints.ts";

const NONE = -1;
/** No character takes more bytes than three. */
const MAX_PACKED_LENGTH = Math.floor(MAX_NAME_BYTES / 3);

/**
 * The different values of an index, each as a number: as bytes outside the
 * JavaScript heap, as there may be as many as objects.
 *
 * Texts that bytes do not give back, or that are too long for the table of
 * names, are kept as they are.
 */
export class ValueTable {
  /**
   * What the owner keeps of each number: set by it after an `enter`, before it
   * calls anything else, to something else than -1, which is that of free ones.
   */
  readonly first: PagedInts = new PagedInts(NONE);

  readonly #keys: KeyTable = new KeyTable((number) => this.#hashOf(number));
  readonly #names: NameTable = new NameTable();
  /** Where each text is; of a free number the next free one. */
  readonly #addresses: PagedInts = new PagedInts(NONE);
  readonly #seed: number = hashSeed();
  /** What is kept as it is: rare. */
  readonly #numbers: Map<string, number> = new Map();
  readonly #texts: Map<number, string> = new Map();
  #free = NONE;
  #top = 0;
  /** The text that is sought, and the one that was read last. */
  readonly #sought: { bytes: Buffer; start: number; end: number } = {
    bytes: Buffer.alloc(MAX_NAME_BYTES),
    start: 0,
    end: 0,
  };
  readonly #read: Buffer = Buffer.alloc(MAX_NAME_BYTES);

  /** The memory that is held, but for the texts kept as they are. */
  get allocatedBytes(): number {
    return this.#keys.allocatedBytes + this.#names.allocatedBytes +
      this.#addresses.allocatedBytes + this.first.allocatedBytes;
  }

  /** The number of a value, or -1. */
  find(value: string): number {
    return isPacked(value)
      ? this.#search(this.#seek(value))
      : this.#numbers.get(value) ?? NONE;
  }

  /**
   * The number of a value, a new one if it had none.
   *
   * @throws {RangeError} If there are too many.
   */
  enter(value: string): number {
    const packed = isPacked(value);
    const hash = packed ? this.#seek(value) : 0;
    const found = packed ? this.#search(hash) : this.#numbers.get(value);
    if (found !== undefined && found !== NONE) return found;
    const number = this.#take();
    if (packed) {
      this.#addresses.set(number, this.#names.add(this.#sought));
      this.#keys.add(hash, number);
    } else {
      this.#numbers.set(value, number);
      this.#texts.set(number, value);
    }
    return number;
  }

  /** Forgets a value; its number may get another one. */
  remove(number: number): void {
    const text = this.#texts.get(number);
    if (text === undefined) {
      this.#keys.remove(this.#hashOf(number), number);
      this.#names.remove(this.#addresses.get(number));
    } else {
      this.#texts.delete(number);
      this.#numbers.delete(text);
    }
    this.first.set(number, NONE);
    this.#addresses.set(number, this.#free);
    this.#free = number;
    this.#reclaim();
  }

  /** All values. */
  *values(): Generator<string> {
    for (let number = 0; number < this.#top; number++) {
      if (this.first.get(number) === NONE) continue;
      yield this.#texts.get(number) ??
        rangeText(this.#nameAt(this.#addresses.get(number)));
    }
  }

  #take(): number {
    const number = this.#free;
    if (number !== NONE) {
      this.#free = this.#addresses.get(number);
      return number;
    }
    if (this.#top >= MAX_SLOTS) {
      throw new RangeError(
        `Cannot keep more values in an index: it holds at most ${MAX_SLOTS}: received one more`,
      );
    }
    return this.#top++;
  }

  /** Makes a value the one that is sought; gives its hash. */
  #seek(value: string): number {
    const sought = this.#sought;
    sought.end = sought.bytes.write(value, "utf8");
    return this.#hash(sought);
  }

  #search(hash: number): number {
    let number = this.#keys.first(hash);
    while (
      number >= 0 &&
      !this.#names.equals(this.#addresses.get(number), this.#sought)
    ) number = this.#keys.next();
    return number;
  }

  #hashOf(number: number): number {
    return this.#hash(this.#nameAt(this.#addresses.get(number)));
  }

  #hash(text: ByteRange): number {
    return hashEnd(hashBytes(this.#seed, text));
  }

  /** The bytes at an address, in memory of its own that the next call reuses. */
  #nameAt(address: number): ByteRange {
    const end = this.#names.read(address, this.#read);
    return { bytes: this.#read, start: 0, end };
  }

  /** Moves the texts out of a block that is mostly dead. */
  #reclaim(): void {
    const names = this.#names;
    const block = names.deadBlock();
    if (block < 0) return;
    names.retire(block);
    for (let number = 0; number < this.#top; number++) {
      if (this.first.get(number) === NONE || this.#texts.has(number)) continue;
      const address = this.#addresses.get(number);
      if (names.blockOf(address) === block) {
        this.#addresses.set(number, names.add(this.#nameAt(address)));
      }
    }
    names.release(block);
  }
}

/** Whether a text comes back from its bytes, and is short enough for a name. */
function isPacked(value: string): boolean {
  return value.length <= MAX_PACKED_LENGTH && value.isWellFormed();
}
