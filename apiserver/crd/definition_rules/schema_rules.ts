import type { StatusCause } from "../../../core/api/api_error.ts";
import type { ValidationRule } from "../../../core/crd/kind_definition.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { fieldError } from "../../status.ts";
import type { RuleChecker } from "../cel/rule_causes.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { listMapCauses, listTypeRuleCauses } from "./list_type_rules.ts";
import { followSchemaPath } from "../schema/schema_path.ts";

/** State of the walk through a schema. */
interface Descent {
  readonly path: string;
  readonly root: boolean;
  /** Reason why defaults are forbidden here; undefined if they are allowed. */
  readonly noDefault?: string | undefined;
  readonly insideMetadata?: boolean | undefined;
  /** Path of the nearest ancestor whose items have no corresponding old values. */
  readonly uncorrelatable?: string | undefined;
  /** Checker of CEL rules; undefined if rules are not compiled here. */
  readonly rules?: RuleChecker | undefined;
}

/** Violations of the schema and of its CEL rules; rules are compiled only in valid schemas. */
interface SchemaCauses {
  readonly schema: StatusCause[];
  readonly rules: StatusCause[];
}

const TYPES: readonly string[] = [
  "array",
  "boolean",
  "integer",
  "number",
  "object",
  "string",
];

const META_FIELDS: ReadonlySet<string> = new Set([
  "apiVersion",
  "kind",
  "metadata",
]);

const REASONS: readonly string[] = [
  "FieldValueDuplicate",
  "FieldValueForbidden",
  "FieldValueInvalid",
  "FieldValueRequired",
];

/** Keywords that structural schemas do not support, with the messages. */
const UNSUPPORTED: readonly (readonly [string, string])[] = [
  ["id", "id is not supported"],
  ["additionalItems", "additionalItems is not supported"],
  ["patternProperties", "patternProperties is not supported"],
  ["definitions", "definitions is not supported"],
  ["dependencies", "dependencies is not supported"],
  ["$ref", "$ref is not supported"],
];

/** Whether a schema, or a schema in it, uses an unsupported keyword. */
export function usesUnsupportedKeyword(schema: OpenApiSchema): boolean {
  const { properties = {}, additionalProperties, items } = schema;
  return UNSUPPORTED.some(([keyword]) => schema[keyword] !== undefined) ||
    Array.isArray(items) ||
    Object.values(properties).some(usesUnsupportedKeyword) ||
    (typeof additionalProperties === "object" &&
      usesUnsupportedKeyword(additionalProperties)) ||
    (items !== undefined && usesUnsupportedKeyword(items)) ||
    combined(schema, "").some(([inner]) => usesUnsupportedKeyword(inner));
}

/**
 * Validates the keywords of a schema, besides those that make it structural.
 *
 * @param rules Checker of CEL rules; undefined if they are not to be compiled.
 * @returns Violations.
 */
export function schemaRuleCauses(
  schema: OpenApiSchema,
  path: string,
  rules: RuleChecker | undefined,
): StatusCause[] {
  const causes = descend(schema, { path, root: true, rules });
  return [...causes.schema, ...causes.rules];
}

function descend(schema: OpenApiSchema, at: Descent): SchemaCauses {
  const causes: SchemaCauses = { schema: [], rules: [] };
  const add = ({ schema, rules }: SchemaCauses) => {
    causes.schema.push(...schema);
    causes.rules.push(...rules);
  };
  causes.schema.push(...keywordCauses(schema, at));
  const { additionalProperties, properties = {}, items } = schema;
  if (typeof additionalProperties === "object") {
    add(descend(additionalProperties, {
      ...below(at, "additionalProperties"),
      rules: at.rules?.below(additionalProperties),
      ...(at.insideMetadata
        ? {
          noDefault: "inside additionalProperties applying to object metadata",
        }
        : {}),
    }));
  }
  for (const [name, property] of Object.entries(properties)) {
    add(descend(property, propertyDescent(schema, name, at)));
  }
  for (const [inner, path] of combined(schema, at.path)) {
    add(descend(inner, { ...at, path, root: false, rules: undefined }));
  }
  if (items !== undefined && !Array.isArray(items)) {
    const correlates = schema["x-kubernetes-list-type"] === "map";
    add(descend(items, {
      ...below(at, "items"),
      rules: at.rules?.below(items),
      uncorrelatable: at.uncorrelatable ?? (correlates ? undefined : at.path),
    }));
  }
  causes.schema.push(
    ...listTypeRuleCauses(schema, at.path),
    ...listMapCauses(schema, at.path),
    ...ruleTextCauses(schema, at.path),
  );
  const { rules } = at;
  if (causes.schema.length === 0 && rules !== undefined) {
    causes.rules.push(...rules.check(schema, at.path, at.uncorrelatable));
  }
  return causes;
}

function below(at: Descent, name: string): Descent {
  return { ...at, path: childPath(at.path, name), root: false };
}

function propertyDescent(
  schema: OpenApiSchema,
  name: string,
  at: Descent,
): Descent {
  const whole = at.root || schema["x-kubernetes-embedded-resource"] === true;
  const meta = whole && META_FIELDS.has(name);
  const property = schema.properties?.[name] ?? {};
  return {
    ...at,
    path: keyPath(childPath(at.path, "properties"), name),
    root: false,
    rules: at.rules?.below(property),
    insideMetadata: meta || at.insideMetadata,
    noDefault: meta && at.root ? `in top-level ${name}` : at.noDefault,
  };
}

function combined(
  schema: OpenApiSchema,
  path: string,
): (readonly [OpenApiSchema, string])[] {
  const not = schema.not as OpenApiSchema | undefined;
  return [
    ...(not ? [[not, childPath(path, "not")] as const] : []),
    ...(["allOf", "oneOf", "anyOf"] as const).flatMap((keyword) =>
      ((schema[keyword] ?? []) as readonly OpenApiSchema[]).map((
        inner,
        index,
      ) => [inner, keyPath(childPath(path, keyword), index)] as const)
    ),
  ];
}

function keywordCauses(schema: OpenApiSchema, at: Descent): StatusCause[] {
  const causes: StatusCause[] = [];
  const keywordPath = (name: string) => childPath(at.path, name);
  const { type = "" } = schema;
  if (type !== "" && !TYPES.includes(type)) {
    causes.push(fieldError.notSupported(keywordPath("type"), type, TYPES));
  }
  if (schema.default !== undefined && at.noDefault !== undefined) {
    causes.push(
      fieldError.forbidden(
        keywordPath("default"),
        `must not be set ${at.noDefault}`,
      ),
    );
  }
  for (const [keyword, why] of UNSUPPORTED) {
    if (schema[keyword] !== undefined) {
      causes.push(fieldError.forbidden(keywordPath(keyword), why));
    }
  }
  if (type === "null") {
    causes.push(fieldError.forbidden(
      keywordPath("type"),
      "type cannot be set to null, use nullable as an alternative",
    ));
  }
  if (Array.isArray(schema.items)) {
    causes.push(fieldError.forbidden(
      keywordPath("items"),
      "items must be a schema object and not an array",
    ));
  }
  if (at.insideMetadata && schema["x-kubernetes-embedded-resource"]) {
    causes.push(fieldError.forbidden(
      keywordPath("x-kubernetes-embedded-resource"),
      "must not be used inside of resource meta",
    ));
  }
  if (schema.uniqueItems === true) {
    causes.push(fieldError.forbidden(
      keywordPath("uniqueItems"),
      "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    ));
  }
  const { additionalProperties, properties = {} } = schema;
  if (
    additionalProperties !== undefined && additionalProperties !== true &&
    Object.keys(properties).length > 0
  ) {
    causes.push(fieldError.forbidden(
      keywordPath("additionalProperties"),
      "additionalProperties and properties are mutual exclusive",
    ));
  }
  if (schema["x-kubernetes-preserve-unknown-fields"] === false) {
    causes.push(fieldError.invalid(
      keywordPath("x-kubernetes-preserve-unknown-fields"),
      false,
      "must be true or undefined",
    ));
  }
  return causes;
}

const LINE_BREAK = /[\n\r]/;

/** Checks the fields of CEL rules that need no compilation. */
function ruleTextCauses(schema: OpenApiSchema, path: string): StatusCause[] {
  const rules = schema["x-kubernetes-validations"];
  if (!Array.isArray(rules)) return [];
  return (rules as readonly ValidationRule[]).flatMap((rule, index) => {
    const base = keyPath(childPath(path, "x-kubernetes-validations"), index);
    return oneRuleTextCauses(rule, schema, base);
  });
}

function oneRuleTextCauses(
  { rule = "", message = "", messageExpression = "", ...rest }: ValidationRule,
  schema: OpenApiSchema,
  base: string,
): StatusCause[] {
  const causes: StatusCause[] = [];
  const at = (name: string) => childPath(base, name);
  const { required, invalid, notSupported } = fieldError;
  const hasMessage = message.trim() !== "";
  if (rule.trim() === "") {
    causes.push(required(at("rule"), "rule is not specified"));
  } else if (message !== "" && !hasMessage) {
    const why = "must be non-empty if specified";
    causes.push(invalid(at("message"), message, why));
  } else if (LINE_BREAK.test(message.trim())) {
    const why = "must not contain line breaks";
    causes.push(invalid(at("message"), message, why));
  } else if (LINE_BREAK.test(rule.trim()) && !hasMessage) {
    const why = "message must be specified if rule contains line breaks";
    causes.push(required(at("message"), why));
  }
  if (messageExpression !== "" && messageExpression.trim() === "") {
    const why = "messageExpression must be non-empty if specified";
    causes.push(required(at("messageExpression"), why));
  }
  const { reason, fieldPath = "" } = rest;
  if (reason !== undefined && !REASONS.includes(reason)) {
    causes.push(notSupported(at("reason"), reason, REASONS));
  }
  if (fieldPath === "") return causes;
  const wrongPath = (why: string) =>
    causes.push(invalid(at("fieldPath"), fieldPath, why));
  if (fieldPath.trim() === "") {
    wrongPath("must be non-empty if specified");
  }
  if (LINE_BREAK.test(fieldPath)) {
    wrongPath("must not contain line breaks");
  }
  if (typeof followSchemaPath(fieldPath, schema) === "string") {
    wrongPath("must be a valid path");
  }
  return causes;
}
