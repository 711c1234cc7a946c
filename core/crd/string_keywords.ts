import type { JsonSchema } from "./json_schema.ts";
import {
  inexpressible,
  type SchemaContext,
  type SchemaDraft,
} from "./schema_context.ts";

/** The formats that the API server checks; it lets others pass, with a warning. */
const SERVER_FORMATS: ReadonlySet<string> = new Set([
  "bsonobjectid",
  "byte",
  "cidr",
  "creditcard",
  "date",
  "date-time",
  "datetime",
  "duration",
  "email",
  "hexcolor",
  "hostname",
  "ipv4",
  "ipv6",
  "isbn",
  "isbn10",
  "isbn13",
  "mac",
  "password",
  "rgbcolor",
  "ssn",
  "uri",
  "uuid",
  "uuid3",
  "uuid4",
  "uuid5",
]);

/**
 * Formats that the server checks as strictly as the pattern which a library
 * writes beside them, so that the long pattern can go.
 */
const EXACT_FORMATS: ReadonlySet<string> = new Set(["date", "ipv4", "ipv6"]);

/**
 * What the server's format refuses and a library may take under the same name:
 * times without an offset or seconds, and durations of ISO 8601 (the server's
 * are Go's).
 */
const NOT_ON_SERVER: Readonly<Record<string, readonly string[]>> = {
  "date-time": [
    "2024-01-31T12:34:56",
    "2024-01-31T12:34",
    "2024-01-31T12:34Z",
  ],
  duration: ["PT1H"],
};

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
    if (!takesMore(format, pattern)) draft.format = format;
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

/** Whether a pattern takes what the server's format of that name refuses. */
function takesMore(format: string, pattern: unknown): boolean {
  if (typeof pattern !== "string") return false;
  const regexp = new RegExp(pattern);
  return NOT_ON_SERVER[format]?.some((text) => regexp.test(text)) ?? false;
}
