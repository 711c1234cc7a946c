import type { LabelRequirement } from "@coracle/operator/client";
import type { LabelOperator } from "@coracle/operator/internal";
import { badRequest, fieldError } from "../status.ts";
import {
  labelValueProblems,
  qualifiedNameProblems,
} from "../validation/names.ts";

/**
 * Token kind of a label selector; words are names, values or operators such as
 * `in`.
 */
type TokenKind = "word" | "symbol" | "end" | "error";

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
}

const SYMBOLS: ReadonlySet<string> = new Set([
  ")",
  ",",
  "!",
  "==",
  "=",
  ">",
  "<",
  "!=",
  "(",
]);

const OPERATORS: ReadonlyMap<string, LabelOperator> = new Map([
  ["in", "In"],
  ["notin", "NotIn"],
  ["=", "In"],
  ["==", "In"],
  ["!=", "NotIn"],
  [">", "Gt"],
  ["<", "Lt"],
]);

const END: Token = { kind: "end", text: "" };

/**
 * Parses the `labelSelector` parameter. Accepts the same selectors as
 * `parseLabelSelector` of core/api, but with kube-apiserver's error messages.
 *
 * @throws {StatusError} 400 if it is not a selector.
 */
export function readLabelQuery(text: string): readonly LabelRequirement[] {
  if (text === "") return [];
  return new LabelQueryParser(text).parse();
}

class LabelQueryParser {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = tokens(text);
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      const first = this.#peek();
      if (first.kind === "end") return requirements;
      if (!startsRequirement(first)) {
        throw badRequest(
          `found '${first.text}', expected: !, identifier, or 'end of string'`,
        );
      }
      requirements.push(this.#requirement());
      const after = this.#take();
      if (after.kind === "end") return requirements;
      if (after.text !== "," || after.kind !== "symbol") {
        throw badRequest(
          `found '${after.text}', expected: ',' or 'end of string'`,
        );
      }
      if (!startsRequirement(this.#peek())) {
        throw badRequest(
          `found '${this.#peek().text}', expected: identifier after ','`,
        );
      }
    }
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? END;
  }

  #take(): Token {
    return this.#tokens[this.#next++] ?? END;
  }

  /** Whether the next token is a symbol; the empty text stands for the end. */
  #sees(symbol: string): boolean {
    const { kind, text } = this.#peek();
    return symbol === ""
      ? kind === "end"
      : kind === "symbol" && text === symbol;
  }

  #requirement(): LabelRequirement {
    const negated = this.#sees("!");
    if (negated) this.#take();
    const key = this.#take();
    if (key.kind !== "word") {
      fail(`found '${key.text}', expected: identifier`);
    }
    const problems = qualifiedNameProblems(key.text);
    if (problems.length > 0) {
      const cause = fieldError.invalid("<nil>", key.text, problems.join("; "));
      fail(`<nil>: ${cause.message}`);
    }
    if (negated || this.#sees("") || this.#sees(",")) {
      const operator = negated ? "DoesNotExist" : "Exists";
      return { key: key.text, operator, values: [] };
    }
    const word = this.#take();
    const operator = OPERATORS.get(word.text);
    if (operator === undefined) {
      fail(`found '${word.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
    const values = word.kind === "word" ? this.#list() : [this.#value()];
    checkValues(key.text, operator, values);
    return { key: key.text, operator, values };
  }

  #value(): string {
    if (this.#sees("") || this.#sees(",")) return "";
    const token = this.#take();
    if (token.kind !== "word") {
      fail(`found '${token.text}', expected: identifier`);
    }
    return token.text;
  }

  #list(): string[] {
    const open = this.#take();
    if (open.text !== "(") fail(`found '${open.text}' expected: '('`);
    if (this.#sees(")")) {
      this.#take();
      return [""];
    }
    if (this.#peek().kind !== "word" && !this.#sees(",")) {
      fail(`found '${this.#peek().text}', expected: ',', ')' or identifier`);
    }
    const values = new Set<string>();
    for (;;) {
      const token = this.#take();
      if (token.kind === "word") {
        values.add(token.text);
        if (this.#sees(")")) break;
        if (!this.#sees(",")) {
          fail(`found '${this.#peek().text}', expected: ',' or ')'`);
        }
      } else if (token.kind === "symbol" && token.text === ",") {
        if (values.size === 0) values.add("");
        if (this.#sees(")") || this.#sees(",")) values.add("");
        if (this.#sees(")")) break;
      } else {
        fail(`found '${token.text}', expected: ',', or identifier`);
      }
    }
    this.#take();
    return [...values].sort();
  }
}

function startsRequirement(token: Token): boolean {
  return token.kind === "word" ||
    (token.kind === "symbol" && token.text === "!");
}

function fail(why: string): never {
  throw badRequest(`unable to parse requirement: ${why}`);
}

function checkValues(
  key: string,
  operator: LabelOperator,
  values: readonly string[],
): void {
  const problems: string[] = [];
  values.forEach((value, index) => {
    const add = (field: string, why: string) =>
      problems.push(
        `${field}: ${fieldError.invalid(field, value, why).message}`,
      );
    if (
      (operator === "Gt" || operator === "Lt") && !/^[+-]?\d+$/.test(value)
    ) {
      add(
        `values[${index}]`,
        "for 'Gt', 'Lt' operators, the value must be an integer",
      );
    }
    const wrong = labelValueProblems(value);
    if (wrong.length > 0) add(`values[${index}][${key}]`, wrong.join("; "));
  });
  if (problems.length > 0) {
    fail(problems.length === 1 ? problems[0]! : `[${problems.join(", ")}]`);
  }
}

/** Splits a selector into tokens; the longest known symbol wins. */
function tokens(text: string): Token[] {
  const list: Token[] = [];
  for (const [part] of text.matchAll(/[=!(),<>]+|[^=!(),<>\s]+/g)) {
    if (!/^[=!(),<>]/.test(part)) {
      list.push({ kind: "word", text: part });
      continue;
    }
    for (let rest = part; rest !== "";) {
      const symbol = [rest.slice(0, 2), rest.slice(0, 1)].find((candidate) =>
        SYMBOLS.has(candidate)
      ) as string;
      list.push({ kind: "symbol", text: symbol });
      rest = rest.slice(symbol.length);
    }
  }
  return list;
}
