import type { ByteRange } from "../../json/byte_range.ts";

/** Number of bits of a slot within a page. The first page of a store is smaller. */
export const PAGE_BITS = 12;
export const PAGE_SLOTS: number = 1 << PAGE_BITS;
export const PAGE_MASK: number = PAGE_SLOTS - 1;
const FIRST_SLOTS = 64;

export const SLOT_BYTES = 40;

/**
 * Page of an object table: the columns of 4096 slots, in one allocation outside
 * the JavaScript heap.
 */
export class SlotPage {
  readonly slots: number;
  /** resourceVersion if it is a number of at most 15 digits, otherwise NaN. */
  readonly version: Float64Array;
  /** Four words of the UID if it is a UUID. */
  readonly uid: Uint32Array;
  readonly name: Uint32Array;
  /** Address of the body within its tier; of a free slot the next free one. */
  readonly body: Uint32Array;
  readonly generation: Uint32Array;
  readonly namespace: Uint16Array;
  /** Tier of the body and mark of use; 0 for a free slot. */
  readonly state: Uint8Array;
  /** Mark of the relist in which the object was seen last. */
  readonly mark: Uint8Array;
  /** Number of bodies by tier, so that a search can skip pages. */
  readonly bodies: Uint16Array = new Uint16Array(4);

  constructor(slots: number = FIRST_SLOTS) {
    this.slots = slots;
    const memory = new ArrayBuffer(slots * SLOT_BYTES);
    this.version = new Float64Array(memory, 0, slots);
    this.uid = new Uint32Array(memory, slots * 8, slots * 4);
    this.name = new Uint32Array(memory, slots * 24, slots);
    this.body = new Uint32Array(memory, slots * 28, slots);
    this.generation = new Uint32Array(memory, slots * 32, slots);
    this.namespace = new Uint16Array(memory, slots * 36, slots);
    this.state = new Uint8Array(memory, slots * 38, slots);
    this.mark = new Uint8Array(memory, slots * 39, slots);
  }

  /** Copy of the page with twice the slots. */
  grown(): SlotPage {
    const page = new SlotPage(Math.min(PAGE_SLOTS, 2 * this.slots));
    page.version.set(this.version);
    page.uid.set(this.uid);
    page.name.set(this.name);
    page.body.set(this.body);
    page.generation.set(this.generation);
    page.namespace.set(this.namespace);
    page.state.set(this.state);
    page.mark.set(this.mark);
    page.bodies.set(this.bodies);
    return page;
  }
}

const DASH = 0x2d;
const UUID_LENGTH = 36;
/** Values of lower-case hexadecimal digits by byte; 255 for other bytes. */
const DIGITS: Uint8Array = new Uint8Array(256).fill(255);
for (let i = 0; i < 16; i++) DIGITS[i.toString(16).charCodeAt(0)] = i;

/**
 * Parses a UUID in its canonical text form into four words.
 *
 * @returns Whether it is a UUID; if not, the words are undefined.
 */
export function readUuid(
  { bytes, start, end }: ByteRange,
  words: Uint32Array,
): boolean {
  if (end - start !== UUID_LENGTH) return false;
  let word = 0;
  let digits = 0;
  for (let i = 0; i < UUID_LENGTH; i++) {
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

/** Canonical text form of a UUID of four words at a position. */
export function uuidText(words: Uint32Array, at: number): string {
  const word = (i: number) =>
    (words[at + i] as number).toString(16).padStart(8, "0");
  const middle = word(1);
  const last = word(2);
  return `${word(0)}-${middle.slice(0, 4)}-${middle.slice(4)}-${
    last.slice(0, 4)
  }-${last.slice(4)}${word(3)}`;
}
