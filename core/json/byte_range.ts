import { Buffer } from "node:buffer";

/**
 * Part of a byte array, `bytes[start, end)`: a line, an item of a list or an
 * object, passed on without a copy.
 *
 * Ranges are borrowed: those of a splitter or scanner are valid until its next
 * step, and must be copied to be kept.
 */
export interface ByteRange {
  /** Array that contains the range. */
  readonly bytes: Uint8Array;
  /** Index of the first byte. */
  readonly start: number;
  /** Index after the last byte. */
  readonly end: number;
}

/** Empty memory, which all share that have none so far. */
export const NO_BYTES: Buffer = Buffer.alloc(0);

/** Empty range. */
export const NO_RANGE: ByteRange = Object.freeze({
  bytes: NO_BYTES,
  start: 0,
  end: 0,
});

/**
 * Range of a whole array; a text is encoded first.
 */
export function wholeRange(source: Uint8Array | string): ByteRange {
  const bytes = typeof source === "string"
    ? new TextEncoder().encode(source)
    : source;
  return { bytes, start: 0, end: bytes.length };
}

const BACKSLASH = 0x5c;
const ZERO = 0x30;
/** Maximum number of digits for which a number is exact. */
const MAX_EXACT_DIGITS = 15;

/**
 * The same bytes as a Buffer, whose methods read parts as text without an
 * intermediate object.
 */
export function asBuffer(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Maximum length that a loop compares faster than a native call. */
const SHORT_BYTES = 64;

/** Whether `bytes[start, end)` equals the bytes of another array at a position. */
export function sameBytes(
  bytes: Buffer,
  start: number,
  end: number,
  others: Buffer,
  from: number,
): boolean {
  const length = end - start;
  const to = from + length;
  if (length > SHORT_BYTES) {
    // Deno checks the end of either range against the length of `bytes`.
    return to <= bytes.length
      ? bytes.compare(others, from, to, start, end) === 0
      : others.compare(bytes, start, end, from, to) === 0;
  }
  for (let i = 0; i < length; i++) {
    if (bytes[start + i] !== others[from + i]) return false;
  }
  return true;
}

export function equalRanges(a: ByteRange, b: ByteRange): boolean {
  const { bytes, start, end } = a;
  return end - start === b.end - b.start &&
    sameBytes(asBuffer(bytes), start, end, asBuffer(b.bytes), b.start);
}

/**
 * Fastest `indexOf` of the runtime. Deno implements `Buffer.indexOf` in
 * JavaScript: `Uint8Array.indexOf` is twice as fast there, but twelve times slower
 * on Node.
 */
const indexOf: Uint8Array["indexOf"] = "Deno" in globalThis
  ? Uint8Array.prototype.indexOf
  : Buffer.prototype.indexOf;

/** Index of the next occurrence of a byte, or -1. */
export function nextByte(bytes: Buffer, byte: number, from: number): number {
  return indexOf.call(bytes, byte, from);
}

/** Text of a range; invalid UTF-8 becomes U+FFFD, as in a `TextDecoder`. */
export function rangeText({ bytes, start, end }: ByteRange): string {
  return asBuffer(bytes).toString("utf8", start, end);
}

/**
 * Parsed value of a range that is one JSON text.
 *
 * @throws {SyntaxError} If it is not well-formed. The message does not quote the
 * text, which may be secret.
 */
export function parseRange(range: ByteRange): unknown {
  const text = rangeText(range);
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(
      `Cannot parse JSON: it is not well-formed: received ${text.length} characters`,
    );
  }
}

/**
 * Value of a range of digits; undefined if the range has other characters, or if
 * a number may not represent it exactly.
 */
export function smallInteger(
  bytes: Uint8Array,
  start: number,
  end: number,
): number | undefined {
  if (end - start > MAX_EXACT_DIGITS) return undefined;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = (bytes[i] as number) - ZERO;
    if (digit < 0 || digit > 9) return undefined;
    value = 10 * value + digit;
  }
  return value;
}

/** Value of a JSON string, given with its quotes. */
export function stringAt(
  bytes: Uint8Array,
  start: number,
  end: number,
): string {
  for (let i = start; i < end; i++) {
    if (bytes[i] === BACKSLASH) {
      return parseRange({ bytes, start, end }) as string;
    }
  }
  return asBuffer(bytes).toString("utf8", start + 1, end - 1);
}

/** Whether a JSON string, given with its quotes, equals a value. */
export function stringEquals(
  bytes: Uint8Array,
  start: number,
  end: number,
  text: string,
): boolean {
  const length = end - start - 2;
  if (length < text.length) return false; // a character has at least one byte
  for (let i = 0; i < text.length; i++) {
    const byte = bytes[start + 1 + i] as number;
    if (byte === BACKSLASH || byte >= 0x80) {
      return stringAt(bytes, start, end) === text;
    }
    if (byte !== text.charCodeAt(i)) return false;
  }
  return length === text.length;
}
