/**
 * Copies a value as JSON, and freezes the copy: fields without a value are left
 * out.
 *
 * @throws {TypeError} If JSON cannot express a value; the error names its path.
 */
export function plainCopy<T>(value: T): T {
  return copied(value, "") as T;
}

function copied(value: unknown, path: string): unknown {
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (value === null || value === undefined) return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "object") throw noJson(path, typeof value);
  let copy: object;
  if (Array.isArray(value)) {
    copy = value.map((item, index) =>
      item === undefined ? null : copied(item, `${path}[${index}]`)
    );
  } else {
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      throw noJson(path, `a ${value.constructor?.name}`);
    }
    const fields: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      const field = (value as Record<string, unknown>)[name];
      if (field === undefined) continue;
      const below = copied(field, `${path}.${name}`);
      if (name !== "__proto__") fields[name] = below;
      else {Object.defineProperty(fields, name, {
          value: below,
          enumerable: true,
        });}
    }
    copy = fields;
  }
  return Object.freeze(copy);
}

function noJson(path: string, what: string): TypeError {
  return new TypeError(
    `${
      path === "" ? "the value" : path.slice(1)
    } as ${what}, which JSON does not have`,
  );
}
