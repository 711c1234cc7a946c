import type { ByteRange } from "./byte_range.ts";
import { bytesOf, JsonCursor, OPEN_BRACE, QUOTE } from "./json_cursor.ts";
import {
  FIELD_INDEX,
  NO_CUT,
  NO_MEMBER,
  ObjectHeader,
} from "./object_header.ts";

/** What a watch event says of its object. */
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
const EVENT_TYPE_BYTES: readonly Uint8Array[] = EVENT_TYPES.map(bytesOf);

const TYPE = bytesOf("type");
const OBJECT = bytesOf("object");

const { metadata: METADATA } = FIELD_INDEX;

/** What an object and its metadata have; not all of it are fields of a header. */
const OBJECT_KEYS = ["apiVersion", "kind", "metadata", "spec", "status"];
const METADATA_KEYS = [
  ...["name", "generateName", "namespace", "uid", "resourceVersion"],
  ...["generation", "creationTimestamp", "deletionTimestamp"],
  ...["labels", "annotations", "ownerReferences", "finalizers"],
  "managedFields",
];

function fieldOf(key: string): number {
  return Object.hasOwn(FIELD_INDEX, key)
    ? FIELD_INDEX[key as keyof typeof FIELD_INDEX]
    : -1;
}

/** The first byte that the value of a field must have, by its index. */
const FIRST_BYTES: readonly string[] = [
  ...['"', '"', "{"], // apiVersion, kind, metadata
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

/**
 * Reads the header of a watch event, or of an object, in one pass over its
 * bytes, with any key order and white space.
 *
 * Of every document that `JSON.parse` accepts, the header equals what it would
 * give. The envelope, the object's own keys and those of its metadata are checked
 * to the letter of the grammar. Objects and arrays within, such as `spec`,
 * `status` and `managedFields`, are leapt over by their strings and the number
 * of brackets: what is wrong in them cannot change the header, and shows when
 * they are read. That goes for `labels` and the like, too, which a header reads
 * only when it is asked.
 */
export class EventScanner {
  /** The header of the last object; every scan overwrites it. */
  readonly header: ObjectHeader = new ObjectHeader();

  readonly #cursor: JsonCursor = new JsonCursor("a watch event");
  readonly #objectKeys: KeyGuesser = new KeyGuesser(OBJECT_KEYS, fieldOf);
  readonly #metadataKeys: KeyGuesser = new KeyGuesser(METADATA_KEYS, fieldOf);

  /**
   * Reads one line of a watch: `{"type": …, "object": {…}}`.
   *
   * @returns The type of the event; {@linkcode EventScanner.header} describes
   * its object: a Status for ERROR, nothing but a resourceVersion for BOOKMARK.
   * @throws {SyntaxError} If the line is not such an event.
   */
  scan(line: ByteRange): WatchEventType {
    const cursor = this.#cursor;
    cursor.reset(line);
    let type = -1;
    let object = -1;
    if (cursor.peek() !== OPEN_BRACE) cursor.fail("it must be an object");
    for (let more = cursor.enterObject(); more; more = cursor.nextMember()) {
      if (cursor.stringIs(OBJECT)) {
        object = cursor.position;
        if (cursor.peek() === OPEN_BRACE) this.#object();
        else {
          cursor.skipStructure();
          object = -1;
        }
      } else if (cursor.stringIs(TYPE)) {
        type = cursor.position;
        cursor.skipStructure();
      } else cursor.skipStructure();
    }
    cursor.finish();
    if (object < 0) cursor.fail('"object" must be an object');
    this.#checkFields();
    return this.#eventType(type);
  }

  /**
   * Reads one object, such as an item of a list or the answer to a write.
   *
   * @param snapshot For {@linkcode JsonCursor.reset}.
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

  #eventType(position: number): WatchEventType {
    const cursor = this.#cursor;
    if (position >= 0) {
      cursor.position = position;
      if (cursor.peek() === QUOTE) {
        cursor.string();
        for (let i = 0; i < EVENT_TYPES.length; i++) {
          const bytes = EVENT_TYPE_BYTES[i] as Uint8Array;
          if (cursor.stringIs(bytes)) return EVENT_TYPES[i] as WatchEventType;
        }
        cursor.position = position;
      }
    }
    return cursor.fail('"type" must be that of a watch event');
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
        header.forget(METADATA); // of an earlier metadata nothing counts
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

  /** Only the last of repeated keys counts, so shapes are checked at the end. */
  #checkFields(): void {
    const { bytes, ranges } = this.header;
    for (let index = 0; index < FIRST_BYTE_TABLES.length; index++) {
      const start = ranges[2 * index] as number;
      if (start < 0) continue;
      const first = bytes[start] as number;
      const table = FIRST_BYTE_TABLES[index] as Uint8Array;
      if (table[first] === 1) continue;
      if (first !== LOWER_N) this.#refuseField(index);
      ranges[2 * index] = ranges[2 * index + 1] = -1; // null counts as absent
    }
    this.header.parseVersion();
  }

  #refuseField(index: number): never {
    const field = Object.entries(FIELD_INDEX).find(([, at]) => at === index);
    this.#cursor.position = this.header.ranges[2 * index] as number;
    return this.#cursor.fail(`"${field?.[0]}" has a value of the wrong type`);
  }
}

interface KnownKey {
  readonly key: Uint8Array;
  /** As it stands where there is no white space: `"key":`. */
  readonly text: Uint8Array | undefined;
  /** What its reader calls it. */
  readonly name: number;
  /** Its place in the table of followers. */
  readonly place: number;
}

/** Stands for any other key, and for the beginning of an object. */
const UNKNOWN: KnownKey = {
  key: new Uint8Array(0),
  text: undefined,
  name: -1,
  place: 0,
};

/**
 * Tells which of some keys each member of an object has.
 *
 * A server writes the members of all objects of a kind in one order. So it
 * remembers by which key each one was followed last, and guesses that it is so
 * again: to see that a guess is right takes a fraction of the time of finding
 * out which key it is.
 *
 * Expected flow: `begin`, then for each member the cursor is moved, given the
 * guess, and its key is read.
 */
export class KeyGuesser {
  /** The keys by their lengths: one comparison finds most. */
  readonly #byLength: readonly (readonly KnownKey[])[];
  /** By the place of a key: which one followed it last. */
  readonly #followers: KnownKey[];
  #last: KnownKey = UNKNOWN;
  #next: KnownKey = UNKNOWN;

  /**
   * @param keys The keys that it knows.
   * @param nameOf What a key is called; -1 if nobody wants to know.
   */
  constructor(keys: readonly string[], nameOf: (key: string) => number) {
    const known = keys.map((key, i) => ({
      key: bytesOf(key),
      text: bytesOf(`"${key}":`),
      name: nameOf(key),
      place: i + 1,
    }));
    const lengths = Math.max(...keys.map(({ length }) => length)) + 1;
    this.#byLength = Array.from(
      { length: lengths },
      (_, length) => known.filter(({ key }) => key.length === length),
    );
    this.#followers = [UNKNOWN, ...known].map(() => UNKNOWN);
  }

  /** Begins with another object. */
  begin(): void {
    this.#follow(UNKNOWN);
  }

  /** What the next key may be, for the cursor that moves to it. */
  get guess(): Uint8Array | undefined {
    return this.#next.text;
  }

  /** The name of the key that the cursor has read; -1 if it is not known. */
  read(cursor: JsonCursor): number {
    let known = this.#next;
    if (!cursor.wasExpected) {
      known = this.#find(cursor);
      this.#followers[this.#last.place] = known;
    }
    this.#follow(known);
    return known.name;
  }

  #follow(known: KnownKey): void {
    this.#last = known;
    this.#next = this.#followers[known.place] as KnownKey;
  }

  #find(cursor: JsonCursor): KnownKey {
    const length = cursor.escaped
      ? cursor.stringText().length
      : cursor.stringEnd - cursor.stringStart;
    const candidates = this.#byLength[length];
    if (candidates === undefined) return UNKNOWN;
    for (let i = 0; i < candidates.length; i++) {
      const candidate = candidates[i] as KnownKey;
      if (cursor.stringIs(candidate.key)) return candidate;
    }
    return UNKNOWN;
  }
}
