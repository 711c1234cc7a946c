import {
  asBuffer,
  type ByteRange,
  NO_BYTES,
  parseRange,
} from "./byte_range.ts";
import { Carry } from "./carry.ts";
import { EventScanner } from "./event_scanner.ts";
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  JsonCursor,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  TO_CLOSING,
} from "./json_cursor.ts";
import { MAX_LINE_BYTES, TooLongError } from "./line_splitter.ts";
import type { ObjectHeader } from "./object_header.ts";
import { INCOMPLETE, sharedEngine } from "./structure_engine.ts";

/** Header of a list: its fields apart from the items. */
export interface ListHeader {
  /** Kind, such as `PodList`; `Status` if the server responded with an error. */
  readonly kind: string;
  /** resourceVersion of the list, from which a watch starts. */
  readonly resourceVersion: string;
  /** Continue token of the next page; empty on the last page. */
  readonly continue: string;
}

const COMMA = 0x2c;
const COLON = 0x3a;

/** State of the scanner: the expected next token, apart from white space. */
type State =
  | "list" // the opening brace
  | "firstKey" // a key, or the end of the list
  | "key"
  | "colon"
  | "value"
  | "afterValue" // a comma, or the end of the list
  | "firstItem" // an item, or the end of the items
  | "item"
  | "afterItem" // a comma, or the end of the items
  | "end"; // nothing

type Steps = Readonly<Partial<Record<State, State>>>;

/** State transitions by punctuation mark. */
const STEPS: Readonly<Record<number, Steps>> = {
  [OPEN_BRACE]: { list: "firstKey" },
  [CLOSE_BRACE]: { firstKey: "end", afterValue: "end" },
  [COLON]: { colon: "value" },
  [COMMA]: { afterValue: "key", afterItem: "item" },
  [CLOSE_BRACKET]: { firstItem: "afterValue", afterItem: "afterValue" },
};

const SPACES: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09]);

/**
 * Scanner of one page of a list, while it is received: each item is found on the
 * bytes and returned as soon as it is complete, so that a page of any size never
 * becomes one text or one object. `metadata` may precede or follow the items.
 */
export class ListScanner {
  readonly #scanner: EventScanner = new EventScanner();
  readonly #cursor: JsonCursor = new JsonCursor("a list");
  readonly #finder: ValueFinder = new ValueFinder();
  readonly #limit: number;
  /** Unscanned bytes: `#bytes[#position, #end)`. */
  #bytes: Uint8Array = NO_BYTES;
  #position = 0;
  #end = 0;
  /** Start of an incomplete value. */
  readonly #carry: Carry = new Carry();
  #state: State = "list";
  /** Key of the member whose value is next. */
  #key = "";
  /** Decoded members that are part of the header. */
  #members: Record<string, unknown> = {};
  #hasItems = false;
  #itemCount = 0;

  /** @param maxItemBytes Maximum size of an item, and of any other member. */
  constructor(maxItemBytes: number = MAX_LINE_BYTES) {
    this.#limit = maxItemBytes;
  }

  /** Header of the current item, valid until the next step. */
  get header(): ObjectHeader {
    return this.#scanner.header;
  }

  /** Adds the next chunk, which must not change until its items are read. */
  push(chunk: Uint8Array): void {
    const carry = this.#carry;
    if (this.#position < this.#end) {
      carry.append(chunk);
      this.#bytes = carry.bytes;
      this.#end = carry.length;
    } else {
      this.#bytes = asBuffer(chunk);
      this.#end = chunk.length;
    }
    this.#position = 0;
    this.#finder.changed();
  }

  /** Copies an incomplete value, since the chunk may change from now on. */
  #keep(): false {
    const rest = this.#bytes.subarray(this.#position, this.#end);
    const carry = this.#carry;
    carry.length = 0;
    carry.append(rest);
    this.#bytes = carry.bytes;
    this.#position = 0;
    this.#end = rest.length;
    return false;
  }

  /**
   * Moves to the next item.
   *
   * @returns Whether there is one; if not, push the next chunk.
   * @throws {SyntaxError} If the bytes are not a list.
   * @throws {TooLongError} If an item is longer than the limit.
   */
  next(): boolean {
    while (this.#position < this.#end) {
      const byte = this.#bytes[this.#position] as number;
      const state = this.#step(byte);
      if (state !== undefined) {
        this.#state = state;
        this.#position++;
      } else if (SPACES.has(byte)) this.#position++;
      else {
        const value = this.#value();
        if (value === undefined) return this.#keep();
        if (this.#take(value)) return true;
      }
    }
    return false;
  }

  /** State after a punctuation mark; undefined if a value starts here. */
  #step(byte: number): State | undefined {
    const state = this.#state;
    if (byte !== OPEN_BRACKET || state !== "value" || this.#key !== "items") {
      return STEPS[byte]?.[state];
    }
    // The first items were returned already.
    if (this.#hasItems) this.#fail('"items" must not be repeated');
    this.#hasItems = true;
    return "firstItem";
  }

  /** Value at the position; undefined while it is incomplete. */
  #value(): ByteRange | undefined {
    const { [this.#state]: allowed } = VALUES;
    const bytes = this.#bytes;
    const start = this.#position;
    if (
      allowed === undefined || (allowed !== ANY && allowed !== bytes[start])
    ) {
      this.#fail("it must be a list in JSON");
    }
    const end = this.#finder.find(bytes, start, this.#end);
    const size = (end < 0 ? this.#end : end) - start;
    if (size > this.#limit) {
      throw new TooLongError(
        this.#state === "value" ? "a member of a list" : "an item of a list",
        { size, limit: this.#limit },
      );
    }
    return end < 0 ? undefined : { bytes, start, end };
  }

  /** Processes a complete value; returns whether it is an item. */
  #take(value: ByteRange): boolean {
    const state = this.#state;
    this.#position = value.end;
    if (state === "item" || state === "firstItem") {
      this.#scanner.scanObject(value, this.#finder.snapshot);
      this.#state = "afterItem";
      this.#itemCount++;
      return true;
    }
    if (state === "value") {
      this.#takeMember(value);
      this.#state = "afterValue";
    } else {
      this.#key = parseRange(value) as string;
      this.#state = "colon";
    }
    return false;
  }

  #takeMember(value: ByteRange): void {
    const key = this.#key;
    if (key === "metadata" || key === "kind") {
      this.#members[key] = parseRange(value);
      return;
    }
    if (key === "items") {
      if (parseRange(value) !== null) this.#fail('"items" must be an array');
      return;
    }
    this.#cursor.reset(value, this.#finder.snapshot);
    this.#cursor.skipStructure();
    this.#cursor.finish();
  }

  /**
   * Ends the page and returns the header of the list.
   *
   * @throws {SyntaxError} If the page is not complete: a broken connection must not
   * look like the end of the list.
   */
  finish(): ListHeader {
    if (this.#state !== "end" || this.#position < this.#end) {
      this.#fail("it must be complete");
    }
    const { kind, metadata } = this.#members;
    const list = (metadata ?? {}) as Record<string, unknown>;
    return {
      kind: textOr(kind),
      resourceVersion: textOr(list["resourceVersion"]),
      continue: textOr(list["continue"]),
    };
  }

  #fail(why: string): never {
    const at = this.#position < this.#end
      ? `0x${(this.#bytes[this.#position] as number).toString(16)}`
      : "the end";
    throw new SyntaxError(
      `Cannot read a list: ${why}: received ${at} after ${this.#itemCount} items`,
    );
  }
}

const ANY = -1;
/** Expected first byte of a value by state; states without a value are missing. */
const VALUES: Readonly<Partial<Record<State, number>>> = {
  firstKey: QUOTE,
  key: QUOTE,
  value: ANY,
  firstItem: OPEN_BRACE,
  item: OPEN_BRACE,
};

function textOr(value: unknown): string {
  return typeof value === "string" ? value : "";
}

const SPACE = 0x20;

/**
 * Finder of the end of a JSON value that is received in parts. It reads each byte
 * once and does not check the content of the value.
 */
class ValueFinder {
  /**
   * Identity of the current bytes; see `JsonCursor.reset`. When the bytes change,
   * {@linkcode ValueFinder.changed} must be called.
   */
  snapshot: unknown = {};

  readonly #engine = sharedEngine();
  /** Number of bytes that were read of an incomplete value. */
  #read = 0;
  /** State of the engine within an incomplete object or array. */
  #saved: Uint8Array | undefined;

  /** Marks the bytes as changed: some were added or moved. */
  changed(): void {
    this.snapshot = {};
  }

  /**
   * Finds the end of the value at `start`.
   *
   * @param end End of the bytes received so far.
   * @returns End of the value, or -1 if it is incomplete: then call again for the
   * same value when there are more bytes.
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
    let i = start + Math.max(1, this.#read); // after the end, if that is escaped
    while (i < end) {
      const byte = bytes[i];
      if (byte === QUOTE) return i + 1;
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
    if (found === INCOMPLETE) {
      this.#read = engine.position - start;
      this.#saved = engine.save();
    } else if (bytes[found - 1] !== (bytes[start] as number) + TO_CLOSING) {
      throw new SyntaxError("Cannot read a list: brackets must match");
    }
    return found;
  }

  /** Finds the end of a number or literal: the next punctuation mark or space. */
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
