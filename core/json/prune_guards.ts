import type { PruneNode } from "./prune_tree.ts";

/**
 * Makes reads of what was pruned throw, and those of lists that lack elements
 * give the others.
 *
 * @param node What was pruned here and below.
 * @param value The value here, decoded.
 * @param guarded Takes the parts that are guarded.
 */
export function guardNode(
  node: PruneNode,
  value: unknown,
  guarded: Set<unknown>,
): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of node.members) {
    if (member.path === undefined) {
      const part = own(value, key);
      guardNode(member, part, guarded);
      if (member.rules === undefined || !Array.isArray(part)) continue;
      keptByObject.set(value, {
        ...keptByObject.get(value),
        [key]: deepFreeze(part),
      });
    } else if (Array.isArray(value)) continue;
    // One guard for all objects: they keep sharing their shape.
    member.guard ??= makeGuard(key, member.path);
    Object.defineProperty(value, key, member.guard);
    guarded.add(value);
    guardsByObject.set(value, {
      ...guardsByObject.get(value),
      [key]: member.guard,
    });
  }
  if (node.each !== undefined) {
    for (const [key, part] of Object.entries(value)) {
      if (!node.members.has(key)) guardNode(node.each, part, guarded);
    }
  }
}

function own(object: object, key: string): unknown {
  return Object.hasOwn(object, key)
    ? (object as Record<string, unknown>)[key]
    : undefined;
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}

/**
 * Stands for a member that is left out, or of which a part is: without a path it
 * can be read, but who writes the object does not write the rest away.
 */
function makeGuard(key: string, path: string | undefined): PropertyDescriptor {
  return {
    configurable: true,
    enumerable: false,
    get(this: object) {
      if (path === undefined) return keptByObject.get(this)?.[key];
      throw new Error(
        `Cannot read "${path}": the cache does not keep it: received an object without it; take the path off "prune"`,
      );
    },
    set(this: object, value: unknown) {
      const own = { value, writable: true, enumerable: true };
      Object.defineProperty(this, key, { ...own, configurable: true });
    },
  };
}

/** Lists of which some elements are kept, by the objects that have them. */
const keptByObject: WeakMap<object, Record<string, unknown>> = new WeakMap();

/** The guards of decoded objects; hardly any has one. */
const guardsByObject: WeakMap<object, Record<string, PropertyDescriptor>> =
  new WeakMap();

/**
 * Lets a copy of a decoded object throw where that throws, since the value is
 * not kept, and read what is kept of a list. What is copied from the copy does
 * not.
 */
function copyGuards(source: object, target: object): void {
  const guards = guardsByObject.get(source);
  if (guards === undefined) return;
  const kept = keptByObject.get(source);
  if (kept !== undefined) keptByObject.set(target, kept);
  for (const name in guards) {
    Object.defineProperty(target, name, guards[name] as PropertyDescriptor);
  }
}

/**
 * Deep copy of a decoded object, which may be changed. Fields that the cache does
 * not keep still throw when they are read, and may be set.
 *
 * @param value JSON value.
 */
export function mutableCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const source = value as Record<string, unknown>;
  // The engine copies an object of a known shape in one step. A name like
  // "__proto__" becomes an own field, which a later assignment then finds.
  const result = { ...source };
  // A list of the names would take as much memory as the copy itself.
  for (const name in source) {
    const part = source[name];
    if (
      typeof part === "object" && part !== null && Object.hasOwn(source, name)
    ) {
      result[name] = copy(part);
    }
  }
  copyGuards(source, result);
  return result;
}
