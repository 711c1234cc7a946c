import { isJsonObject } from "../patch/json_value.ts";
import type { OpenApiSchema } from "../patch/schema.ts";
import { intersect } from "./intersection.ts";
import {
  CHECKED_IN_CODE,
  followReference,
  INSTEAD,
  type JsonSchema,
  jsonSchemaOf,
  UNREPRESENTABLE,
} from "./json_schema.ts";
import {
  inexpressible,
  jsonTypeOf,
  type SchemaContext,
  type SchemaDraft,
} from "./schema_context.ts";
import type { StandardSchema } from "./standard_schema.ts";
import { checkedPattern, stringKeywords } from "./string_keywords.ts";
import { foldUnion, type UnionKeyword } from "./union_folding.ts";

/** Keywords with the same meaning in JSON Schema and structural schemas. */
const COPIED: readonly string[] = [
  "title",
  "description",
  "default",
  "example",
  "externalDocs",
];

/** Extensions of Kubernetes; any other extension is refused. */
const EXTENSIONS: ReadonlySet<string> = new Set([
  "x-kubernetes-embedded-resource",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-list-type",
  "x-kubernetes-map-type",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
]);

/** Bound that zod sets for every integer; left out of the result. */
const LARGEST_INTEGER = Number.MAX_SAFE_INTEGER;

/**
 * Converts a Standard Schema into a structural schema: the form of OpenAPI v3 in
 * a CustomResourceDefinition, where every value has one type. Other forms of JSON
 * Schema are converted where possible:
 *
 * - a union of literals becomes an `enum`, one with null `nullable`, and one of
 *   an integer and a string `x-kubernetes-int-or-string`;
 * - a record becomes `additionalProperties`, or fields if all its names are known;
 *   an object that allows others, and a value of any type, preserve unknown ones;
 * - references are resolved, and `x-kubernetes-*` keywords are kept.
 *
 * @param where The place of the schema for errors, such as `spec`.
 * @param checkedInCode Set to which the paths of the schemas with checks in code
 * are added, which no structural schema has.
 * @throws {TypeError} If a structural schema cannot express the schema, for
 * example a union of objects or of several types, a recursive type, a date or
 * another type that JSON lacks, a transformation, or a pattern that Go's regular
 * expressions do not support. The error names the path.
 */
export function structuralSchemaOf(
  schema: StandardSchema,
  where: string,
  checkedInCode?: Set<string>,
): OpenApiSchema {
  const root = jsonSchemaOf(schema, where);
  return convert(root, { path: where, root, references: [], checkedInCode });
}

/** Converts a node and its descendants. */
function convert(node: JsonSchema, context: SchemaContext): OpenApiSchema {
  if (node[CHECKED_IN_CODE] === true) context.checkedInCode?.add(context.path);
  if (typeof node.$ref === "string") {
    return convertReference(node, node.$ref, context);
  }
  if (Array.isArray(node.allOf)) return convertIntersection(node, context);
  const unrepresentable = node[UNREPRESENTABLE];
  if (typeof unrepresentable === "string") {
    const why = INSTEAD[unrepresentable] ?? "JSON has no such type";
    throw inexpressible(context, why, unrepresentable);
  }
  if (node.not !== undefined) {
    throw inexpressible(context, "a negation has no structural schema", node);
  }
  const draft: SchemaDraft = {};
  for (const keyword of COPIED) {
    if (node[keyword] !== undefined) draft[keyword] = node[keyword];
  }
  copyExtensions(node, draft, context);
  if (node.nullable === true) draft.nullable = true;
  const union = unionOf(node);
  if (draft["x-kubernetes-int-or-string"] === true) {
    Object.assign(draft, stringKeywords(node, context), numberKeywords(node));
  } else if (union === undefined) convertType(node, draft, context);
  else convertUnion(node, union, { draft, context });
  return allowNull(draft);
}

/**
 * Moves the `enum` of a nullable node into `allOf`: the API server compares
 * null with an `enum`, but not with the members of `allOf`.
 */
function allowNull(draft: SchemaDraft): OpenApiSchema {
  if (draft.nullable !== true || draft.enum === undefined) return draft;
  const { enum: values, ...rest } = draft;
  return { ...rest, allOf: [{ enum: values as unknown[] }] };
}

function convertIntersection(
  node: JsonSchema,
  context: SchemaContext,
): OpenApiSchema {
  const { node: whole, patterns, references } = intersect(node, context);
  const schema = convert(whole, {
    ...context,
    merged: [...context.merged ?? [], ...references],
  });
  if (patterns.length === 0) return schema;
  const others = patterns.map((pattern) => ({
    pattern: checkedPattern(pattern, context),
  }));
  return { ...schema, allOf: [...schema.allOf ?? [], ...others] };
}

/** Resolves a reference; keywords beside it are added to the target. */
function convertReference(
  node: JsonSchema,
  reference: string,
  context: SchemaContext,
): OpenApiSchema {
  if (context.references.includes(reference) || reference === "#") {
    throw inexpressible(
      context,
      "the type contains itself; end the recursion, or keep unknown fields with z.unknown()",
      reference,
    );
  }
  const target = followReference(context.root, reference);
  if (target === undefined) {
    throw inexpressible(context, "there is no such definition", reference);
  }
  const { $ref: _, ...siblings } = node;
  return convert({ ...target, ...siblings }, {
    ...context,
    references: [...context.references, reference],
  });
}

function copyExtensions(
  node: JsonSchema,
  draft: SchemaDraft,
  context: SchemaContext,
): void {
  for (const [keyword, value] of Object.entries(node)) {
    if (!keyword.startsWith("x-kubernetes-")) continue;
    if (!EXTENSIONS.has(keyword)) {
      throw inexpressible(context, "Kubernetes has no such extension", keyword);
    }
    draft[keyword] = value;
  }
}

interface Union {
  readonly keyword: UnionKeyword;
  readonly branches: readonly JsonSchema[];
}

/** Branches of a union in any form; undefined if the node is not a union. */
function unionOf(node: JsonSchema): Union | undefined {
  for (const keyword of ["anyOf", "oneOf"] as const) {
    const branches = node[keyword];
    if (Array.isArray(branches)) return { keyword, branches };
  }
  const types = Array.isArray(node.type)
    ? node.type as unknown[]
    : node.type === undefined
    ? [...new Set(literalsOf(node)?.map(jsonTypeOf))]
    : [];
  if (types.length < 2) return undefined;
  const { default: _, description: __, ...rest } = node;
  return {
    keyword: "anyOf",
    branches: types.map((type) => ({ ...rest, type })),
  };
}

function convertUnion(
  node: JsonSchema,
  { keyword, branches }: Union,
  { draft, context }: { draft: SchemaDraft; context: SchemaContext },
): void {
  const values = branches.filter((branch) => !isNull(branch));
  const folded = foldUnion(
    values.map((branch) => convert({ ...branch, nullable: false }, context)),
    keyword,
    context,
  );
  if (typeof node.type === "string") {
    const { [keyword]: _, enum: __, ...siblings } = node;
    convertType(siblings, draft, context);
  }
  Object.assign(draft, { ...folded, ...draft });
  if (branches.some((branch) => branch.nullable === true || isNull(branch))) {
    draft.nullable = true;
  }
}

/** Whether null is the only value of a node. */
function isNull(node: JsonSchema): boolean {
  return node.type === "null" ||
    literalsOf(node)?.every((value) => value === null) === true;
}

function literalsOf(node: JsonSchema): readonly unknown[] | undefined {
  if (Object.hasOwn(node, "const")) return [node.const];
  return Array.isArray(node.enum) ? node.enum : undefined;
}

/** Converts a node that is not a union. */
function convertType(
  node: JsonSchema,
  draft: SchemaDraft,
  context: SchemaContext,
): void {
  if (isNull(node)) {
    throw inexpressible(context, "null alone is not a type", node);
  }
  const type = typeOf(node);
  if (type === undefined) {
    draft.nullable = true;
    draft["x-kubernetes-preserve-unknown-fields"] = true;
    return;
  }
  draft.type = type;
  if (type === "object") convertObject(node, draft, context);
  else if (type === "array") convertArray(node, draft, context);
  else if (type === "string") {
    Object.assign(draft, stringKeywords(node, context));
  } else if (type !== "boolean") Object.assign(draft, numberKeywords(node));
  const values = literalsOf(node);
  if (values !== undefined) {
    draft.enum = values.filter((value) => value !== null);
    if (values.includes(null)) draft.nullable = true;
  }
}

/** JSON type of a node; undefined if any value is allowed. */
function typeOf(node: JsonSchema): string | undefined {
  const [literal] = literalsOf(node) ?? [];
  if (typeof node.type === "string") return node.type;
  if (literal !== undefined) return jsonTypeOf(literal);
  if (
    isJsonObject(node.properties) || node.additionalProperties !== undefined
  ) {
    return "object";
  }
  return node.items === undefined ? undefined : "array";
}

function numberKeywords(node: JsonSchema): SchemaDraft {
  const draft: SchemaDraft = {};
  const bounds = [
    ["minimum", "exclusiveMinimum", -LARGEST_INTEGER],
    ["maximum", "exclusiveMaximum", LARGEST_INTEGER],
  ] as const;
  for (const [keyword, exclusive, none] of bounds) {
    const bound = typeof node[exclusive] === "number"
      ? node[exclusive]
      : node[keyword];
    if (bound === undefined || bound === none) continue;
    draft[keyword] = bound;
    if (node[exclusive] !== undefined && node[exclusive] !== false) {
      draft[exclusive] = true;
    }
  }
  if (node.multipleOf !== undefined) draft.multipleOf = node.multipleOf;
  return draft;
}

function convertObject(
  node: JsonSchema,
  draft: SchemaDraft,
  context: SchemaContext,
): void {
  for (const keyword of ["minProperties", "maxProperties"]) {
    if (node[keyword] !== undefined) draft[keyword] = node[keyword];
  }
  if (node.patternProperties !== undefined) {
    throw inexpressible(context, "names have no pattern", node);
  }
  const properties = Object.entries(node.properties ?? {});
  if (properties.length > 0) {
    draft.properties = Object.fromEntries(
      properties.map(([name, property]) => [
        name,
        convert(property as JsonSchema, below(context, `.${name}`)),
      ]),
    );
  }
  if (Array.isArray(node.required) && node.required.length > 0) {
    draft.required = [...node.required];
  }
  convertOtherFields(node, draft, context);
}

/** Converts `additionalProperties`; unknown fields are dropped by default. */
function convertOtherFields(
  node: JsonSchema,
  draft: SchemaDraft,
  context: SchemaContext,
): void {
  const others = node.additionalProperties;
  if (others === undefined || others === false) return;
  const isAny = isJsonObject(others) && Object.keys(others).length === 0;
  if (others === true || isAny) {
    draft["x-kubernetes-preserve-unknown-fields"] = true;
  } else if (draft.properties === undefined) {
    draft.additionalProperties = convert(
      others as JsonSchema,
      below(context, ".*"),
    );
  } else {
    throw inexpressible(
      context,
      "an object with named fields cannot give the other fields a type",
      others,
    );
  }
}

function convertArray(
  node: JsonSchema,
  draft: SchemaDraft,
  context: SchemaContext,
): void {
  for (const keyword of ["minItems", "maxItems"]) {
    if (node[keyword] !== undefined) draft[keyword] = node[keyword];
  }
  if (node.prefixItems !== undefined || Array.isArray(node.items)) {
    throw inexpressible(
      context,
      "the items of a list have one type, so there are no tuples",
      node.prefixItems ?? node.items,
    );
  }
  const items = isJsonObject(node.items) ? node.items : {};
  draft.items = convert(items, below(context, "[]"));
  if (node.uniqueItems === true) draft["x-kubernetes-list-type"] ??= "set";
}

function below(context: SchemaContext, step: string): SchemaContext {
  return { ...context, path: `${context.path}${step}` };
}
