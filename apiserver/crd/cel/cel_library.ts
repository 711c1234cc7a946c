import type * as CelModule from "@marcbachmann/cel-js";

/** The library that parses, checks and runs CEL. */
export type CelLibrary = typeof CelModule;

let library: CelLibrary | undefined;

/**
 * Loads the CEL library, which costs some tens of milliseconds: only a server
 * that meets a definition with rules pays for it.
 */
export async function loadCel(): Promise<void> {
  library ??= await import("@marcbachmann/cel-js");
}

/**
 * The library, once it is loaded.
 *
 * @throws {ReferenceError} If {@linkcode loadCel} was not awaited before.
 */
export function celLibrary(): CelLibrary {
  if (library === undefined) {
    throw new ReferenceError(
      "Cannot compile CEL rules: the library must be loaded before: received no call of loadCel()",
    );
  }
  return library;
}

/** Whether a definition has rules anywhere, so that it needs the library. */
export function hasRules(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasRules);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, inner]) =>
    name === "x-kubernetes-validations" || hasRules(inner)
  );
}
