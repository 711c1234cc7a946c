import { jsonEquals, type OpenApiSchema } from "@coracle/operator/internal";
import { goFloat, goNumber, goQuote } from "../../validation/go_value.ts";
import { isKnownFormat, matchesFormat } from "./formats.ts";
import { pattern as compiledPattern } from "../../cel/pattern.ts";
import { fieldError } from "../../status.ts";
import {
  type Findings,
  found,
  invalidAtRoot,
  invalidValue,
  merge,
  type Subject,
} from "./schema_findings.ts";
import { isInteger, isNumber, writeJson } from "../../exact_json.ts";

export function typesOf(schema: OpenApiSchema): readonly string[] {
  if (schema["x-kubernetes-int-or-string"]) return ["integer", "string"];
  return schema.type ? [schema.type] : [];
}

/** Format of a schema; empty if the server does not check it. */
export function formatOf({ type, format = "" }: OpenApiSchema): string {
  const isKnown = type === undefined || type === "string"
    ? isKnownFormat(format)
    : NUMBER_FORMATS_OF_TYPE[type]?.includes(format) === true;
  return isKnown ? format : "";
}

const NUMBER_FORMATS_OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  integer: ["int32", "int64"],
  number: ["float", "double"],
};

function jsonTypeName(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (isNumber(value)) return isInteger(value) ? "integer" : "number";
  return typeof value;
}

export function checkType(subject: Subject): Findings | undefined {
  const { value, schema } = subject;
  const types = typesOf(schema);
  const typeName = jsonTypeName(value);
  const passed = { list: [], matches: 1 };
  if (value === null) {
    return types.length > 0 && !schema.nullable
      ? wrongType(subject, types.join(","), typeName)
      : passed;
  }
  const format = formatOf(schema);
  const fits = types.includes(typeName) ||
    (typeName === "integer" && types.includes("number"));
  const numeric = types.includes("number") || types.includes("integer");
  const textual = typeName === "string" || typeName === "array";
  if (format !== "" && !textual && !fits) {
    return wrongType(subject, format, NUMBER_FORMATS[typeName] ?? "");
  }
  // With a format the type is not checked, as upstream: a list passes as a formatted text.
  if (format !== "" && textual && !numeric) return passed;
  return fits ? passed : wrongType(subject, types.join(","), typeName);
}

const NUMBER_FORMATS: Readonly<Record<string, string>> = {
  integer: "int64",
  number: "float64",
};

function wrongType(subject: Subject, expected: string, got: string): Findings {
  const text = `${subject.path} in body must be of type ${expected}: ${
    goQuote(got)
  }`;
  return found(subject, text, (at) => fieldError.typeInvalid(at, got, text));
}

export function checkString(subject: Subject): Findings | undefined {
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
    return found(subject, text, (at) => fieldError.tooLong(at, maxLength));
  }
  if (minLength !== undefined && length < minLength) {
    const text = `${path} in body should be at least ${minLength} chars long`;
    return invalidValue(subject, text, value);
  }
  if (pattern && !compiledPattern(pattern).test(value)) {
    const text = `${path} in body should match '${pattern}'`;
    return invalidValue(subject, text, value);
  }
  return undefined;
}

export function checkFormat(subject: Subject): Findings | undefined {
  const { schema } = subject;
  const value = subject.value as string;
  const format = formatOf(schema);
  return matchesFormat(format, value)
    ? undefined
    : wrongType(subject, format, value);
}

/** Bounds of the integers of a format: the smallest integer, and the largest plus one. */
const INTEGERS: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31],
  int64: [-(2 ** 63), 2 ** 63],
};
const MAX_FLOAT = 3.4028234663852886e38;

/** Finding for a value or limit outside the range of the field's type. */
function rangeFinding(
  what: string,
  number: number | bigint,
  subject: Subject,
): Findings | undefined {
  const { type } = subject.schema;
  const format = formatOf(subject.schema);
  const isInteger = type === "integer";
  const [least, above] = INTEGERS[format] ?? INTEGERS["int64"] ?? [];
  // A double is no exact integer of 64 bits at their limits.
  const isLeast = typeof number === "bigint" || number > -(2 ** 63);
  const fits = isInteger
    ? isWhole(number) && number >= Number(least) && number < Number(above) &&
      isLeast
    : format !== "float" || Math.abs(Number(number)) <= MAX_FLOAT;
  if (fits) return undefined;
  const form = format === "" ? "(default format)" : `with format ${format}`;
  return invalidAtRoot(
    subject,
    `${what} value must be of type ${type} ${form} in ${subject.path}`,
  );
}

/**
 * Checks the limits of a number. An integer is compared with the integer part
 * of a limit, unless the type excludes the limit.
 */
export function checkNumber(subject: Subject): Findings {
  const { path, schema } = subject;
  const value = subject.value as number | bigint;
  // Go compares a float as one, even if it is whole.
  const whole = isWhole(value) && !subject.isFloat;
  const results: Findings[] = [{ list: [], matches: 1 }];
  const shown = isInteger(value) && whole ? goNumber : goFloat;
  const inRange = (what: string, number: number | bigint) => {
    const finding = rangeFinding(what, number, subject);
    if (finding) results.push(finding);
    return finding === undefined;
  };
  inRange("Checked", value);
  const limit = (keyword: string, what: string) => {
    const bound = schema[keyword];
    if (typeof bound !== "number") return undefined;
    return inRange(what, bound) && whole ? Math.trunc(bound) : bound;
  };
  const wrong = (why: string) =>
    results.push(
      invalidValue(
        subject,
        `${path} in body ${why}`,
        subject.isFloat ? Symbol(String(value)) : value,
      ),
    );
  const factor = limit("multipleOf", "MultipleOf");
  if (factor !== undefined && factor <= 0) {
    const text = `factor MultipleOf declared for ${path} must be positive: ${
      goNumber(factor)
    }`;
    results.push(invalidValue(subject, text, factor));
  } else if (factor !== undefined && !isMultiple(value, factor)) {
    wrong(`should be a multiple of ${shown(factor)}`);
  }
  const least = limit("minimum", "Minimum boundary");
  if (least !== undefined) {
    const exclusive = schema.exclusiveMinimum === true;
    if (exclusive ? value <= least : value < least) {
      const typeName = exclusive ? "greater than" : "greater than or equal to";
      wrong(`should be ${typeName} ${shown(least)}`);
    }
  }
  const most = limit("maximum", "Maximum boundary");
  if (most !== undefined) {
    const exclusive = schema.exclusiveMaximum === true;
    if (exclusive ? value >= most : value > most) {
      const typeName = exclusive ? "less than" : "less than or equal to";
      wrong(`should be ${typeName} ${shown(most)}`);
    }
  }
  return merge(results);
}

/** Whether a number has no fraction. */
function isWhole(number: unknown): boolean {
  return typeof number === "bigint" || Number.isInteger(number);
}

/** Whether a number is a multiple of another one, up to the rounding error of doubles. */
function isMultiple(value: number | bigint, factor: number): boolean {
  if (typeof value === "bigint") {
    if (Number.isInteger(factor)) return value % BigInt(factor) === 0n;
    return isMultiple(Number(value), factor);
  }
  if (Number.isInteger(value) && Number.isInteger(factor)) {
    return value % factor === 0;
  }
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  const distance = Math.abs(quotient - Math.trunc(quotient));
  return Number.isSafeInteger(Math.trunc(quotient)) &&
    (distance === 0 || distance / Math.abs(quotient) < 1e-9);
}

/** Checks `enum`; null is never allowed, even if listed. */
export function checkEnum(subject: Subject): Findings | undefined {
  const { value, schema, path } = subject;
  const values = schema.enum;
  if (values === undefined || values.length === 0) return undefined;
  if (value !== null && values.some((listed) => isListed(listed, value))) {
    return undefined;
  }
  const shown = values.map(String).join(" ");
  const text = `${path} in body should be one of [${shown}]`;
  const supported = values.map((one) =>
    typeof one === "string" ? one : writeJson(one)
  );
  return found(
    subject,
    text,
    (at) => fieldError.notSupported(at, value, supported),
  );
}

/** Whether a value equals an enum value; fractions are truncated for integers. */
function isListed(listed: unknown, value: unknown): boolean {
  if (isWhole(listed) && typeof value === "number") {
    return listed === Math.trunc(value);
  }
  return jsonEquals(listed, value);
}
