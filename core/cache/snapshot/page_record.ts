/**
 * Records of the compressed pages of a store in a snapshot. A page is written, and
 * taken over, as it is; beside it are the identities of its objects and their values
 * in indexes, so that a restore reads no object.
 *
 * ```text
 * PAGE:  number of bodies (u8), flags (u8), number of entries (u16), length before
 *        compression (u32), length of the entries (u32), entries, compressed page
 * entry: number of its body (u8); namespace, name, UID, resourceVersion as JSON, and
 *        generation in digits, each after its length (u32); for each definition of
 *        the frame: number of values (u8, 255 if not known), each after its length
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
  parseRange,
  smallInteger,
} from "../../json/byte_range.ts";
import {
  FIELD_INDEX,
  type HeaderField,
  ObjectHeader,
} from "../../json/object_header.ts";
import { MAX_NAME_BYTES } from "../store/name_table.ts";
import type { ObjectStore, PageEntry } from "../store/object_store.ts";
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
/** Number of values that stands for values that were not saved. */
const NOT_KNOWN = 255;
/** Most characters of the values of an object in an index that are saved. */
const MAX_VALUE_LENGTH = 64 * 1024;
/** A page has one body of any size, or less than its limit before the last one. */
const MAX_PAGE_BYTES = MAX_LISTED_BYTES + 1024 * 1024;
const MAX_DEFINITIONS = 1_000;
/** Fields of the identity, in the order of an entry. */
const FIELDS: readonly HeaderField[] = [
  "namespace",
  "name",
  "uid",
  "resourceVersion",
  "generation",
];
/** Number of the fields that are JSON strings; the others are digits. */
const STRINGS = 4;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What is compressed as a probe of the codec if there is no dictionary. */
const PROBE = Buffer.from("a page of a snapshot; a page of a snapshot");

/** Writer of the entries of one page after the other. */
export class EntryWriter {
  #bytes: Buffer = Buffer.alloc(4096);
  #length = 0;

  /** Adds the entry of the object in a used slot. */
  add(
    store: ObjectStore<KubernetesObject>,
    slot: number,
    { ordinal, values: all }: Pick<PageEntry, "ordinal" | "values">,
  ): void {
    const { slots } = store;
    const { namespace, name } = store.keyAt(slot) as ObjectKey;
    const generation = slots.generation(slot);
    this.#number(1, ordinal);
    this.#text(namespace === undefined ? "" : JSON.stringify(namespace));
    this.#text(JSON.stringify(name));
    this.#text(JSON.stringify(slots.uid(slot)));
    this.#text(JSON.stringify(slots.version(slot)));
    this.#text(generation === 0 ? "" : String(generation));
    for (const values of all) {
      const length = values?.reduce((sum, { length }) => sum + length, 0) ?? 0;
      if (
        values === undefined || values.length >= NOT_KNOWN ||
        length > MAX_VALUE_LENGTH
      ) {
        this.#number(1, NOT_KNOWN);
        continue;
      }
      this.#number(1, values.length);
      for (const value of values) this.#text(value);
    }
  }

  /** Entries since the last call. */
  take(): Buffer {
    const entries = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return entries;
  }

  #number(size: 1 | 4, value: number): void {
    this.#grow(size);
    this.#length = this.#bytes.writeUIntLE(value, this.#length, size);
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
  /** Entries, each valid until the next one. */
  readonly entries: Iterable<PageEntry>;
}

/**
 * Reads the record of a page.
 *
 * @param definitions Number of definitions of indexes in its frame.
 * @throws {SnapshotRefusal} If it is malformed; the entries when they are read.
 */
export function readPage(
  { bytes, start, end }: ByteRange,
  definitions: number,
): PageRecord {
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
  const range = { bytes, start: entriesStart, end: entriesEnd };
  return { page, written, entries: entriesOf(range, written, definitions) };
}

function* entriesOf(
  { bytes, start, end }: ByteRange,
  written: number,
  definitions: number,
): Generator<PageEntry> {
  const buffer = asBuffer(bytes);
  const header = new ObjectHeader();
  const values: (readonly string[] | undefined)[] = [];
  const entry = { ordinal: 0, header, values };
  let at = start;
  /** Start of so many bytes, which must be there. */
  const take = (length: number) => {
    const from = at;
    at += length;
    if (at > end) throw malformed("an object is cut off");
    return from;
  };
  const takeText = () => take(buffer.readUInt32LE(take(4)));
  for (let i = 0; i < written; i++) {
    entry.ordinal = buffer.readUInt8(take(1));
    header.begin(bytes, at);
    for (let field = 0; field < FIELDS.length; field++) {
      const from = takeText();
      if (from === at) continue;
      const range = { bytes, start: from, end: at };
      if (!(field < STRINGS ? isText(range) : isDigits(range))) {
        throw malformed("a field has no valid value");
      }
      const index = 2 * FIELD_INDEX[FIELDS[field] as HeaderField];
      header.ranges[index] = from;
      header.ranges[index + 1] = at;
    }
    header.end = at;
    header.parseVersion();
    const name = header.string("name");
    const length = name.end - name.start;
    if (length <= 0 || length > MAX_NAME_BYTES) {
      throw malformed("an object has no name");
    }
    for (let number = 0; number < definitions; number++) {
      const count = buffer.readUInt8(take(1));
      let texts: string[] | undefined;
      if (count !== NOT_KNOWN) {
        texts = [];
        for (let j = 0; j < count; j++) {
          const from = takeText();
          texts.push(buffer.toString("utf8", from, at));
        }
      }
      values[number] = texts;
    }
    yield entry;
  }
  if (at !== end) throw malformed("its objects do not fill it");
}

/** Whether a range is a JSON string; only one with escapes is parsed. */
function isText(range: ByteRange): boolean {
  const { bytes, start, end } = range;
  if (end - start < 2 || bytes[start] !== QUOTE || bytes[end - 1] !== QUOTE) {
    return false;
  }
  if (!asBuffer(bytes).subarray(start, end).includes(BACKSLASH)) return true;
  try {
    return typeof parseRange(range) === "string";
  } catch {
    return false;
  }
}

function isDigits({ bytes, start, end }: ByteRange): boolean {
  return smallInteger(bytes, start, end) !== undefined;
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
  const { definitions, isRegular } = facts;
  if (
    !Array.isArray(definitions) || definitions.length > MAX_DEFINITIONS ||
    definitions.some((text) => typeof text !== "string") ||
    typeof isRegular !== "boolean"
  ) throw malformed("its facts are not complete");
  return { definitions, isRegular };
}

function malformed(why: string): SnapshotRefusal {
  return new SnapshotRefusal("damaged", `a frame is malformed: ${why}`);
}
