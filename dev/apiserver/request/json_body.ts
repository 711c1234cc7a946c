import { readJson } from "../exact_json.ts";
import { jsonSyntaxProblem } from "./json_syntax.ts";

/** Maximum nesting depth of objects and lists. */
export const MAX_DEPTH = 256;

/** Parsed JSON with its duplicate fields. */
export interface ParsedJson {
  readonly value: unknown;
  /** Paths of duplicate fields, such as `spec.replicas`. */
  readonly duplicates: readonly string[];
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Error of an unreadable body, with Go's message. */
export function notJson(why: string): SyntaxError {
  return new SyntaxError(why);
}

/** Error of a number that no double can hold. */
export class NumberRangeError extends SyntaxError {
  override readonly name = "NumberRangeError";
}

/**
 * Parses JSON with additional checks: the depth is bounded, so that recursive
 * functions cannot overflow the stack, and duplicate fields are named (the last
 * value wins).
 *
 * @param read Reads the text.
 * @throws {SyntaxError} If it is not JSON or nested too deeply, or a
 * {@linkcode NumberRangeError} if a number is too large.
 */
export function parseJson(
  bytes: Uint8Array,
  read: typeof readJson = readJson,
): ParsedJson {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw notJson("invalid UTF-8");
  }
  const { fields, depth } = survey(bytes);
  if (depth > MAX_DEPTH) throw notJson("exceeded max depth");
  let value: unknown;
  try {
    value = read(text);
  } catch (error) {
    throw notJson(jsonSyntaxProblem(bytes) ?? (error as Error).message);
  }
  if (/[eE]\+?\d{3}|\d{309}/.test(text)) checkNumbers(text);
  return {
    value,
    duplicates: fields === countFields(value) ? [] : findDuplicates(text),
  };
}

function checkNumbers(text: string): void {
  for (const [token] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[-+.\deE]+/g)) {
    if (!token.startsWith('"') && Math.abs(Number(token)) === Infinity) {
      throw new NumberRangeError(
        `json: cannot unmarshal number ${token} into Go value of type float64`,
      );
    }
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Counts the fields (by colons) and the depth of a JSON text without parsing it. */
function survey(bytes: Uint8Array): { fields: number; depth: number } {
  let fields = 0;
  let level = 0;
  let depth = 0;
  for (let index = 0; index < bytes.length; index++) {
    switch (bytes[index]) {
      case QUOTE:
        index = stringEnd(bytes, index);
        break;
      case 0x3a: // :
        fields++;
        break;
      case 0x7b: // {
      case 0x5b: // [
        if (++level > depth) depth = level;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        level--;
    }
  }
  return { fields, depth };
}

/** Index of the quote that ends the string starting at `start`. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let end = bytes.indexOf(QUOTE, start + 1);
  while (end >= 0) {
    let slashes = 0;
    while (bytes[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
    end = bytes.indexOf(QUOTE, end + 1);
  }
  return bytes.length;
}

function countFields(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countFields(item);
  } else {
    for (const item of Object.values(value)) count += 1 + countFields(item);
  }
  return count;
}

/** Paths of duplicate fields in valid JSON. Called only if there are duplicates. */
function findDuplicates(text: string): string[] {
  const duplicates = new Set<string>();
  visitFields(text, (path, isDuplicate) => {
    if (isDuplicate) duplicates.add(path);
  });
  return [...duplicates];
}

/** Problems of fields in their order in a body, as Go reports them. */
export function inDocumentOrder(
  body: Uint8Array,
  problems: readonly string[],
): readonly string[] {
  const found = new Set<string>();
  visitFields(decoder.decode(body), (path, isDuplicate) => {
    const shown = JSON.stringify(path);
    const problem = `${isDuplicate ? "duplicate" : "unknown"} field ${shown}`;
    if (problems.includes(problem)) found.add(problem);
  });
  return [...found, ...problems.filter((problem) => !found.has(problem))];
}

/** Visits the fields of valid JSON in their order. */
function visitFields(
  text: string,
  visit: (path: string, isDuplicate: boolean) => void,
): void {
  const tokens = text.matchAll(
    /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g,
  );
  const path: {
    readonly fields: Set<string> | undefined;
    name: string;
    index: number;
  }[] = [];
  let key: string | undefined;
  for (const [token] of tokens) {
    const level = path.at(-1);
    if (token === "{" || token === "[") {
      key = undefined;
      path.push({
        fields: token === "{" ? new Set() : undefined,
        name: "",
        index: 0,
      });
    } else if (token === "}" || token === "]") path.pop();
    else if (token === ",") {
      if (level) level.index++;
    } else if (token === ":" && level?.fields && key !== undefined) {
      level.name = JSON.parse(key);
      visit(pathText(path), level.fields.has(level.name));
      level.fields.add(level.name);
    } else key = token;
  }
}

function pathText(
  path: readonly {
    fields: Set<string> | undefined;
    name: string;
    index: number;
  }[],
): string {
  let text = "";
  for (const { fields, name, index } of path) {
    if (fields === undefined) text += `[${index}]`;
    else text += text === "" ? name : `.${name}`;
  }
  return text;
}
