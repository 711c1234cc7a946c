import { isJsonObject, jsonEquals } from "../patch/json_value.ts";
import { followReference, type JsonSchema } from "./json_schema.ts";
import {
  inexpressible,
  type SchemaContext,
  type SchemaDraft,
} from "./schema_context.ts";

/** Functions that choose the stricter of two bounds, by keyword. */
const BOUNDS: Readonly<Record<string, (a: number, b: number) => number>> = {
  minimum: Math.max,
  minLength: Math.max,
  minItems: Math.max,
  minProperties: Math.max,
  maximum: Math.min,
  maxLength: Math.min,
  maxItems: Math.min,
  maxProperties: Math.min,
};

/** Descriptive keywords; a merge keeps the outer value. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "example",
  "format",
]);

/** Node that results from merging several nodes. */
export interface Intersection {
  readonly node: JsonSchema;
  /** Patterns in addition to the node's own pattern. */
  readonly patterns: readonly string[];
  /** References that were resolved for the merge. */
  readonly references: readonly string[];
}

/** Maximum number of merges of one definition on the path to a node. */
const MOST_MERGED = 8;

/**
 * Merges a node with the members of its `allOf`.
 *
 * @throws {TypeError} If two members contradict each other, or cannot be merged
 * into one node.
 */
export function intersect(
  node: JsonSchema,
  context: SchemaContext,
): Intersection {
  const { allOf, ...own } = node;
  const patterns: string[] = [];
  const references: string[] = [];
  let merged: SchemaDraft = { ...own };
  for (const member of allOf as readonly JsonSchema[]) {
    const resolved = resolve(member, context);
    const inner = Array.isArray(resolved.node.allOf)
      ? intersect(resolved.node, resolved.context)
      : { node: resolved.node, patterns: [], references: [] };
    patterns.push(...inner.patterns);
    const { length } = context.references;
    references.push(...resolved.context.references.slice(length));
    references.push(...inner.references);
    merged = mergeNodes(merged, inner.node, { context, patterns });
  }
  return { node: merged, patterns: [...new Set(patterns)], references };
}

interface Resolved {
  readonly node: JsonSchema;
  /** Place of the node, with the references that lead to it. */
  readonly context: SchemaContext;
}

function resolve(member: JsonSchema, context: SchemaContext): Resolved {
  const reference = member.$ref;
  if (typeof reference !== "string") return { node: member, context };
  const { merged = [] } = context;
  if (
    context.references.includes(reference) ||
    merged.filter((one) => one === reference).length >= MOST_MERGED
  ) {
    throw inexpressible(context, "it refers to itself", reference);
  }
  const target = followReference(context.root, reference);
  if (target === undefined) {
    throw inexpressible(context, "there is no such definition", reference);
  }
  return resolve(target, {
    ...context,
    references: [...context.references, reference],
  });
}

interface MergeState {
  readonly context: SchemaContext;
  readonly patterns: string[];
}

function mergeNodes(
  into: SchemaDraft,
  from: JsonSchema,
  state: MergeState,
): SchemaDraft {
  const merged: SchemaDraft = { ...into };
  for (const [keyword, value] of Object.entries(from)) {
    const present = merged[keyword];
    if (present === undefined) merged[keyword] = value;
    else if (!jsonEquals(present, value)) {
      mergeKeyword(merged, keyword, value, state);
    }
  }
  return merged;
}

function mergeKeyword(
  merged: SchemaDraft,
  keyword: string,
  value: unknown,
  { context, patterns }: MergeState,
): void {
  const present = merged[keyword];
  const bound = BOUNDS[keyword];
  if (ANNOTATIONS.has(keyword)) return;
  if (bound && typeof present === "number" && typeof value === "number") {
    merged[keyword] = bound(present, value);
  } else if (keyword === "pattern") {
    patterns.push(String(value));
  } else if (keyword === "required") {
    merged.required = [
      ...new Set([...present as string[], ...value as string[]]),
    ];
  } else if (keyword === "enum") {
    merged.enum = (present as unknown[]).filter((one) =>
      (value as unknown[]).includes(one)
    );
  } else if (
    keyword === "properties" && isJsonObject(present) && isJsonObject(value)
  ) {
    merged.properties = mergeProperties(present, value);
  } else if (keyword === "additionalProperties" && (!present || !value)) {
    merged.additionalProperties = false;
  } else {
    const why = `an intersection gives it two values of '${keyword}'`;
    throw inexpressible(context, why, [present, value]);
  }
}

function mergeProperties(
  into: Record<string, unknown>,
  from: Record<string, unknown>,
): Record<string, unknown> {
  const merged = { ...into };
  for (const [name, property] of Object.entries(from)) {
    merged[name] = Object.hasOwn(merged, name)
      ? { allOf: [merged[name], property] }
      : property;
  }
  return merged;
}
