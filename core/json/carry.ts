import { Buffer } from "node:buffer";
import { NO_BYTES } from "./byte_range.ts";

/** Growing copy of the start of a text that is received in chunks. */
export class Carry {
  bytes: Buffer = NO_BYTES;
  /** Number of carried bytes; the rest of the array is spare. */
  length = 0;

  append(part: Uint8Array): void {
    const length = this.length + part.length;
    if (length > this.bytes.length) {
      const grown = Buffer.alloc(Math.max(length, 2 * this.bytes.length));
      grown.set(this.bytes.subarray(0, this.length));
      this.bytes = grown;
    }
    this.bytes.set(part, this.length);
    this.length = length;
  }
}
