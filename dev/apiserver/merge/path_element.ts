import { readJson, writeJson } from "../exact_json.ts";
import { compareTexts } from "@coracle/operator/internal";

/**
 * Element of a field path, in the format of `fieldsV1`: `f:NAME` for a field,
 * `k:{"name":"web"}` for the list item with these keys, `v:"x"` for an item of a
 * set, `i:3` for a list index. Elements are equal if their texts are equal.
 */
export type PathElement = string;

/** Path of a field from the root of an object; empty for the object itself. */
export type FieldPath = readonly PathElement[];

/** Creates the path element of a field, from its name. */
export function fieldElement(name: string): PathElement {
  return `f:${name}`;
}

/** Creates the path element of a list item from its keys, given in any order. */
export function keyElement(
  keys: readonly (readonly [name: string, value: unknown])[],
): PathElement {
  const sorted = [...keys].sort(([a], [b]) => compareTexts(a, b));
  const parts = sorted.map(([name, value]) =>
    `${jsonOf(name)}:${jsonOf(value)}`
  );
  return `k:{${parts.join(",")}}`;
}

/** Creates the element of an item of a set. */
export function valueElement(value: unknown): PathElement {
  return `v:${jsonOf(value)}`;
}

/**
 * Parses and normalizes an element: the order of keys and the notation of numbers
 * become unique.
 *
 * @throws {SyntaxError} If the text is not an element.
 */
export function parsePathElement(text: string): PathElement {
  const content = text.slice(2);
  switch (text.slice(0, 2)) {
    case "f:":
      return text;
    case "v:":
      return valueElement(readJson(content));
    case "k:": {
      const keys: unknown = readJson(content);
      if (typeof keys === "object" && keys !== null && !Array.isArray(keys)) {
        return keyElement(Object.entries(keys));
      }
      break;
    }
    case "i:":
      if (/^-?\d+$/.test(content)) return `i:${Number(content)}`;
      break;
  }
  throw new SyntaxError(
    `Cannot read a path element: it must be f:, k:, v: or i: with its content: received ${
      JSON.stringify(text)
    }`,
  );
}

/** Field name of an element; `undefined` for elements of lists. */
export function fieldNameOf(element: PathElement): string | undefined {
  return element.startsWith("f:") ? element.slice(2) : undefined;
}

/** Order of the kinds of elements: fields, keys, values, indexes. */
const KINDS = "fkvi";

/** Compares elements in the order of kube-apiserver. */
export function comparePathElements(a: PathElement, b: PathElement): number {
  const kind = KINDS.indexOf(a[0] ?? "") - KINDS.indexOf(b[0] ?? "");
  if (kind !== 0) return kind;
  return a.startsWith("i:")
    ? Number(a.slice(2)) - Number(b.slice(2))
    : compareTexts(a, b);
}

/** Formats a path for messages: `.spec.containers[name="web"].ports[0]`. */
export function fieldPathText(path: FieldPath): string {
  return path.map(elementText).join("");
}

/** Formats an element for messages: `.spec`, `[name="web"]`, `[="x"]`, `[3]`. */
export function elementText(element: PathElement): string {
  const content = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${content}`;
    case "k": {
      const keys = Object.entries(readJson(content) as object);
      return `[${
        keys.map(([name, value]) => `${name}=${writeJson(value)}`)
          .join(",")
      }]`;
    }
    case "v":
      return `[=${writeJson(readJson(content))}]`;
    default:
      return `[${content}]`;
  }
}

/** Characters that Go's JSON encoder escapes, unlike JavaScript's. */
const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;

/** Encodes JSON as Go does, so that stored field sets are identical. */
function jsonOf(value: unknown): string {
  return writeJson(value).replace(
    ESCAPED_BY_GO,
    (character) =>
      `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
