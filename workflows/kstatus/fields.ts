/** Any part of an object that came from outside. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The value at a path, or undefined where the path leaves what is there.
 *
 * @param object Where to start.
 * @param path Names of fields, joined by dots.
 */
export function at(object: unknown, path: string): unknown {
  let value = object;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    if (!Object.hasOwn(value, name)) return undefined;
    value = (value as JsonObject)[name];
  }
  return value;
}

/** The number at a path, or what stands for its absence. */
export function numberAt(
  object: unknown,
  path: string,
  otherwise: number,
): number {
  const value = at(object, path);
  return typeof value === "number" ? value : otherwise;
}

/** The text at a path; empty if there is none. */
export function textAt(object: unknown, path: string): string {
  const value = at(object, path);
  return typeof value === "string" ? value : "";
}

/** The list at a path; empty if there is none. */
export function listAt(object: unknown, path: string): readonly unknown[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

/** A condition as far as it can be read. */
export interface ReadCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The conditions of an object, in their order, whatever else they hold. */
export function conditionsAt(object: unknown): readonly ReadCondition[] {
  return listAt(object, "status.conditions").map((condition) => ({
    type: textAt(condition, "type"),
    status: textAt(condition, "status"),
    reason: textAt(condition, "reason"),
    message: textAt(condition, "message"),
  }));
}
