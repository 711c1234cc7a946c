import { loadModule } from "../../../core/clock.ts";
import type * as CelModule from "@marcbachmann/cel-js";

/** Library that parses, checks and evaluates CEL. */
export type CelLibrary = typeof CelModule;

let library: CelLibrary | undefined;

/**
 * Loads the CEL library. Loading takes some tens of milliseconds, so that a server
 * does it only for the first CRD with rules.
 */
export async function loadCel(): Promise<void> {
  library ??= await loadModule(import("@marcbachmann/cel-js"));
}

/**
 * CEL library, after it was loaded.
 *
 * @throws {ReferenceError} If the library is not loaded yet by {@linkcode loadCel}.
 */
export function celLibrary(): CelLibrary {
  if (library === undefined) {
    throw new ReferenceError(
      "Cannot compile CEL rules: the CEL library is not loaded",
    );
  }
  return library;
}

/** Whether a schema or CRD contains CEL rules. */
export function hasRules(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasRules);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, inner]) =>
    name === "x-kubernetes-validations" || hasRules(inner)
  );
}
