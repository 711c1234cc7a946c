import {
  elementText,
  fieldElement,
  keyElement,
  type PathElement,
  valueElement,
} from "./path_element.ts";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import { goSyntax, goText, goTypeName } from "../validation/go_value.ts";
import { Schema } from "./schema.ts";
import { isNumber } from "../exact_json.ts";

/** Form of a value in a traversal: a map, a list or a scalar. */
export type Form = "map" | "list" | "scalar";

/** Schema for fields that the schema does not mention. */
const ANYTHING: Schema = new Schema({});

/** Whether a schema without type allows only scalars, like the schema of a quantity. */
function scalarsOnly(schema: Schema): boolean {
  const { oneOf } = schema.source;
  return !schema.intOrString && Array.isArray(oneOf) &&
    oneOf.every((option) =>
      isJsonObject(option) && option.type !== "object" &&
      option.type !== "array"
    );
}

/** Whether a schema allows values of a form. */
function allows(schema: Schema, form: Form): boolean {
  switch (schema.type) {
    case "object":
      return form === "map";
    case "array":
      return form === "list";
    case undefined:
      return form === "scalar" || !scalarsOnly(schema);
    default:
      return form === "scalar";
  }
}

/**
 * Determines the form in which a value is traversed: its own form if the schema
 * allows it, otherwise the first one that the schema allows.
 */
export function formOf(schema: Schema, value: unknown): Form {
  const own: Form | undefined = value === null || value === undefined
    ? undefined
    : Array.isArray(value)
    ? "list"
    : typeof value === "object"
    ? "map"
    : "scalar";
  if (own !== undefined && allows(schema, own)) return own;
  if (allows(schema, "map")) return "map";
  return allows(schema, "scalar") ? "scalar" : "list";
}

/** Returns the schema of a field, or a schema that allows anything. */
export function fieldSchema(schema: Schema, name: string): Schema {
  return schema.properties.get(name) ?? schema.unnamedFields ?? ANYTHING;
}

/** Returns the schema of list items, or a schema that allows anything. */
export function itemSchema(schema: Schema): Schema {
  return schema.items ?? ANYTHING;
}

/**
 * Determines the path element of an item of a list of type `map` or `set`.
 *
 * @returns Path element, or the reason why the item has none.
 */
export function itemElement(
  schema: Schema,
  item: unknown,
): { element: PathElement } | { problem: string } {
  return schema.listType === "map"
    ? keyedItemElement(schema, item)
    : setItemElement(item);
}

function setItemElement(
  item: unknown,
): { element: PathElement } | { problem: string } {
  const without = "associative list without keys has an element that's";
  if (item === null) return { problem: `${without} an explicit null` };
  if (Array.isArray(item)) {
    return {
      problem: "not supported: associative list with lists as elements",
    };
  }
  if (typeof item === "object") return { problem: `${without} a map type` };
  return { element: valueElement(item) };
}

function keyedItemElement(
  schema: Schema,
  item: unknown,
): { element: PathElement } | { problem: string } {
  if (item === null) {
    return {
      problem: "associative list with keys may not have a null element",
    };
  }
  if (!isJsonObject(item)) {
    return {
      problem: "associative list with keys may not have non-map elements",
    };
  }
  const keys: [string, unknown][] = [];
  for (const name of schema.listMapKeys) {
    const value = Object.hasOwn(item, name)
      ? item[name]
      : schema.items?.properties.get(name)?.default;
    if (value !== undefined) keys.push([name, value]);
  }
  if (keys.length === 0) {
    const names = schema.listMapKeys.map((name) => JSON.stringify(name));
    return {
      problem:
        `associative list with keys has an element that omits all key fields [${
          names.join(" ")
        }] (and doesn't have default values for any key fields)`,
    };
  }
  return { element: keyElement(keys) };
}

/** Mismatch between a value and its schema. */
export interface TypeProblem {
  /** Path, such as `.spec.ports[name="web"]`; empty for the value itself. */
  readonly path: string;
  /** Text of the problem, as in kube-apiserver. */
  readonly message: string;
}

/** Formats problems as kube-apiserver does. */
export function typeProblemsText(problems: readonly TypeProblem[]): string {
  const texts = problems.map(({ path, message }) =>
    path === "" ? message : `${path}: ${message}`
  );
  return texts.length === 1
    ? texts[0] ?? ""
    : ["errors:", ...texts.map((text) => `  ${text}`)].join("\n");
}

/** Options of {@linkcode typeProblems}. */
export interface TypeCheckOptions {
  /**
   * Whether a set or keyed list may have duplicate items, which stored objects
   * from before stricter rules may contain.
   *
   * @default {false}
   */
  readonly allowDuplicates?: boolean | undefined;
}

/**
 * Checks a value against a schema as far as field ownership requires: known
 * fields, JSON types, distinct list items. Null is always allowed.
 *
 * @returns The problems; empty if the value matches.
 */
export function typeProblems(
  schema: Schema,
  value: unknown,
  options: TypeCheckOptions = {},
): TypeProblem[] {
  const problems: TypeProblem[] = [];
  check(schema, value, "", {
    allowDuplicates: options.allowDuplicates ?? false,
    report: (path, message) => problems.push({ path, message }),
  });
  return problems;
}

interface Checker {
  readonly allowDuplicates: boolean;
  report(path: string, message: string): void;
}

function check(
  schema: Schema,
  value: unknown,
  path: string,
  checker: Checker,
): void {
  if (value === null || value === undefined) return;
  switch (formOf(schema, value)) {
    case "map":
      if (isJsonObject(value)) checkFields(schema, value, path, checker);
      else checker.report(path, `expected map, got &{${goText(value)}}`);
      break;
    case "list":
      if (Array.isArray(value)) checkItems(schema, value, path, checker);
      else checker.report(path, `expected list, got &{${goText(value)}}`);
      break;
    case "scalar":
      checkScalar(schema, value, path, checker);
  }
}

function checkFields(
  schema: Schema,
  value: JsonObject,
  path: string,
  checker: Checker,
): void {
  for (const [name, field] of Object.entries(value)) {
    const child = schema.properties.get(name) ?? schema.unnamedFields;
    const childPath = `${path}${elementText(fieldElement(name))}`;
    if (child === undefined) {
      // kube-apiserver reports only one unknown field per object.
      checker.report(childPath, "field not declared in schema");
      return;
    }
    check(child, field, childPath, checker);
  }
}

function checkItems(
  schema: Schema,
  value: readonly unknown[],
  path: string,
  checker: Checker,
): void {
  const seen = new Set<PathElement>();
  for (const [index, item] of value.entries()) {
    let element: PathElement = `i:${index}`;
    if (schema.listType !== "atomic") {
      const found = itemElement(schema, item);
      if ("problem" in found) {
        checker.report(path, `element ${index}: ${found.problem}`);
        return;
      }
      element = found.element;
      if (seen.has(element) && !checker.allowDuplicates) {
        const text = elementText(element);
        checker.report(path, `duplicate entries for key ${text}`);
      }
      seen.add(element);
    }
    check(itemSchema(schema), item, `${path}${elementText(element)}`, checker);
  }
}

function checkScalar(
  schema: Schema,
  value: unknown,
  path: string,
  checker: Checker,
): void {
  const problem = scalarProblem(schema, value);
  if (problem !== undefined) checker.report(path, problem);
}

/** Problem of a value that must be a scalar; `undefined` if it is valid. */
function scalarProblem(
  schema: Schema,
  value: unknown,
): string | undefined {
  switch (schema.type) {
    case "integer":
    case "number":
      return isNumber(value)
        ? undefined
        : `expected numeric (int or float), got ${goTypeName(value)}`;
    case "boolean":
      return typeof value === "boolean"
        ? undefined
        : `expected boolean, got &{${goText(value)}}`;
    case "string":
      if (schema.format !== undefined && schema.format !== "byte") break;
      return typeof value === "string"
        ? undefined
        : `expected string, got &value.valueUnstructured{Value:${
          goSyntax(value)
        }}`;
  }
  return typeof value === "object"
    ? `expected any scalar, got &{${goText(value)}}`
    : undefined;
}
