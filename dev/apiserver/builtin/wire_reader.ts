/** Protobuf wire type: varint, 64-bit, length-delimited or 32-bit. */
type WireType = 0 | 1 | 2 | 5;

/** Value of a field; an integer beyond 2^53 is a `bigint`. */
export type WireValue = number | bigint | Uint8Array;

/** Field of a message. */
export interface WireField {
  readonly number: number;
  readonly value: WireValue;
}

const text = new TextDecoder("utf-8", { fatal: true });

/** Reader of the fields of a protobuf message, in wire order. */
export class WireReader {
  readonly #bytes: Uint8Array;
  #position = 0;

  /**
   * Creates a reader at the beginning of a message.
   *
   * @param bytes Whole message.
   */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /**
   * Reads the next field; returns undefined at the end of the message.
   *
   * @throws {SyntaxError} If the message is malformed.
   */
  next(): WireField | undefined {
    if (this.#position === this.#bytes.length) return undefined;
    const tag = Number(this.#varint());
    const number = Math.floor(tag / 8);
    const type = (tag % 8) as WireType;
    if (number < 1) throw malformed(`field number ${number}`);
    switch (type) {
      case 0:
        return { number, value: this.#varint() };
      case 1:
        return { number, value: this.#take(8) };
      case 2:
        return { number, value: this.#take(Number(this.#varint())) };
      case 5:
        return { number, value: this.#take(4) };
      default:
        throw malformed(`wire type ${type}`);
    }
  }

  /** Reads a signed 64-bit integer. */
  #varint(): number | bigint {
    const only = this.#bytes[this.#position] ?? 0x80;
    if (only < 0x80) {
      this.#position++;
      return only;
    }
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#position++];
      if (byte === undefined) throw malformed("an unexpected end");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      const integer = BigInt.asIntN(64, value);
      const number = Number(integer);
      return Number.isSafeInteger(number) ? number : integer;
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

/** Fields of a message by field number; the last one wins. */
export function wireFields(
  bytes: Uint8Array,
): ReadonlyMap<number, WireValue> {
  const fields = new Map<number, WireValue>();
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field; field = reader.next()) {
    fields.set(field.number, field.value);
  }
  return fields;
}

/**
 * Bytes of a field; empty if it is absent.
 *
 * @throws {SyntaxError} If the field is a number.
 */
export function wireBytes(value: WireValue | undefined): Uint8Array {
  if (value === undefined) return new Uint8Array();
  if (typeof value === "object") return value;
  throw malformed("a number for bytes");
}

/**
 * Text of a field; empty if it is absent.
 *
 * @throws {SyntaxError} If the text is not valid UTF-8.
 */
export function wireText(value: WireValue | undefined): string {
  try {
    return text.decode(wireBytes(value));
  } catch {
    throw malformed("a text that is not UTF-8");
  }
}

/**
 * Integer of a field, of 64 bits; zero if it is absent.
 *
 * @throws {SyntaxError} If the field holds bytes.
 */
export function wireInteger(value: WireValue | undefined): number | bigint {
  if (typeof value === "object") throw malformed("bytes for a number");
  return value ?? 0;
}

/**
 * Number of a field, rounded beyond 2^53; zero if it is absent.
 *
 * @throws {SyntaxError} If the field holds bytes.
 */
export function wireNumber(value: WireValue | undefined): number {
  return Number(wireInteger(value));
}

/** Error of a malformed message. */
export function malformed(received: string): SyntaxError {
  return new SyntaxError(
    `Cannot decode protobuf: the message is malformed: received ${received}`,
  );
}
