import {
  jsonEquals,
  type OpenApiSchema,
  type StatusCause,
} from "@coracle/operator/internal";
import { fieldError } from "../../status.ts";
import type { RuleValidator } from "../cel/rule_validator.ts";
import { embeddedCauses } from "../schema/embedded_resources.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { pruneUnknown, pruneValue } from "../schema/pruning.ts";
import { findingCauses } from "../schema/schema_findings.ts";
import { validateSchema } from "../schema/schema_validator.ts";

/** Function that compiles the CEL rules of a schema; returns undefined if it has none. */
export type CompileRules = (
  schema: OpenApiSchema,
  root: boolean,
) => RuleValidator | undefined;

/**
 * Validates the defaults in a schema: each must be valid for its own schema,
 * including CEL rules.
 *
 * @param path Path of the schema in the CRD.
 * @returns Violations.
 */
export function defaultCauses(
  schema: OpenApiSchema,
  path: string,
  compile: CompileRules,
): StatusCause[] {
  const causes: StatusCause[] = [];
  const { items, properties = {} } = schema;
  if (schema.default !== undefined && schema.default !== null) {
    causes.push(...oneDefault(schema, childPath(path, "default"), compile));
  }
  if (items) {
    causes.push(...defaultCauses(items, childPath(path, "items"), compile));
  }
  for (const [name, property] of Object.entries(properties)) {
    const propertyPath = keyPath(childPath(path, "properties"), name);
    causes.push(...defaultCauses(property, propertyPath, compile));
  }
  return causes;
}

function oneDefault(
  schema: OpenApiSchema,
  path: string,
  compile: CompileRules,
): StatusCause[] {
  const value: unknown = schema.default;
  const pruned = structuredClone(value);
  if (schema["x-kubernetes-embedded-resource"]) {
    pruneUnknown(pruned as Record<string, unknown>, schema);
  } else pruneValue(pruned, schema);
  const unknown = jsonEquals(pruned, value)
    ? []
    : [fieldError.invalid(path, value, "must not have unknown fields")];
  const embedded = embeddedCauses(value, schema, path);
  if (embedded.length > 0) return [...unknown, ...embedded];
  const wrong = findingCauses(validateSchema(value, schema), path);
  if (wrong.length > 0) return [...unknown, ...wrong];
  const rules = compile(schema, false);
  return [...unknown, ...rules?.validate(value, value, { path }) ?? []];
}
