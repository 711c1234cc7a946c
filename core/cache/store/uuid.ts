import type { ByteRange } from "../../json/byte_range.ts";

const DASH = 0x2d;
const LENGTH = 36;
/** The value of a lower-case hexadecimal digit, or 255. */
const DIGITS: Uint8Array = new Uint8Array(256).fill(255);
for (let i = 0; i < 16; i++) DIGITS[i.toString(16).charCodeAt(0)] = i;

/**
 * Reads a UUID in its usual text form into four words.
 *
 * @returns Whether it is one; if not, the words are of no meaning.
 */
export function readUuid(
  { bytes, start, end }: ByteRange,
  words: Uint32Array,
): boolean {
  if (end - start !== LENGTH) return false;
  let word = 0;
  let digits = 0;
  for (let i = 0; i < LENGTH; i++) {
    const byte = bytes[start + i] as number;
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (byte !== DASH) return false;
      continue;
    }
    const digit = DIGITS[byte] as number;
    if (digit === 255) return false;
    word = (word << 4) | digit;
    if ((++digits & 7) === 0) words[digits / 8 - 1] = word;
  }
  return true;
}

/** The text form of four words from a position. */
export function uuidText(words: Uint32Array, at: number): string {
  const word = (i: number) =>
    (words[at + i] as number).toString(16).padStart(8, "0");
  const middle = word(1);
  const last = word(2);
  return `${word(0)}-${middle.slice(0, 4)}-${middle.slice(4)}-${
    last.slice(0, 4)
  }-${last.slice(4)}${word(3)}`;
}
