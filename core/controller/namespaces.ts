import type { ResolvedKind } from "../api/kind.ts";
import type { NamespaceSet } from "./event_source.ts";

/**
 * Which namespaces are watched: all, the one in which the operator runs, or
 * those named.
 */
export type Namespaces = "all" | "current" | readonly string[];

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * Which namespaces are meant.
 *
 * @param namespaces What the user gave.
 * @param current The namespace in which the operator runs, if it is known.
 * @param kind A kind without namespaces is always watched as a whole.
 * @throws {TypeError} If a name cannot be one, none is given, or the namespace
 * of the operator is not known.
 */
export function namespaceSet(
  namespaces: Namespaces,
  current: string | undefined,
  kind: Pick<ResolvedKind, "scope" | "kind">,
): NamespaceSet {
  if (kind.scope === "Cluster" || namespaces === "all") return "all";
  if (namespaces === "current") {
    if (current !== undefined) return [current];
    throw new TypeError(
      `Cannot watch the current namespace for ${kind.kind}: neither the kubeconfig's context nor the service account names one: received "current"`,
    );
  }
  if (!Array.isArray(namespaces) || namespaces.length === 0) {
    throw new TypeError(
      `Cannot watch namespaces for ${kind.kind}: they must be "all", "current" or a list of names: received ${
        JSON.stringify(namespaces)
      }`,
    );
  }
  for (const name of namespaces) {
    if (typeof name === "string" && NAME.test(name)) continue;
    throw new TypeError(
      `Cannot watch namespaces for ${kind.kind}: a name has up to 63 lower-case letters, digits and dashes: received ${
        JSON.stringify(name)
      }`,
    );
  }
  return [...new Set(namespaces)].sort();
}
