import { loadModule } from "@coracle/operator/internal";
import type * as CelModule from "@marcbachmann/cel-js";
import type { Environment } from "@marcbachmann/cel-js";

/** Library that parses, checks and evaluates CEL. */
export type CelLibrary = typeof CelModule;

let library: CelLibrary | undefined;

/**
 * Loads the CEL library. This takes tens of milliseconds, so a server loads it
 * only for the first CRD with rules.
 */
export async function loadCel(): Promise<void> {
  library ??= await loadModule(import("@marcbachmann/cel-js"));
}

/**
 * Loaded CEL library.
 *
 * @throws {ReferenceError} If {@linkcode loadCel} has not loaded it yet.
 */
export function celLibrary(): CelLibrary {
  if (library === undefined) {
    throw new ReferenceError(
      "Cannot compile CEL rules: the CEL library is not loaded",
    );
  }
  return library;
}

/** Types and functions that extend the CEL library. */
export interface CelExtension {
  /** Classes of types by their names in signatures. */
  readonly types?: Readonly<Record<string, { readonly prototype: object }>>;
  /** Namespaces that qualify functions, such as `sets`, with their types. */
  readonly namespaces?: Readonly<Record<string, string>>;
  /** Functions by signature, including the operator `==` of types. */
  readonly functions: Readonly<Record<string, (...args: never[]) => unknown>>;
}

/** Registers an extension in a CEL environment. */
export function extend(
  environment: Environment,
  { types = {}, namespaces = {}, functions }: CelExtension,
): void {
  for (const [name, ctor] of Object.entries(types)) {
    environment.registerType(name, { ctor: ctor as never });
  }
  for (const [name, type] of Object.entries(namespaces)) {
    const ctor = class {};
    environment.registerType(type, { ctor })
      .registerConstant(name, type, new ctor());
  }
  for (const [signature, run] of Object.entries(functions)) {
    if (signature.includes(" == ")) {
      environment.registerOperator(signature, run as never);
    } else environment.registerFunction(signature, run as never);
  }
}

/** Whether a schema or CRD contains CEL rules. */
export function hasRules(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasRules);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([name, inner]) =>
    name === "x-kubernetes-validations" || hasRules(inner)
  );
}
