import { Buffer } from "node:buffer";
import type { ObjectKey } from "../../api/object_key.ts";
import { compareResourceVersions } from "../../api/resource_version.ts";
import { type ByteRange, NO_BYTES, rangeText } from "../../json/byte_range.ts";
import { ObjectHeader } from "../../json/object_header.ts";
import {
  hashBytes,
  hashEnd,
  hashNext,
  hashSeed,
  KeyTable,
  MAX_SLOTS,
} from "./key_table.ts";
import { NamespaceTable, NameTable } from "./name_table.ts";

const SLASH = 0x2f;
const FIRST_SCRATCH_BYTES = 256;
/** Highest relist mark; the next relist starts over with 1. */
const LAST_MARK = 255;

type MutableRange = { -readonly [Part in keyof ByteRange]: ByteRange[Part] };

/**
 * Result of a lookup: the slot of a key, and what {@linkcode ObjectTable.add}
 * needs to add the key. The table reuses it: it is valid until the next lookup.
 */
export interface Lookup {
  readonly slot: number;
  /** Namespace as bytes, so that it is not decoded. */
  readonly namespace: ByteRange;
  readonly name: ByteRange;
  /** Hash of namespace and name. */
  readonly hash: number;
}

/**
 * Index of a store: the key, UID, resourceVersion and generation of each object,
 * addressed by a slot number that the object keeps as long as it is stored.
 *
 * It takes about 64 bytes per object, outside the JavaScript heap, and is never
 * evicted. The columns `state` and `body` of its pages belong to the tiers.
 */
export class ObjectTable {
  #pages: SlotPage[] = [];
  #keys: KeyTable = new KeyTable((slot) => this.#hashOf(slot));
  #names: NameTable = new NameTable();
  #namespaces: NamespaceTable = new NamespaceTable();
  /** Rare UIDs that are not UUIDs, by slot. */
  readonly #uidTexts: Map<number, string> = new Map();
  /** Rare resourceVersions that are not exact numbers, by slot. */
  readonly #versionTexts: Map<number, string> = new Map();
  /** First slot that was never used. */
  #top = 0;
  /** Number of slots in all pages. */
  #slots = 0;
  /** First slot of the list of free slots, plus one; 0 if the list is empty. */
  #free = 0;
  #size = 0;
  readonly #lookup = {
    slot: -1,
    namespace: emptyRange(),
    name: emptyRange(),
    hash: 0,
  };
  /** Random hash seed: names that collide in one process need not in another. */
  readonly #seed: number = hashSeed();
  /** The four 32-bit words of the UID that was parsed last. */
  readonly #words: Uint32Array = new Uint32Array(4);
  /** Encoded form of a key that was looked up as text. */
  #scratch: Buffer = NO_BYTES;
  readonly #moveNames = (move: (address: number) => number): void => {
    for (const slot of this.slots()) {
      const { name } = this.page(slot);
      const at = slot & PAGE_MASK;
      name[at] = move(name[at] as number);
    }
  };
  /** Mark of objects that were seen in the current relist. */
  #mark = 1;

  get size(): number {
    return this.#size;
  }

  /** Upper bound of the slots, exclusive. */
  get top(): number {
    return this.#top;
  }

  page(slot: number): SlotPage {
    return this.#pages[slot >>> PAGE_BITS] as SlotPage;
  }

  /** Slot of an object, or -1. */
  find(key: ObjectKey | ObjectHeader): number {
    return this.lookup(key).slot;
  }

  /** Looks up a key, for a caller that may add it. */
  lookup(key: ObjectKey | ObjectHeader): Lookup {
    const lookup = this.#lookup;
    if (
      !(key instanceof ObjectHeader) || key.isEscaped("name") ||
      key.isEscaped("namespace")
    ) this.#encode(key);
    else {
      copyRange(key.string("name"), lookup.name);
      copyRange(key.string("namespace"), lookup.namespace);
    }
    return this.#found();
  }

  /** Looks up a key of a namespace and a name as bytes. */
  lookupBytes(namespace: ByteRange, name: ByteRange): Lookup {
    copyRange(namespace, this.#lookup.namespace);
    copyRange(name, this.#lookup.name);
    return this.#found();
  }

  #found(): Lookup {
    const lookup = this.#lookup;
    const hash = this.#hashNamespace(lookup.namespace);
    lookup.hash = hashEnd(hashBytes(hash, lookup.name));
    lookup.slot = this.#search(lookup);
    return lookup;
  }

  /** Makes room for the keys of so many objects, if there is none so far. */
  reserve(objects: number): void {
    this.#keys.reserve(objects);
  }

  /** Removes all objects. */
  clear(): void {
    this.#pages = [];
    this.#keys = new KeyTable((slot) => this.#hashOf(slot));
    this.#names = new NameTable();
    this.#namespaces = new NamespaceTable();
    this.#uidTexts.clear();
    this.#versionTexts.clear();
    this.#top =
      this.#slots =
      this.#free =
      this.#size =
        0;
  }

  #search({ hash, name, namespace }: Lookup): number {
    let slot = this.#keys.first(hash);
    while (slot >= 0) {
      const page = this.page(slot);
      const at = slot & PAGE_MASK;
      if (
        this.#names.equals(page.name[at] as number, name) &&
        this.#namespaces.equals(page.namespace[at] as number, namespace)
      ) return slot;
      slot = this.#keys.next();
    }
    return -1;
  }

  /**
   * Adds a key that has no slot.
   *
   * @returns The new slot.
   * @throws {RangeError} If there are too many objects or namespaces.
   */
  add(lookup: Lookup): number {
    const namespace = this.#namespaces.enter(lookup.namespace);
    const slot = this.#takeSlot();
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    page.namespace[at] = namespace;
    page.name[at] = this.#names.add(lookup.name);
    this.#keys.add(lookup.hash, slot);
    this.#size++;
    return slot;
  }

  /** Removes an object and frees its slot. */
  remove(slot: number): void {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    this.#keys.remove(this.#hashOf(slot), slot);
    this.#namespaces.leave(page.namespace[at] as number);
    this.#names.remove(page.name[at] as number);
    this.#uidTexts.delete(slot);
    this.#versionTexts.delete(slot);
    page.state[at] = 0;
    page.body[at] = this.#free;
    this.#free = slot + 1;
    this.#size--;
    this.#names.reclaim(this.#moveNames);
  }

  /** Whether a slot has an object. */
  isUsed(slot: number): boolean {
    return slot < this.#top && this.page(slot).state[slot & PAGE_MASK] !== 0;
  }

  /** First used slot from a given one on; -1 if none exists. */
  nextUsed(slot: number): number {
    for (; slot < this.#top; slot++) {
      if (this.page(slot).state[slot & PAGE_MASK] !== 0) return slot;
    }
    return -1;
  }

  *slots(namespace?: string): Generator<number, void, undefined> {
    for (
      let slot = this.nextUsed(0);
      slot >= 0;
      slot = this.nextUsed(slot + 1)
    ) {
      if (namespace === undefined || this.#namespace(slot) === namespace) {
        yield slot;
      }
    }
  }

  #namespace(slot: number): string {
    const number = this.page(slot).namespace[slot & PAGE_MASK] as number;
    return this.#namespaces.name(number);
  }

  key(slot: number): ObjectKey {
    const address = this.page(slot).name[slot & PAGE_MASK] as number;
    const name = rangeText(this.#names.read(address));
    const namespace = this.#namespace(slot);
    return namespace === "" ? { name } : { namespace, name };
  }

  uid(slot: number): string {
    return this.uidBytes(slot)?.toString("latin1") ??
      this.#uidTexts.get(slot) as string;
  }

  /** UID as text, until the next call; undefined if it is not a UUID. */
  uidBytes(slot: number): Buffer | undefined {
    return this.#uidTexts.size > 0 && this.#uidTexts.has(slot)
      ? undefined
      : writeUuid(this.page(slot).uid, 4 * (slot & PAGE_MASK));
  }

  hasUid(slot: number, header: ObjectHeader): boolean {
    if (this.#uidTexts.size > 0 && this.#uidTexts.has(slot)) {
      return this.#uidTexts.get(slot) === header.uid;
    }
    const words = this.#words;
    if (!readUuid(header.string("uid"), words)) return false;
    const { uid } = this.page(slot);
    const at = 4 * (slot & PAGE_MASK);
    return uid[at] === words[0] && uid[at + 1] === words[1] &&
      uid[at + 2] === words[2] && uid[at + 3] === words[3];
  }

  setUid(slot: number, header: ObjectHeader): void {
    if (this.#uidTexts.size > 0) this.#uidTexts.delete(slot);
    const words = this.#words;
    if (readUuid(header.string("uid"), words)) {
      const { uid } = this.page(slot);
      const at = 4 * (slot & PAGE_MASK);
      for (let i = 0; i < 4; i++) uid[at + i] = words[i] as number;
    } else this.#uidTexts.set(slot, header.uid);
  }

  /** Copies the UID of a slot, if it is a UUID, as four 32-bit words. */
  copyUid(slot: number, words: Uint32Array): boolean {
    if (this.#uidTexts.has(slot)) return false;
    const at = 4 * (slot & PAGE_MASK);
    words.set(this.page(slot).uid.subarray(at, at + 4));
    return true;
  }

  /**
   * Stores the identity of an object that was in another table.
   *
   * @param uid Four words of a UUID, or a text.
   * @param version resourceVersion, as a number of at most 15 digits or a text.
   */
  setIdentity(
    slot: number,
    uid: Uint32Array | string,
    version: number | string,
    generation: number,
  ): void {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    if (typeof uid === "string") this.#uidTexts.set(slot, uid);
    else for (let i = 0; i < 4; i++) page.uid[4 * at + i] = uid[i] as number;
    page.version[at] = typeof version === "number" ? version : NaN;
    if (typeof version === "string") this.#versionTexts.set(slot, version);
    page.generation[at] = generation;
  }

  version(slot: number): string {
    const version = this.page(slot).version[slot & PAGE_MASK] as number;
    return Number.isNaN(version)
      ? this.#versionTexts.get(slot) ?? ""
      : String(version);
  }

  /** Stores the resourceVersion and generation of a header. */
  setVersion(slot: number, header: ObjectHeader): void {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    const version = header.versionNumber;
    page.version[at] = version;
    page.generation[at] = header.generation ?? 0;
    if (Number.isNaN(version)) {
      this.#versionTexts.set(slot, header.resourceVersion);
    } else if (this.#versionTexts.size > 0) this.#versionTexts.delete(slot);
  }

  /** Generation of the object in a slot; 0 if it has none. */
  generation(slot: number): number {
    return this.page(slot).generation[slot & PAGE_MASK] as number;
  }

  /**
   * Compares the resourceVersion in a slot with that of a header; negative if the
   * one in the slot is older. Versions are stored as numbers if a number
   * represents them exactly, and otherwise as strings, which are compared by
   * length and then by digits; both orders are the same.
   */
  compareVersion(slot: number, header: ObjectHeader): number {
    const stored = this.page(slot).version[slot & PAGE_MASK] as number;
    const difference = stored - header.versionNumber;
    return Number.isNaN(difference)
      ? compareResourceVersions(this.version(slot), header.resourceVersion)
      : difference;
  }

  /** Starts a relist: no object counts as seen. */
  beginRelist(): void {
    this.#mark = this.#mark % LAST_MARK + 1;
    if (this.#mark > 1) return;
    // Marks of earlier rounds must not be taken for those of this one.
    for (const slot of this.slots()) this.page(slot).mark[slot & PAGE_MASK] = 0;
  }

  markSeen(slot: number): void {
    this.page(slot).mark[slot & PAGE_MASK] = this.#mark;
  }

  /**
   * Slots of the objects that the current relist did not show; each may be removed
   * when it is reached.
   *
   * @param resourceVersion Version of the list: newer objects count as seen,
   * unless it is empty.
   */
  *unseen(resourceVersion: string): Generator<number, void, undefined> {
    for (const slot of this.slots()) {
      if (this.page(slot).mark[slot & PAGE_MASK] === this.#mark) continue;
      if (
        resourceVersion !== "" &&
        compareResourceVersions(this.version(slot), resourceVersion) > 0
      ) this.markSeen(slot);
      else yield slot;
    }
  }

  get allocatedBytes(): number {
    return this.#names.allocatedBytes + this.#keys.allocatedBytes +
      this.#slots * SLOT_BYTES;
  }

  #takeSlot(): number {
    if (this.#free > 0) {
      const slot = this.#free - 1;
      this.#free = this.page(slot).body[slot & PAGE_MASK] as number;
      return slot;
    }
    if (this.#top >= MAX_SLOTS) {
      throw new RangeError(
        `Cannot keep more objects: a store holds at most ${MAX_SLOTS}`,
      );
    }
    const slot = this.#top++;
    const number = slot >>> PAGE_BITS;
    const page = this.#pages[number];
    if (page === undefined) {
      this.#pages[number] = new SlotPage(number === 0 ? undefined : PAGE_SLOTS);
    } else if ((slot & PAGE_MASK) >= page.slots) {
      this.#slots -= page.slots;
      this.#pages[number] = page.grown();
    } else return slot;
    this.#slots += this.page(slot).slots;
    return slot;
  }

  #encode({ namespace = "", name }: ObjectKey): void {
    const most = 3 * (name.length + namespace.length);
    if (most > this.#scratch.length) {
      this.#scratch = Buffer.alloc(Math.max(most, FIRST_SCRATCH_BYTES));
    }
    const bytes = this.#scratch;
    const middle = writeText(bytes, name, 0);
    const end = writeText(bytes, namespace, middle);
    copyRange({ bytes, start: 0, end: middle }, this.#lookup.name);
    copyRange({ bytes, start: middle, end }, this.#lookup.namespace);
  }

  #hashOf(slot: number): number {
    const page = this.page(slot);
    const at = slot & PAGE_MASK;
    const namespace = this.#namespaces.bytes(page.namespace[at] as number);
    const hash = this.#hashNamespace(namespace);
    return hashEnd(this.#names.hash(hash, page.name[at] as number));
  }

  #hashNamespace(namespace: ByteRange): number {
    return hashNext(hashBytes(this.#seed, namespace), SLASH);
  }
}

/** Writes a text, of ASCII as a rule; returns where it ends. */
function writeText(bytes: Buffer, text: string, start: number): number {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return start + bytes.write(text, start, "utf8");
    bytes[start + i] = code;
  }
  return start + text.length;
}

function emptyRange(): MutableRange {
  return { bytes: NO_BYTES, start: 0, end: 0 };
}

function copyRange(
  { bytes, start, end }: ByteRange,
  target: MutableRange,
): void {
  target.bytes = bytes;
  target.start = start;
  target.end = end;
}

/** Number of bits of a slot within a page. The first page of a store is smaller. */
const PAGE_BITS = 12;
const PAGE_SLOTS: number = 1 << PAGE_BITS;
export const PAGE_MASK: number = PAGE_SLOTS - 1;
const FIRST_SLOTS = 64;

const SLOT_BYTES = 40;

/**
 * Page of an object table: the columns of 4096 slots, in one allocation outside
 * the JavaScript heap.
 */
class SlotPage {
  readonly slots: number;
  /** resourceVersion if it is a number of at most 15 digits, otherwise NaN. */
  readonly version: Float64Array;
  /** Four 32-bit words of the UID if it is a UUID. */
  readonly uid: Uint32Array;
  readonly name: Uint32Array;
  /** Address of the body within its tier; in a free slot, the next free one. */
  readonly body: Uint32Array;
  readonly generation: Uint32Array;
  readonly namespace: Uint16Array;
  /** Tier of the body and mark of use; 0 in a free slot. */
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
 * Parses a UUID in its canonical text form into four 32-bit words.
 *
 * @returns Whether the text is a UUID; if not, the words are unspecified.
 */
function readUuid(
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

const DIGIT_BYTES = Buffer.from("0123456789abcdef");
/** UUID that was written last. */
const written = Buffer.alloc(UUID_LENGTH, DASH);

/**
 * Canonical text form of the UUID whose four words are at a position, in memory
 * that the next call reuses.
 */
function writeUuid(words: Uint32Array, at: number): Buffer {
  let digits = 0;
  for (let i = 0; i < UUID_LENGTH; i++) {
    if (i === 8 || i === 13 || i === 18 || i === 23) continue;
    const word = words[at + (digits >> 3)] as number;
    const digit = (word >>> (28 - 4 * (digits++ & 7))) & 15;
    written[i] = DIGIT_BYTES[digit] as number;
  }
  return written;
}
