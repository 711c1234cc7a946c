/**
 * A number as Go prints it: an exponent only from 1e21 on and below 0.0001, of
 * two digits at least.
 */
export function goNumber(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && size < 1e-4) {
    return value.toExponential().replace(/e-(\d)$/, "e-0$1");
  }
  return String(value);
}

/** A text in double quotes with Go's escapes. */
export function goQuote(text: string): string {
  return JSON.stringify(text).replaceAll("\\u0007", "\\a")
    .replaceAll("\\u000b", "\\v").replace(/\\u00([01])(.)/g, "\\x$1$2");
}

/**
 * A piece of JSON as Go's `%#v` prints the tree that it decodes into; messages
 * of kube-apiserver show values so.
 */
export function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return "interface {}(nil)";
  if (typeof value === "string") return goQuote(value);
  if (typeof value === "number") return goNumber(value);
  if (Array.isArray(value)) {
    return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  }
  if (typeof value === "object") {
    const entries = Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1);
    return `map[string]interface {}{${
      entries.map(([key, one]) => `${goQuote(key)}:${goSyntax(one)}`).join(", ")
    }}`;
  }
  return String(value);
}

/** A list of texts as Go prints it. */
export function goStrings(texts: readonly string[]): string {
  return `[]string{${texts.map(goQuote).join(", ")}}`;
}

/** A value as the message of a field error shows it. */
export function goShown(value: unknown): string {
  if (value === null || value === undefined) return '"null"';
  return goSyntax(value);
}
