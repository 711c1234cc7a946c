/** What errors of the library tell beside their message. */
interface CelFailure {
  readonly code?: string;
  readonly summary?: string;
  readonly range?: { readonly start: number };
}

/**
 * Why an expression does not compile, as cel-go writes it: the place, the
 * reason, and the line with a mark below.
 */
export function compileErrorText(error: unknown, source: string): string {
  const { code = "", summary, range } = (error ?? {}) as CelFailure;
  const why = reason(code, summary ?? String(error));
  // A selection is reported where its dot is.
  const start = (range?.start ?? 0) - (code === "no_such_key" ? 1 : 0);
  const before = source.slice(0, Math.max(start, 0)).split("\n");
  const line = before.length;
  const column = before.at(-1)?.length ?? 0;
  const text = source.split("\n")[line - 1] ?? "";
  return `ERROR: <input>:${line}:${column + 1}: ${why}\n | ${text}\n | ${
    ".".repeat(column)
  }^`;
}

function reason(code: string, summary: string): string {
  const last = summary.slice(summary.lastIndexOf(": ") + 2);
  switch (code) {
    case "no_such_key":
      return `undefined field '${last}'`;
    case "unknown_variable":
      return `undeclared reference to '${last}' (in container '')`;
    case "no_such_overload": {
      const parts = /: (\S.*?) ([=!<>+\-*/%]+|in) (.+)$/.exec(summary);
      return parts
        ? `found no matching overload for '${
          operatorName(parts[2])
        }' applied to '(${celType(parts[1])}, ${celType(parts[3])})'`
        : summary;
    }
    default:
      return summary;
  }
}

function operatorName(operator = ""): string {
  return operator === "in" ? "@in" : `_${operator}_`;
}

/** `list<int>` as CEL writes it: `list(int)`. */
function celType(name = ""): string {
  return name.replaceAll("<", "(").replaceAll(">", ")")
    .replace(/\bObject\d+\b/g, "object");
}

/** Why an expression failed when it ran, as cel-go says it. */
export function evaluationErrorText(error: unknown): string {
  const { code = "", summary } = (error ?? {}) as CelFailure;
  const text = summary ??
    (error instanceof Error ? error.message : String(error));
  if (code === "no_such_key") return text.replace("No such key", "no such key");
  const index = /index out of bounds, index (-?\d+)/.exec(text);
  return index ? `index out of bounds: ${index[1]}` : text;
}

/** Whether an error means that a value had a type no overload takes. */
export function isNoSuchOverload(error: unknown): boolean {
  const { code = "" } = (error ?? {}) as CelFailure;
  return code === "no_such_overload" || code === "no_matching_overload";
}
