/**
 * A deep copy of a decoded object that may be changed. Fields that the cache
 * does not keep still throw when they are read, and may be set.
 *
 * @param value What JSON can say.
 */
export function mutableCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const source = value as Record<string, unknown>;
  const result: Record<string, unknown> = {};
  let count = 0;
  for (const name of Object.keys(source)) {
    // A plain assignment to this one name would set the prototype.
    if (name === "__proto__") define(result, name, copy(source[name]));
    else result[name] = copy(source[name]);
    count++;
  }
  const names = Object.getOwnPropertyNames(source);
  if (names.length !== count) copyGuards(source, result, names);
  return result;
}

/** Copies the accessors that stand for fields that are not kept. */
function copyGuards(
  source: object,
  result: object,
  names: readonly string[],
): void {
  for (const name of names) {
    const guard = Object.getOwnPropertyDescriptor(source, name);
    if (guard?.get === undefined) continue;
    Object.defineProperty(result, name, {
      configurable: true,
      enumerable: false,
      get: guard.get,
      set: (value: unknown) => define(result, name, value),
    });
  }
}

function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, {
    configurable: true,
    enumerable: true,
    writable: true,
    value,
  });
}
