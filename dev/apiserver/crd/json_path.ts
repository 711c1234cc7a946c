import { isJsonObject } from "@coracle/operator/internal";
import { isFloat, isInteger, type WrittenFloat } from "../exact_json.ts";

/** Step of a path, which maps found values to values in them. */
type Step = (values: readonly unknown[]) => unknown[];

/** Compiled JSONPath. */
export interface JsonPath {
  /**
   * Finds the values at the path; missing keys yield no value. The list is empty
   * where Go fails: an index out of range, or a filter that compares different types.
   */
  find(object: unknown): unknown[];
}

/** Failure of the evaluation of a path, which leaves it without values. */
class PathFailure extends Error {
  override readonly name = "PathFailure";
}

/**
 * Compiles a JSONPath in kubectl's dialect, without the braces: fields, quoted
 * keys, indexes, slices, `*`, `..`, unions and filters, as in
 * `.status.conditions[?(@.type=="Ready")].status`.
 *
 * @throws {SyntaxError} If the text is not a valid JSONPath.
 */
export function compileJsonPath(text: string): JsonPath {
  const path = compileSteps(text);
  return {
    find(object) {
      try {
        return path([object]);
      } catch (error) {
        if (error instanceof PathFailure) return [];
        throw error;
      }
    },
  };
}

function compileSteps(text: string): Step {
  const reader = new Reader(text);
  const steps: Step[] = [];
  while (!reader.done) steps.push(readStep(reader));
  return (start) =>
    steps.reduce<unknown[]>((values, step) => step(values), [...start]);
}

class Reader {
  readonly text: string;
  position = 0;

  constructor(text: string) {
    this.text = text;
  }

  get done(): boolean {
    return this.position >= this.text.length;
  }

  /** Skips the given text if it is next; returns whether it did. */
  take(piece: string): boolean {
    if (!this.text.startsWith(piece, this.position)) return false;
    this.position += piece.length;
    return true;
  }

  /** Reads the match of a sticky regular expression at the current position. */
  match(regexp: RegExp): string {
    regexp.lastIndex = this.position;
    const found = regexp.exec(this.text)?.[0] ?? "";
    this.position += found.length;
    return found;
  }

  error(why: string): SyntaxError {
    return new SyntaxError(
      `Cannot parse a JSONPath: ${why}: received ${JSON.stringify(this.text)}`,
    );
  }
}

/** Pattern of a name up to the next special character; `\.` is an escaped dot. */
const NAME_REGEXP = /(?:\\.|[^\s.,[\]$@{}\\])*/y;

function readStep(reader: Reader): Step {
  if (reader.take("..")) {
    const descend: Step = (values) => values.flatMap(descendants);
    const name = reader.match(NAME_REGEXP);
    return name === ""
      ? descend
      : (values) => field(unescaped(name))(descend(values));
  }
  if (reader.take("[?(")) return readFilter(reader);
  if (reader.take("[")) return readBrackets(reader);
  if (reader.take(".")) {
    const name = reader.match(NAME_REGEXP);
    return name === "*" ? children : field(unescaped(name));
  }
  if (reader.take("$") || reader.take("@") || reader.take(" ")) {
    return (values) => [...values];
  }
  const name = reader.match(/[\p{L}\p{N}_][^\s.,[\]$@{}]*/uy);
  if (name !== "") {
    return () => {
      throw new PathFailure(`${name} is no field`);
    };
  }
  throw reader.error(`there is no step at ${reader.position}`);
}

function unescaped(name: string): string {
  return name.replaceAll("\\", "");
}

/** Step into a field. */
function field(name: string): Step {
  return (values) =>
    values.flatMap((value) =>
      isJsonObject(value) && Object.hasOwn(value, name) ? [value[name]] : []
    );
}

const children: Step = (values) =>
  values.flatMap((value) =>
    Array.isArray(value)
      ? value as unknown[]
      : isJsonObject(value)
      ? Object.values(value)
      : []
  );

function descendants(value: unknown): unknown[] {
  return [value, ...children([value]).flatMap(descendants)];
}

const BRACKETS_REGEXP = /(?:'[^']*'|[^\]])*/y;

function readBrackets(reader: Reader): Step {
  const inner = reader.match(BRACKETS_REGEXP);
  if (!reader.take("]")) throw reader.error("a bracket is not closed");
  const parts = inner.match(/'[^']*'|[^,]+/g) ?? [];
  const steps = parts.map((part) => selector(part.trim(), reader));
  if (steps.length === 0) throw reader.error("the brackets are empty");
  return (values) => steps.flatMap((step) => step(values));
}

function selector(part: string, reader: Reader): Step {
  if (part === "*") return children;
  const quoted = /^'([^']*)'$/.exec(part);
  // As in Go, a quoted key is a path of its own: its dots must be escaped.
  if (quoted) return compileSteps(`.${quoted[1]}`);
  const slice = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(part);
  if (!slice || part === "") throw reader.error(`[${part}] is no index`);
  if (!part.includes(":")) {
    const index = Number(part);
    return onLists((list) => [list[bounded(list, index, list.length - 1)]]);
  }
  const [start, end, step = 1] = slice.slice(1).map((bound) =>
    bound ? Number(bound) : undefined
  );
  return onLists((list) => {
    const from = bounded(list, start ?? 0, list.length);
    const to = bounded(list, end ?? list.length, list.length);
    if (from > to || step <= 0 || (from === list.length && from !== to)) {
      throw new PathFailure("the slice is out of range");
    }
    return list.slice(from, to).filter((_, i) => i % step === 0);
  });
}

/** Step into lists; null is skipped, and other values fail. */
function onLists(
  items: (list: readonly unknown[]) => readonly unknown[],
): Step {
  return (values) =>
    values.flatMap((value) => {
      if (value === null) return [];
      if (!Array.isArray(value)) throw new PathFailure("there is no list");
      return items(value);
    });
}

/** Index from the start of a list, which must not be above a limit. */
function bounded(
  { length }: readonly unknown[],
  index: number,
  most: number,
): number {
  const position = index < 0 ? length + index : index;
  if (position >= 0 && position <= most) return position;
  throw new PathFailure("the index is out of range");
}

/** Pattern of a filter condition up to the closing parenthesis outside of quotes. */
const CONDITION_REGEXP = /(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^)"'])*/y;

const COMPARISON_REGEXP = /^([^!<>=]+)([!<>=]+)(.+)$/s;

function readFilter(reader: Reader): Step {
  const condition = reader.match(CONDITION_REGEXP);
  if (!reader.take(")]")) throw reader.error("a filter is not closed");
  const parts = COMPARISON_REGEXP.exec(condition);
  const left = operand(parts?.[1] ?? condition);
  const right = parts && operand(parts[3] ?? "");
  const holds = (item: unknown): boolean => {
    if (!right) return exists(left, item);
    const [one, other] = [left, right].map((path) => single(path([item])));
    return one !== undefined && other !== undefined &&
      compare(one, parts?.[2] ?? "==", other);
  };
  return (values) =>
    values.flatMap((value) => {
      if (!Array.isArray(value)) throw new PathFailure("there is no list");
      return value.filter(holds);
    });
}

function exists(path: Step, item: unknown): boolean {
  try {
    return path([item]).length > 0;
  } catch (error) {
    // Go counts what it had found before it failed.
    if (error instanceof PathFailure) return true;
    throw error;
  }
}

/** Value of an operand; undefined if it has no value. */
function single(values: readonly unknown[]): unknown {
  if (values.length <= 1) return values[0];
  throw new PathFailure("one value can be compared at a time");
}

/** Operand of a condition: a literal, or a path relative to the item. */
function operand(text: string): Step {
  const trimmed = text.trim();
  const quoted = /^(["'])(.*)\1$/s.exec(trimmed);
  if (quoted) {
    const literal = (quoted[2] ?? "").replace(/\\(.)/g, "$1");
    return () => [literal];
  }
  if (trimmed === "true" || trimmed === "false") {
    return () => [trimmed === "true"];
  }
  if (/^[+-]?\d+(?:\.\d*)?$/.test(trimmed)) return () => [literalOf(trimmed)];
  return compileSteps(trimmed);
}

/** Number of a literal; a float is one even if it is whole. */
function literalOf(text: string): number | bigint | WrittenFloat {
  if (text.includes(".")) return Symbol(text) as WrittenFloat;
  const number = Number(text);
  return isInteger(number) ? number : BigInt(text.replace("+", ""));
}

/** Kind of a value that can be compared, as Go has them; undefined for others. */
function kindOf(value: unknown): string | undefined {
  if (isFloat(value)) return "float";
  if (typeof value === "bigint" || typeof value === "number") {
    return isInteger(value) ? "integer" : "float";
  }
  return typeof value === "string" || typeof value === "boolean"
    ? typeof value
    : undefined;
}

type Comparable = string | number | bigint;

function compare(left: unknown, operator: string, right: unknown): boolean {
  const kind = kindOf(left);
  if (kind === undefined || kind !== kindOf(right)) {
    throw new PathFailure("values of different types cannot be compared");
  }
  const [a, b] = [left, right].map((value) =>
    (isFloat(value) ? Number(value.description) : value) as Comparable
  ) as [Comparable, Comparable];
  if (operator === "==") return a === b;
  if (operator === "!=") return a !== b;
  if (kind === "boolean") throw new PathFailure("truth values have no order");
  switch (operator) {
    case "<":
      return a < b;
    case "<=":
      return a <= b;
    case ">":
      return a > b;
    case ">=":
      return a >= b;
    default:
      throw new PathFailure(`${operator} is no operator`);
  }
}
