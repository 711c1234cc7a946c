/**
 * DER (X.690) encoding for X.509 certificates: functions that encode values,
 * and can be nested.
 *
 * @module
 */

import { Buffer } from "node:buffer";

/** Encoded value: tag, length and content. */
export type Der = Uint8Array;

/** Big-endian bytes of a number without leading zeros. */
function bigEndian(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) {
    bytes.unshift(rest % 256);
  }
  return bytes;
}

function encode(tag: number, ...content: readonly Uint8Array[]): Der {
  const body = Buffer.concat(content);
  const size = bigEndian(body.byteLength);
  const length = body.byteLength < 128
    ? [body.byteLength]
    : [128 | size.length, ...size];
  return Buffer.concat([Uint8Array.of(tag, ...length), body]);
}

/** SEQUENCE of several values. */
export function sequence(...items: readonly Der[]): Der {
  return encode(0x30, ...items);
}

/** SET of one value; larger sets would have to be sorted. */
export function setOf(item: Der): Der {
  return encode(0x31, item);
}

/** INTEGER from big-endian bytes, not negative. */
export function unsignedInteger(bytes: Uint8Array): Der {
  let start = 0;
  while (start < bytes.byteLength - 1 && bytes[start] === 0) start++;
  const digits = bytes.subarray(start);
  const negative = (digits[0] ?? 0) > 127;
  return encode(0x02, Uint8Array.of(...(negative ? [0] : [])), digits);
}

/** BOOLEAN of a value. */
export function boolean(value: boolean): Der {
  return encode(0x01, Uint8Array.of(value ? 0xff : 0));
}

/** OCTET STRING of bytes. */
export function octetString(...content: readonly Uint8Array[]): Der {
  return encode(0x04, ...content);
}

/**
 * BIT STRING of bytes.
 *
 * @param bytes The bits, most significant first.
 * @param unused Number of unused bits at the end.
 */
export function bitString(bytes: Uint8Array, unused = 0): Der {
  return encode(0x03, Uint8Array.of(unused), bytes);
}

/** UTF8String of a text. */
export function utf8String(text: string): Der {
  return encode(0x0c, new TextEncoder().encode(text));
}

/** OBJECT IDENTIFIER of a dotted text, such as `2.5.29.17`. */
export function objectIdentifier(text: string): Der {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const digits = [part % 128];
    for (let left = part >> 7; left > 0; left >>= 7) {
      digits.unshift(128 | left % 128);
    }
    bytes.push(...digits);
  }
  return encode(0x06, Uint8Array.from(bytes));
}

/**
 * Time with a precision of seconds: UTCTime before 2050, GeneralizedTime from
 * 2050, as X.509 requires.
 */
export function time(milliseconds: number): Der {
  const date = new Date(milliseconds);
  const digits = date.toISOString().replaceAll(/\.\d+|[-:T]/g, "");
  const short = date.getUTCFullYear() < 2050;
  return encode(
    short ? 0x17 : 0x18,
    new TextEncoder().encode(short ? digits.slice(2) : digits),
  );
}

/** Explicitly tagged value: `[index]` around a whole value. */
export function explicit(index: number, value: Der): Der {
  return encode(0xa0 | index, value);
}

/** Implicitly tagged bytes: `[index]` instead of the usual tag. */
export function implicit(index: number, content: Uint8Array): Der {
  return encode(0x80 | index, content);
}

/** Value within a {@linkcode Der}. */
export interface DerChild {
  readonly tag: number;
  /** Value with its tag and length. */
  readonly whole: Der;
  /** Content of the value. */
  readonly content: Uint8Array;
}

/** Values of a sequence or set; empty if the bytes are no DER. */
export function childrenOf(der: Der): DerChild[] {
  const outer = readValue(der, 0);
  return outer && outer.end === der.byteLength
    ? valuesIn(outer.content) ?? []
    : [];
}

/** Values that follow each other; undefined if the bytes are no DER. */
export function valuesIn(bytes: Uint8Array): DerChild[] | undefined {
  const values: DerChild[] = [];
  let position = 0;
  while (position < bytes.byteLength) {
    const value = readValue(bytes, position);
    if (value === undefined) return undefined;
    values.push(value);
    position = value.end;
  }
  return values;
}

/**
 * Value at a position. DER allows one form only: tags of one byte, and the
 * shortest form of the length.
 */
function readValue(
  bytes: Uint8Array,
  position: number,
): DerChild & { readonly end: number } | undefined {
  const tag = bytes[position];
  const first = bytes[position + 1];
  if (tag === undefined || first === undefined) return undefined;
  if ((tag & 0x1f) === 0x1f) return undefined;
  let start = position + 2;
  let length = first;
  if (first >= 128) {
    const digits = first & 127;
    if (digits === 0 || digits > 4 || bytes[start] === 0) return undefined;
    length = 0;
    for (let index = 0; index < digits; index++) {
      length = length * 256 + (bytes[start + index] ?? 0);
    }
    if (length < 128) return undefined;
    start += digits;
  }
  const end = start + length;
  if (end > bytes.byteLength) return undefined;
  return {
    tag,
    whole: bytes.subarray(position, end),
    content: bytes.subarray(start, end),
    end,
  };
}
