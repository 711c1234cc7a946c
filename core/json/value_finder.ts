import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  TO_CLOSING,
} from "./json_cursor.ts";
import { sharedEngine } from "./wasm_engine.ts";
import { INCOMPLETE } from "./structure_engine.ts";

const SPACE = 0x20;
const COMMA = 0x2c;

/**
 * Finds the end of a JSON value whose bytes come in parts, looking at each byte
 * once. What the value holds is not checked.
 */
export class ValueFinder {
  /**
   * Stands for the bytes as they are now; see `JsonCursor.reset`. Whoever
   * changes the bytes calls {@linkcode ValueFinder.changed}.
   */
  snapshot: unknown = {};

  readonly #engine = sharedEngine();
  /** How much of an unfinished value was read. */
  #read = 0;
  /** The engine's state there, if the value is an object or array. */
  #saved: Uint8Array | undefined;

  /** Forgets an unfinished value. */
  reset(): void {
    this.#read = 0;
    this.#saved = undefined;
    this.changed();
  }

  /** Tells that bytes were added or moved. */
  changed(): void {
    this.snapshot = {};
  }

  /**
   * Looks for the end of the value at `start`.
   *
   * @param end Where the bytes known so far end.
   * @returns The end of the value; or -1 if it is not there yet: then this is
   * called again for the same value once there are more bytes.
   * @throws {SyntaxError} If its brackets do not match.
   */
  find(bytes: Uint8Array, start: number, end: number): number {
    const first = bytes[start];
    const found = first === QUOTE
      ? this.#findQuote(bytes, start, end)
      : first === OPEN_BRACE || first === OPEN_BRACKET
      ? this.#findBracket(bytes, start, end)
      : this.#findMark(bytes, start, end);
    if (found !== INCOMPLETE) {
      this.#read = 0;
      this.#saved = undefined;
    }
    return found;
  }

  #findQuote(bytes: Uint8Array, start: number, end: number): number {
    let i = start + Math.max(1, this.#read);
    while (i < end) {
      const byte = bytes[i];
      if (byte === QUOTE) return i + 1;
      if (byte === BACKSLASH && i + 1 === end) break;
      i += byte === BACKSLASH ? 2 : 1;
    }
    this.#read = i - start;
    return INCOMPLETE;
  }

  #findBracket(bytes: Uint8Array, start: number, end: number): number {
    const engine = this.#engine;
    let found = INCOMPLETE;
    if (this.#saved === undefined) {
      if (engine.owner !== this.snapshot) {
        engine.load(bytes, start, end);
        engine.owner = this.snapshot;
      }
      found = engine.skip(start);
      if (found === INCOMPLETE) engine.reset();
    } else engine.restore(this.#saved);
    if (found === INCOMPLETE) {
      found = engine.resume(bytes, start + this.#read, end);
    }
    if (
      found !== INCOMPLETE &&
      bytes[found - 1] !== (bytes[start] as number) + TO_CLOSING
    ) {
      throw new SyntaxError(
        "Cannot read a list: brackets must match: received others",
      );
    }
    if (found === INCOMPLETE) {
      this.#read = engine.position - start;
      this.#saved = engine.save();
    }
    return found;
  }

  /** A number or literal ends where a mark or space follows. */
  #findMark(bytes: Uint8Array, start: number, end: number): number {
    for (let i = start + this.#read; i < end; i++) {
      const byte = bytes[i] as number;
      if (
        byte <= SPACE || byte === COMMA || byte === CLOSE_BRACE ||
        byte === CLOSE_BRACKET
      ) return i;
    }
    this.#read = end - start;
    return INCOMPLETE;
  }
}
