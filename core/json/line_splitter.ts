import type { Buffer } from "node:buffer";
import { asBuffer, type ByteRange, nextByte, NO_BYTES } from "./byte_range.ts";
import { Carry } from "./carry.ts";

/** Default of the maximum line length: 8 MiB. */
export const MAX_LINE_BYTES: number = 8 * 1024 * 1024;

const LINE_FEED = 10;
/** Maximum size of the line buffer that is kept after a longer line. */
const KEPT_CARRY_BYTES = 1024 * 1024;
const CARRIAGE_RETURN = 13;

/** Brand of the errors, shared by all loaded copies of the library. */
const BRAND = Symbol.for("@coracle/operator/TooLongError");

/**
 * Error of a line of a watch, or an item of a list, that exceeds the limit. The
 * stream cannot be read further: a watch recovers by a relist.
 */
export class TooLongError extends RangeError {
  /** Size in bytes when reading stopped; more than the limit. */
  readonly size: number;
  /** Limit in bytes. */
  readonly limit: number;

  /**
   * @param what Subject of the message, such as `a watch line`.
   * @param lengths Size read so far and limit, in bytes.
   */
  constructor(what: string, lengths: { size: number; limit: number }) {
    super(
      `Cannot read ${what}: it is longer than ${lengths.limit} bytes: received ${lengths.size} bytes or more`,
    );
    this.name = "TooLongError";
    this.size = lengths.size;
    this.limit = lengths.limit;
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** Whether a value is a `TooLongError` of any copy of the library. */
  static is(value: unknown): value is TooLongError {
    return typeof value === "object" && value !== null && BRAND in value;
  }
}

/**
 * Splitter of byte chunks into lines. A line within one chunk is returned in
 * place; a line across chunks is joined once. Empty lines are skipped, and a
 * carriage return before the line feed is not part of a line.
 *
 * The splitter itself is the {@linkcode ByteRange} of the current line, so that no
 * object is allocated per line. The caller pulls lines and may pause between any
 * two.
 */
export class LineSplitter implements ByteRange {
  /** Array that contains the current line. */
  bytes: Uint8Array = NO_BYTES;
  start = 0;
  /** End of the current line. */
  end = 0;

  readonly #limit: number;
  /** Current chunk, and the position up to which it was split. */
  #chunk: Buffer = NO_BYTES;
  #position = 0;
  /** Start of an incomplete line. */
  #carry: Carry = new Carry();

  /** @param maxLineBytes Maximum length of a line, without its line break. */
  constructor(maxLineBytes: number = MAX_LINE_BYTES) {
    this.#limit = maxLineBytes;
  }

  /**
   * Adds the next chunk, which must not change until its lines are read.
   *
   * @throws {Error} If lines of the previous chunk were not read.
   */
  push(chunk: Uint8Array): void {
    if (this.#position < this.#chunk.length) {
      throw new Error(
        "Cannot push a chunk: the lines of the previous chunk must be read first",
      );
    }
    this.#chunk = asBuffer(chunk);
    this.#position = 0;
    const { length, bytes } = this.#carry;
    if (length === 0 && bytes.length > KEPT_CARRY_BYTES) {
      this.#carry = new Carry();
    }
  }

  /**
   * Moves to the next line.
   *
   * @returns Whether there is one; if not, push the next chunk.
   * @throws {TooLongError} If a line is longer than the limit.
   */
  next(): boolean {
    const chunk = this.#chunk;
    const carry = this.#carry;
    while (this.#position < chunk.length) {
      const from = this.#position;
      const feed = nextByte(chunk, LINE_FEED, from);
      const to = feed < 0 ? chunk.length : feed;
      const size = carry.length + to - from;
      if (size > this.#limit) {
        throw new TooLongError("a line", { size, limit: this.#limit });
      }
      if (feed < 0) {
        carry.append(chunk.subarray(from));
        this.#position = chunk.length;
        return false;
      }
      this.#position = feed + 1;
      if (carry.length === 0) this.#set(chunk, from, feed);
      else {
        carry.append(chunk.subarray(from, feed));
        this.#takeCarry();
      }
      if (this.end > this.start) return true;
    }
    return false;
  }

  /**
   * Moves to the text after the last line feed, at the end of the stream.
   *
   * @returns Whether there is such text.
   */
  finish(): boolean {
    this.#takeCarry();
    return this.end > this.start;
  }

  /**
   * Forgets the chunk, whose lines must have been read: a stream may be idle for
   * minutes, and its last chunk be a small part of a large block.
   */
  release(): void {
    this.bytes = this.#chunk = NO_BYTES;
    this.start = this.end = this.#position = 0;
  }

  #takeCarry(): void {
    const { bytes, length } = this.#carry;
    this.#set(bytes, 0, length);
    this.#carry.length = 0;
  }

  #set(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end > start && bytes[end - 1] === CARRIAGE_RETURN
      ? end - 1
      : end;
  }
}
