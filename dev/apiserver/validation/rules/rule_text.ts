/**
 * Language of rules: validation, lifecycles and defaults of built-in kinds,
 * definitions of custom ones, metadata and options are tables of text with one
 * rule per line (`tools/kubernetes/data/rules`), compiled when they are first
 * used. `rule_text.ts` compiles blocks and control statements, `expression.ts`
 * compiles expressions, and `rule_words.ts` compiles the statements that report
 * violations. `rule_data.ts` has the texts; the others must not import it.
 *
 * @module
 */
import {
  type Expression,
  ExpressionParser,
  holds,
  member,
  type RuleFunction,
} from "./expression.ts";
import { Scope } from "./scope.ts";
import { FieldPath } from "../field_path.ts";
import type { StatusCause } from "@coracle/operator/internal";

/** Compiled statement; true ends the rules of the current value. */
export type Statement = (scope: Scope) => boolean | void;

/** Function that compiles a line that is not a control statement. */
export type LineCompiler = (line: string, rules: RuleText) => Statement;

/** Line of a block, with the lines indented below it. */
interface Line {
  readonly text: string;
  readonly inner: Line[];
}

/**
 * Text of rules. A block starts with a line of definitions (`core.v1.Pod`) in
 * the first column; its rules are indented. Control statements of rules:
 *
 * - `if CONDITION: RULE`, `elif CONDITION: RULE`, `else: RULE`, or a block;
 * - `each LIST …` with a block for the items of lists or entries of maps
 *   (`$key`, `$index`, `$list`), `every LIST …` likewise with the path of the
 *   struct, `at FIELD` with a block for a struct, absent or not;
 * - `let $name = EXPRESSION`, `stop` (ends the rules of the item or struct) and
 *   `use NAME` (the rules of the block `rule NAME`).
 */
export class RuleText {
  /** Functions that expressions call. */
  readonly functions: Readonly<Record<string, RuleFunction>>;
  readonly #compileLine: LineCompiler;
  readonly #text: string;
  /** Lines of the blocks, found when they are first used. */
  #blocks: ReadonlyMap<string, readonly string[]> | undefined;
  readonly #compiled: Map<string, Statement | undefined> = new Map();

  #whole = false;

  /** Creates the rules of a text; a block is compiled when it is first used. */
  constructor(options: {
    readonly text: string;
    readonly compileLine: LineCompiler;
    readonly functions: Readonly<Record<string, RuleFunction>>;
  }) {
    this.functions = options.functions;
    this.#compileLine = options.compileLine;
    this.#text = options.text;
  }

  /** Names of all blocks. */
  get names(): readonly string[] {
    this.#blocks ??= blocksOf(this.#text);
    return [...this.#blocks.keys()];
  }

  /** Compiles all rules, including conditional ones, to check their syntax. */
  compileAll(): void {
    this.#whole = true;
    this.#compiled.clear();
    for (const name of this.names) this.get(name);
  }

  /** Rules of a definition, such as `core.v1.Pod`; undefined if absent. */
  get(name: string): Statement | undefined {
    if (this.#compiled.has(name)) return this.#compiled.get(name);
    this.#blocks ??= blocksOf(this.#text);
    const blocks = this.#blocks.get(name);
    const parts = blocks?.map((block) => this.#block(linesOf(block)));
    const all: Statement | undefined = parts &&
      ((scope) => {
        for (const part of parts) part(scope);
      });
    this.#compiled.set(name, all);
    return all;
  }

  /**
   * Violations of a block of rules by a value.
   *
   * @param path Path of the value; empty for a whole object.
   */
  causes(
    block: string,
    value: unknown,
    variables: Readonly<Record<string, unknown>> = {},
    path = "",
  ): StatusCause[] {
    const causes: StatusCause[] = [];
    const scope = new Scope(value, new FieldPath(path, causes));
    for (const [name, one] of Object.entries(variables)) scope.set(name, one);
    this.get(block)?.(scope);
    return causes;
  }

  /** Compiles an expression that spans a whole text. */
  expression(source: string): Expression {
    return new ExpressionParser(source, this.functions).parseAll();
  }

  /** Compiles a text with expressions in `%(…)`. */
  template(text: string): (scope: Scope) => string {
    const source = text.replaceAll("\\n", "\n");
    if (!source.includes("%(")) return () => source;
    const [first = "", ...rest] = source.split("%(");
    const parts = rest.map((part) => {
      const parser = new ExpressionParser(part, this.functions);
      return [parser.parse(), parser.rest.slice(1)] as const;
    });
    return (scope) =>
      first + parts.map(([value, text]) => `${value(scope)}${text}`).join("");
  }

  #block(lines: readonly Line[]): Statement {
    const statements: Statement[] = [];
    for (let index = 0; index < lines.length; index++) {
      const line = lines[index] as Line;
      if (!line.text.startsWith("if ")) {
        statements.push(this.#statement(line));
        continue;
      }
      const choices = [this.#choice(line)];
      while (/^(?:elif |else:?)/.test(lines[index + 1]?.text ?? "")) {
        choices.push(this.#choice(lines[++index] as Line));
      }
      statements.push((scope) => {
        for (const [condition, statement] of choices) {
          if (holds(condition(scope))) return statement(scope);
        }
        return false;
      });
    }
    return (scope) => {
      for (const statement of statements) if (statement(scope)) return true;
      return false;
    };
  }

  #choice({ text, inner }: Line): readonly [Expression, Statement] {
    if (text.startsWith("else")) {
      const rest = text.slice("else".length).replace(/^:\s*/, "");
      return [() => true, this.#body(rest, inner)];
    }
    const parser = new ExpressionParser(
      text,
      this.functions,
      text.indexOf(" "),
    );
    const condition = parser.parse();
    return [condition, this.#body(parser.rest.replace(/^:\s*/, ""), inner)];
  }

  #body(text: string, inner: Line[]): Statement {
    const compile = () =>
      text === "" ? this.#block(inner) : this.#statement({ text, inner });
    // Most conditions are never true, so their rules are compiled on first use.
    let compiled = this.#whole ? compile() : undefined;
    return (scope) => (compiled ??= compile())(scope);
  }

  #statement({ text, inner }: Line): Statement {
    const [word = "", ...rest] = text.split(" ");
    switch (word) {
      case "stop":
        return () => true;
      case "use": {
        let used: Statement | undefined;
        return (scope) =>
          void (used ??= this.get(`rule ${rest.join(" ")}`) as Statement)(
            scope,
          );
      }
      case "let": {
        const [name = "", , ...source] = rest;
        const value = this.expression(source.join(" "));
        return (scope) => {
          scope.set(name, value(scope));
        };
      }
      case "at": {
        const body = this.#block(inner);
        const below = rest.join("");
        const value = this.expression(below);
        return (scope) => {
          body(new Scope(value(scope) ?? {}, below, scope));
        };
      }
      case "each":
      case "every":
        return this.#each(word, rest, this.#block(inner));
      default:
        return this.#compileLine(text, this);
    }
  }

  #each(word: string, lists: readonly string[], body: Statement): Statement {
    const paths = lists.map((list) =>
      [list, list.startsWith("$") ? [] : list.split(".")] as const
    );
    return (scope) => {
      const seen = new Map();
      for (const [list, path] of paths) {
        const found = path.length === 0 ? scope.variable(list) : scope.value;
        walk(found, path, "", (value, at, key) => {
          const below = word === "every" ? "" : at;
          body(new Scope(value, below, scope, { list, key, seen }));
        });
      }
    };
  }
}

/** Blocks of a text by the names in their first lines, each with its remaining lines. */
export function blocksOf(text: string): Map<string, string[]> {
  const blocks = new Map<string, string[]>();
  for (const block of text.split(/\n(?=[^\s#])/)) {
    const end = block.indexOf("\n");
    const head = block.slice(0, Math.max(end, 0));
    if (head === "" || head.startsWith("#")) continue;
    const isOneName = /^(?:rule|after) /.test(head);
    for (const name of isOneName ? [head] : head.split(" ")) {
      const bodies = blocks.get(name);
      if (bodies) bodies.push(block.slice(end + 1));
      else blocks.set(name, [block.slice(end + 1)]);
    }
  }
  return blocks;
}

/** Lines of a block, each with the lines indented below it. */
function linesOf(block: string): Line[] {
  const lines: Line[] = [];
  const open: (readonly [indent: number, inner: Line[]])[] = [[0, lines]];
  for (const raw of block.split("\n")) {
    const text = raw.trim();
    if (text === "" || text.startsWith("#")) continue;
    const indent = raw.length - raw.trimStart().length;
    while ((open.at(-1)?.[0] ?? 0) >= indent) open.pop();
    const line: Line = { text, inner: [] };
    open.at(-1)?.[1].push(line);
    open.push([indent, line.inner]);
  }
  return lines;
}

/** Visits the items or entries at a path, including those of lists along the path. */
function walk(
  value: unknown,
  path: readonly string[],
  below: string,
  visit: (value: unknown, below: string, key: string | number) => void,
): void {
  const [name = "", ...rest] = path;
  const found = name === "" ? value : member(value, name);
  if (typeof found !== "object" || found === null) return;
  const at = below === "" || name === "" ? below + name : `${below}.${name}`;
  if (Array.isArray(found)) {
    for (const [index, item] of found.entries()) {
      const place = `${at}[${index}]`;
      if (rest.length > 0) walk(item, rest, place, visit);
      else visit(item, place, index);
    }
  } else if (rest.length > 0) walk(found, rest, at, visit);
  else {
    for (const [key, item] of Object.entries(found)) {
      visit(item, `${at}[${key}]`, key);
    }
  }
}
