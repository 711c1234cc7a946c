import type { JsonSchema } from "./json_schema.ts";

/** A structural schema under construction. */
export interface SchemaDraft {
  [keyword: string]: unknown;
}

/** Place in a document during the conversion. */
export interface SchemaContext {
  /** Path such as `spec.rules[].host`: `[]` for items, `*` for map values. */
  readonly path: string;
  /** Document that references are resolved in. */
  readonly root: JsonSchema;
  /** References that lead to this place; a repeated one is a recursion. */
  readonly references: readonly string[];
  /**
   * References that were merged into intersections above this place. They may be
   * used again, a limited number of times.
   */
  readonly merged?: readonly string[] | undefined;
  /** Paths of the schemas with checks in code, which the conversion adds. */
  readonly checkedInCode?: Set<string> | undefined;
}

/** Maximum length of a schema in an error message. */
const LONGEST_RECEIVED = 160;

/** Error for a schema that cannot be expressed as a structural schema. */
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

/** JSON type of a value. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}
