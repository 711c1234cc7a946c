import type { Problem } from "./cel_errors.ts";
import type {
  EntryNode,
  ExpressionNode,
  MapNode,
  StructNode,
} from "./expression.ts";
import { type Token, type TokenKind, tokens } from "./lexer.ts";
import { expandMacro } from "./macros.ts";
import { bytesValue, textValue } from "./text_literal.ts";
import { Uint } from "./values.ts";

/** Maximum length of an expression in characters. */
const MAX_LENGTH = 100_000;

/** Maximum depth of nested expressions, and of operators and calls. */
const MAX_DEPTH = 250;

/** Words that cannot be names of variables. */
const RESERVED: ReadonlySet<string> = new Set(
  `as break const continue else for function if import let loop package
  namespace return var void while`.split(/\s+/),
);

/** Tokens with which an operand begins, in the order of the grammar. */
const OPERAND: readonly string[] = [
  "[",
  "{",
  "(",
  ".",
  "-",
  "!",
  "true",
  "false",
  "null",
  "NUM_FLOAT",
  "NUM_INT",
  "NUM_UINT",
  "STRING",
  "BYTES",
  "IDENTIFIER",
];

/** Order of the kinds of tokens in messages. */
const ORDER: readonly string[] = [
  "in",
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
  "true",
  "false",
  "null",
  "NUM_FLOAT",
  "NUM_INT",
  "NUM_UINT",
  "STRING",
  "BYTES",
  "IDENTIFIER",
  "ESC_IDENTIFIER",
];

/** Binary operators by their precedence, lowest first. */
const BINARY: readonly (readonly TokenKind[])[] = [
  ["<", "<=", ">=", ">", "==", "!=", "in"],
  ["+", "-"],
  ["*", "/", "%"],
];

/** Expression that is parsed, or what is wrong with it. */
export interface Parsed {
  /** Tree; undefined if there are problems. */
  readonly root: ExpressionNode | undefined;
  readonly problems: readonly Problem[];
}

/** Parses an expression, with cel-go's messages. */
export function parse(source: string): Parsed {
  const length = [...source].length;
  if (length > MAX_LENGTH) {
    const message =
      `expression code point size exceeds limit: size: ${length}, limit ${MAX_LENGTH}`;
    return { root: undefined, problems: [{ at: -1, message }] };
  }
  const { tokens: found, problems } = tokens(source);
  const parser = new Parser(found, [...problems]);
  const root = parser.start();
  return {
    root: parser.problems.length === 0 ? root : undefined,
    problems: parser.problems,
  };
}

/** End of a parse whose rest cannot be understood. */
class Unparsable extends Error {
  override readonly name = "Unparsable";
}

class Parser {
  readonly problems: Problem[];
  readonly #tokens: readonly Token[];
  /** Problems of what was understood, which cel-go reports after the others. */
  readonly #late: Problem[] = [];
  readonly #heights: WeakMap<ExpressionNode, number> = new WeakMap();
  #index = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], problems: Problem[]) {
    this.#tokens = tokens;
    this.problems = problems;
  }

  start(): ExpressionNode | undefined {
    try {
      const root = this.#expression();
      this.#expect("<EOF>", []);
      return root;
    } catch (error) {
      if (!(error instanceof Unparsable)) throw error;
      return undefined;
    } finally {
      this.problems.push(...this.#late);
    }
  }

  get #token(): Token {
    return this.#tokens[this.#index] as Token;
  }

  get #next(): Token {
    return this.#tokens[this.#index + 1] ?? this.#token;
  }

  #is(...kinds: readonly TokenKind[]): boolean {
    return kinds.includes(this.#token.kind);
  }

  #take(): Token {
    const token = this.#token;
    if (token.kind !== "<EOF>") this.#index++;
    return token;
  }

  #accept(kind: TokenKind): Token | undefined {
    return this.#is(kind) ? this.#take() : undefined;
  }

  /** Ends the parse with a problem that concerns the whole expression. */
  #fail(message: string): never {
    this.problems.push({ at: -1, message });
    throw new Unparsable();
  }

  /** Ends the parse with a problem at the current token. */
  #wrong(message: string, at = this.#token.at): never {
    this.problems.push({ at, message: `Syntax error: ${message}` });
    throw new Unparsable();
  }

  /**
   * Takes a token of a kind. As ANTLR does, one token too many is skipped, and a
   * missing one is assumed if what follows can stand after it.
   *
   * @param after Kinds of tokens that can follow.
   */
  #expect(kind: TokenKind, after: readonly string[]): Token {
    const token = this.#token;
    if (token.kind === kind) return this.#take();
    const name = kindText(kind);
    if (this.#next.kind === kind && token.kind !== "<EOF>") {
      this.problems.push({
        at: token.at,
        message:
          `Syntax error: extraneous input '${token.text}' expecting ${name}`,
      });
      this.#index++;
      return this.#take();
    }
    if (after.includes(token.kind)) {
      this.problems.push({
        at: token.at,
        message: `Syntax error: missing ${name} at '${token.text}'`,
      });
      return { kind, text: "", at: token.at };
    }
    return this.#wrong(`mismatched input '${token.text}' expecting ${name}`);
  }

  /** Skips a token that is in the way of one of some kinds. */
  #sync(kinds: readonly string[]): void {
    const { kind, text, at } = this.#token;
    if (kinds.includes(kind)) return;
    const set = `{${
      kinds.toSorted((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b))
        .map(kindText).join(", ")
    }}`;
    if (kind === "<EOF>" || !kinds.includes(this.#next.kind)) {
      this.#wrong(`mismatched input '${text}' expecting ${set}`);
    }
    this.problems.push({
      at,
      message: `Syntax error: extraneous input '${text}' expecting ${set}`,
    });
    this.#index++;
  }

  #made<T extends ExpressionNode>(node: T, ...parts: ExpressionNode[]): T {
    const height = 1 +
      Math.max(0, ...parts.map((part) => this.#heights.get(part) ?? 0));
    if (height > MAX_DEPTH) this.#fail("max recursion depth exceeded");
    this.#heights.set(node, height);
    return node;
  }

  /** Gives a node the height of its parts, without its own. */
  #around<T extends ExpressionNode>(
    node: T,
    parts: readonly ExpressionNode[],
  ): T {
    this.#heights.set(
      node,
      Math.max(0, ...parts.map((part) => this.#heights.get(part) ?? 0)),
    );
    return node;
  }

  #expression(): ExpressionNode {
    if (++this.#depth > MAX_DEPTH) {
      this.#fail(`expression recursion limit exceeded: ${MAX_DEPTH}`);
    }
    const condition = this.#logical("||");
    const mark = this.#accept("?");
    if (mark === undefined) {
      this.#depth--;
      return condition;
    }
    const yes = this.#logical("||");
    this.#expect(":", OPERAND);
    const no = this.#expression();
    this.#depth--;
    return this.#made(
      call(mark.at, "_?_:_", [condition, yes, no]),
      condition,
      yes,
      no,
    );
  }

  /** Parses the operands of a logical operator into one call with all of them. */
  #logical(operator: "||" | "&&"): ExpressionNode {
    const operand = () =>
      operator === "||" ? this.#logical("&&") : this.#binary(0);
    const first = operand();
    const terms = [first];
    let at: number | undefined;
    for (;;) {
      const token = this.#accept(operator);
      if (token === undefined) break;
      at ??= token.at;
      terms.push(operand());
    }
    return at === undefined
      ? first
      : this.#around(call(at, `_${operator}_`, terms), terms);
  }

  #binary(level: number): ExpressionNode {
    const kinds = BINARY[level];
    if (kinds === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    while (this.#is(...kinds)) {
      const { kind, at } = this.#take();
      const right = this.#binary(level + 1);
      const name = kind === "in" ? "@in" : `_${kind}_`;
      left = this.#made(call(at, name, [left, right]), left, right);
    }
    return left;
  }

  #unary(): ExpressionNode {
    this.#sync(OPERAND);
    const operator = this.#token;
    const isSign = operator.kind === "-" &&
      (this.#next.kind === "NUM_INT" || this.#next.kind === "NUM_FLOAT");
    if (isSign || !this.#is("!", "-")) return this.#member();
    let count = 0;
    while (this.#accept(operator.kind)) count++;
    this.#sync(OPERAND);
    const operand = this.#member();
    if (count % 2 === 0) return operand;
    const name = operator.kind === "!" ? "!_" : "-_";
    return this.#around(call(operator.at, name, [operand]), [operand]);
  }

  #member(): ExpressionNode {
    let node = this.#primary();
    for (;;) {
      const dot = this.#accept(".");
      if (dot) {
        node = this.#selection(node, dot);
        continue;
      }
      const bracket = this.#accept("[");
      if (bracket === undefined) return node;
      this.#sync([...OPERAND, "?"]);
      const optional = this.#accept("?") !== undefined;
      const index = this.#expression();
      this.#expect("]", AFTER_MEMBER);
      const name = optional ? "_[?_]" : "_[_]";
      node = this.#made(call(bracket.at, name, [node, index]), node, index);
    }
  }

  #selection(operand: ExpressionNode, dot: Token): ExpressionNode {
    const optional = this.#accept("?") !== undefined;
    const token = this.#token;
    if (!this.#is("IDENTIFIER", "ESC_IDENTIFIER")) {
      if (optional) {
        this.#late.push({ at: token.at, message: "unsupported ident kind" });
        this.#wrong(
          `mismatched input '${token.text}' expecting {IDENTIFIER, ESC_IDENTIFIER}`,
        );
      }
      this.#wrong(
        this.#is("true", "false", "null")
          ? `mismatched input '${token.text}' expecting IDENTIFIER`
          : `no viable alternative at input '.${
            token.kind === "<EOF>" ? "" : token.text
          }'`,
      );
    }
    const { kind, text, at } = this.#take();
    const field = plainName(text);
    if (optional) {
      const name = { kind: "literal", value: field, at } as const;
      return this.#made(call(dot.at, "_?._", [operand, name]), operand);
    }
    const open = kind === "IDENTIFIER" ? this.#accept("(") : undefined;
    if (open === undefined) {
      return this.#made(
        { kind: "select", operand, field, test: false, at: dot.at },
        operand,
      );
    }
    const args = this.#arguments();
    const parts = [operand, ...args];
    return this.#made(
      this.#callOrMacro(open.at, field, operand, args),
      ...parts,
    );
  }

  /** Arguments of a call after its open parenthesis, which is closed. */
  #arguments(): ExpressionNode[] {
    this.#sync([...OPERAND, ")"]);
    const args: ExpressionNode[] = [];
    if (!this.#is(")")) {
      do args.push(this.#expression()); while (this.#accept(","));
    }
    this.#expect(")", AFTER_MEMBER);
    return args;
  }

  #callOrMacro(
    at: number,
    name: string,
    target: ExpressionNode | undefined,
    args: readonly ExpressionNode[],
  ): ExpressionNode {
    const expanded = expandMacro(at, name, target, args);
    if (expanded === undefined) return call(at, name, args, target);
    if ("kind" in expanded) return expanded;
    this.#late.push(expanded);
    return { kind: "literal", value: null, at };
  }

  #primary(): ExpressionNode {
    const token = this.#token;
    switch (token.kind) {
      case "(": {
        this.#take();
        const inner = this.#expression();
        this.#expect(")", AFTER_MEMBER);
        return inner;
      }
      case "[":
        return this.#list();
      case "{":
        return this.#map();
      case ".":
      case "IDENTIFIER":
        return this.#name();
      case "-":
        if (this.#next.kind !== "NUM_INT" && this.#next.kind !== "NUM_FLOAT") {
          return this.#wrong(
            `no viable alternative at input '-${
              this.#next.kind === "<EOF>" ? "" : this.#next.text
            }'`,
            this.#next.at,
          );
        }
        break;
      case "!":
        return this.#wrong(`no viable alternative at input '!'`);
    }
    return this.#literal();
  }

  #name(): ExpressionNode {
    const { at } = this.#token;
    const leading = this.#accept(".") ? "." : "";
    if (!this.#is("IDENTIFIER")) {
      this.#wrong(
        `no viable alternative at input '.${
          this.#is("<EOF>") ? "" : this.#token.text
        }'`,
      );
    }
    const token = this.#take();
    const struct = this.#structName(leading + token.text);
    if (struct !== undefined) return this.#struct(struct);
    if (RESERVED.has(token.text)) {
      this.#late.push({ at, message: `reserved identifier: ${token.text}` });
    }
    const open = this.#accept("(");
    if (open === undefined) {
      return { kind: "ident", name: leading + token.text, at: token.at };
    }
    const args = this.#arguments();
    return this.#around(
      this.#callOrMacro(open.at, leading + token.text, undefined, args),
      args,
    );
  }

  /** Name of the message of a literal that begins here; undefined without one. */
  #structName(first: string): string | undefined {
    let index = this.#index;
    let name = first;
    while (
      this.#tokens[index]?.kind === "." &&
      this.#tokens[index + 1]?.kind === "IDENTIFIER"
    ) {
      name += `.${this.#tokens[index + 1]?.text}`;
      index += 2;
    }
    if (this.#tokens[index]?.kind !== "{") return undefined;
    this.#index = index;
    return name;
  }

  #struct(name: string): ExpressionNode {
    const { at } = this.#take();
    const fields: StructNode["fields"][number][] = [];
    this.#sync(["}", ",", "?", "IDENTIFIER", "ESC_IDENTIFIER"]);
    if (!this.#is("}", ",")) {
      do {
        if (this.#is("}")) break;
        const optional = this.#accept("?") !== undefined;
        if (!this.#is("IDENTIFIER", "ESC_IDENTIFIER")) {
          this.#wrong(
            `mismatched input '${this.#token.text}' expecting {IDENTIFIER, ESC_IDENTIFIER}`,
          );
        }
        const field = this.#take();
        fields.push({ ...this.#entry(optional), name: plainName(field.text) });
      } while (this.#acceptComma("}"));
    } else this.#accept(",");
    this.#expect("}", AFTER_MEMBER);
    return this.#around(
      { kind: "struct", name, fields, at },
      fields.map(({ value }) => value),
    );
  }

  #entry(optional: boolean): EntryNode {
    const { at } = this.#expect(":", OPERAND);
    return { at, value: this.#expression(), optional };
  }

  /** Takes the comma before another element; false at the end. */
  #acceptComma(end: "]" | "}"): boolean {
    this.#sync([end, ","]);
    if (!this.#accept(",")) return false;
    return !this.#is(end) && !this.#is(",");
  }

  #list(): ExpressionNode {
    const { at } = this.#take();
    const items: ExpressionNode[] = [];
    const optional = new Set<number>();
    this.#sync([...OPERAND, "]", ",", "?"]);
    if (!this.#is("]", ",")) {
      do {
        if (this.#accept("?")) optional.add(items.length);
        items.push(this.#expression());
      } while (this.#acceptComma("]"));
    } else this.#accept(",");
    this.#expect("]", AFTER_MEMBER);
    return this.#around({ kind: "list", items, optional, at }, items);
  }

  #map(): ExpressionNode {
    const { at } = this.#take();
    const entries: MapNode["entries"][number][] = [];
    this.#sync([...OPERAND, "}", ",", "?"]);
    if (!this.#is("}", ",")) {
      do {
        const optional = this.#accept("?") !== undefined;
        const key = this.#expression();
        entries.push({ ...this.#entry(optional), key });
      } while (this.#acceptComma("}"));
    } else this.#accept(",");
    this.#expect("}", AFTER_MEMBER);
    return this.#around(
      { kind: "map", entries, at },
      entries.flatMap(({ key, value }) => [key, value]),
    );
  }

  #literal(): ExpressionNode {
    const { at } = this.#token;
    const sign = this.#accept("-") ? "-" : "";
    const { kind, text } = this.#take();
    const { value, problem } = literalValue(kind, sign + text);
    if (problem !== undefined) this.#late.push({ at, message: problem });
    return { kind: "literal", value, at };
  }
}

/** Kinds of tokens that can follow an operand. */
const AFTER_MEMBER: readonly string[] = [
  "<EOF>",
  "==",
  "!=",
  "in",
  "<",
  "<=",
  ">=",
  ">",
  "&&",
  "||",
  "[",
  "]",
  "}",
  ")",
  ".",
  ",",
  "-",
  "?",
  ":",
  "+",
  "*",
  "/",
  "%",
  "{",
];

function call(
  at: number,
  name: string,
  args: readonly ExpressionNode[],
  target?: ExpressionNode,
): ExpressionNode {
  return { kind: "call", name, target, args, at };
}

/** Kind of a token in messages. */
/** Name of a field, which may be in backticks. */
function plainName(text: string): string {
  return text.startsWith("`") ? text.slice(1, -1) : text;
}

function kindText(kind: string): string {
  return /^[A-Z<]/.test(kind) && kind !== "<" && kind !== "<="
    ? kind
    : `'${kind}'`;
}

const INT_LIMIT = 2n ** 63n;
const UINT_LIMIT = 2n ** 64n;

function literalValue(
  kind: TokenKind,
  text: string,
): { readonly value?: unknown; readonly problem?: string } {
  switch (kind) {
    case "true":
      return { value: true };
    case "false":
      return { value: false };
    case "null":
      return { value: null };
    case "NUM_INT": {
      const size = BigInt(text.replace("-", ""));
      const value = text.startsWith("-") ? -size : size;
      return value >= INT_LIMIT || value < -INT_LIMIT
        ? { problem: "invalid int literal" }
        : { value };
    }
    case "NUM_UINT": {
      const value = BigInt(text.slice(0, -1));
      return value >= UINT_LIMIT
        ? { problem: "invalid uint literal" }
        : { value: new Uint(value) };
    }
    case "NUM_FLOAT": {
      const value = Number(text);
      return Number.isFinite(value)
        ? { value }
        : { problem: "invalid double literal" };
    }
    case "BYTES":
      return bytesValue(text);
    default:
      return textValue(text);
  }
}
