import type { OpenApiSchema } from "../patch/schema.ts";
import {
  inexpressible,
  jsonTypeOf,
  type SchemaContext,
  type SchemaDraft,
} from "./schema_context.ts";

export type UnionKeyword = "anyOf" | "oneOf";

/** Keywords that are not allowed within `anyOf`, such as the type. */
const NOT_IN_BRANCH: ReadonlySet<string> = new Set([
  "type",
  "title",
  "description",
  "default",
  "nullable",
  "example",
  "externalDocs",
]);

/** Types of single values. */
const SCALARS: ReadonlySet<string> = new Set([
  "string",
  "integer",
  "number",
  "boolean",
]);

/**
 * Folds the branches of a union into one node of one type.
 *
 * @param branches The branches without null, as structural schemas.
 * @throws {TypeError} If no structural schema is equivalent.
 */
export function foldUnion(
  branches: readonly OpenApiSchema[],
  keyword: UnionKeyword,
  context: SchemaContext,
): SchemaDraft {
  const [first] = branches;
  if (first !== undefined && branches.length === 1) return { ...first };
  const values = enumOf(branches);
  const types = [...new Set(branches.map(typeWordOf))];
  const [type] = types;
  if (types.length === 1 && type !== undefined && SCALARS.has(type)) {
    if (values !== undefined) {
      const whole = type === "boolean" && values.length === 2;
      return whole ? { type } : { type, enum: values };
    }
    return sameType(type, branches, keyword);
  }
  if (types.every((word) => INT_OR_STRING.has(word))) {
    if (values !== undefined) {
      return { "x-kubernetes-int-or-string": true, enum: values };
    }
    return intOrString(branches, context);
  }
  throw inexpressible(context, hint(types), { [keyword]: branches });
}

const INT_OR_STRING: ReadonlySet<string> = new Set([
  "integer",
  "string",
  "int-or-string",
]);

function hint(types: readonly string[]): string {
  return types.length === 1 && types[0] === "object"
    ? "a union of objects has none; make it one object whose fields are optional, and constrain their combinations by CEL rules"
    : `a value must have one type, and this is one of ${types.join(", ")}`;
}

/** Type of a branch; an enum of whole numbers counts as an integer. */
function typeWordOf(branch: OpenApiSchema): string {
  if (branch["x-kubernetes-int-or-string"]) return "int-or-string";
  if (
    branch.type === "number" &&
    branch.enum?.every((value) => jsonTypeOf(value) === "integer")
  ) return "integer";
  return branch.type ?? "any";
}

/** Values of a union whose branches are all enums. */
function enumOf(
  branches: readonly OpenApiSchema[],
): readonly unknown[] | undefined {
  const lists = branches.map((branch) => branch.enum);
  return lists.every((list) => list !== undefined)
    ? [...new Set(lists.flat())]
    : undefined;
}

/** Union of one type; a branch without conditions allows the whole type. */
function sameType(
  type: string,
  branches: readonly OpenApiSchema[],
  keyword: UnionKeyword,
): SchemaDraft {
  const conditions = branches.map(conditionsOf);
  const free = conditions.some((condition) =>
    Object.keys(condition).length === 0
  );
  return free && keyword === "anyOf"
    ? { type }
    : { type, [keyword]: conditions };
}

function conditionsOf(branch: OpenApiSchema): SchemaDraft {
  return Object.fromEntries(
    Object.entries(branch).filter(([keyword]) => !NOT_IN_BRANCH.has(keyword)),
  );
}

/**
 * Union of integers and strings. Conditions on numbers do not apply to strings and
 * vice versa, so that both can be combined; a list of strings becomes a pattern.
 */
function intOrString(
  branches: readonly OpenApiSchema[],
  context: SchemaContext,
): SchemaDraft {
  const draft: SchemaDraft = {};
  for (const branch of branches) {
    const { enum: values, ...conditions } = conditionsOf(branch);
    if (Array.isArray(values)) {
      if (branch.type !== "string") {
        const why = "a union of listed integers and any string has none";
        throw inexpressible(context, why, branch);
      }
      conditions.pattern = patternOf(values);
    }
    for (const [keyword, value] of Object.entries(conditions)) {
      if (Object.hasOwn(draft, keyword) && draft[keyword] !== value) {
        const why = `two conditions of the kind ${keyword} meet`;
        throw inexpressible(context, why, branches);
      }
      draft[keyword] = value;
    }
  }
  draft["x-kubernetes-int-or-string"] = true;
  return draft;
}

function patternOf(values: readonly unknown[]): string {
  const escaped = values.map((value) =>
    String(value).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
  );
  return `^(?:${escaped.join("|")})$`;
}
