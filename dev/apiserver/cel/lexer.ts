import type { Problem } from "./cel_errors.ts";

/** Kind of a token; operators and keywords are kinds of their own. */
export type TokenKind =
  | "IDENTIFIER"
  | "ESC_IDENTIFIER"
  | "NUM_INT"
  | "NUM_UINT"
  | "NUM_FLOAT"
  | "STRING"
  | "BYTES"
  | "<EOF>"
  | (typeof SYMBOLS)[number]
  | (typeof KEYWORDS)[number];

/** Token of an expression. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly at: number;
}

/** Operators and punctuation, longer ones first. */
const SYMBOLS = [
  "==",
  "!=",
  "<=",
  ">=",
  "&&",
  "||",
  "<",
  ">",
  "[",
  "]",
  "{",
  "}",
  "(",
  ")",
  ".",
  ",",
  "-",
  "!",
  "?",
  ":",
  "+",
  "*",
  "/",
  "%",
] as const;

const KEYWORDS = ["in", "true", "false", "null"] as const;

/** What is between tokens: white space and comments. */
const SPACE = /(?:[\t \r\n\f]|\/\/[^\n]*)*/y;

/** Tokens other than operators and texts, in the order of the grammar. */
const WORDS: readonly (readonly [TokenKind, RegExp])[] = [
  [
    "NUM_FLOAT",
    /(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)/y,
  ],
  ["NUM_UINT", /(?:0x[0-9a-fA-F]+|\d+)[uU]/y],
  ["NUM_INT", /0x[0-9a-fA-F]+|\d+/y],
  ["IDENTIFIER", /[A-Za-z_][A-Za-z0-9_]*/y],
  ["ESC_IDENTIFIER", /`[A-Za-z0-9_.\-/ ]+`/y],
];

/** Escape sequence within a text. */
const ESCAPE =
  /\\(?:[abfnrtv"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/y;

/** Start of a text: prefixes, which may make it raw or bytes, and quotes. */
const QUOTES = /([bB]?)([rR]?)("""|'''|"|')/y;

/**
 * Splits an expression into tokens. What is no token is skipped, as in cel-go, and
 * reported.
 */
export function tokens(
  source: string,
): {
  readonly tokens: readonly Token[];
  readonly problems: readonly Problem[];
} {
  const found: Token[] = [];
  const problems: Problem[] = [];
  const add = (kind: TokenKind, at: number, end: number) => {
    found.push({ kind, text: source.slice(at, end), at });
    return end;
  };
  let at = 0;
  for (;;) {
    at += match(SPACE, source, at)?.length ?? 0;
    if (at >= source.length) break;
    const text = readText(source, at);
    if (text?.end !== undefined) {
      at = add(text.bytes ? "BYTES" : "STRING", at, text.end);
      continue;
    }
    // What is no text after its prefix is a name.
    const word = text === undefined || /\w/.test(source[at] as string)
      ? readWord(source, at)
      : undefined;
    if (word !== undefined) {
      at = add(word.kind, at, at + word.text.length);
      continue;
    }
    const wrong = text?.wrong ?? wrongEnd(source, at);
    problems.push({
      at,
      message: `Syntax error: token recognition error at: '${
        source.slice(at, wrong)
      }'`,
    });
    at = wrong;
  }
  found.push({ kind: "<EOF>", text: "<EOF>", at: source.length });
  return { tokens: found, problems };
}

function readWord(
  source: string,
  at: number,
): { readonly kind: TokenKind; readonly text: string } | undefined {
  for (const [kind, regexp] of WORDS) {
    const text = match(regexp, source, at);
    if (text === undefined) continue;
    const keyword = KEYWORDS.find((word) => word === text);
    return { kind: keyword ?? kind, text };
  }
  const symbol = SYMBOLS.find((one) => source.startsWith(one, at));
  return symbol && { kind: symbol, text: symbol };
}

function match(regexp: RegExp, source: string, at: number): string | undefined {
  regexp.lastIndex = at;
  return regexp.exec(source)?.[0];
}

/** Text that begins at an offset, with its end or the end of what is wrong. */
function readText(source: string, at: number): {
  readonly bytes: boolean;
  readonly end?: number;
  readonly wrong?: number;
} | undefined {
  QUOTES.lastIndex = at;
  const [start, bytes = "", raw = "", quote = ""] = QUOTES.exec(source) ?? [];
  if (start === undefined) return undefined;
  const isRaw = raw !== "";
  const result = closing(source, at + start.length, quote, isRaw);
  if (result.end === undefined && quote.length === 3) {
    // Two quotes are an empty text, which a text with one quote may follow.
    return { bytes: bytes !== "", end: at + start.length - 1 };
  }
  return { bytes: bytes !== "", ...result };
}

function closing(
  source: string,
  from: number,
  quote: string,
  raw: boolean,
): { readonly end?: number; readonly wrong?: number } {
  let at = from;
  while (at < source.length) {
    if (source.startsWith(quote, at)) return { end: at + quote.length };
    const character = source[at] as string;
    if (character === "\\" && !raw) {
      const escape = match(ESCAPE, source, at);
      if (escape === undefined) {
        return { wrong: Math.min(escapeEnd(source, at), source.length) };
      }
      at += escape.length;
    } else if (quote.length === 1 && /[\n\r]/.test(character)) {
      return { wrong: at + 1 };
    } else at++;
  }
  return { wrong: source.length };
}

/** End of an invalid escape sequence, with the first wrong character. */
function escapeEnd(source: string, at: number): number {
  const [, digits = ""] =
    /^\\([0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7})?/
      .exec(source.slice(at, at + 10)) ?? [];
  return at + 1 + digits.length + 1;
}

/** End of characters that are no token: half an operator takes one more. */
function wrongEnd(source: string, at: number): number {
  const half = /^[=&|]/.test(source.slice(at)) ? 2 : 1;
  const backtick = match(/`[A-Za-z0-9_.\-/ ]*/y, source, at)?.length ?? 0;
  const length = Math.max(half, backtick + (backtick > 0 ? 1 : 0));
  const end = at + length;
  // A character beyond the base plane has two code units.
  const pair = /[\ud800-\udbff]/.test(source[end - 1] ?? "") ? 1 : 0;
  return Math.min(end + pair, source.length);
}
