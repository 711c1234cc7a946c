import { setOwn } from "../patch/json_value.ts";

/**
 * Copies a value as JSON, and freezes the copy: fields without a value are left
 * out.
 *
 * @throws {TypeError} If JSON cannot express a value; the error names its path.
 */
export function plainCopy<T>(value: T): T {
  return copied(value, []) as T;
}

/** @param path Path of the value, which grows and shrinks on the way. */
function copied(value: unknown, path: (string | number)[]): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return value;
    case "number":
      if (Number.isFinite(value)) return value;
      throw noJson(path, "number");
    case "object":
      if (value === null) return value;
      break;
    default:
      throw noJson(path, typeof value);
  }
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (let index = 0; index < value.length; index++) {
      path.push(index);
      items.push(copied(value[index], path) ?? null);
      path.pop();
    }
    return Object.freeze(items);
  }
  const prototype = Object.getPrototypeOf(value);
  if (
    prototype !== Object.prototype && prototype !== null &&
    Object.getPrototypeOf(prototype) !== null
  ) throw noJson(path, `a ${value.constructor?.name}`);
  const source = value as Record<string, unknown>;
  const fields: Record<string, unknown> = {};
  for (const name of Object.keys(source)) {
    const field = source[name];
    if (field === undefined) continue;
    path.push(name);
    const below = copied(field, path);
    path.pop();
    setOwn(fields, name, below);
  }
  return Object.freeze(fields);
}

function noJson(path: readonly (string | number)[], what: string): TypeError {
  const text = path.map((step) =>
    typeof step === "number" ? `[${step}]` : `.${step}`
  ).join("");
  return new TypeError(
    `${
      text === "" ? "the value" : text.slice(1)
    } as ${what}, which JSON does not have`,
  );
}
