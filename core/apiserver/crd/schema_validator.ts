import type { OpenApiSchema } from "../../patch/schema.ts";
import type { Correlation } from "./correlation.ts";
import { goNumber, goQuote } from "../go_value.ts";
import { isKnownFormat, matchesFormat } from "./formats.ts";
import { isObject, type JsonObject, sameValue } from "./json_tree.ts";
import { goRegExp } from "./regular_expression.ts";
import type { Finding, Findings } from "./schema_findings.ts";

/** A value that is being checked, and where it stands. */
interface Subject {
  readonly value: unknown;
  readonly schema: OpenApiSchema;
  /** Dotted, as `spec.list[0]`; empty for the validated value itself. */
  readonly path: string;
  /** The old value, where an update is checked and there was one. */
  readonly correlation?: Correlation | undefined;
}

/** One after the other, as kube-openapi runs them: texts come out in its order. */
type Check = (subject: Subject) => Findings | undefined;

const NOTHING: Findings = { list: [], matches: 0 };

/** The fields whose old values an update never sees: both are converted. */
const TYPE_FIELDS: ReadonlySet<string> = new Set(["apiVersion", "kind"]);

/**
 * Checks a value against a structural schema, as kube-apiserver does by its
 * kube-openapi library and in the same words.
 *
 * @param value Plain JSON.
 * @param schema What it must be.
 * @param correlation The old value of an update; what did not change since may
 * stay wrong.
 */
export function validateSchema(
  value: unknown,
  schema: OpenApiSchema,
  correlation?: Correlation,
): readonly Finding[] {
  return ratchet({ value, schema, path: "", correlation }).list;
}

/** Checks a value, and forgives what is as it was. */
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

/** Joins findings; the same text is told once. */
function merge(all: readonly Findings[]): Findings {
  const byText = new Map<string, Finding>();
  let matches = 0;
  for (const { list, matches: more } of all) {
    for (const finding of list) {
      const { text } = finding;
      if (!byText.has(text)) byText.set(text, finding);
    }
    matches += more;
  }
  return { list: [...byText.values()], matches };
}

function found(
  subject: Subject,
  finding: Omit<Finding, "name"> & { readonly name?: string },
): Findings {
  return {
    list: [{ name: subject.path, ...finding }],
    matches: 0,
  };
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
  [({ value }) => typeof value === "number", checkNumber],
  [({ value }) => Array.isArray(value), checkList],
  [() => true, checkEnum],
  [({ value }) => isObject(value), checkObject],
];

function typesOf(schema: OpenApiSchema): readonly string[] {
  if (schema["x-kubernetes-int-or-string"]) return ["integer", "string"];
  return schema.type ? [schema.type] : [];
}

/** The format if the server knows it; it takes no notice of others. */
function formatOf({ format }: OpenApiSchema): string {
  return format !== undefined && isKnownFormat(format) ? format : "";
}

function wordOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") {
    return Number.isInteger(value) ? "integer" : "number";
  }
  return typeof value;
}

function checkType(subject: Subject): Findings | undefined {
  const { value, schema, path } = subject;
  const types = typesOf(schema);
  const word = wordOf(value);
  const passed = { list: [], matches: 1 };
  const wrong = (expected: string, got: string) =>
    found(subject, {
      kind: "type",
      text: `${path} in body must be of type ${expected}: ${goQuote(got)}`,
      value: got,
    });
  if (value === null) {
    return types.length > 0 && !schema.nullable
      ? wrong(types.join(","), word)
      : passed;
  }
  const format = formatOf(schema);
  const fits = types.includes(word) ||
    (word === "integer" && types.includes("number"));
  const numeric = types.includes("number") || types.includes("integer");
  const textual = word === "string" || word === "array";
  if (format !== "" && !textual && !fits) {
    return wrong(format, NUMBER_FORMATS[word] ?? "");
  }
  // A format stands for the type, so that a list passes for a formatted text.
  if (format !== "" && textual && !numeric) return passed;
  return fits ? passed : wrong(types.join(","), word);
}

const NUMBER_FORMATS: Readonly<Record<string, string>> = {
  integer: "int64",
  number: "float64",
};

function checkString(subject: Subject): Findings | undefined {
  const { path, schema } = subject;
  const value = subject.value as string;
  const { maxLength, minLength, pattern } = schema as {
    readonly maxLength?: number;
    readonly minLength?: number;
    readonly pattern?: string;
  };
  const length = [...value].length;
  if (maxLength !== undefined && length > maxLength) {
    const text = `${path} in body should be at most ${maxLength} chars long`;
    return found(subject, { kind: "length", text, value, limit: maxLength });
  }
  if (minLength !== undefined && length < minLength) {
    const text = `${path} in body should be at least ${minLength} chars long`;
    return found(subject, { kind: "value", text, value });
  }
  if (pattern && !goRegExp(pattern)?.test(value)) {
    const text = `${path} in body should match '${pattern}'`;
    return found(subject, { kind: "value", text, value });
  }
  return undefined;
}

function checkFormat(subject: Subject): Findings | undefined {
  const { path, schema } = subject;
  const value = subject.value as string;
  const format = formatOf(schema);
  if (matchesFormat(format, value)) return undefined;
  const text = `${path} in body must be of type ${format}: ${goQuote(value)}`;
  return found(subject, { kind: "type", text, value });
}

/** A whole number is compared in whole numbers: limits lose their fraction. */
function checkNumber(subject: Subject): Findings {
  const { path, schema } = subject;
  const value = subject.value as number;
  const whole = Number.isInteger(value);
  const limit = (keyword: string) => {
    const bound = schema[keyword];
    if (typeof bound !== "number") return undefined;
    return whole ? Math.trunc(bound) : bound;
  };
  const results: Findings[] = [{ list: [], matches: 1 }];
  const wrong = (why: string) =>
    results.push(
      found(subject, { kind: "value", text: `${path} in body ${why}`, value }),
    );
  const factor = limit("multipleOf");
  if (factor !== undefined && factor <= 0) {
    const text = `factor MultipleOf declared for ${path} must be positive: ${
      goNumber(factor)
    }`;
    results.push(found(subject, { kind: "value", text, value: factor }));
  } else if (factor !== undefined && !isMultiple(value, factor)) {
    wrong(`should be a multiple of ${goNumber(factor)}`);
  }
  const least = limit("minimum");
  if (least !== undefined) {
    const exclusive = schema.exclusiveMinimum === true;
    if (value < least || (exclusive && value === least)) {
      const word = exclusive ? "greater than" : "greater than or equal to";
      wrong(`should be ${word} ${goNumber(least)}`);
    }
  }
  const most = limit("maximum");
  if (most !== undefined) {
    const exclusive = schema.exclusiveMaximum === true;
    if (value > most || (exclusive && value === most)) {
      const word = exclusive ? "less than" : "less than or equal to";
      wrong(`should be ${word} ${goNumber(most)}`);
    }
  }
  return merge(results);
}

/** A quotient counts as whole if it is so but for the error of doubles. */
function isMultiple(value: number, factor: number): boolean {
  if (Number.isInteger(value)) return value % factor === 0;
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  const distance = Math.abs(quotient - Math.trunc(quotient));
  return Number.isSafeInteger(Math.trunc(quotient)) &&
    (distance === 0 || distance / Math.abs(quotient) < 1e-9);
}

function checkList(subject: Subject): Findings {
  const { path, schema, correlation } = subject;
  const value = subject.value as readonly unknown[];
  const { items } = schema;
  const results: Findings[] = [{ list: [], matches: 1 }];
  if (items !== undefined) {
    for (const [index, item] of value.entries()) {
      results.push(ratchet({
        value: item,
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
    results.push(found(subject, { kind: "value", text, value: size }));
  }
  if (maxItems !== undefined && size > maxItems) {
    const text = `${path} in body should have at most ${maxItems} items`;
    results.push(
      found(subject, { kind: "items", text, value: size, limit: maxItems }),
    );
  }
  return merge(results);
}

/** Null is never among the values, even where it is listed. */
function checkEnum(subject: Subject): Findings | undefined {
  const { value, schema, path } = subject;
  const values = schema.enum;
  if (values === undefined || values.length === 0) return undefined;
  if (value !== null && values.some((one) => isListed(one, value))) {
    return undefined;
  }
  const shown = values.map((one) => String(one)).join(" ");
  const text = `${path} in body should be one of [${shown}]`;
  return found(subject, { kind: "enum", text, value, values });
}

/** A fraction is cut off before it is compared with a whole number. */
function isListed(listed: unknown, value: unknown): boolean {
  if (Number.isInteger(listed) && typeof value === "number") {
    return listed === Math.trunc(value);
  }
  return sameValue(listed, value);
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
    results.push(found(subject, { kind: "value", text, value: size }));
  }
  if (maxProperties !== undefined && size > maxProperties) {
    const text =
      `${path} in body should have at most ${maxProperties} properties`;
    const limit = maxProperties;
    results.push(
      found(subject, { kind: "properties", text, value: size, limit }),
    );
  }
  results.push(...checkFields(subject, value));
  for (const name of required) {
    if (Object.hasOwn(value, name)) continue;
    const place = `${path}.${name}`;
    const text = `${place} in body is required`;
    results.push(found(subject, { kind: "required", text, name: place }));
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
      results.push(found(subject, { kind: "value", text, value: name }));
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
      schema: fieldSchema,
      path: named && path === "" ? name : `${path}.${name}`,
      correlation: unseen ? undefined : correlation?.key(name),
    }));
  }
  return results;
}

/** `allOf`, `anyOf`, `oneOf` and `not`. */
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
    results.push(
      found(subject, { kind: "schema", text: `${goQuote(path)} must ${why}` }),
    );
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

/** The failed alternative that went furthest, the first of several. */
function mostMatches(all: readonly Findings[]): Findings {
  return all.reduce((best, one) => one.matches > best.matches ? one : best);
}
