/**
 * Scanners of JSON bytes: lines of a watch, events, lists and single fields are
 * found on the bytes of a response without parsing them.
 *
 * Guarantees: for valid JSON, all results equal those of `JSON.parse`. Error
 * messages never quote the text. Headers and byte ranges are borrowed: they are
 * valid until the next step of their scanner.
 *
 * It imports `api` only.
 *
 * @module
 */
import { type ByteRange, NO_RANGE, stringEquals } from "./byte_range.ts";
import {
  BACKSLASH,
  bytesOf,
  JsonCursor,
  OPEN_BRACE,
  QUOTE,
} from "./json_cursor.ts";
import {
  FIELD_INDEX,
  NO_CUT,
  NO_MEMBER,
  ObjectHeader,
} from "./object_header.ts";

export type WatchEventType =
  | "ADDED"
  | "MODIFIED"
  | "DELETED"
  | "BOOKMARK"
  | "ERROR";

const EVENT_TYPES: readonly WatchEventType[] = [
  "MODIFIED",
  "ADDED",
  "DELETED",
  "BOOKMARK",
  "ERROR",
];

const { metadata: METADATA, name: NAME, namespace: NAMESPACE } = FIELD_INDEX;

/** Allowed first bytes of the value of each field, by its index. */
const FIRST_BYTES: readonly string[] = [
  ...['"', '"', '{["-0123456789tf', "{"], // apiVersion, kind, status, metadata
  ...['"', '"', '"', '"'], // name, namespace, uid, resourceVersion
  ...["-0123456789", '"'], // generation, deletionTimestamp
  ...["[", "{", "{", "[", "["], // finalizers … managedFields
];
const FIRST_BYTE_TABLES: readonly Uint8Array[] = FIRST_BYTES.map((allowed) => {
  const table = new Uint8Array(256);
  for (const byte of bytesOf(allowed)) table[byte] = 1;
  return table;
});
const LOWER_N = 0x6e;
const SLASH = 0x2f;

/**
 * Scanner of watch events and objects: finds the header of an object in one pass
 * over its bytes, with any key order and white space.
 *
 * For each document that `JSON.parse` accepts, the header equals the parsed value.
 * The envelope, the keys of the object and those of its metadata are checked
 * against the grammar, and a name or namespace with a slash is refused, as in
 * Kubernetes. Nested objects and arrays, such as `spec`, `status`,
 * `labels` and `managedFields`, are skipped by their strings and brackets alone:
 * errors in them cannot change the header, and are found when they are parsed.
 */
export class EventScanner {
  /** Header of the last object; each scan overwrites it. */
  readonly header: ObjectHeader = new ObjectHeader();

  readonly #cursor: JsonCursor = new JsonCursor("a watch event");
  readonly #objectKeys: KeyGuesser = new KeyGuesser(OBJECT_KEYS);
  readonly #metadataKeys: KeyGuesser = new KeyGuesser(METADATA_KEYS);

  /**
   * Scans a line of a watch: `{"type": …, "object": {…}}`.
   *
   * @returns Type of the event; {@linkcode EventScanner.header} describes its
   * object: a Status for ERROR, an object with only a resourceVersion for BOOKMARK.
   * @throws {SyntaxError} If the line is not a watch event.
   */
  scan(line: ByteRange): WatchEventType {
    const cursor = this.#cursor;
    cursor.reset(line);
    let type = -1;
    let typeEnd = -1;
    let object = -1;
    if (cursor.peek() !== OPEN_BRACE) cursor.fail("it must be an object");
    for (let more = cursor.enterObject(); more; more = cursor.nextMember()) {
      if (cursor.stringEquals("object")) {
        object = cursor.position;
        if (cursor.peek() === OPEN_BRACE) this.#object();
        else {
          cursor.skipStructure();
          object = -1;
        }
      } else if (cursor.stringEquals("type")) {
        type = cursor.position;
        cursor.skipStructure();
        typeEnd = cursor.position;
      } else cursor.skipStructure();
    }
    cursor.finish();
    if (object < 0) cursor.fail('"object" must be an object');
    this.#checkFields();
    return this.#eventType(type, typeEnd);
  }

  /**
   * Scans an object, such as an item of a list or the response to a write.
   *
   * @param range JSON of the object.
   * @param snapshot Snapshot for {@linkcode JsonCursor.reset}.
   * @returns {@linkcode EventScanner.header}.
   * @throws {SyntaxError} If the range is not one JSON object with the header
   * of a Kubernetes object.
   */
  scanObject(range: ByteRange, snapshot?: unknown): ObjectHeader {
    const cursor = this.#cursor;
    cursor.reset(range, snapshot);
    if (cursor.peek() !== OPEN_BRACE) cursor.fail("it must be an object");
    this.#object();
    cursor.finish();
    this.#checkFields();
    return this.header;
  }

  /** Forgets the bytes that were scanned last; the header is empty then. */
  release(): void {
    this.#cursor.reset(NO_RANGE);
    this.header.release();
  }

  #eventType(start: number, end: number): WatchEventType {
    const cursor = this.#cursor;
    if (cursor.bytes[start] === QUOTE) {
      for (const type of EVENT_TYPES) {
        if (stringEquals(cursor.bytes, start, end, type)) return type;
      }
    }
    if (start >= 0) cursor.position = start;
    return cursor.fail('"type" must be a type of watch events');
  }

  #object(): void {
    const { header } = this;
    const cursor = this.#cursor;
    header.begin(cursor.bytes, cursor.position);
    const keys = this.#objectKeys;
    keys.begin();
    for (
      let more = cursor.enterObject(keys.guess);
      more;
      more = cursor.nextMember(keys.guess)
    ) {
      const index = keys.read(cursor);
      const start = cursor.position;
      if (index === METADATA) {
        header.repeatsMetadata ||= (header.ranges[2 * METADATA] as number) >= 0;
        header.forget(METADATA); // fields of repeated metadata do not count
        if (cursor.peek() === OPEN_BRACE) this.#metadata();
        else cursor.skipStructure();
      } else cursor.skipStructure();
      if (index >= 0) this.#note(index, start);
    }
    header.end = cursor.position;
  }

  #metadata(): void {
    const cursor = this.#cursor;
    const { cutStarts } = this.header;
    let before = NO_CUT;
    const keys = this.#metadataKeys;
    keys.begin();
    for (
      let more = cursor.enterObject(keys.guess);
      more;
      more = cursor.nextMember(keys.guess)
    ) {
      const index = keys.read(cursor);
      const start = cursor.position;
      cursor.skipStructure();
      if (index >= 0) {
        cutStarts[index] = cutStarts[index] === NO_MEMBER ? before : NO_CUT;
        this.#note(index, start);
      }
      before = cursor.position;
    }
  }

  #note(index: number, start: number): void {
    this.header.ranges[2 * index] = start;
    this.header.ranges[2 * index + 1] = this.#cursor.position;
  }

  /** Checks field types after a scan: only the last of repeated keys counts. */
  #checkFields(): void {
    const { bytes, ranges } = this.header;
    for (let index = 0; index < FIRST_BYTE_TABLES.length; index++) {
      const start = ranges[2 * index] as number;
      if (start < 0) continue;
      const first = bytes[start] as number;
      const table = FIRST_BYTE_TABLES[index] as Uint8Array;
      if (table[first] === 1) continue;
      if (first !== LOWER_N) this.#failField(index);
      ranges[2 * index] = ranges[2 * index + 1] = -1; // null counts as absent
    }
    this.#checkPart(NAME);
    this.#checkPart(NAMESPACE);
    this.header.parseVersion();
  }

  /** Refuses a slash in a part of a key: the text of the key would be ambiguous. */
  #checkPart(index: number): void {
    const { bytes, ranges } = this.header;
    const end = ranges[2 * index + 1] as number;
    for (let at = ranges[2 * index] as number; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte === SLASH) this.#failField(index, "contains a slash");
      if (byte !== BACKSLASH) continue;
      const text = index === NAME ? this.header.name : this.header.namespace;
      if (text.includes("/")) this.#failField(index, "contains a slash");
      return;
    }
  }

  #failField(index: number, why = "has a value of the wrong type"): never {
    const field = Object.entries(FIELD_INDEX).find(([, at]) => at === index);
    this.#cursor.position = this.header.ranges[2 * index] as number;
    return this.#cursor.fail(`"${field?.[0]}" ${why}`);
  }
}

/** Known key of an object. */
interface KnownKey {
  readonly key: string;
  /** Bytes of the key before its value, without white space: `"key":`. */
  readonly text: Uint8Array | undefined;
  /** Index of the header field; -1 if the key is not part of the header. */
  readonly field: number;
  /** Index in the table of last followers. */
  readonly index: number;
}

/** Placeholder for an unknown key, and for the start of an object. */
const UNKNOWN: KnownKey = { key: "", text: undefined, field: -1, index: 0 };

/** Table of the known keys of an object, shared by all its guessers. */
export class KeyTable {
  /** Number of known keys. */
  readonly size: number;
  /** Keys by length, so that most are found by one comparison. */
  readonly byLength: readonly (readonly KnownKey[])[];

  /** @param fieldOf Returns the field of a key; -1 if it is not needed. */
  constructor(keys: readonly string[], fieldOf: (key: string) => number) {
    const known = keys.map((key, i) => ({
      key,
      text: bytesOf(`"${key}":`),
      field: fieldOf(key),
      index: i + 1,
    }));
    const lengths = Math.max(...keys.map(({ length }) => length)) + 1;
    this.size = keys.length;
    this.byLength = Array.from(
      { length: lengths },
      (_, length) => known.filter(({ key }) => key.length === length),
    );
  }
}

function fieldOf(key: string): number {
  return Object.hasOwn(FIELD_INDEX, key)
    ? FIELD_INDEX[key as keyof typeof FIELD_INDEX]
    : -1;
}

/** Common keys of an object, some of them fields of a header. */
const OBJECT_KEYS = new KeyTable(
  ["apiVersion", "kind", "metadata", "spec", "status"],
  fieldOf,
);
const METADATA_KEYS = new KeyTable([
  ...["name", "generateName", "namespace", "uid", "resourceVersion"],
  ...["generation", "creationTimestamp", "deletionTimestamp"],
  ...["labels", "annotations", "ownerReferences", "finalizers"],
  "managedFields",
], fieldOf);

/**
 * Predictor of the keys of objects.
 *
 * A server writes the members of all objects of a kind in the same order. The
 * guesser remembers which key followed each key last, and predicts it again:
 * verifying a guess takes a fraction of the time of finding the key.
 *
 * Expected flow: `begin`, then for each member the cursor is moved with `guess`,
 * and `read` returns the field of its key.
 */
export class KeyGuesser {
  readonly #table: KeyTable;
  /** Last follower of each key, by its index. */
  readonly #followers: KnownKey[];
  #last: KnownKey = UNKNOWN;
  #next: KnownKey = UNKNOWN;

  /** @param table The known keys. */
  constructor(table: KeyTable) {
    this.#table = table;
    this.#followers = new Array(table.size + 1).fill(UNKNOWN);
  }

  /** Starts the prediction for another object. */
  begin(): void {
    this.#follow(UNKNOWN);
  }

  /** Predicted next key, for the cursor that moves to it. */
  get guess(): Uint8Array | undefined {
    return this.#next.text;
  }

  /** Field of the key that the cursor has read; -1 if the key is not needed. */
  read(cursor: JsonCursor): number {
    let known = this.#next;
    if (!cursor.wasExpected) {
      known = this.#find(cursor);
      this.#followers[this.#last.index] = known;
    }
    this.#follow(known);
    return known.field;
  }

  #follow(known: KnownKey): void {
    this.#last = known;
    this.#next = this.#followers[known.index] as KnownKey;
  }

  #find(cursor: JsonCursor): KnownKey {
    const length = cursor.escaped
      ? cursor.stringText().length
      : cursor.stringEnd - cursor.stringStart;
    const candidates = this.#table.byLength[length];
    if (candidates === undefined) return UNKNOWN;
    for (let i = 0; i < candidates.length; i++) {
      const candidate = candidates[i] as KnownKey;
      if (cursor.stringEquals(candidate.key)) return candidate;
    }
    return UNKNOWN;
  }
}
