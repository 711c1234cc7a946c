import type { StatusCause } from "../../../core/api/api_error.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { jsonEquals } from "../../../core/patch/json_value.ts";
import { fieldError } from "../../status.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { goRegExp, goRegExpProblem } from "../schema/regular_expression.ts";

/** Position of a schema; some rules apply to the root or to items only. */
type Level = "root" | "item" | "field";

/** Message for a missing type, by position. */
const MISSING_TYPE: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};

const INT_OR_STRING_BRANCHES: readonly OpenApiSchema[] = [
  { type: "integer" },
  { type: "string" },
];

/** JSON Schema keywords that combine schemas. */
interface Alternatives {
  readonly allOf?: readonly OpenApiSchema[];
  readonly anyOf?: readonly OpenApiSchema[];
  readonly oneOf?: readonly OpenApiSchema[];
  readonly not?: OpenApiSchema;
}

/**
 * Checks that a schema is structural: every value has one type, and all fields
 * within `allOf`, `anyOf`, `oneOf` and `not` are also specified outside of them.
 *
 * @param schema Schema of a whole object.
 * @param path Path of the schema in the CRD.
 * @returns Violations.
 */
export function structuralCauses(
  schema: OpenApiSchema,
  path: string,
): StatusCause[] {
  return [
    ...invariantCauses(schema, "root", path),
    ...nested(schema, path).flatMap(([inner, innerPath]) =>
      completenessCauses(inner, schema, { path, innerPath })
    ),
  ].sort((a, b) =>
    `${a.field}: ${a.message}` < `${b.field}: ${b.message}` ? -1 : 1
  );
}

/** Schemas within `allOf`, `anyOf`, `oneOf` and `not`, with their paths. */
function nested(
  schema: OpenApiSchema,
  path: string,
): (readonly [OpenApiSchema, string])[] {
  const { not, ...lists } = schema as Alternatives;
  const inner = (["allOf", "anyOf", "oneOf"] as const).flatMap((keyword) =>
    (lists[keyword] ?? []).map((inner, index) =>
      [inner, keyPath(childPath(path, keyword), index)] as const
    )
  );
  return not === undefined ? inner : [...inner, [not, childPath(path, "not")]];
}

function invariantCauses(
  schema: OpenApiSchema,
  level: Level,
  path: string,
): StatusCause[] {
  const causes: StatusCause[] = [];
  const { type, items, properties = {}, additionalProperties } = schema;
  const at = (name: string) => childPath(path, name);
  if (type === "array" && items === undefined) {
    causes.push(fieldError.required(at("items"), "must be specified"));
  }
  if (items) causes.push(...invariantCauses(items, "item", at("items")));
  for (const [name, property] of Object.entries(properties)) {
    const field = keyPath(at("properties"), name);
    causes.push(...invariantCauses(property, "field", field));
  }
  if (additionalProperties !== undefined) {
    const field = at("additionalProperties");
    if (level === "root") {
      causes.push(fieldError.forbidden(field, "must not be used at the root"));
    }
    if (typeof additionalProperties === "object") {
      causes.push(...invariantCauses(additionalProperties, "field", field));
    }
  }
  return [
    ...causes,
    ...extensionCauses(schema, path),
    ...valueCauses(schema, path, isIntOrStringUnion(schema)),
    ...typeCauses(schema, level, path),
    ...metadataCauses(schema, level, path),
  ];
}

function extensionCauses(schema: OpenApiSchema, path: string): StatusCause[] {
  if (!schema["x-kubernetes-int-or-string"]) return [];
  return ([
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
  ] as const).filter((keyword) => schema[keyword]).map((keyword) =>
    fieldError.invalid(
      childPath(path, keyword),
      true,
      "must be false if x-kubernetes-int-or-string is true",
    )
  );
}

function typeCauses(
  schema: OpenApiSchema,
  level: Level,
  path: string,
): StatusCause[] {
  const { type = "", additionalProperties, properties = {} } = schema;
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const keeps = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const field = childPath(path, "type");
  const causes: StatusCause[] = [];
  const mustBeObject =
    "must be object if x-kubernetes-embedded-resource is true";
  if (embedded && type !== "object") {
    causes.push(
      type === ""
        ? fieldError.required(field, mustBeObject)
        : fieldError.invalid(field, type, mustBeObject),
    );
  } else if (
    type === "" && !schema["x-kubernetes-int-or-string"] && !keeps
  ) causes.push(fieldError.required(field, MISSING_TYPE[level]));
  if (embedded && additionalProperties !== undefined) {
    causes.push(fieldError.forbidden(
      childPath(path, "additionalProperties"),
      "must not be used if x-kubernetes-embedded-resource is set",
    ));
  }
  if (level === "root" && type !== "" && type !== "object") {
    causes.push(fieldError.invalid(field, type, "must be object at the root"));
  }
  if (embedded && !keeps && Object.keys(properties).length === 0) {
    causes.push(fieldError.required(
      childPath(path, "properties"),
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
    ));
  }
  return causes;
}

/** Checks the schemas of `kind`, `apiVersion` and `metadata`, which every object has. */
function metadataCauses(
  schema: OpenApiSchema,
  level: Level,
  path: string,
): StatusCause[] {
  const { properties = {} } = schema;
  const whole = level === "root" ||
    schema["x-kubernetes-embedded-resource"] === true;
  const propertyPath = (name: string) =>
    keyPath(childPath(path, "properties"), name);
  const causes: StatusCause[] = [];
  for (const name of ["kind", "apiVersion"]) {
    const property = properties[name];
    if (whole && property && property.type !== "string") {
      causes.push(fieldError.invalid(
        childPath(propertyPath(name), "type"),
        property.type ?? "",
        "must be string",
      ));
    }
  }
  const { metadata } = properties;
  if (metadata === undefined) return causes;
  if (whole && metadata.type !== "object") {
    causes.push(fieldError.invalid(
      childPath(propertyPath("metadata"), "type"),
      metadata.type ?? "",
      "must be object",
    ));
  }
  if (level === "root" && !specifiesOnlyNames(metadata)) {
    causes.push(fieldError.forbidden(
      propertyPath("metadata"),
      "must not specify anything other than name and generateName, but metadata is implicitly specified",
    ));
  }
  return causes;
}

function specifiesOnlyNames(metadata: OpenApiSchema): boolean {
  const { type: _, default: __, properties = {}, ...others } = metadata;
  return Object.keys(others).length === 0 &&
    Object.keys(properties).every((name) =>
      name === "name" || name === "generateName"
    );
}

/** Combinations in which integer and string stand for `x-kubernetes-int-or-string`. */
interface IntOrStringUnion {
  readonly anyOf: boolean;
  readonly firstAllOf: boolean;
}

const NO_UNION: IntOrStringUnion = { anyOf: false, firstAllOf: false };

function isIntOrStringUnion(schema: OpenApiSchema): IntOrStringUnion {
  const { anyOf, allOf } = schema as Alternatives;
  const first = (allOf?.[0] as Alternatives | undefined)?.anyOf;
  return {
    anyOf: jsonEquals(anyOf, INT_OR_STRING_BRANCHES),
    firstAllOf: jsonEquals(first, INT_OR_STRING_BRANCHES),
  };
}

function valueCauses(
  schema: OpenApiSchema,
  path: string,
  union: IntOrStringUnion,
): StatusCause[] {
  const causes = nested(schema, path).flatMap(([inner, innerPath]) => {
    const within = innerPath.slice(path.length).replace(/^\./, "");
    if (within.startsWith("anyOf") && union.anyOf) return [];
    const first = within === "allOf[0]" && union.firstAllOf;
    return nestedCauses(inner, innerPath, {
      anyOf: first,
      firstAllOf: false,
    });
  });
  const { pattern } = schema;
  if (typeof pattern === "string" && pattern !== "" && !goRegExp(pattern)) {
    causes.push(fieldError.invalid(
      childPath(path, "pattern"),
      pattern,
      `must be a valid regular expression, but isn't: ${
        goRegExpProblem(pattern)
      }`,
    ));
  }
  return causes;
}

/** Keywords forbidden within a combination, with the messages. */
const NOT_NESTED: readonly (readonly [string, string])[] = [
  ["type", "must be empty to be structural"],
  ["additionalProperties", "must be undefined to be structural"],
  ["default", "must be undefined to be structural"],
  ["title", "must be empty to be structural"],
  ["description", "must be empty to be structural"],
  ["nullable", "must be false to be structural"],
  ["x-kubernetes-preserve-unknown-fields", "must be false to be structural"],
  ["x-kubernetes-embedded-resource", "must be false to be structural"],
  ["x-kubernetes-int-or-string", "must be false to be structural"],
  ["x-kubernetes-list-map-keys", "must be empty to be structural"],
  ["x-kubernetes-list-type", "must be undefined to be structural"],
  ["x-kubernetes-map-type", "must be undefined to be structural"],
  ["x-kubernetes-validations", "must be empty to be structural"],
];

function nestedCauses(
  schema: OpenApiSchema,
  path: string,
  union: IntOrStringUnion,
): StatusCause[] {
  const { items, properties = {} } = schema;
  const causes = valueCauses(schema, path, union);
  if (items) {
    causes.push(...nestedCauses(items, childPath(path, "items"), NO_UNION));
  }
  for (const [name, property] of Object.entries(properties)) {
    const field = keyPath(childPath(path, "properties"), name);
    causes.push(...nestedCauses(property, field, NO_UNION));
  }
  for (const [keyword, why] of NOT_NESTED) {
    if (schema[keyword]) {
      causes.push(fieldError.forbidden(childPath(path, keyword), why));
    }
  }
  if (Object.hasOwn(properties, "metadata")) {
    causes.push(fieldError.forbidden(
      keyPath(childPath(path, "properties"), "metadata"),
      "must not be specified in a nested context",
    ));
  }
  return causes;
}

/** Paths of the outer and the inner schema of a comparison. */
interface SchemaPaths {
  readonly path: string;
  readonly innerPath: string;
}

/** Checks that everything specified by the inner schema is specified by the outer one. */
function completenessCauses(
  inner: OpenApiSchema,
  outer: OpenApiSchema | undefined,
  { path, innerPath }: SchemaPaths,
): StatusCause[] {
  if (outer === undefined) {
    return [
      fieldError.required(path, `because it is defined in ${innerPath}`),
    ];
  }
  const causes = nested(inner, innerPath).flatMap(([deeper, deeperPath]) =>
    completenessCauses(deeper, outer, { path, innerPath: deeperPath })
  );
  if (inner.items) {
    causes.push(...completenessCauses(inner.items, outer.items, {
      path: childPath(path, "items"),
      innerPath: childPath(innerPath, "items"),
    }));
  }
  for (const [name, property] of Object.entries(inner.properties ?? {})) {
    const named = Object.hasOwn(outer.properties ?? {}, name);
    causes.push(
      ...completenessCauses(
        property,
        named ? outer.properties?.[name] : undefined,
        {
          path: keyPath(childPath(path, "properties"), name),
          innerPath: keyPath(childPath(innerPath, "properties"), name),
        },
      ),
    );
  }
  return causes;
}
