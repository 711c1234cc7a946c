import { Buffer } from "node:buffer";

/** What a text may go on with, in the words of Go's decoder. */
type Next =
  | "looking for beginning of value"
  | "looking for beginning of object key string"
  | "after object key"
  | "after object key:value pair"
  | "after array element"
  | "after top-level value";

const END = "unexpected end of JSON input";

/**
 * Says why a text is no JSON, in the words of Go's decoder.
 *
 * @returns Undefined if it is JSON.
 */
export function jsonSyntaxProblem(bytes: Uint8Array): string | undefined {
  return new SyntaxScan(Buffer.from(bytes).toString("latin1")).problem();
}

/** A walk over a text that has one character per byte. */
class SyntaxScan {
  readonly #text: string;
  #at = 0;
  /** Ends of the objects and lists around the current place. */
  readonly #open: ("}" | "]")[] = [];

  constructor(text: string) {
    // Go ends a text by a blank.
    this.#text = `${text} `;
  }

  problem(): string | undefined {
    let next: Next = "looking for beginning of value";
    /** Whether the object or list was opened just before. */
    let isEmpty = false;
    for (;;) {
      const char = this.#skipBlanks();
      if (char === undefined) {
        return next === "after top-level value" ? undefined : END;
      }
      const end = this.#open.at(-1);
      const mayEnd = next.startsWith("after ")
        ? next !== "after object key"
        : isEmpty;
      if (mayEnd && char === end) {
        this.#at++;
        this.#open.pop();
        next = this.#afterValue();
        isEmpty = false;
        continue;
      }
      isEmpty = false;
      switch (next) {
        case "looking for beginning of value": {
          if (char === "{" || char === "[") {
            this.#at++;
            this.#open.push(char === "{" ? "}" : "]");
            isEmpty = true;
            if (char === "{") {
              next = "looking for beginning of object key string";
            }
            continue;
          }
          const problem = this.#scalar(char);
          if (problem !== undefined) return problem;
          next = this.#afterValue();
          continue;
        }
        case "looking for beginning of object key string": {
          if (char !== '"') return wrong(char, next);
          const problem = this.#string();
          if (problem !== undefined) return problem;
          next = "after object key";
          continue;
        }
        case "after object key":
          if (char !== ":") return wrong(char, next);
          next = "looking for beginning of value";
          break;
        case "after top-level value":
          return wrong(char, next);
        default:
          if (char !== ",") return wrong(char, next);
          next = end === "}"
            ? "looking for beginning of object key string"
            : "looking for beginning of value";
      }
      this.#at++;
    }
  }

  #afterValue(): Next {
    const end = this.#open.at(-1);
    if (end === undefined) return "after top-level value";
    return end === "}" ? "after object key:value pair" : "after array element";
  }

  #skipBlanks(): string | undefined {
    while (/[ \t\r\n]/.test(this.#text[this.#at] ?? "")) this.#at++;
    return this.#text[this.#at];
  }

  #scalar(char: string): string | undefined {
    if (char === '"') return this.#string();
    if (/[-\d]/.test(char)) return this.#number();
    const word = ["true", "false", "null"].find((one) => one[0] === char);
    if (word === undefined) {
      return wrong(char, "looking for beginning of value");
    }
    for (const letter of word) {
      const found = this.#text[this.#at];
      if (found !== letter) {
        return wrong(found, `in literal ${word} (expecting '${letter}')`);
      }
      this.#at++;
    }
    return undefined;
  }

  #number(): string | undefined {
    this.#take(/-/y);
    const parts: readonly (readonly [RegExp, RegExp, string])[] = [
      [/0|[1-9]\d*/y, /(?:)/y, "in numeric literal"],
      [/\d+/y, /\./y, "after decimal point in numeric literal"],
      [/\d+/y, /[eE][-+]?/y, "in exponent of numeric literal"],
    ];
    for (const [digits, begin, where] of parts) {
      if (this.#take(begin) && !this.#take(digits)) {
        return wrong(this.#text[this.#at], where);
      }
    }
    return undefined;
  }

  #string(): string | undefined {
    this.#at++;
    for (;;) {
      // deno-lint-ignore no-control-regex -- what a JSON text must escape
      this.#take(/[^"\\\x00-\x1f]*/y);
      const char = this.#text[this.#at];
      if (char === undefined) return END;
      this.#at++;
      if (char === '"') return undefined;
      if (char !== "\\") return wrong(char, "in string literal");
      const escape = this.#text[this.#at++];
      if (escape !== "u") {
        if (!/^["\\/bfnrt]$/.test(escape ?? "")) {
          return wrong(escape, "in string escape code");
        }
        continue;
      }
      const start = this.#at;
      this.#take(/[\da-f]{0,4}/iy);
      if (this.#at < start + 4) {
        return wrong(
          this.#text[this.#at],
          "in \\u hexadecimal character escape",
        );
      }
    }
  }

  /** Goes on behind what a sticky pattern matches; false if it does not match. */
  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }
}

function wrong(char: string | undefined, where: string): string {
  return char === undefined
    ? END
    : `invalid character ${quoted(char)} ${where}`;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["'", "\\'"],
  ["\\", "\\\\"],
  ["\x07", "\\a"],
  ["\b", "\\b"],
  ["\f", "\\f"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
  ["\v", "\\v"],
]);

/** A byte as Go quotes it as a character. */
function quoted(char: string): string {
  const escape = ESCAPES.get(char);
  if (escape !== undefined) return `'${escape}'`;
  const code = char.charCodeAt(0);
  const hex = code.toString(16).padStart(2, "0");
  if (code < 0x20 || code === 0x7f) return `'\\x${hex}'`;
  return /[\x80-\xa0\xad]/.test(char) ? `'\\u00${hex}'` : `'${char}'`;
}
