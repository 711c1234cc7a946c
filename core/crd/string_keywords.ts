import type { JsonSchema } from "./json_schema.ts";
import {
  inexpressible,
  type SchemaContext,
  type SchemaDraft,
} from "./schema_context.ts";

/**
 * The formats that the API server checks as JSON Schema means them. It knows
 * some by the same name with another meaning (`duration` is Go's there), and
 * lets anything pass under a name it does not know.
 */
const SERVER_FORMATS: ReadonlySet<string> = new Set([
  "byte",
  "date",
  "date-time",
  "email",
  "hostname",
  "ipv4",
  "ipv6",
  "mac",
  "password",
  "uri",
  "uuid",
]);

/**
 * Formats that the server checks as strictly as the pattern which a library
 * writes beside them, so that the long pattern can go.
 */
const EXACT_FORMATS: ReadonlySet<string> = new Set(["date", "ipv4", "ipv6"]);

/** Date-times without an offset, which the server's format refuses. */
const LOCAL_TIMES: readonly string[] = [
  "2024-01-31T12:34:56",
  "2024-01-31T12:34",
  "2024-01-31T12:34Z",
];

/** Look-around and back references: Go's regular expressions have neither. */
const NOT_IN_GO_REGEXP = /\(\?<?[=!]|\\[1-9]|\\k</;

/**
 * The keywords of a string that a structural schema takes over.
 *
 * @throws {TypeError} If the pattern uses what Go's regular expressions lack.
 */
export function stringKeywords(
  node: JsonSchema,
  context: SchemaContext,
): SchemaDraft {
  const draft: SchemaDraft = {};
  const { minLength, maxLength, pattern, format } = node;
  if (minLength !== undefined) draft.minLength = minLength;
  if (maxLength !== undefined) draft.maxLength = maxLength;
  if (typeof format === "string" && SERVER_FORMATS.has(format)) {
    if (!takesLocalTimes(format, pattern)) draft.format = format;
  }
  const exact = draft.format === "date-time" ||
    EXACT_FORMATS.has(String(draft.format));
  if (typeof pattern === "string" && !exact) {
    draft.pattern = checkedPattern(pattern, context);
  }
  return draft;
}

/** Gives a pattern back if the server can read it. */
export function checkedPattern(
  pattern: string,
  context: SchemaContext,
): string {
  if (NOT_IN_GO_REGEXP.test(pattern.replaceAll("\\\\", ""))) {
    throw inexpressible(
      context,
      "the API server's regular expressions have no look-around and no back references; give another by .meta({ pattern })",
      pattern,
    );
  }
  return pattern;
}

function takesLocalTimes(format: string, pattern: unknown): boolean {
  if (format !== "date-time" || typeof pattern !== "string") return false;
  const regexp = new RegExp(pattern);
  return LOCAL_TIMES.some((time) => regexp.test(time));
}
