/** Problem of an expression, with its offset in the source. */
export interface Problem {
  readonly at: number;
  readonly message: string;
}

/** Maximum number of reported problems of an expression. */
const MAX_PROBLEMS = 100;

/** Maximum length of a source line that is shown. */
const MAX_LINE = 16_384;

/**
 * Compile errors in cel-go's format, in the order of the source: position, reason,
 * and the source line with a mark below.
 */
export function problemText(
  problems: readonly Problem[],
  source: string,
): string {
  const shown = problems.slice(0, MAX_PROBLEMS)
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, message }) => located(source, at, message));
  const more = problems.length - shown.length;
  if (more > 0) shown.push(`${more} more errors were truncated`);
  return shown.join("\n");
}

function located(source: string, at: number, message: string): string {
  if (at < 0) return `ERROR: <input>:-1:0: ${message}`;
  // An empty source has no first line.
  if (source === "") return `ERROR: <input>:1:0: ${message}`;
  const before = source.slice(0, at).split("\n");
  const column = [...before.at(-1) ?? ""].length;
  const head = `ERROR: <input>:${before.length}:${column + 1}: ${message}`;
  const line = (source.split("\n")[before.length - 1] ?? "")
    .replaceAll("\t", " ");
  if (line.length > MAX_LINE) return head;
  const characters = [...line];
  const marks = characters.slice(0, column)
    .map((one) => isWide(one) ? "\uff0e" : ".").join("");
  const mark = isWide(characters[column] ?? "") ? "\uff3e" : "^";
  return `${head}\n | ${line}\n | ${marks}${mark}`;
}

function isWide(character: string): boolean {
  return (character.codePointAt(0) ?? 0) > 127;
}

/** Error of an evaluation, which is a value that operators can absorb. */
export class CelError {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

/** Error of a CEL function, with cel-go's message. */
export class CelFailure extends Error {
  override readonly name = "CelFailure";
}

/** Error of an evaluation that costs too much, which no operator absorbs. */
export class CostExceeded extends Error {
  override readonly name = "CostExceeded";

  constructor() {
    super("operation cancelled: actual cost limit exceeded");
  }
}

/** Error of values that no overload takes. */
export const NO_SUCH_OVERLOAD: CelError = new CelError("no such overload");
