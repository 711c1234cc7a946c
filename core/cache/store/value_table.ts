import { Buffer } from "node:buffer";
import { rangeText } from "../../json/byte_range.ts";
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
/** Maximum length of a text in the name table, at three bytes per character. */
const MAX_PACKED_LENGTH = Math.floor(MAX_NAME_BYTES / 3);

/** Encoded form of the value that is looked up; no lookup overlaps another one. */
const sought: { bytes: Buffer; start: number; end: number } = {
  bytes: Buffer.alloc(MAX_NAME_BYTES),
  start: 0,
  end: 0,
};

/**
 * Table of the distinct values of an index by number, as bytes outside the
 * JavaScript heap: there may be as many values as objects.
 *
 * Texts that are not well-formed, or too long for the name table, are stored as
 * strings.
 */
export class ValueTable {
  /**
   * First index entry of each value, by the number of the value. The owner must
   * set it after `enter` and before any other call, to another value than -1,
   * which marks free numbers.
   */
  readonly first: PagedInts = new PagedInts(NONE);

  readonly #keys: KeyTable = new KeyTable((number) => this.#hashOf(number));
  readonly #names: NameTable = new NameTable();
  /** Address of each text, by number; for a free number, the next free one. */
  readonly #addresses: PagedInts = new PagedInts(NONE);
  readonly #seed: number = hashSeed();
  /** Numbers of the rare texts that are stored as strings. */
  readonly #numbers: Map<string, number> = new Map();
  readonly #texts: Map<number, string> = new Map();
  #free = NONE;
  #top = 0;
  readonly #moveTexts = (move: (address: number) => number): void => {
    for (let number = 0; number < this.#top; number++) {
      if (this.first.get(number) === NONE || this.#texts.has(number)) continue;
      this.#addresses.set(number, move(this.#addresses.get(number)));
    }
  };

  /** Allocated memory in bytes, without texts stored as strings. */
  get allocatedBytes(): number {
    return this.#keys.allocatedBytes + this.#names.allocatedBytes +
      this.#addresses.allocatedBytes + this.first.allocatedBytes;
  }

  /** Number of a value, or -1. */
  find(value: string): number {
    return isPacked(value)
      ? this.#search(this.#seek(value))
      : this.#numbers.get(value) ?? NONE;
  }

  /** Text of a value that was entered. */
  text(number: number): string {
    return this.#texts.get(number) ??
      rangeText(this.#names.read(this.#addresses.get(number)));
  }

  /**
   * Returns the number of a value, which is added if it is new.
   *
   * @throws {RangeError} If there are too many values.
   */
  enter(value: string): number {
    const packed = isPacked(value);
    const hash = packed ? this.#seek(value) : 0;
    const found = packed ? this.#search(hash) : this.#numbers.get(value);
    if (found !== undefined && found !== NONE) return found;
    const number = this.#take();
    if (packed) {
      this.#addresses.set(number, this.#names.add(sought));
      this.#keys.add(hash, number);
    } else {
      this.#numbers.set(value, number);
      this.#texts.set(number, value);
    }
    return number;
  }

  /** Removes a value; its number is reused. */
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
    this.#names.reclaim(this.#moveTexts);
  }

  #take(): number {
    const number = this.#free;
    if (number !== NONE) {
      this.#free = this.#addresses.get(number);
      return number;
    }
    if (this.#top >= MAX_SLOTS) {
      throw new RangeError(
        `Cannot store more values in an index: it holds at most ${MAX_SLOTS}`,
      );
    }
    return this.#top++;
  }

  /** Encodes the value that is looked up; returns its hash. */
  #seek(value: string): number {
    sought.end = sought.bytes.write(value, "utf8");
    return hashEnd(hashBytes(this.#seed, sought));
  }

  #search(hash: number): number {
    let number = this.#keys.first(hash);
    while (
      number >= 0 &&
      !this.#names.equals(this.#addresses.get(number), sought)
    ) number = this.#keys.next();
    return number;
  }

  #hashOf(number: number): number {
    return hashEnd(
      this.#names.hash(this.#seed, this.#addresses.get(number)),
    );
  }
}

/** Whether a text is well-formed and short enough for the name table. */
function isPacked(value: string): boolean {
  return value.length <= MAX_PACKED_LENGTH && value.isWellFormed();
}
