/** System error, such as that of a connection. */
interface SystemError {
  readonly message: string;
  readonly code?: string | undefined;
  readonly cause?: unknown;
}

/** Maximum length of a chain of causes, which may be circular. */
const MAX_CHAIN = 8;

/** Message of an error, or anything else that was thrown as text. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Message of anything that was thrown, with the message of the system error that
 * caused it: Node's `fetch` only says "fetch failed". Messages of other causes are
 * left out, since they may quote data, and so are other fields of an object.
 */
export function messageWithCause(error: unknown): string {
  const known = (error as Error | null | undefined)?.message ?? error;
  const isObject = typeof known === "object" && known !== null;
  const message = isObject ? "an object" : String(known);
  return `${message}${systemCause(error, message)}`;
}

/** Name and message of an error, with the system error that caused it. */
export function textWithCause(error: unknown): string {
  if (!(error instanceof Error)) return messageWithCause(error);
  const text = String(error);
  return `${text}${systemCause(error, text)}`;
}

/** Text of the system error that caused another error; may be empty. */
export function systemCause(error: unknown, message: string): string {
  let next = error instanceof Error ? error.cause : undefined;
  // What fetch itself refuses, such as a port, has no code.
  const isFetch = message.endsWith("fetch failed");
  for (let depth = 0; depth < MAX_CHAIN && next instanceof Error; depth++) {
    const { message: why, code, cause }: SystemError = next;
    if (typeof code === "string" || isFetch && cause === undefined) {
      // The errors of several addresses of a host have no message in common.
      const text = why || code || next.name;
      return message.includes(text) ? "" : `: ${text}`;
    }
    next = cause;
  }
  return "";
}

/** Assumed length of the longest character, such as a family of emoji. */
const LONGEST_CHARACTER = 64;

/**
 * Shortens a text to a number of UTF-16 code units, between two characters as a
 * reader sees them: emoji and accents are not cut apart.
 */
export function shortText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  // A character is looked for near the limit, so that the cost is bounded.
  const start = Math.max(0, limit - LONGEST_CHARACTER);
  const nearby = text.slice(start, limit + LONGEST_CHARACTER);
  const characters = new Intl.Segmenter("en", { granularity: "grapheme" });
  const { index = 0 } = characters.segment(nearby).containing(limit - start) ??
    {};
  if (index > 0) return text.slice(0, start + index);
  // One character is longer than that: a code point is left whole.
  return text.slice(0, limit).replace(/[\ud800-\udbff]$/, "");
}
