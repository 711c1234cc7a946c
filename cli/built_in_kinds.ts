import { isResolved, type Kind, type ResolvedKind } from "../core/api/kind.ts";

/** All kinds of `@coracle/operator/kinds`. */
export async function builtInKinds(): Promise<readonly ResolvedKind[]> {
  const exports = await import("../core/kinds/mod.ts");
  return Object.values(exports).filter((value): value is ResolvedKind =>
    typeof value === "object" && "kind" in value && isResolved(value as Kind)
  );
}
