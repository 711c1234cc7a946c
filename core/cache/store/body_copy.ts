import { Buffer } from "node:buffer";
import type { ByteRange } from "../../json/byte_range.ts";
import { asBuffer } from "../../json/json_text.ts";
import { discardPage } from "./page_codec.ts";

/**
 * A body copied to where the next one is copied: the state that a change
 * replaces. One that was compressed is opened when it is read, which most are
 * not.
 */
export class BodyCopy implements ByteRange {
  #memory: Buffer = Buffer.alloc(0);
  #open: ((packed: Uint8Array) => ByteRange) | undefined;
  /** What was copied, which is the body if nothing has to open it. */
  readonly #copied = { bytes: this.#memory, start: 0, end: 0 };
  #body: ByteRange | undefined;

  /** The array in which the body lies. */
  get bytes(): Uint8Array {
    return this.#opened().bytes;
  }

  /** Where the body starts. */
  get start(): number {
    return this.#opened().start;
  }

  /** Where the body ends. */
  get end(): number {
    return this.#opened().end;
  }

  /**
   * Copies bytes.
   *
   * @param open Gives the body that they are packed in, in a page of its own,
   * whose memory is given back with the next copy; by default they are it.
   */
  keep(
    { bytes, start, end }: ByteRange,
    open?: (packed: Uint8Array) => ByteRange,
  ): void {
    const length = end - start;
    if (this.#memory.length < length) this.#memory = Buffer.alloc(length * 2);
    asBuffer(bytes).copy(this.#memory, 0, start, end);
    this.#copied.bytes = this.#memory;
    this.#copied.end = length;
    this.#open = open;
    if (this.#body !== undefined) discardPage(this.#body.bytes);
    this.#body = undefined;
  }

  #opened(): ByteRange {
    if (this.#open === undefined) return this.#copied;
    const { bytes, end } = this.#copied;
    this.#body ??= this.#open(bytes.subarray(0, end));
    return this.#body;
  }
}
