/**
 * One step of a field path, as `fieldsV1` writes it: `f:NAME` for a field,
 * `k:{"name":"web"}` for the item of a list with these keys, `v:"x"` for an
 * item of a set, `i:3` for a place in a list. Two elements mean the same step
 * exactly when their texts are equal.
 */
export type FieldElement = string;

/** A field from the root of an object down; empty for the object itself. */
export type FieldPath = readonly FieldElement[];

/** What may be the key or the value of a list item. */
export type ListItemKey = string | number | boolean | null;

/** The element of a field of an object. */
export function fieldElement(name: string): FieldElement {
  return `f:${name}`;
}

/** The element of a list item that is told by keys; their order is no matter. */
export function keyElement(
  keys: readonly (readonly [name: string, value: unknown])[],
): FieldElement {
  const sorted = [...keys].sort(([a], [b]) => compareText(a, b));
  const parts = sorted.map(([name, value]) =>
    `${jsonOf(name)}:${jsonOf(value)}`
  );
  return `k:{${parts.join(",")}}`;
}

/** The element of an item of a set. */
export function valueElement(value: unknown): FieldElement {
  return `v:${jsonOf(value)}`;
}

/**
 * Reads an element in any spelling, so that keys in another order or numbers
 * written otherwise become equal texts.
 *
 * @throws {SyntaxError} If it is no element.
 */
export function parseFieldElement(text: string): FieldElement {
  const content = text.slice(2);
  switch (text.slice(0, 2)) {
    case "f:":
      return text;
    case "v:":
      return valueElement(JSON.parse(content));
    case "k:": {
      const keys: unknown = JSON.parse(content);
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
    `Cannot read a field element: it must be f:, k:, v: or i: and its content: received ${
      JSON.stringify(text)
    }`,
  );
}

/** The name in an element of a field; undefined for elements of lists. */
export function fieldNameOf(element: FieldElement): string | undefined {
  return element.startsWith("f:") ? element.slice(2) : undefined;
}

/** Fields come before keys, keys before values, values before places. */
const KINDS = "fkvi";

/** The order in which kube-apiserver lists elements. */
export function compareElements(a: FieldElement, b: FieldElement): number {
  const kind = KINDS.indexOf(a[0] ?? "") - KINDS.indexOf(b[0] ?? "");
  if (kind !== 0) return kind;
  return a.startsWith("i:")
    ? Number(a.slice(2)) - Number(b.slice(2))
    : compareText(a, b);
}

/** A path for people: `.spec.containers[name="web"].ports[0]`. */
export function fieldPathText(path: FieldPath): string {
  return path.map(elementText).join("");
}

/** An element for people: `.spec`, `[name="web"]`, `[="x"]`, `[3]`. */
export function elementText(element: FieldElement): string {
  const content = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${content}`;
    case "k": {
      const keys = Object.entries(JSON.parse(content) as object);
      return `[${
        keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`)
          .join(",")
      }]`;
    }
    case "v":
      return `[=${JSON.stringify(JSON.parse(content))}]`;
    default:
      return `[${content}]`;
  }
}

/** Orders by code unit, which does not depend on a locale. */
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What Go's encoder escapes beyond JSON's own rules. */
const ESCAPED_BY_GO = /[<>&\u2028\u2029]/g;

/** Compact JSON as Go writes it, so that stored field sets are the same text. */
function jsonOf(value: unknown): string {
  return JSON.stringify(value).replace(
    ESCAPED_BY_GO,
    (character) =>
      `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
