/** The longest head, and the longest trailers, in bytes: as those of Node. */
const LONGEST_HEAD = 16 * 1024;
/** The longest line before a chunk; all it needs is a number. */
const LONGEST_SIZE_LINE = 1024;
/** Hexadecimal digits of a chunk's size: numbers count exactly up to here. */
const MOST_DIGITS = 13;

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const SEMICOLON = 0x3b;
const DELETE = 0x7f;

/** What the next byte belongs to. */
type Part =
  | "head"
  | "body"
  | "size"
  | "extension"
  | "size end"
  | "chunk"
  | "chunk return"
  | "chunk end"
  | "trailers"
  | "nothing";

/**
 * Reads one answer of HTTP/1.1 to a GET, from bytes that may be cut anywhere
 * (RFC 9112). It does no I/O and copies nothing of the body.
 *
 * Interim answers (1xx) are skipped, and so are extensions of chunks and
 * trailers. It is strict, since what two programs read differently can be used
 * to smuggle: lines end in CR LF, headers are not folded, a body has one length
 * at most. Whatever the peer sends, no more than the head is kept.
 *
 * The line feeds of the protocol are checked by a state for each place where a
 * read may end, so that a read of any length goes on where the last one ended.
 */
export class AnswerReader {
  #part: Part = "head";
  /** Lines of the head that are complete, and the start of the next. */
  #lines: string[] = [];
  #line = "";
  /** Bytes of the head, of trailers or of the line before a chunk so far. */
  #length = 0;
  /** Bytes of the body, or of its chunk, that are still to come. */
  #left = 0;
  #digits = 0;
  #head: AnswerHead | undefined;
  #framing: Framing = 0;

  /** The head, once it is complete. */
  get head(): AnswerHead | undefined {
    return this.#head;
  }

  /** Whether the answer is complete: what follows is not part of it. */
  get isComplete(): boolean {
    return this.#part === "nothing";
  }

  /**
   * Takes the next bytes, `bytes[from, to)`.
   *
   * @returns Where the part of them that is body ends: it is moved to `from`, in
   * one piece, and what stands around it is gone.
   * @throws {SyntaxError} If they are no answer.
   */
  read(bytes: Uint8Array, from = 0, to: number = bytes.length): number {
    let end = from;
    let at = from;
    while (at < to && this.#part !== "nothing") {
      if (this.#part !== "body" && this.#part !== "chunk") {
        at = this.#readAround(bytes, at, to);
        continue;
      }
      const next = Math.min(to, at + this.#left);
      if (at > end) bytes.copyWithin(end, at, next);
      end += next - at;
      this.#left -= next - at;
      at = next;
      if (this.#left > 0) continue;
      this.#part = this.#part === "chunk" ? "chunk return" : "nothing";
    }
    return end;
  }

  /**
   * Takes note that the peer closed the connection.
   *
   * @throws {Error} If the answer is not complete.
   */
  finish(): void {
    if (this.#framing === "until close") this.#part = "nothing";
    if (this.#part === "nothing") return;
    throw new Error(
      `Cannot read an answer: it must be complete: received the end of the connection within the ${
        this.#head === undefined ? "head" : "body"
      }`,
    );
  }

  /** Reads from `at` what is not body, to the end of its part or of the bytes. */
  #readAround(bytes: Uint8Array, at: number, to: number): number {
    switch (this.#part) {
      case "head":
      case "trailers":
        return this.#readLine(bytes, at, to);
      case "size":
      case "extension":
        return this.#readSize(bytes, at, to);
      case "size end":
        expect(bytes[at], LINE_FEED);
        this.#length = 0;
        this.#part = this.#left > 0 ? "chunk" : "trailers";
        return at + 1;
      case "chunk return":
        expect(bytes[at], CARRIAGE_RETURN);
        this.#part = "chunk end";
        return at + 1;
      default:
        expect(bytes[at], LINE_FEED);
        this.#beginChunk();
        return at + 1;
    }
  }

  #beginChunk(): void {
    this.#part = "size";
    this.#length = 0;
    this.#digits = 0;
    this.#left = 0;
  }

  /** Reads the line before a chunk: its size, and extensions to be skipped. */
  #readSize(bytes: Uint8Array, at: number, to: number): number {
    for (let position = at; position < to; position++) {
      const byte = bytes[position] as number;
      const digit = this.#part === "size" ? hexadecimal(byte) : -1;
      if (digit >= 0) {
        if (++this.#digits > MOST_DIGITS) throw sizeError("more digits");
        this.#left = this.#left * 16 + digit;
      } else if (this.#digits === 0) throw sizeError("no digit");
      else if (byte === CARRIAGE_RETURN) {
        this.#part = "size end";
        return position + 1;
      } else if (this.#part === "size") {
        if (byte !== SEMICOLON && byte !== SPACE && byte !== TAB) {
          throw sizeError("something else");
        }
        this.#part = "extension";
      } else if ((byte < SPACE && byte !== TAB) || byte === DELETE) {
        throw sizeError("a control character");
      }
      if (++this.#length > LONGEST_SIZE_LINE) throw sizeError("a longer line");
    }
    return to;
  }

  /** Reads a line of the head or of trailers; an empty one ends them. */
  #readLine(bytes: Uint8Array, at: number, to: number): number {
    const feed = bytes.subarray(0, to).indexOf(LINE_FEED, at);
    const end = feed < 0 ? to : feed + 1;
    this.#length += end - at;
    if (this.#length > LONGEST_HEAD) {
      throw new SyntaxError(
        `Cannot read an answer: its ${this.#part} must have at most ${LONGEST_HEAD} bytes: received more`,
      );
    }
    this.#line += latin1(bytes.subarray(at, end));
    if (feed < 0) return end;
    const line = this.#line;
    if (!line.endsWith("\r\n")) {
      throw new SyntaxError(
        `Cannot read an answer: lines of its ${this.#part} must end with CR LF: received LF`,
      );
    }
    this.#line = "";
    if (line.length > 2) this.#takeLine(line.slice(0, -2));
    else if (this.#part === "trailers") this.#part = "nothing";
    else this.#endHead();
    return end;
  }

  #takeLine(line: string): void {
    if (this.#part === "head") this.#lines.push(line);
    else parseHeader(line);
  }

  #endHead(): void {
    const head = parseHead(this.#lines);
    this.#lines = [];
    if (head.status === 101) {
      throw new SyntaxError(
        "Cannot read an answer: it must be of HTTP/1.1: received 101 Switching Protocols",
      );
    }
    // The final answer follows. Its bytes are counted on, so that interim
    // answers come to an end.
    if (head.status < 200) return;
    this.#head = head;
    this.#framing = framingOf(head);
    if (this.#framing === "chunked") return this.#beginChunk();
    this.#left = this.#framing === "until close" ? Infinity : this.#framing;
    this.#part = this.#left > 0 ? "body" : "nothing";
  }
}

function expect(received: number | undefined, wanted: number): void {
  if (received === wanted) return;
  throw new SyntaxError(
    `Cannot read an answer: a chunk and its size must end with CR LF: received byte ${received}`,
  );
}

function sizeError(received: string): SyntaxError {
  return new SyntaxError(
    `Cannot read an answer: a chunk must begin with a line of its size, at most ${MOST_DIGITS} hexadecimal digits: received ${received}`,
  );
}

/** The value of a hexadecimal digit; -1 for anything else. */
function hexadecimal(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** One character a byte, whatever the bytes; those of a head are few. */
function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** The head of an answer of HTTP/1.1. */
export interface AnswerHead {
  /** The HTTP status code. */
  readonly status: number;
  /** Header names in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * How it is known where a body ends: by its length in bytes, by chunks that
 * carry theirs, or by the end of the connection.
 */
export type Framing = number | "chunked" | "until close";

/** How much of a line goes into an error message. */
const LONGEST_QUOTE = 40;
const STATUS_LINE =
  /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
// No space before the colon, and no line that continues the one before: both
// are read differently by different programs.
const HEADER_LINE =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;
/** No body is longer than what a number counts exactly. */
const LENGTH = /^\d{1,15}$/;

/**
 * Takes the lines of a head apart.
 *
 * @param lines The status line and the headers, one byte a character.
 * @throws {SyntaxError} If they are no head of HTTP/1.0 or HTTP/1.1.
 */
export function parseHead(lines: readonly string[]): AnswerHead {
  const [first = "", ...rest] = lines;
  const [, minor, status] = STATUS_LINE.exec(first) ?? [];
  if (status === undefined) {
    throw new SyntaxError(
      `Cannot read an answer: it must begin with a status line of HTTP/1.1: received ${
        JSON.stringify(first.slice(0, LONGEST_QUOTE))
      }`,
    );
  }
  // Not an object: a name such as "constructor" is there already.
  const headers = new Map<string, string>();
  for (const line of rest) {
    const [name, value] = parseHeader(line);
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  if (minor === "0" && headers.has("transfer-encoding")) {
    throw new SyntaxError(
      "Cannot read an answer: its body must not be chunked before HTTP/1.1: received HTTP/1.0",
    );
  }
  return { status: Number(status), headers: Object.fromEntries(headers) };
}

/**
 * Takes one line of a head or of trailers apart: the name in lower case, and the
 * value.
 *
 * @throws {SyntaxError} If it is no header; it may be secret, so that the
 * message does not tell it.
 */
export function parseHeader(line: string): readonly [string, string] {
  const [, name, value] = HEADER_LINE.exec(line) ?? [];
  if (name === undefined || value === undefined) {
    throw new SyntaxError(
      `Cannot read an answer: each line of its head must be a name, a colon and a value: received another one of ${line.length} bytes`,
    );
  }
  return [name.toLowerCase(), value];
}

/**
 * Finds out where the body of an answer to GET ends. What could be read in two
 * ways is refused.
 *
 * @throws {SyntaxError} If the head does not say it clearly.
 */
export function framingOf({ status, headers }: AnswerHead): Framing {
  const coding = headers["transfer-encoding"];
  const length = headers["content-length"];
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked" || length !== undefined) {
      throw new SyntaxError(
        `Cannot read an answer: its body must be chunked or have a length: received ${
          JSON.stringify(coding.slice(0, LONGEST_QUOTE))
        } and ${length === undefined ? "no length" : "a length"}`,
      );
    }
    return "chunked";
  }
  if (length !== undefined && !LENGTH.test(length)) {
    throw new SyntaxError(
      `Cannot read an answer: its length must be one number: received ${
        JSON.stringify(length.slice(0, LONGEST_QUOTE))
      }`,
    );
  }
  if (status === 204 || status === 304) return 0;
  return length === undefined ? "until close" : Number(length);
}
