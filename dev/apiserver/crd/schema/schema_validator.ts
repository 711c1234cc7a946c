/**
 * Application of structural schemas to objects: validation in this file;
 * pruning, defaults, list types, embedded resources and the correlation of old
 * and new values (for ratcheting) in the others. Pure functions of JSON values
 * and schemas; must not import CEL, storage or requests.
 *
 * @module
 */
import {
  isJsonObject,
  type JsonObject,
  type OpenApiSchema,
} from "@coracle/operator/internal";
import type { Correlation } from "./correlation.ts";
import { fieldError } from "../../status.ts";
import { goQuote } from "../../validation/go_value.ts";
import {
  checkEnum,
  checkFormat,
  checkNumber,
  checkString,
  checkType,
  formatOf,
  typesOf,
} from "./scalar_checks.ts";
import {
  type Finding,
  type Findings,
  found,
  invalidAtRoot,
  invalidValue,
  merge,
  type Subject,
} from "./schema_findings.ts";
import { isNumber, isWrittenFloat } from "../../exact_json.ts";

/** Check of a value; checks run in the order of kube-openapi, which determines the order of messages. */
type Check = (subject: Subject) => Findings | undefined;

const NOTHING: Findings = { list: [], matches: 0 };

/** Fields without ratcheting, because old and new object are converted to the same version. */
const TYPE_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind"]);

/**
 * Validates a value by a structural schema, with the messages of kube-openapi,
 * which kube-apiserver uses.
 *
 * @param value JSON value.
 * @param schema Structural schema.
 * @param correlation Correlation with the old value of an update; invalid values
 * that did not change are accepted.
 */
export function validateSchema(
  value: unknown,
  schema: OpenApiSchema,
  correlation?: Correlation,
): readonly Finding[] {
  return ratchet({ value, schema, path: "", correlation }).list;
}

/** Validates a value; accepts an unchanged value. */
function ratchet(subject: Subject): Findings {
  const findings = validate(subject);
  return findings.list.length > 0 && subject.correlation?.unchanged
    ? { list: [], matches: findings.matches }
    : findings;
}

function validate(subject: Subject): Findings {
  if (subject.value === null) {
    return merge([
      checkType(subject) ?? NOTHING,
      checkEnum(subject) ?? NOTHING,
    ]);
  }
  const results: Findings[] = [{ list: [], matches: 1 }];
  for (const [applies, check] of CHECKS) {
    if (!applies(subject)) continue;
    results.push(check(subject) ?? NOTHING, { list: [], matches: 1 });
  }
  return merge(results);
}

const CHECKS: readonly (readonly [(subject: Subject) => boolean, Check])[] = [
  [
    ({ schema }) => typesOf(schema).length > 0 || formatOf(schema) !== "",
    checkType,
  ],
  [() => true, checkAlternatives],
  [({ value }) => typeof value === "string", checkString],
  [
    ({ value, schema }) => typeof value === "string" && formatOf(schema) !== "",
    checkFormat,
  ],
  [({ value }) => isNumber(value), checkNumber],
  [({ value }) => Array.isArray(value), checkList],
  [() => true, checkEnum],
  [({ value }) => isJsonObject(value), checkObject],
];

function checkList(subject: Subject): Findings {
  const { path, schema, correlation } = subject;
  const value = subject.value as readonly unknown[];
  const { items } = schema;
  const results: Findings[] = [{ list: [], matches: 1 }];
  if (items !== undefined) {
    for (const [index, item] of value.entries()) {
      results.push(ratchet({
        value: item,
        isFloat: isWrittenFloat(value, index),
        schema: items,
        path: `${path}[${index}]`,
        correlation: correlation?.index(index),
      }));
    }
  }
  const { minItems, maxItems } = schema as {
    readonly minItems?: number;
    readonly maxItems?: number;
  };
  const size = value.length;
  if (minItems !== undefined && size < minItems) {
    const text = `${path} in body should have at least ${minItems} items`;
    results.push(invalidValue(subject, text, size));
  }
  if (maxItems !== undefined && size > maxItems) {
    const text = `${path} in body should have at most ${maxItems} items`;
    results.push(
      found(subject, text, (at) => fieldError.tooMany(at, size, maxItems)),
    );
  }
  return merge(results);
}

function checkObject(subject: Subject): Findings {
  const { path, schema } = subject;
  const value = subject.value as JsonObject;
  const { minProperties, maxProperties, required = [] } = schema as {
    readonly minProperties?: number;
    readonly maxProperties?: number;
    readonly required?: readonly string[];
  };
  const results: Findings[] = [];
  const size = Object.keys(value).length;
  if (minProperties !== undefined && size < minProperties) {
    const text =
      `${path} in body should have at least ${minProperties} properties`;
    results.push(invalidValue(subject, text, size));
  }
  if (maxProperties !== undefined && size > maxProperties) {
    const text =
      `${path} in body should have at most ${maxProperties} properties`;
    results.push(
      found(subject, text, (at) => fieldError.tooMany(at, size, maxProperties)),
    );
  }
  results.push(...checkFields(subject, value));
  for (const name of required) {
    if (Object.hasOwn(value, name)) continue;
    const field = `${path}.${name}`;
    const text = `${field} in body is required`;
    results.push(found(subject, text, fieldError.required, field));
  }
  return merge(results);
}

function checkFields(subject: Subject, value: JsonObject): Findings[] {
  const { path, schema, correlation } = subject;
  const { properties = {}, additionalProperties: others } = schema;
  const results: Findings[] = [];
  for (const [name, field] of Object.entries(value)) {
    const named = Object.hasOwn(properties, name);
    if (!named && others === false) {
      const text = `${path}.${name} in body is a forbidden property`;
      results.push(invalidValue(subject, text, name));
      continue;
    }
    const fieldSchema = named
      ? properties[name]
      : typeof others === "object"
      ? others
      : undefined;
    if (fieldSchema === undefined) continue;
    const unseen = path === "" && TYPE_FIELDS.has(name);
    results.push(ratchet({
      value: field,
      isFloat: isWrittenFloat(value, name),
      schema: fieldSchema,
      path: named && path === "" ? name : `${path}.${name}`,
      correlation: unseen ? undefined : correlation?.key(name),
    }));
  }
  return results;
}

/** Checks `allOf`, `anyOf`, `oneOf` and `not`. */
function checkAlternatives(subject: Subject): Findings {
  const { schema, path } = subject;
  const { anyOf, oneOf, allOf, not } = schema as {
    readonly anyOf?: readonly OpenApiSchema[];
    readonly oneOf?: readonly OpenApiSchema[];
    readonly allOf?: readonly OpenApiSchema[];
    readonly not?: OpenApiSchema;
  };
  const results: Findings[] = [{ list: [], matches: 1 }];
  const wrong = (why: string) =>
    results.push(invalidAtRoot(subject, `${goQuote(path)} must ${why}`));
  const against = (alternative: OpenApiSchema) =>
    validate({ ...subject, schema: alternative });
  if (anyOf?.length) {
    const all = anyOf.map(against);
    const valid = all.find(({ list }) => list.length === 0);
    if (!valid) wrong("validate at least one schema (anyOf)");
    results.push(valid ?? mostMatches(all));
  }
  if (oneOf?.length) {
    const all = oneOf.map(against);
    const valid = all.filter(({ list }) => list.length === 0);
    const [first] = valid;
    if (first !== undefined && valid.length === 1) results.push(first);
    else {
      wrong(
        `validate one and only one schema (oneOf). Found ${
          valid.length === 0
            ? "none valid"
            : `${valid.length} valid alternatives`
        }`,
      );
      if (valid.length === 0) results.push(mostMatches(all));
    }
  }
  if (allOf?.length) {
    const all = allOf.map(against);
    const valid = all.filter(({ list }) => list.length === 0).length;
    results.push(...all);
    if (valid < all.length) {
      wrong(
        `validate all the schemas (allOf)${
          valid === 0 ? ". None validated" : ""
        }`,
      );
    }
  }
  if (not !== undefined && against(not).list.length === 0) {
    wrong("not validate the schema (not)");
  }
  return merge(results);
}

/** Failed alternative with the most matches; the first of several equal ones. */
function mostMatches(all: readonly Findings[]): Findings {
  return all.reduce((best, each) => each.matches > best.matches ? each : best);
}
