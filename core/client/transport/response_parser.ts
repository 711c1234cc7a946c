import { asBuffer, nextByte } from "../../json/byte_range.ts";

/** Maximum size of a head and of trailers, in bytes; Node has the same limit. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Maximum length of the line before a chunk, in bytes. */
const MAX_SIZE_LINE_BYTES = 1024;
/** Maximum number of hexadecimal digits of a chunk size, an exact number. */
const MAX_SIZE_DIGITS = 13;

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const SEMICOLON = 0x3b;
const DELETE = 0x7f;

/** State of the parser: the part of the response that it expects next. */
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
 * Incremental parser for one HTTP/1.1 response (RFC 9112), except to HEAD. The
 * input may be split anywhere. The parser does no I/O and does not copy the
 * body.
 *
 * Interim responses (1xx), chunk extensions and trailers are skipped. The
 * parser is strict, because a message that two parsers read differently enables
 * request smuggling: lines end with CR LF, headers are not folded, a body has
 * at most one length. It buffers nothing but the head, whose size is limited.
 *
 * There is a state for each position where the input may be split, so that
 * parsing continues exactly where the previous input ended.
 */
export class ResponseParser {
  #part: Part = "head";
  /** Complete lines of the head. */
  #text = "";
  /** Beginning of the current line. */
  #line = "";
  /** Number of bytes read of the head, of trailers or of a chunk size line. */
  #length = 0;
  /** Number of bytes of the body, or of its chunk, that are not read yet. */
  #left = 0;
  /** Number of digits read of a chunk size. */
  #digits = 0;
  #head: ResponseHead | undefined;
  #framing: Framing = 0;
  #position = 0;

  /** Head of the response; `undefined` until it is complete. */
  get head(): ResponseHead | undefined {
    return this.#head;
  }

  /** Whether another response may follow on the same connection. */
  get keepsAlive(): boolean {
    return this.#framing !== "until close" && this.#head?.keepsAlive === true;
  }

  /** Index after the last byte of the response, in the last read. */
  get position(): number {
    return this.#position;
  }

  /** Whether the response is complete; further bytes are not part of it. */
  get isComplete(): boolean {
    return this.#part === "nothing";
  }

  /**
   * Parses the next bytes, `bytes[from, to)`. Bytes of the body are moved to
   * `from` as one contiguous range; everything else in the range is lost.
   *
   * @returns The end of the body's bytes.
   * @throws {SyntaxError} If the bytes are not a valid response.
   */
  read(bytes: Uint8Array, from = 0, to: number = bytes.length): number {
    let end = from;
    let at = from;
    while (at < to && this.#part !== "nothing") {
      if (this.#part !== "body" && this.#part !== "chunk") {
        at = this.#readFraming(bytes, at, to);
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
    this.#position = at;
    return end;
  }

  /**
   * Handles the end of the connection.
   *
   * @throws {Error} If the response is not complete.
   */
  finish(): void {
    if (this.#framing === "until close") this.#part = "nothing";
    if (this.#part === "nothing") return;
    throw new Error(
      `Cannot read a response: the connection ended within the ${
        this.#head === undefined ? "head" : "body"
      }`,
    );
  }

  /** Parses from `at` one part that is not body; returns where it stopped. */
  #readFraming(bytes: Uint8Array, at: number, to: number): number {
    switch (this.#part) {
      case "head":
        return this.#readHead(bytes, at, to) ?? this.#readLine(bytes, at, to);
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

  /** Parses the line before a chunk: its size; skips extensions. */
  #readSize(bytes: Uint8Array, at: number, to: number): number {
    for (let position = at; position < to; position++) {
      const byte = bytes[position] as number;
      const digit = this.#part === "size" ? hexadecimal(byte) : -1;
      if (digit >= 0) {
        if (++this.#digits > MAX_SIZE_DIGITS) throw sizeError("more digits");
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
      if (++this.#length > MAX_SIZE_LINE_BYTES) {
        throw sizeError("a longer line");
      }
    }
    return to;
  }

  /**
   * Parses a complete head of the usual form that begins at `at`.
   *
   * @returns The end of the head; undefined if it needs parsing line by line.
   */
  #readHead(bytes: Uint8Array, at: number, to: number): number | undefined {
    if (this.#length > 0) return undefined;
    const buffer = asBuffer(bytes);
    const found = buffer.indexOf("\r\n\r\n", at, "latin1");
    const end = found + 4;
    if (found < 0 || end > to || end - at > MAX_HEAD_BYTES) return undefined;
    const text = buffer.toString("latin1", at, end);
    const [, status, length] = PLAIN_HEAD.exec(text) ?? [];
    if (status === undefined) return undefined;
    this.#length = end - at;
    this.#begin(new PlainHead(Number(status), text), Number(length));
    return end;
  }

  /** Parses a line of the head or of trailers; an empty one ends them. */
  #readLine(bytes: Uint8Array, at: number, to: number): number {
    const buffer = asBuffer(bytes);
    const found = nextByte(buffer, LINE_FEED, at);
    const feed = found < to ? found : -1;
    const end = feed < 0 ? to : feed + 1;
    this.#length += end - at;
    if (this.#length > MAX_HEAD_BYTES) {
      throw new SyntaxError(
        `Cannot read a response: its ${this.#part} exceeds ${MAX_HEAD_BYTES} bytes`,
      );
    }
    this.#line += buffer.toString("latin1", at, end);
    if (feed < 0) return end;
    const line = this.#line;
    if (!line.endsWith("\r\n")) {
      throw new SyntaxError(
        `Cannot read a response: lines of its ${this.#part} must end with CR LF: received LF alone`,
      );
    }
    this.#line = "";
    if (this.#part === "head") {
      this.#text += line;
      if (line.length === 2) this.#endHead();
    } else if (line.length === 2) this.#part = "nothing";
    else parseHeader(line.slice(0, -2));
    return end;
  }

  #endHead(): void {
    const head = parseHead(this.#text);
    this.#text = "";
    if (head.status === 101) {
      throw new SyntaxError(
        "Cannot read a response: it must not switch protocols: received 101 Switching Protocols",
      );
    }
    // The final response follows. The count of bytes goes on, which limits the
    // number of interim responses.
    if (head.status < 200) return;
    this.#begin(head, bodyFraming(head));
  }

  #begin(head: ResponseHead, framing: Framing): void {
    this.#head = head;
    this.#framing = framing;
    if (framing === "chunked") return this.#beginChunk();
    this.#left = framing === "until close" ? Infinity : framing;
    this.#part = this.#left > 0 ? "body" : "nothing";
  }
}

function expect(received: number | undefined, wanted: number): void {
  if (received === wanted) return;
  throw new SyntaxError(
    `Cannot read a response: a chunk and its size must end with CR LF: received byte ${received}`,
  );
}

function sizeError(received: string): SyntaxError {
  return new SyntaxError(
    `Cannot read a response: a chunk must begin with a line of its size, at most ${MAX_SIZE_DIGITS} hexadecimal digits: received ${received}`,
  );
}

/** Value of a hexadecimal digit; -1 for any other byte. */
function hexadecimal(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

/** Head of an HTTP/1.1 response. */
export interface ResponseHead {
  /** HTTP status code. */
  readonly status: number;
  /** Headers by name in lower case; repeated headers joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether the server keeps the connection open after the response. */
  readonly keepsAlive: boolean;
  /** Whether it has no header that transport or client act on but a length. */
  readonly isPlain?: boolean | undefined;
}

/** Head of most responses. */
class PlainHead implements ResponseHead {
  readonly status: number;
  readonly keepsAlive = true;
  readonly isPlain = true;
  readonly #text: string;
  #headers: ResponseHead["headers"] | undefined;

  constructor(status: number, text: string) {
    this.status = status;
    this.#text = text;
  }

  /** Headers, which are parsed on first access: few responses need them. */
  get headers(): ResponseHead["headers"] {
    return this.#headers ??= parseHead(this.#text).headers;
  }
}

/**
 * Framing of a body: its length in bytes, chunked, or terminated by the end of
 * the connection.
 */
type Framing = number | "chunked" | "until close";

/** Maximum number of characters quoted in an error message. */
const MAX_QUOTE_LENGTH = 40;
const STATUS_LINE =
  /^HTTP\/1\.([01]) ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
// No space before the colon and no folded lines: parsers disagree about both.
const HEADER_LINE =
  /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;
const PLAIN_LINES =
  "(?:(?!connection(?!: keep-alive\r)|transfer-|content-[el]|warning)[!#$%&'*+\\-.^_`|~0-9A-Z]+: [!-~][ -~]*\r\n)*";
/** Text of a {@linkcode PlainHead}; it is checked as a whole. */
const PLAIN_HEAD = new RegExp(
  `^HTTP/1\\.1 (20[0-3]|20[5-9]|[45]\\d\\d) [ -~]*\r\n${PLAIN_LINES}content-length: (\\d{1,15})\r\n${PLAIN_LINES}\r\n$`,
  "i",
);
/** Value of the header `connection` of the last response of a connection. */
const CLOSE = /(^|,)\s*close\s*(,|$)/i;
/** Content lengths that a number represents exactly. */
const LENGTH = /^\d{1,15}$/;

/**
 * Parses a head, decoded as Latin-1: lines that end with CR LF, the last one empty.
 *
 * @throws {SyntaxError} If it is not a head of HTTP/1.0 or HTTP/1.1.
 */
function parseHead(text: string): ResponseHead {
  const [first = "", ...lines] = text.split("\r\n").slice(0, -2);
  const statusLine = STATUS_LINE.exec(first);
  if (statusLine === null) {
    throw new SyntaxError(
      `Cannot read a response: it must begin with a status line of HTTP/1.1: received ${
        JSON.stringify(first.slice(0, MAX_QUOTE_LENGTH))
      }`,
    );
  }
  const headers: Record<string, string> = {};
  for (const line of lines) addHeader(headers, line);
  const isCurrent = statusLine[1] === "1";
  if (!isCurrent && headers["transfer-encoding"] !== undefined) {
    throw new SyntaxError(
      "Cannot read a response: its body must not be chunked in HTTP/1.0",
    );
  }
  return {
    status: Number(statusLine[2]),
    headers,
    keepsAlive: isCurrent && !CLOSE.test(headers["connection"] ?? ""),
  };
}

/** Adds a header line; the values of a repeated header are joined. */
function addHeader(headers: Record<string, string>, line: string): void {
  const [name, value] = parseHeader(line);
  if (headers[name] === undefined) headers[name] = value;
  else if (Object.hasOwn(headers, name)) headers[name] += `, ${value}`;
  else {
    // A name of a member of objects, such as `__proto__`.
    const field = { value, writable: true, enumerable: true };
    Object.defineProperty(headers, name, { ...field, configurable: true });
  }
}

/**
 * Parses a line of a head or of trailers into the name, in lower case, and the
 * value.
 *
 * @throws {SyntaxError} If it is not a header. The message does not quote the
 * line, which may be secret.
 */
function parseHeader(line: string): readonly [string, string] {
  const [, name, value] = HEADER_LINE.exec(line) ?? [];
  if (name === undefined || value === undefined) {
    throw new SyntaxError(
      `Cannot read a response: a header line must have a name, a colon and a value: received a line of ${line.length} bytes`,
    );
  }
  return [name.toLowerCase(), value];
}

/**
 * Determines the framing of the body of a response.
 *
 * @throws {SyntaxError} If the headers are ambiguous.
 */
function bodyFraming({ status, headers }: ResponseHead): Framing {
  const coding = headers["transfer-encoding"];
  const length = headers["content-length"];
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked" || length !== undefined) {
      throw new SyntaxError(
        `Cannot read a response: its body must be chunked or have a length: received ${
          JSON.stringify(coding.slice(0, MAX_QUOTE_LENGTH))
        } and ${length === undefined ? "no length" : "a length"}`,
      );
    }
    return "chunked";
  }
  if (length !== undefined && !LENGTH.test(length)) {
    throw new SyntaxError(
      `Cannot read a response: its length must be one number: received ${
        JSON.stringify(length.slice(0, MAX_QUOTE_LENGTH))
      }`,
    );
  }
  if (status === 204 || status === 304) return 0;
  return length === undefined ? "until close" : Number(length);
}
