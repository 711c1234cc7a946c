/**
 * Records of the compressed pages of a store in a snapshot. A page is written, and
 * taken over, as it is; beside it are the identities of its objects, among them the
 * UIDs that its bodies lack, and their values in indexes, so that a restore reads no
 * object.
 *
 * ```text
 * PAGE:  number of bodies (u8), flags (u8), number of entries (u16), length before
 *        compression (u32), length of the entries (u32), entries, compressed page
 * entry: number of its body (u8), flags (u8); namespace, unless it is that of the
 *        entry before; name; UID (16 bytes, or a text), resourceVersion (f64, or a
 *        text), generation (u32), as the flags say; for each definition of the
 *        frame: number of values (u8, 254 if they are those of the entry before, 255
 *        if not known), and the values
 * text:  length (u32), UTF-8
 * BASIS: length of the dictionary (u32), dictionary, compressed probe
 * ```
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import {
  asBuffer,
  type ByteRange,
  NO_BYTES,
  NO_RANGE,
  parseRange,
} from "../../json/byte_range.ts";
import type { PageEntry } from "../store/adopted_page.ts";
import { MAX_SLOTS } from "../store/key_table.ts";
import { MAX_NAME_BYTES } from "../store/name_table.ts";
import type { ObjectStore } from "../store/object_store.ts";
import {
  compressPage,
  decompressPage,
  type PageDictionary,
} from "../store/page_codec.ts";
import {
  DICTIONARY_BYTES,
  PAGE_OBJECTS,
  type StoredPage,
} from "../store/tiers.ts";
import { MAX_LISTED_BYTES } from "../watch/receive.ts";
import { SnapshotRefusal } from "./snapshot_format.ts";

const PLAIN = 1;
const PAGE_HEAD_BYTES = 12;
/** Flags of an entry. */
const SAME_NAMESPACE = 1;
const UID_TEXT = 2;
const VERSION_TEXT = 4;
const GENERATION = 8;
const FLAGS = SAME_NAMESPACE | UID_TEXT | VERSION_TEXT | GENERATION;
/** Number of values that stands for those of the entry before. */
const SAME = 254;
/** Number of values that stands for values that were not saved. */
const NOT_KNOWN = 255;
/** Most characters of the values of an object in an index that are saved. */
const MAX_VALUE_LENGTH = 64 * 1024;
/** A page has one body of any size, or less than its limit before the last one. */
const MAX_PAGE_BYTES = MAX_LISTED_BYTES + 1024 * 1024;
const MAX_DEFINITIONS = 1_000;
const UID_WORDS = 4;
/** Text of a resourceVersion that is saved as a number, which is exact. */
const VERSION_NUMBER = /^(0|[1-9]\d{0,14})$/;
const VERSION_LIMIT = 1e15;
/** What is compressed as a probe of the codec if there is no dictionary. */
const PROBE = Buffer.from("a page of a snapshot; a page of a snapshot");

/** Values of an object by the definitions of its frame. */
type Values = PageEntry["values"];

/** Writer of the entries of one page after the other. */
export class EntryWriter {
  #bytes: Buffer = Buffer.alloc(4096);
  #length = 0;
  /** Namespace and values of the entry before; undefined for the first one. */
  #namespace: string | undefined;
  #values: Values | undefined;
  readonly #uid: Uint32Array = new Uint32Array(UID_WORDS);

  /** Adds the entry of the object in a used slot. */
  add(
    store: ObjectStore<KubernetesObject>,
    slot: number,
    { ordinal, values: all }: Pick<PageEntry, "ordinal" | "values">,
  ): void {
    const { slots } = store;
    const { namespace = "", name } = store.keyAt(slot) as ObjectKey;
    const generation = slots.generation(slot);
    const version = slots.version(slot);
    const isSame = namespace === this.#namespace;
    const hasWords = slots.copyUid(slot, this.#uid);
    const hasNumber = VERSION_NUMBER.test(version);
    this.#number(1, ordinal);
    this.#number(
      1,
      (isSame ? SAME_NAMESPACE : 0) | (hasWords ? 0 : UID_TEXT) |
        (hasNumber ? 0 : VERSION_TEXT) | (generation === 0 ? 0 : GENERATION),
    );
    if (!isSame) this.#text(namespace);
    this.#text(name);
    if (hasWords) { for (const word of this.#uid) this.#number(4, word); }
    else this.#text(slots.uid(slot));
    if (hasNumber) this.#double(Number(version));
    else this.#text(version);
    if (generation !== 0) this.#number(4, generation);
    for (const [at, values] of all.entries()) {
      this.#valuesOf(values, this.#values?.[at]);
    }
    this.#namespace = namespace;
    this.#values = all;
  }

  #valuesOf(
    values: readonly string[] | undefined,
    before: readonly string[] | undefined,
  ): void {
    const length = values?.reduce((sum, { length }) => sum + length, 0) ?? 0;
    if (
      values === undefined || values.length >= SAME || length > MAX_VALUE_LENGTH
    ) return this.#number(1, NOT_KNOWN);
    const isSame = values.length === before?.length &&
      values.every((value, i) => value === before[i]);
    this.#number(1, isSame ? SAME : values.length);
    if (!isSame) { for (const value of values) this.#text(value); }
  }

  /** Entries since the last call. */
  take(): Buffer {
    const entries = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    this.#namespace = this.#values = undefined;
    return entries;
  }

  #number(size: 1 | 4, value: number): void {
    this.#grow(size);
    this.#length = this.#bytes.writeUIntLE(value, this.#length, size);
  }

  #double(value: number): void {
    this.#grow(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  #text(text: string): void {
    this.#grow(4 + 3 * text.length);
    const start = this.#length + 4;
    const written = this.#bytes.write(text, start);
    this.#bytes.writeUInt32LE(written, this.#length);
    this.#length = start + written;
  }

  #grow(length: number): void {
    const needed = this.#length + length;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.alloc(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** Head and entries of a record of a page; the compressed page follows them. */
export function pageHead(
  { count, length, isPlain }: Omit<StoredPage, "bytes">,
  written: number,
  entries: Buffer,
): Buffer {
  const head = Buffer.alloc(PAGE_HEAD_BYTES);
  head.writeUInt8(count, 0);
  head.writeUInt8(isPlain ? PLAIN : 0, 1);
  head.writeUInt16LE(written, 2);
  head.writeUInt32LE(length, 4);
  head.writeUInt32LE(entries.length, 8);
  return Buffer.concat([head, entries]);
}

/** Page in a record. */
export interface PageRecord {
  readonly page: StoredPage;
  /** Number of entries. */
  readonly written: number;
  /** Range of the entries. */
  readonly entries: ByteRange;
}

/**
 * Reads the record of a page; {@linkcode EntryReader} reads its entries.
 *
 * @throws {SnapshotRefusal} If it is malformed.
 */
export function readPage({ bytes, start, end }: ByteRange): PageRecord {
  const buffer = asBuffer(bytes);
  const entriesStart = start + PAGE_HEAD_BYTES;
  if (entriesStart > end) throw malformed("it has no head");
  const count = buffer.readUInt8(start);
  const written = buffer.readUInt16LE(start + 2);
  const length = buffer.readUInt32LE(start + 4);
  const entriesEnd = entriesStart + buffer.readUInt32LE(start + 8);
  if (
    count === 0 || count > PAGE_OBJECTS || written > count ||
    length > MAX_PAGE_BYTES || length < 4 * (1 + count) || entriesEnd >= end
  ) throw malformed("its sizes do not fit");
  const isPlain = (buffer.readUInt8(start + 1) & PLAIN) !== 0;
  const page = {
    count,
    length,
    isPlain,
    bytes: buffer.subarray(entriesEnd, end),
  };
  return {
    page,
    written,
    entries: { bytes, start: entriesStart, end: entriesEnd },
  };
}

type Mutable<T> = { -readonly [Part in keyof T]: T[Part] };

/** Reader of the entries of one page after the other. */
export class EntryReader {
  readonly #namespace: Mutable<ByteRange> = { ...NO_RANGE };
  readonly #name: Mutable<ByteRange> = { ...NO_RANGE };
  readonly #uid: Uint32Array = new Uint32Array(UID_WORDS);
  readonly #values: (readonly string[] | undefined)[] = [];
  readonly #entry: Mutable<PageEntry> = {
    ordinal: 0,
    namespace: this.#namespace,
    name: this.#name,
    uid: this.#uid,
    version: 0,
    generation: 0,
    values: this.#values,
  };
  #bytes: Buffer = NO_BYTES;
  #at = 0;
  #end = 0;
  /** Number of entries that are left. */
  #left = 0;

  /** Begins to read the entries of a page, with values by so many definitions. */
  begin({ written, entries }: PageRecord, definitions: number): void {
    const bytes = asBuffer(entries.bytes);
    this.#bytes = this.#namespace.bytes = this.#name.bytes = bytes;
    this.#namespace.start = this.#namespace.end = 0;
    this.#at = entries.start;
    this.#end = entries.end;
    this.#left = written;
    this.#values.length = definitions;
    this.#values.fill(undefined);
  }

  /**
   * Next entry, valid until the next call; undefined after the last one.
   *
   * @throws {SnapshotRefusal} If it is malformed.
   */
  next(): PageEntry | undefined {
    if (this.#left-- === 0) {
      if (this.#at === this.#end) return undefined;
      throw malformed("its objects do not fill it");
    }
    const entry = this.#entry;
    const bytes = this.#bytes;
    entry.ordinal = bytes[this.#take(1)] as number;
    const flags = bytes[this.#take(1)] as number;
    if ((flags & ~FLAGS) !== 0) throw malformed("an object has other flags");
    if ((flags & SAME_NAMESPACE) === 0) this.#range(this.#namespace);
    this.#range(this.#name);
    const length = this.#name.end - this.#name.start;
    if (length === 0 || length > MAX_NAME_BYTES) {
      throw malformed("an object has no name");
    }
    entry.uid = (flags & UID_TEXT) === 0 ? this.#words() : this.#text();
    entry.version = (flags & VERSION_TEXT) === 0
      ? this.#version()
      : this.#text();
    entry.generation = (flags & GENERATION) === 0
      ? 0
      : bytes.readUInt32LE(this.#take(4));
    for (let number = 0; number < this.#values.length; number++) {
      const count = bytes[this.#take(1)] as number;
      if (count !== SAME) this.#values[number] = this.#texts(count);
    }
    return entry;
  }

  #texts(count: number): readonly string[] | undefined {
    if (count === NOT_KNOWN) return undefined;
    const texts: string[] = [];
    for (let i = 0; i < count; i++) texts.push(this.#text());
    return texts;
  }

  #words(): Uint32Array {
    let at = this.#take(4 * UID_WORDS);
    for (let i = 0; i < UID_WORDS; i++, at += 4) {
      this.#uid[i] = this.#bytes.readUInt32LE(at);
    }
    return this.#uid;
  }

  #version(): number {
    const version = this.#bytes.readDoubleLE(this.#take(8));
    if (Number.isInteger(version) && version >= 0 && version < VERSION_LIMIT) {
      return version;
    }
    throw malformed("a version is no number");
  }

  #text(): string {
    const start = this.#length();
    return this.#bytes.toString("utf8", start, this.#at);
  }

  #range(range: Mutable<ByteRange>): void {
    range.start = this.#length();
    range.end = this.#at;
  }

  /** Reads a length, and takes so many bytes; returns their start. */
  #length(): number {
    return this.#take(this.#bytes.readUInt32LE(this.#take(4)));
  }

  /** Start of so many bytes, which must be there. */
  #take(length: number): number {
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#end) throw malformed("an object is cut off");
    return from;
  }
}

/** Text of a dictionary, and a page that tells whether this runtime can read others. */
export function encodeBasis(dictionary: PageDictionary): Buffer {
  const sample = dictionary?.length ? dictionary : PROBE;
  const numbers = Buffer.alloc(4);
  numbers.writeUInt32LE(dictionary?.length ?? 0, 0);
  return Buffer.concat([
    numbers,
    dictionary ?? Buffer.alloc(0),
    compressPage(sample, dictionary),
  ]);
}

/**
 * Reads the dictionary of the pages of a snapshot.
 *
 * @throws {SnapshotRefusal} If it is malformed, or this runtime cannot decompress
 * the pages.
 */
export function readBasis({ bytes, start, end }: ByteRange): PageDictionary {
  const buffer = asBuffer(bytes);
  const length = end - start < 4 ? Infinity : buffer.readUInt32LE(start);
  const probeStart = start + 4 + length;
  if (length > DICTIONARY_BYTES || probeStart >= end) {
    throw malformed("its dictionary does not fit");
  }
  const dictionary = length === 0
    ? undefined
    : Buffer.from(buffer.subarray(start + 4, probeStart));
  const sample = dictionary ?? PROBE;
  try {
    const probe = buffer.subarray(probeStart, end);
    const format = { length: sample.length, dictionary };
    if (decompressPage(probe, format).equals(sample)) return dictionary;
  } catch {
    // Refused below.
  }
  throw new SnapshotRefusal(
    "format",
    "this runtime cannot decompress it: another one has written it",
  );
}

/** What the pages of a frame have in common. */
export interface FrameFacts {
  /** Definitions of the indexes whose values the entries have, as JSON. */
  readonly definitions: readonly string[];
  /** Whether the JSON of all objects has `metadata` only once. */
  readonly isRegular: boolean;
  /** Number of objects when the frame was written, to make room for them. */
  readonly objects?: number;
}

/**
 * Reads what the pages of a frame have in common.
 *
 * @throws {SnapshotRefusal} If it is malformed.
 */
export function readFacts(range: ByteRange): FrameFacts {
  let facts: Partial<FrameFacts>;
  try {
    facts = Object(parseRange(range)) as Partial<FrameFacts>;
  } catch {
    throw malformed("its facts are not JSON");
  }
  const { definitions, isRegular, objects = 0 } = facts;
  if (
    !Array.isArray(definitions) || definitions.length > MAX_DEFINITIONS ||
    definitions.some((text) => typeof text !== "string") ||
    typeof isRegular !== "boolean" ||
    !Number.isInteger(objects) || objects < 0 || objects > MAX_SLOTS
  ) throw malformed("its facts are not complete");
  return { definitions, isRegular, objects };
}

function malformed(why: string): SnapshotRefusal {
  return new SnapshotRefusal("damaged", `a frame is malformed: ${why}`);
}
