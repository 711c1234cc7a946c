import type { Scope } from "./scope.ts";

/** Compiled expression of a rule. */
export type Expression = (scope: Scope) => unknown;

/** Function that expressions call by name. */
export type RuleFunction = (...values: never[]) => unknown;

/** Whether a condition is true: false for absent and zero values, and for an empty list. */
export function holds(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Member of an object or list; undefined if absent. */
export function member(value: unknown, name: string | number): unknown {
  return typeof value === "object" && value !== null &&
      Object.hasOwn(value, name)
    ? (value as Record<string | number, unknown>)[name] ?? undefined
    : undefined;
}

/** Member that a rule names, by a name that `Object.prototype` does not have. */
function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)[name] ?? undefined
    : undefined;
}

type Operator = (a: Expression, b: Expression) => Expression;

/** Binary operators in order of increasing precedence. */
const OPERATORS: readonly Readonly<Record<string, Operator>>[] = [
  {
    "||": (a, b) => (s) => {
      const value = a(s);
      return holds(value) ? value : b(s);
    },
  },
  {
    "&&": (a, b) => (s) => {
      const value = a(s);
      return holds(value) ? b(s) : value;
    },
  },
  {
    "==": (a, b) => (s) => a(s) === b(s),
    "!=": (a, b) => (s) => a(s) !== b(s),
    "<=": (a, b) => (s) => (a(s) as number) <= (b(s) as number),
    ">=": (a, b) => (s) => (a(s) as number) >= (b(s) as number),
    "<": (a, b) => (s) => (a(s) as number) < (b(s) as number),
    ">": (a, b) => (s) => (a(s) as number) > (b(s) as number),
    "in": (a, b) => (s) => (b(s) as unknown[] | undefined ?? []).includes(a(s)),
    "~": (a, b) => (s) => (b(s) as RegExp).test(a(s) as string ?? ""),
  },
  { "??": (a, b) => (s) => a(s) ?? b(s) },
  {
    "+": (a, b) => (s) => (a(s) as string) + (b(s) as string),
    "-": (a, b) => (s) => (a(s) as number) - (b(s) as number),
  },
];

const TOKEN =
  /\s*(?:(?<number>\d[\d_]*)|'(?<text>[^']*)'|\/(?<regexp>(?:[^/\\[]|\\.|\[(?:[^\]\\]|\\.)*\])+)\/(?<flags>[is]?)|(?<name>\$?[A-Za-z_]\w*)|(?<sign>[!=<>]=|&&|\|\||\?\?|[-+!<>()[\],.~^?:]))/y;

/** Token at an index of the source text; its groups are undefined if no token matches. */
interface Token {
  readonly at: number;
  readonly end: number;
  readonly groups: Record<string, string | undefined> | undefined;
}

/**
 * Parser of the expressions in rules: fields of the current struct by their
 * paths (`spec.type`, `ports[0].name`), `^` for the enclosing struct, `.` for the
 * current value, variables (`$name`), numbers, `'texts'`, `[lists]`,
 * `/patterns/`, calls, `a ? b : c` and the operators of JavaScript, with `in`
 * for "is one of" and `~` for "matches".
 */
export class ExpressionParser {
  readonly #source: string;
  readonly #functions: Readonly<Record<string, RuleFunction>>;
  #at: number;
  /** Token that was read last. */
  #token: Token | undefined;

  /** Creates a parser that starts at an index of a source text. */
  constructor(
    source: string,
    functions: Readonly<Record<string, RuleFunction>>,
    at = 0,
  ) {
    this.#source = source;
    this.#functions = functions;
    this.#at = at;
  }

  /** Source text after the expressions that were parsed. */
  get rest(): string {
    return this.#source.slice(this.#at).trimStart();
  }

  /** Parses an expression that ends with the source text. */
  parseAll(): Expression {
    const result = this.parse();
    if (this.rest !== "") throw this.#error();
    return result;
  }

  /** Parses an expression. */
  parse(): Expression {
    const condition = this.#binary(0);
    if (!this.#takes("?")) return condition;
    const first = this.parse();
    this.#expect(":");
    const second = this.parse();
    return (s) => holds(condition(s)) ? first(s) : second(s);
  }

  #binary(level: number): Expression {
    const operators = OPERATORS[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const token = this.#peek();
      const word = token?.["sign"] ?? token?.["name"] ?? "";
      if (!Object.hasOwn(operators, word)) return left;
      this.#next();
      left = (operators[word] as Operator)(left, this.#binary(level + 1));
    }
  }

  #unary(): Expression {
    if (this.#takes("!")) {
      const inner = this.#unary();
      return (s) => !holds(inner(s));
    }
    if (this.#takes("-")) {
      const inner = this.#unary();
      return (s) => -(inner(s) as number);
    }
    return this.#members(this.#primary());
  }

  #members(value: Expression): Expression {
    let result = value;
    for (;;) {
      const inner = result;
      if (this.#takes(".")) {
        const { name = "" } = this.#next();
        result = (s) => field(inner(s), name);
      } else if (this.#takes("[")) {
        const index = this.parse();
        this.#expect("]");
        result = (s) => member(inner(s), index(s) as string);
      } else return result;
    }
  }

  #primary(): Expression {
    const { number, text, regexp, flags, name, sign } = this.#next();
    if (number !== undefined) {
      const value = Number(number.replaceAll("_", ""));
      return () => value;
    }
    if (text !== undefined) return () => text;
    if (regexp !== undefined) {
      const pattern = new RegExp(regexp, flags);
      return () => pattern;
    }
    if (name !== undefined) return this.#named(name);
    if (sign === ".") return (s) => s.value;
    if (sign === "[") {
      const items = this.#list("]");
      return (s) => items.map((item) => item(s));
    }
    if (sign === "^") {
      const outer = this.#primary();
      return (s) => s.outer && outer(s.outer);
    }
    if (sign !== "(") throw this.#error();
    const inner = this.parse();
    this.#expect(")");
    return inner;
  }

  #named(name: string): Expression {
    if (name === "true" || name === "false") return () => name === "true";
    if (name.startsWith("$")) return (s) => s.variable(name);
    if (!this.#takes("(")) return (s) => field(s.value, name);
    const parts = this.#list(")");
    if (name === "has") return (s) => parts[0]?.(s) !== undefined;
    // Whether an earlier item of the list that is walked had this value.
    if (name === "seen") return (s) => s.seen(parts, parts[0]?.(s));
    // Items of a list in which no violation was reported.
    if (name === "sound") {
      return (s) => {
        const list = parts[0]?.(s) as string;
        return (member(s.value, list) as unknown[] | undefined)?.filter(
          (_, index) => !s.path.child(`${list}[${index}]`).hasProblems(),
        );
      };
    }
    const call = this.#functions[name];
    if (call === undefined) throw this.#error();
    return (s) => call(...parts.map((part) => part(s)) as never[]);
  }

  #list(end: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#takes(end)) {
      items.push(this.parse());
      this.#takes(",");
    }
    return items;
  }

  #peek(): Token["groups"] | undefined {
    if (this.#token?.at !== this.#at) {
      TOKEN.lastIndex = this.#at;
      const groups = TOKEN.exec(this.#source)?.groups;
      this.#token = { at: this.#at, end: TOKEN.lastIndex, groups };
    }
    return this.#token.groups;
  }

  #next(): NonNullable<Token["groups"]> {
    const token = this.#peek();
    if (token === undefined) throw this.#error();
    this.#at = this.#token?.end ?? this.#at;
    return token;
  }

  #takes(sign: string): boolean {
    if (this.#peek()?.["sign"] !== sign) return false;
    this.#next();
    return true;
  }

  #expect(sign: string): void {
    if (!this.#takes(sign)) throw this.#error();
  }

  #error(): SyntaxError {
    return new SyntaxError(
      `Cannot parse a rule: unexpected ${
        this.rest || "end"
      } in ${this.#source}`,
    );
  }
}
