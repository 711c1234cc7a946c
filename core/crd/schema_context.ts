import type { JsonSchema } from "./json_schema.ts";

/** A structural schema under construction. */
export interface SchemaDraft {
  [keyword: string]: unknown;
}

/** Where in a document the conversion is. */
export interface SchemaContext {
  /** Such as `spec.rules[].host`; `[]` stands for items, `*` for map values. */
  readonly path: string;
  /** The whole document, for references. */
  readonly root: JsonSchema;
  /** The references that led here; meeting one again is recursion. */
  readonly references: readonly string[];
  /**
   * The definitions that intersections on the way were merged from. What is
   * within may use them again, but not without end.
   */
  readonly merged?: readonly string[] | undefined;
}

/** The longest piece of a schema that a message shows. */
const LONGEST_RECEIVED = 160;

/** The error that says that a place has no structural schema. */
export function inexpressible(
  context: SchemaContext,
  why: string,
  received: unknown,
): TypeError {
  const text = JSON.stringify(received) ?? String(received);
  return new TypeError(
    `Cannot write a structural schema for ${context.path}: ${why}: received ${
      text.length > LONGEST_RECEIVED
        ? `${text.slice(0, LONGEST_RECEIVED)}…`
        : text
    }`,
  );
}

/** The JSON type of a value. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

/** Whether two pieces of JSON say the same, whatever their key order. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonical(a) === canonical(b);
}

function canonical(value: unknown): string {
  return JSON.stringify(
    value,
    (_, inner: unknown) =>
      typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(
          Object.entries(inner).sort(([a], [b]) => a < b ? -1 : 1),
        )
        : inner,
  ) ?? "undefined";
}
