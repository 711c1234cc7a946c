import {
  type ByteRange,
  NO_BYTES,
  rangeText,
  stringAt,
  stringEquals,
} from "./byte_range.ts";
import { sharedEngine, type StructureEngine } from "./structure_engine.ts";

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const LOWER_E = 0x65;
const LOWER_U = 0x75;
/** Bit in which lower-case letters differ from upper-case ones. */
const LOWER_CASE = 0x20;

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
/** Difference between the codes of an opening and its closing bracket. */
export const TO_CLOSING = 2;

const TRUE = bytesOf("true");
const FALSE = bytesOf("false");
const NULL = bytesOf("null");

/** UTF-8 bytes of a text. */
export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Bytes that need no escape in a string, as a table. */
const PLAIN: Uint8Array = new Uint8Array(256).fill(1, SPACE);
PLAIN[QUOTE] = PLAIN[BACKSLASH] = 0;

/** Bytes that may follow a backslash, except `u`. */
const ESCAPES: ReadonlySet<number> = new Set(bytesOf('"\\/bfnrt'));

/**
 * Cursor over the bytes of one JSON text, which finds the ranges of its parts. It
 * checks all bytes it passes against the grammar, except those that
 * {@linkcode JsonCursor.skipStructure} skips.
 */
export class JsonCursor implements ByteRange {
  bytes: Uint8Array = NO_BYTES;
  start = 0;
  end = 0;
  position = 0;
  stringStart = 0;
  /** End of the last string, without its quote. */
  stringEnd = 0;
  /** Whether the last string contains escapes, so that its bytes are not its text. */
  escaped = false;
  /** Whether the last key was the expected one. */
  wasExpected = false;

  readonly #subject: string;
  /** Identity of the current bytes, to check whether the engine has loaded them. */
  #snapshot: unknown = this;
  #engine: StructureEngine | undefined;

  /** @param subject Subject of error messages, such as `a watch event`. */
  constructor(subject: string) {
    this.#subject = subject;
  }

  /**
   * Moves the cursor to the start of another text.
   *
   * @param snapshot Identity under which the shared engine may have loaded the
   * bytes around the text already; absent if it has not.
   */
  reset({ bytes, start, end }: ByteRange, snapshot?: unknown): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.position = start;
    const engine = this.#engine;
    if (engine !== undefined && engine.owner === this) engine.owner = undefined;
    this.#snapshot = snapshot ?? this;
  }

  /** Throws an error with the position, but without any of the text. */
  fail(why: string): never {
    const { position, end } = this;
    const received = position >= end
      ? "the end"
      : `0x${(this.bytes[position] as number).toString(16).padStart(2, "0")}`;
    throw new SyntaxError(
      `Cannot read ${this.#subject}: ${why}: received ${received} at byte ${
        position - this.start
      }`,
    );
  }

  /** Skips white space; returns the byte after it, or -1 at the end. */
  peek(): number {
    const { bytes, end } = this;
    let i = this.position;
    while (i < end) {
      const byte = bytes[i] as number;
      if (
        byte > SPACE ||
        (byte !== SPACE && byte !== LINE_FEED && byte !== CARRIAGE_RETURN &&
          byte !== TAB)
      ) {
        this.position = i;
        return byte;
      }
      i++;
    }
    this.position = end;
    return -1;
  }

  /** Checks that only white space follows. */
  finish(): void {
    if (this.peek() !== -1) this.fail("nothing may follow the value");
  }

  /**
   * Enters an object; the cursor must be at its brace.
   *
   * @param expected Predicted key, as `"key":`, which is checked first.
   * @returns Whether there is a member: then the last string is its key, and the
   * cursor is at its value.
   */
  enterObject(expected?: Uint8Array): boolean {
    this.position++;
    if (this.peek() === CLOSE_BRACE) {
      this.position++;
      return false;
    }
    this.#key(expected);
    return true;
  }

  /**
   * Moves from the end of a member's value to the next member.
   *
   * @param expected Predicted key, as for {@linkcode JsonCursor.enterObject}.
   */
  nextMember(expected?: Uint8Array): boolean {
    const byte = this.peek();
    if (byte !== COMMA && byte !== CLOSE_BRACE) {
      this.fail('"," or "}" must follow a member');
    }
    this.position++;
    if (byte === CLOSE_BRACE) return false;
    this.#key(expected);
    return true;
  }

  /** Enters an array at the cursor; returns whether there is an element. */
  enterArray(): boolean {
    this.position++;
    if (this.peek() !== CLOSE_BRACKET) return true;
    this.position++;
    return false;
  }

  /** Moves from the end of an element to the next one. */
  nextElement(): boolean {
    const byte = this.peek();
    if (byte !== COMMA && byte !== CLOSE_BRACKET) {
      this.fail('"," or "]" must follow an element');
    }
    this.position++;
    if (byte === CLOSE_BRACKET) return false;
    this.peek();
    return true;
  }

  #key(expected: Uint8Array | undefined): void {
    if (this.peek() !== QUOTE) this.fail("a key must be a string");
    this.wasExpected = expected !== undefined && this.#skipKey(expected);
    if (!this.wasExpected) {
      this.string();
      if (this.peek() !== COLON) this.fail('":" must follow a key');
      this.position++;
    }
    this.peek();
  }

  /** Skips a key, given as `"key":`, if it is the next one. */
  #skipKey(expected: Uint8Array): boolean {
    const { bytes, position } = this;
    const { length } = expected;
    if (position + length > this.end) return false;
    for (let i = 1; i < length; i++) {
      if (bytes[position + i] !== expected[i]) return false;
    }
    this.stringStart = position + 1;
    this.stringEnd = position + length - 2;
    this.escaped = false;
    this.position = position + length;
    return true;
  }

  /** Reads a string; the cursor must be at its first quote. */
  string(): void {
    const { bytes, end } = this;
    let i = this.position + 1;
    this.stringStart = i;
    this.escaped = false;
    for (;;) {
      while (i < end && PLAIN[bytes[i] as number] === 1) i++;
      const byte = i < end ? bytes[i] : -1;
      if (byte === QUOTE) {
        this.stringEnd = i;
        this.position = i + 1;
        return;
      }
      if (byte !== BACKSLASH) break;
      this.escaped = true;
      i = this.#escape(i);
    }
    this.position = i;
    this.fail("a string must have an end, and no control characters");
  }

  #escape(backslash: number): number {
    const byte = backslash + 1 < this.end ? this.bytes[backslash + 1] : -1;
    if (ESCAPES.has(byte as number)) return backslash + 2;
    let digits = 0;
    while (digits < 4 && this.#isHexDigit(backslash + 2 + digits)) digits++;
    if (byte === LOWER_U && digits === 4) return backslash + 6;
    this.position = backslash;
    return this.fail("a string must not have an invalid escape");
  }

  #isHexDigit(at: number): boolean {
    if (at >= this.end) return false;
    const byte = this.bytes[at] as number;
    const letter = byte | LOWER_CASE;
    return (byte >= ZERO && byte <= NINE) || (letter >= 0x61 && letter <= 0x66);
  }

  /** Whether the last string equals a value. */
  stringEquals(text: string): boolean {
    return stringEquals(
      this.bytes,
      this.stringStart - 1,
      this.stringEnd + 1,
      text,
    );
  }

  stringText(): string {
    return stringAt(this.bytes, this.stringStart - 1, this.stringEnd + 1);
  }

  /** Skips a value, checking all of it: a nested one by the built-in parser. */
  skipValue(): void {
    const byte = this.peek();
    const start = this.position;
    this.skipStructure();
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return;
    const { bytes, position } = this;
    try {
      JSON.parse(rangeText({ bytes, start, end: position }));
    } catch {
      this.position = start;
      this.fail("a value is not well-formed");
    }
  }

  /**
   * Skips a value quickly: in an object or array, only strings and brackets are
   * checked. The content is checked when it is parsed.
   */
  skipStructure(): void {
    const byte = this.peek();
    if (byte === QUOTE) return this.string();
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) return this.#scalar(byte);
    const engine = this.#engine ??= sharedEngine();
    if (engine.owner !== this.#snapshot) {
      engine.load(this.bytes, this.position, this.end);
      engine.owner = this.#snapshot;
    }
    const end = engine.skip(this.position);
    if (end < 0 || end > this.end) this.fail("a value must have an end");
    if (this.bytes[end - 1] !== byte + TO_CLOSING) {
      this.fail("brackets must match");
    }
    this.position = end;
  }

  #scalar(byte: number): void {
    if (byte === MINUS || (byte >= ZERO && byte <= NINE)) return this.#number();
    const literal = byte === 0x74 ? TRUE : byte === 0x66 ? FALSE : NULL;
    for (const expected of literal) {
      if (this.#byte() !== expected) this.fail("a value must be a JSON value");
      this.position++;
    }
  }

  #number(): void {
    if (this.#byte() === MINUS) this.position++;
    if (this.#byte() === ZERO) this.position++;
    else this.#digits();
    if (this.#byte() === DOT) {
      this.position++;
      this.#digits();
    }
    if ((this.#byte() | LOWER_CASE) === LOWER_E) {
      this.position++;
      const sign = this.#byte();
      if (sign === PLUS || sign === MINUS) this.position++;
      this.#digits();
    }
  }

  #digits(): void {
    const from = this.position;
    for (let byte = this.#byte(); byte >= ZERO && byte <= NINE;) {
      this.position++;
      byte = this.#byte();
    }
    if (this.position === from) this.fail("a number must have digits");
  }

  #byte(): number {
    return this.position < this.end ? this.bytes[this.position] as number : -1;
  }
}
