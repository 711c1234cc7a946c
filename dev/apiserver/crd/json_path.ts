import { isJsonObject } from "@coracle/operator/internal";
import { isInteger, isNumber } from "../exact_json.ts";

/** Step of a path, which maps found values to values in them. */
type Step = (values: readonly unknown[]) => unknown[];

/** Compiled JSONPath. */
export interface JsonPath {
  /** Finds the values at the path; missing keys yield no value. */
  find(object: unknown): unknown[];
}

/**
 * Compiles a JSONPath in kubectl's dialect, without the braces: fields, quoted
 * keys, indexes, slices, `*`, `..`, unions and filters, as in
 * `.status.conditions[?(@.type=="Ready")].status`.
 *
 * @throws {SyntaxError} If the text is not a valid JSONPath.
 */
export function compileJsonPath(text: string): JsonPath {
  const reader = new Reader(text);
  const steps: Step[] = [];
  while (!reader.done) steps.push(readStep(reader));
  return {
    find: (object) =>
      steps.reduce<unknown[]>((values, step) => step(values), [object]),
  };
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
  throw reader.error(`there is no step at ${reader.position}`);
}

function unescaped(name: string): string {
  return name.replaceAll("\\", "");
}

/** Step into a field; the empty name selects the value itself. */
function field(name: string): Step {
  return (values) =>
    values.flatMap((value) =>
      name === ""
        ? [value]
        : isJsonObject(value) && Object.hasOwn(value, name)
        ? [value[name]]
        : []
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
  if (quoted) return field(quoted[1] ?? "");
  const slice = /^(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$/.exec(part);
  if (!slice || part === "") throw reader.error(`[${part}] is no index`);
  if (!part.includes(":")) {
    const index = Number(part);
    return (values) =>
      values.flatMap((value) => Array.isArray(value) ? at(value, index) : []);
  }
  const [start, end, step] = slice.slice(1).map((bound) =>
    bound ? Number(bound) : undefined
  );
  return (values) =>
    values.flatMap((value) =>
      Array.isArray(value)
        ? value.slice(start, end).filter((_, i) => i % (step ?? 1) === 0)
        : []
    );
}

function at(list: readonly unknown[], index: number): unknown[] {
  const position = index < 0 ? list.length + index : index;
  return position in list ? [list[position]] : [];
}

/** Pattern of a filter condition up to the closing parenthesis outside of quotes. */
const CONDITION_REGEXP = /(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^)"'])*/y;

const COMPARISON_REGEXP = /^([^!<>=]+)(==|!=|<=|>=|<|>)(.+)$/s;

function readFilter(reader: Reader): Step {
  const condition = reader.match(CONDITION_REGEXP);
  if (!reader.take(")]")) throw reader.error("a filter is not closed");
  const parts = COMPARISON_REGEXP.exec(condition);
  const left = operand(parts?.[1] ?? condition);
  const right = parts && operand(parts[3] ?? "");
  const holds = (item: unknown): boolean => {
    const [first] = left(item);
    if (!right) return first !== undefined;
    const [second] = right(item);
    return first !== undefined && second !== undefined &&
      compare(first, parts?.[2] ?? "==", second);
  };
  return (values) =>
    values.flatMap((value) => Array.isArray(value) ? value.filter(holds) : []);
}

/** Operand of a condition: a literal, or a path relative to the item. */
function operand(text: string): (item: unknown) => unknown[] {
  const trimmed = text.trim();
  const quoted = /^(["'])(.*)\1$/s.exec(trimmed);
  if (quoted) {
    const literal = (quoted[2] ?? "").replace(/\\(.)/g, "$1");
    return () => [literal];
  }
  if (trimmed === "true" || trimmed === "false") {
    return () => [trimmed === "true"];
  }
  if (/^[+-]?\d+(?:\.\d+)?$/.test(trimmed)) {
    {
      const number = Number(trimmed);
      const isExact = trimmed.includes(".") || isInteger(number);
      return () => [isExact ? number : BigInt(trimmed.replace("+", ""))];
    }
  }
  const path = compileJsonPath(trimmed);
  return (item) => path.find(item);
}

function compare(left: unknown, operator: string, right: unknown): boolean {
  if (operator === "==") return left === right;
  if (operator === "!=") return left !== right;
  const ordered = (isNumber(left) && isNumber(right)) ||
    (typeof left === "string" && typeof right === "string");
  if (!ordered) return false;
  switch (operator) {
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    default:
      return left >= right;
  }
}
