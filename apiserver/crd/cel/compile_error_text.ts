/** What errors of the library tell beside their message. */
interface CelFailureDetails {
  readonly code?: string;
  readonly summary?: string;
  readonly range?: { readonly start: number };
  readonly node?: { readonly args?: unknown };
}

/**
 * Why an expression does not compile, as cel-go writes it: the place, the
 * reason, and the line with a mark below.
 *
 * @param isFunction Whether a name is that of a function.
 */
export function compileErrorText(
  error: unknown,
  source: string,
  isFunction: (name: string) => boolean,
): string {
  const details = (error ?? {}) as CelFailureDetails;
  const why = reason(details, isFunction) ?? String(error);
  const start = placeOf(details, source);
  return placedText(source, start, why);
}

/** A reason, where it is, and the line with a mark below. */
export function placedText(
  source: string,
  start: number,
  why: string,
): string {
  const before = source.slice(0, Math.max(start, 0)).split("\n");
  const line = before.length;
  const column = before.at(-1)?.length ?? 0;
  const text = source.split("\n")[line - 1] ?? "";
  return `ERROR: <input>:${line}:${column + 1}: ${why}\n | ${text}\n | ${
    ".".repeat(column)
  }^`;
}

/**
 * cel-go points at the dot of a selection, at an operator between its operands,
 * and at the parenthesis of a call; the library at where each begins.
 */
function placeOf(
  { code, range, node }: CelFailureDetails,
  source: string,
): number {
  const start = range?.start ?? 0;
  if (code === "no_such_key") return start - 1;
  if (code === "no_such_overload" && Array.isArray(node?.args)) {
    const [left] = node.args as readonly { readonly end?: number }[];
    const end = left?.end ?? start;
    return end + source.slice(end).search(/\S/);
  }
  if (code === "no_matching_overload") {
    const name = /^\s*(?:[\w.]*\w)?/.exec(source.slice(start))?.[0] ?? "";
    const parenthesis = source.indexOf("(", start + name.length);
    return parenthesis < 0 ? start : parenthesis;
  }
  return start;
}

function reason(
  { code = "", summary = "" }: CelFailureDetails,
  isFunction: (name: string) => boolean,
): string | undefined {
  const last = summary.slice(summary.lastIndexOf(": ") + 2);
  switch (code) {
    case "":
      return undefined;
    case "no_such_key":
      return `undefined field '${last}'`;
    case "unknown_variable":
      return undeclared(last);
    case "no_such_overload": {
      const parts = /: (\S.*?) ([=!<>+\-*/%]+|in) (.+)$/.exec(summary);
      return parts
        ? noOverload(
          parts[2] === "in" ? "@in" : `_${parts[2]}_`,
          `(${celType(parts[1])}, ${celType(parts[3])})`,
        )
        : summary;
    }
    case "no_matching_overload": {
      const parts = /'(?:(.*)\.)?(\w+)\((.*)\)'$/.exec(summary);
      if (!parts) return summary;
      const [, receiver, name = "", args] = parts;
      if (!isFunction(name)) return undeclared(name);
      const before = receiver === undefined ? "" : `${celType(receiver)}.`;
      return noOverload(name, `${before}(${celType(args)})`);
    }
    default:
      return summary.replace(/^List elements must have the same type, /, "");
  }
}

function undeclared(name: string): string {
  return `undeclared reference to '${name}' (in container '')`;
}

function noOverload(name: string, types: string): string {
  return `found no matching overload for '${name}' applied to '${types}'`;
}

/** `list<int>` as CEL writes it: `list(int)`. */
function celType(name = ""): string {
  return name.replaceAll("<", "(").replaceAll(">", ")")
    .replace(/\bObject\d+\b/g, "object");
}

/** Why an expression failed when it ran, as cel-go says it. */
export function evaluationErrorText(error: unknown): string {
  const { code = "", summary } = (error ?? {}) as CelFailureDetails;
  const text = summary ??
    (error instanceof Error ? error.message : String(error));
  switch (code) {
    case "no_such_key":
      return text.replace("No such key", "no such key");
    case "numeric_overflow":
      return "integer overflow";
    case "int_conversion_error":
      return "type conversion error from 'string' to 'int'";
    case "double_conversion_error":
      return "type conversion error from 'string' to 'double'";
  }
  const index = /index out of bounds, index (-?\d+)/.exec(text);
  return index ? `index out of bounds: ${index[1]}` : text;
}

/** Whether an error means that a value had a type no overload takes. */
export function isNoSuchOverload(error: unknown): boolean {
  const { code = "" } = (error ?? {}) as CelFailureDetails;
  return code === "no_such_overload" || code === "no_matching_overload";
}
