/** Properties of errors of the CEL library, in addition to the message. */
interface CelFailureDetails {
  readonly code?: string;
  readonly summary?: string;
  readonly range?: { readonly start: number };
  readonly node?: { readonly op?: string; readonly args?: unknown };
}

/** Error in an expression, with its offset in the source. */
export interface CompileProblem {
  readonly why: string;
  readonly start: number;
}

/**
 * Error of the CEL library with cel-go's message.
 *
 * @param isFunction Whether a function of the given name exists.
 */
export function compileProblem(
  error: unknown,
  source: string,
  isFunction: (name: string) => boolean,
): CompileProblem {
  const details = (error ?? {}) as CelFailureDetails;
  return {
    start: errorOffset(details, source),
    why: syntaxProblem(details, source) ?? reason(details, isFunction) ??
      String(error),
  };
}

/** Maximum number of reported errors of an expression. */
const MAX_PROBLEMS = 100;

/**
 * Compile errors in cel-go's format, in the order of the source: position, reason,
 * and the source line with a mark below.
 */
export function compileErrorText(
  problems: readonly CompileProblem[],
  source: string,
): string {
  const texts = problems.toSorted((a, b) => a.start - b.start)
    .map(({ start, why }) => locatedText(source, start, why));
  return [...new Set(texts)].slice(0, MAX_PROBLEMS).join("\n");
}

/** Tokens with which an operand begins, in ANTLR's order. */
const OPERANDS =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

const TOKENS: Readonly<Record<string, string>> = {
  RPAREN: "')'",
  RBRACKET: "']'",
  RBRACE: "'}'",
  COLON: "':'",
  IDENTIFIER: "IDENTIFIER",
};

/** Problem of an expression that cannot be parsed, with the message of cel-go's parser. */
function syntaxProblem(
  { code = "", summary = "", range }: CelFailureDetails,
  source: string,
): string | undefined {
  const rest = source.slice(range?.start ?? 0);
  const found = rest === "" ? "<EOF>" : /^\w+|^./.exec(rest)?.[0] ?? "";
  switch (code) {
    case "unexpected_token":
      return `Syntax error: mismatched input '${found}' expecting ${OPERANDS}`;
    case "unexpected_character":
      // A character of no token, or a token after the end of the expression.
      return /^Unexpected character: '/.test(summary)
        ? `Syntax error: ${
          /^\S+$/.test(rest) ? "extraneous" : "mismatched"
        } input '${found}' expecting <EOF>`
        : `Syntax error: token recognition error at: '${
          rest.slice(0, /^[=&|]/.test(rest) ? 2 : 1)
        }'`;
    case "unterminated_string":
      return `Syntax error: token recognition error at: '${rest}'`;
  }
  const expected = /^Expected (\w+), got/.exec(summary)?.[1];
  if (expected === undefined) return undefined;
  const token = TOKENS[expected] ?? expected;
  return expected === "IDENTIFIER"
    ? `Syntax error: mismatched input '${found}' expecting ${token}`
    : `Syntax error: missing ${token} at '${found}'`;
}

/** Error text with position, reason, and the source line with a mark below. */
function locatedText(source: string, start: number, why: string): string {
  const before = source.slice(0, Math.max(start, 0)).split("\n");
  const line = before.length;
  const column = before.at(-1)?.length ?? 0;
  const text = source.split("\n")[line - 1] ?? "";
  return `ERROR: <input>:${line}:${column + 1}: ${why}\n | ${text}\n | ${
    ".".repeat(column)
  }^`;
}

/**
 * Offset of an error as cel-go reports it: the dot of a selection, the operator
 * between its operands, the parenthesis of a call. The CEL library reports the
 * start of the expression.
 */
function errorOffset(
  { code, range, node }: CelFailureDetails,
  source: string,
): number {
  const start = range?.start ?? 0;
  if (code === "no_such_key" || code === "cannot_index_type") return start - 1;
  const isOperator = code === "no_such_overload" || node?.op === "[]" &&
      code === "invalid_macro_argument";
  if (isOperator && Array.isArray(node?.args)) {
    const [left] = node.args as readonly { readonly end?: number }[];
    const end = left?.end ?? start;
    return end + source.slice(end).search(/\S/);
  }
  if (code === "invalid_comprehension_range" && node?.op === ".") {
    return start - 1;
  }
  const call = node?.op === "rcall" || node?.op === "call";
  if (
    code === "no_matching_overload" ||
    (code === "invalid_comprehension_range" && call)
  ) {
    const parenthesis = source.indexOf("(", receiverOf(node)?.end ?? start);
    return parenthesis < 0 ? start : parenthesis;
  }
  return start;
}

function reason(
  { code = "", summary = "", node }: CelFailureDetails,
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
      const [, sign, operand] = /: ([-!])(\S+)$/.exec(summary) ?? [];
      if (sign) return noOverload(`${sign}_`, `(${celType(operand)})`);
      const parts = /: (\S.*?) ([=!<>+\-*/%]+|in) (.+)$/.exec(summary);
      return parts
        ? noOverload(
          parts[2] === "in" ? "@in" : `_${parts[2]}_`,
          `(${celType(parts[1])}, ${celType(parts[3])})`,
        )
        : summary;
    }
    case "no_matching_overload": {
      const parts = /'(?:(.*)\.)?(@?\w+)\((.*)\)'$/.exec(summary);
      if (!parts) return summary;
      const [, receiver, name = "", args] = parts;
      if (!name.startsWith("@") && !isFunction(name)) return undeclared(name);
      const space = /^(\w+)Namespace$/.exec(receiver ?? "")?.[1];
      if (space !== undefined) {
        return noOverload(
          `${space.toLowerCase()}.${name}`,
          `(${celType(args)})`,
        );
      }
      const before = receiver === undefined
        ? ""
        : `${celType(receiverOf(node)?.checkedType?.name ?? receiver)}.`;
      return noOverload(name, `${before}(${celType(args)})`);
    }
    case "cannot_index_type":
      return `type '${
        celType(/'(.*)'$/.exec(summary)?.[1])
      }' does not support field selection`;
    case "invalid_macro_argument":
      return summary.replace(
        "has() invalid argument",
        "invalid argument to has() macro",
      );
    case "invalid_comprehension_range":
      return celType(
        summary.replace("Expression", "expression").replace(/\.$/, ""),
      );
    default:
      return summary.replace(/^List elements must have the same type, /, "");
  }
}

/** Receiver of a method, with its type. */
function receiverOf(node: CelFailureDetails["node"]): {
  readonly end: number;
  readonly checkedType?: { readonly name: string };
} | undefined {
  if (node?.op !== "rcall") return undefined;
  return (node.args as readonly [string, ReturnType<typeof receiverOf>])[1];
}

function undeclared(name: string): string {
  return `undeclared reference to '${name}' (in container '')`;
}

function noOverload(name: string, types: string): string {
  return `found no matching overload for '${name}' applied to '${types}'`;
}

/** Type name in CEL's notation: `list(int)` for `list<int>`. */
function celType(name = ""): string {
  return name.replaceAll("optional<", "optional_type<")
    .replaceAll("<", "(").replaceAll(">", ")")
    .replace(/\bObject\d+\b/g, "object");
}

/** Evaluation error with cel-go's message. */
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

/** Whether the error means that no overload matches the types of the values. */
export function isNoSuchOverload(error: unknown): boolean {
  const { code = "" } = (error ?? {}) as CelFailureDetails;
  return code === "no_such_overload" || code === "no_matching_overload";
}
