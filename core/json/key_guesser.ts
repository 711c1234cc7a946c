import { bytesOf, type JsonCursor } from "./json_cursor.ts";

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
