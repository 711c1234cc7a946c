/** How a field's value is laid out on the wire. */
type WireType = 0 | 1 | 2 | 5;

/** One field of a message: a number, or a run of bytes. */
export interface WireField {
  readonly number: number;
  readonly value: number | Uint8Array;
}

const text = new TextDecoder("utf-8", { fatal: true });

/** Reads the fields of a protobuf message in their order on the wire. */
export class WireReader {
  readonly #bytes: Uint8Array;
  #position = 0;

  /** @param bytes The whole message. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /**
   * The next field; undefined at the end.
   *
   * @throws {SyntaxError} If the bytes are no message.
   */
  next(): WireField | undefined {
    if (this.#position === this.#bytes.length) return undefined;
    const tag = this.#varint();
    const number = Math.floor(tag / 8);
    const type = (tag % 8) as WireType;
    if (number < 1) throw malformed(`field number ${number}`);
    switch (type) {
      case 0:
        return { number, value: this.#varint() };
      case 1:
        return { number, value: this.#take(8) };
      case 2:
        return { number, value: this.#take(this.#varint()) };
      case 5:
        return { number, value: this.#take(4) };
      default:
        throw malformed(`wire type ${type}`);
    }
  }

  /** A signed integer of up to 64 bits, as exact as a number can be. */
  #varint(): number {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#position++];
      if (byte === undefined) throw malformed("an unexpected end");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
    throw malformed("an integer of more than ten bytes");
  }

  #take(length: number): Uint8Array {
    const end = this.#position + length;
    if (length < 0 || end > this.#bytes.length) {
      throw malformed(`${length} bytes where fewer are left`);
    }
    const part = this.#bytes.subarray(this.#position, end);
    this.#position = end;
    return part;
  }
}

/** All fields of a small message by their numbers; of several the last. */
export function wireFields(
  bytes: Uint8Array,
): ReadonlyMap<number, number | Uint8Array> {
  const fields = new Map<number, number | Uint8Array>();
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field; field = reader.next()) {
    fields.set(field.number, field.value);
  }
  return fields;
}

/**
 * A field's bytes; none if it is absent.
 *
 * @throws {SyntaxError} If it is a number.
 */
export function wireBytes(value: number | Uint8Array | undefined): Uint8Array {
  if (value === undefined) return new Uint8Array();
  if (typeof value === "number") throw malformed("a number for bytes");
  return value;
}

/**
 * A field's text; empty if it is absent.
 *
 * @throws {SyntaxError} If it is no UTF-8.
 */
export function wireText(value: number | Uint8Array | undefined): string {
  try {
    return text.decode(wireBytes(value));
  } catch {
    throw malformed("a text that is not UTF-8");
  }
}

/**
 * A field's number; zero if it is absent.
 *
 * @throws {SyntaxError} If it is a run of bytes.
 */
export function wireNumber(value: number | Uint8Array | undefined): number {
  if (value === undefined || typeof value === "number") return value ?? 0;
  throw malformed("bytes for a number");
}

/** The error of bytes that are no such message. */
export function malformed(received: string): SyntaxError {
  return new SyntaxError(
    `Cannot read protobuf: the bytes must be a message: received ${received}`,
  );
}
