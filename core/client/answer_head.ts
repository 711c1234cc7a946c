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
