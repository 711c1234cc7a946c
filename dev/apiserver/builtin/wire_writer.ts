/**
 * Writer of a protobuf message from its end to its beginning, so that the length
 * of a nested message is known when it is written.
 */
export class WireWriter {
  #bytes = new Uint8Array(1024);
  #start = 1024;

  /** Number of written bytes. */
  get length(): number {
    return this.#bytes.length - this.#start;
  }

  /** Written bytes; valid until the next write. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(this.#start);
  }

  #grow(size: number): number {
    if (size > this.#start) {
      const { length } = this;
      const larger = new Uint8Array(2 * this.#bytes.length + size);
      larger.set(this.bytes, larger.length - length);
      this.#bytes = larger;
      this.#start = larger.length - length;
    }
    return this.#start -= size;
  }

  /** Writes bytes without tag and length. */
  raw(bytes: Uint8Array): void {
    const start = this.#grow(bytes.length);
    this.#bytes.set(bytes, start);
  }

  /** Writes a short text of ASCII, faster than the encoder; false if it is not one. */
  #ascii(text: string): boolean {
    if (text.length > MAX_ASCII) return false;
    const start = this.#grow(text.length);
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code > 0x7f) {
        this.#start += text.length;
        return false;
      }
      this.#bytes[start + at] = code;
    }
    return true;
  }

  /** Writes an integer of at most 64 bits without a tag. */
  varint(value: number | bigint): void {
    if (typeof value === "number" && value >= 0 && value < 128) {
      const start = this.#grow(1);
      this.#bytes[start] = value;
      return;
    }
    const digits: number[] = [];
    if (typeof value === "number" && value >= 0) {
      for (; value > 0x7f; value = Math.floor(value / 128)) {
        digits.push(value % 128 + 128);
      }
      digits.push(value);
    } else {
      let rest = BigInt.asUintN(64, BigInt(value));
      for (; rest > 0x7fn; rest >>= 7n) digits.push(Number(rest & 0x7fn) + 128);
      digits.push(Number(rest));
    }
    const start = this.#grow(digits.length);
    this.#bytes.set(digits, start);
  }

  /** Writes an integer or boolean field. */
  number(field: number, value: number | bigint): void {
    this.varint(value);
    this.varint(field * 8);
  }

  /** Writes a field of type double. */
  double(field: number, value: number): void {
    const start = this.#grow(8);
    new DataView(this.#bytes.buffer).setFloat64(start, value, true);
    this.varint(field * 8 + 1);
  }

  /** Writes a text or bytes field. */
  text(field: number, value: string | Uint8Array): void {
    const end = this.length;
    if (typeof value !== "string") this.raw(value);
    else if (!this.#ascii(value)) this.raw(encoder.encode(value));
    this.#close(field, end);
  }

  /** Writes a nested message, whose fields are written last to first. */
  nest(field: number, write: () => void): void {
    const end = this.length;
    write();
    this.#close(field, end);
  }

  #close(field: number, end: number): void {
    this.varint(this.length - end);
    this.varint(field * 8 + 2);
  }
}

const encoder = new TextEncoder();
/** Length from which the encoder is faster, in characters. */
const MAX_ASCII = 64;
