import { CelFailure } from "./cel_errors.ts";
import { format } from "./format_text.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { pattern } from "./pattern.ts";

/** Functions on texts that Kubernetes adds to CEL. */
export const STRINGS: FunctionDefinitions = {
  "charAt(this string, int): string": charAt,
  "indexOf(this string, string): int": (text: string, part: string) =>
    indexOf(text, part, 0n),
  "indexOf(this string, string, int): int": indexOf,
  "lastIndexOf(this string, string): int": (text: string, part: string) => {
    const length = BigInt([...text].length);
    if (part === "") return length;
    return text.length < part.length
      ? -1n
      : lastIndexOf(text, part, length - 1n);
  },
  "lastIndexOf(this string, string, int): int": lastIndexOf,
  "lowerAscii(this string): string": (text: string) =>
    text.replace(/[A-Z]+/g, (part) => part.toLowerCase()),
  "upperAscii(this string): string": (text: string) =>
    text.replace(/[a-z]+/g, (part) => part.toUpperCase()),
  "replace(this string, string, string): string": replace,
  "replace(this string, string, string, int): string": replace,
  "split(this string, string): list<string>": split,
  "split(this string, string, int): list<string>": split,
  "substring(this string, int): string": substring,
  "substring(this string, int, int): string": substring,
  "trim(this string): string": (text: string) =>
    // Go's white space: that of Unicode, without the byte order mark.
    text.replace(
      /^(?:(?!\ufeff)[\s\u0085])+|(?:(?!\ufeff)[\s\u0085])+$/g,
      "",
    ),
  "format(this string, list<dyn>): string": format,
  "strings.quote(string): string": quote,
  "join(this list<string>): string": join,
  "join(this list<string>, string): string": join,
  "find(this string, string): string": (text: string, source: string) =>
    matches(text, source, 1)[0] ?? "",
  "findAll(this string, string): list<string>": (
    text: string,
    source: string,
  ) => matches(text, source, -1),
  "findAll(this string, string, int): list<string>": (
    text: string,
    source: string,
    most: bigint,
  ) => matches(text, source, Number(most)),
};

function outOfRange(index: bigint): never {
  throw new CelFailure(`index out of range: ${index}`);
}

function charAt(text: string, index: bigint): string {
  const characters = [...text];
  if (index < 0n || index > BigInt(characters.length)) outOfRange(index);
  return characters[Number(index)] ?? "";
}

function indexOf(text: string, part: string, offset: bigint): bigint {
  if (offset < 0n) outOfRange(offset);
  const characters = [...text];
  if (part === "") return limited(offset, characters);
  const rest = characters.slice(Number(offset)).join("");
  const at = rest.indexOf(part);
  return at < 0 ? -1n : offset + BigInt([...rest.slice(0, at)].length);
}

/** Position of an empty text, which is at most the end. */
function limited(offset: bigint, characters: readonly string[]): bigint {
  const end = BigInt(characters.length);
  return offset < end ? offset : end;
}

function lastIndexOf(text: string, part: string, offset: bigint): bigint {
  if (offset < 0n) outOfRange(offset);
  const characters = [...text];
  if (part === "") return limited(offset, characters);
  if (offset >= BigInt(characters.length)) return -1n;
  const before = characters.slice(0, Number(offset)).join("");
  const at = text.lastIndexOf(part, before.length);
  return at < 0 ? -1n : BigInt([...text.slice(0, at)].length);
}

/** Replaces the first occurrences of a text; all if `most` is negative. */
function replace(
  text: string,
  from: string,
  to: string,
  most: bigint = -1n,
): string {
  let left = most < 0n ? Infinity : Number(most);
  if (from !== "") {
    return text.replaceAll(from, (part) => left-- > 0 ? to : part);
  }
  const parts = [...text].map((part) => left-- > 0 ? to + part : part);
  return parts.join("") + (left > 0 ? to : "");
}

/** Parts of a text; at most a number of them unless it is negative. */
function split(text: string, separator: string, most: bigint = -1n): string[] {
  if (most === 0n) return [];
  const parts = separator === "" ? [...text] : text.split(separator);
  const limit = Number(most);
  if (limit < 0 || parts.length <= limit) return parts;
  return [
    ...parts.slice(0, limit - 1),
    parts.slice(limit - 1).join(separator),
  ];
}

function substring(text: string, start: bigint, end?: bigint): string {
  const characters = [...text];
  const length = BigInt(characters.length);
  if (end !== undefined && start > end) {
    throw new CelFailure(
      `invalid substring range. start: ${start}, end: ${end}`,
    );
  }
  for (const index of [start, end ?? start]) {
    if (index < 0n || index > length) outOfRange(index);
  }
  return characters.slice(Number(start), Number(end ?? length)).join("");
}

function join(list: readonly unknown[], separator = ""): string {
  const wrong = list.find((item) => typeof item !== "string");
  if (wrong !== undefined) {
    throw new CelFailure(`join: invalid input: ${String(wrong)}`);
  }
  return list.join(separator);
}

const QUOTED: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function quote(text: string): string {
  const content = text.replace(
    // deno-lint-ignore no-control-regex -- the character has an escape
    /[\x07\b\f\n\r\t\v\\"]/g,
    (character) => QUOTED[character] ?? character,
  );
  return `"${content}"`;
}

function matches(
  text: string,
  source: string,
  most: number,
): readonly string[] {
  const { find, problem } = pattern(source);
  if (problem !== undefined) throw new CelFailure(`Illegal regex: ${problem}`);
  return find(text, most);
}
