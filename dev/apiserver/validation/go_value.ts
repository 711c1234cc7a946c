import { isJsonObject } from "@coracle/operator/internal";
import { isFloat, isInteger, isNumber, rawInteger } from "../exact_json.ts";

/** Number of JSON as Go prints it: an integer by its digits, others as floats. */
export function goNumber(value: number | bigint): string {
  return isInteger(value) ? String(value) : goFloat(value as number);
}

/**
 * Float as Go prints it: from 1e6 and below 0.0001 with an exponent of at least
 * two digits.
 */
export function goFloat(value: number): string {
  const text = value.toExponential();
  const exponent = Number(text.slice(text.indexOf("e") + 1));
  return exponent >= -4 && exponent < 6
    ? String(value)
    : text.replace(/e([-+])(\d)$/, "e$10$2");
}

/** Text in double quotes with Go's escapes, also of characters that do not print. */
export function goQuote(text: string): string {
  return JSON.stringify(text).replaceAll("\\u0007", "\\a")
    .replaceAll("\\u000b", "\\v").replace(/\\u00([01])(.)/g, "\\x$1$2")
    .replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, escaped);
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x80) return `\\x${hex.padStart(2, "0")}`;
  return code > 0xffff
    ? `\\U${hex.padStart(8, "0")}`
    : `\\u${hex.padStart(4, "0")}`;
}

/**
 * JSON value as Go's `%#v` prints it after decoding; used in messages of
 * kube-apiserver.
 */
export function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return "interface {}(nil)";
  if (typeof value === "string") return goQuote(value);
  if (isNumber(value)) return goNumber(value);
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

/**
 * JSON as Go's encoder writes it: maps sorted by name, and characters with a
 * meaning in HTML escaped.
 *
 * @param first Names of a struct that come first, in this order.
 */
export function goJson(value: unknown, first: readonly string[] = []): string {
  const rank = (name: string) => (first.indexOf(name) + 1) || Infinity;
  const sorted = (_: string, part: unknown) =>
    isJsonObject(part)
      ? Object.fromEntries(
        Object.entries(part).sort(([a], [b]) =>
          rank(a) - rank(b) || (a < b ? -1 : 1)
        ),
      )
      : rawInteger(part);
  return (JSON.stringify(value, sorted) ?? "null").replaceAll(
    /[<>&\u2028\u2029]/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Value as printed in messages of field errors. */
export function goShown(value: unknown): string {
  if (typeof value === "string") return goQuote(value);
  if (isFloat(value)) return goFloat(Number(value.description));
  return isNumber(value) ? goNumber(value) : goJson(value);
}

/** Name of the JSON type of a value in messages of Go's decoder. */
export function goJsonType(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (isNumber(value) || isFloat(value)) return "number";
  return typeof value === "boolean" ? "bool" : typeof value;
}

/** Formats a value like Go's `%v`, as in messages of kube-apiserver. */
export function goText(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (isJsonObject(value)) {
    const fields = Object.keys(value).sort()
      .map((name) => `${name}:${goText(value[name])}`);
    return `map[${fields.join(" ")}]`;
  }
  return isNumber(value) ? goNumber(value) : String(value);
}

/** Name of the Go type into which a JSON value is decoded. */
export function goTypeName(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (isJsonObject(value)) return "map[string]interface {}";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  return isInteger(value) ? "int64" : "float64";
}
