import type { JsonSchema } from "./json_schema.ts";
import {
  inexpressible,
  type SchemaContext,
  type SchemaDraft,
} from "./schema_context.ts";

/** Formats that the API server validates; others cause a warning. */
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
 * Formats that the server validates as strictly as the patterns that libraries add
 * to them, so that these long patterns can be left out.
 */
const EXACT_FORMATS: ReadonlySet<string> = new Set(["date", "ipv4", "ipv6"]);

/**
 * Sample values that the server refuses for a format but a library may allow:
 * times without an offset or seconds, and durations of ISO 8601 (those of the
 * server are Go durations).
 */
const NOT_ON_SERVER: Readonly<Record<string, readonly string[]>> = {
  "date-time": ["2024-01-31T12:34:56", "2024-01-31T12:34", "2024-01-31T12:34Z"],
  duration: ["PT1H"],
};

/** Look-around and back references, which Go's regular expressions lack. */
const NOT_IN_GO_REGEXP = /\(\?<?[=!]|\\[1-9]|\\k</;

/**
 * Keywords of a string in a structural schema.
 *
 * @throws {TypeError} If the pattern uses syntax that Go does not support.
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

/** Characters by their code in a pattern; and any other escape, to pass over it. */
const CODES =
  /\\u(d[89ab][\da-f]{2})\\u(d[c-f][\da-f]{2})|\\u\{([\da-f]+)\}|\\u([\da-f]{4})|\\[^]/gi;

/**
 * Checks that the server supports a pattern, and returns it in its form: Go has
 * `\x{fc}` for the `\u00fc` of JavaScript.
 */
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
  return pattern.replaceAll(
    CODES,
    (all, high?: string, low?: string, long?: string, short?: string) => {
      const code = high === undefined
        ? long ?? short
        : String.fromCharCode(Number(`0x${high}`), Number(`0x${low}`))
          .codePointAt(0)?.toString(16);
      return code === undefined ? all : `\\x{${code}}`;
    },
  );
}

/** Pattern with flags in the form of Go, which Node has only from version 23. */
const WITH_FLAGS = /^\(\?([ims]+):([^]*)\)$/;

/** Whether a pattern allows values that the format of the server refuses. */
function takesMore(format: string, pattern: unknown): boolean {
  if (typeof pattern !== "string") return false;
  const [, flags, source = pattern] = WITH_FLAGS.exec(pattern) ?? [];
  const regexp = new RegExp(source, flags);
  return NOT_ON_SERVER[format]?.some((text) => regexp.test(text)) ?? false;
}
