import type { Kind } from "../api/kind.ts";
import { type OptionRow, typeText } from "../api/options.ts";
import type { NamespaceSet } from "./event_source.ts";

/**
 * Namespaces to watch: all, the namespace in which the operator runs, or a list of
 * names.
 */
export type Namespaces = "all" | "current" | readonly string[];

/** Pattern of names of namespaces: a label as in RFC 1123. */
const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/**
 * Validates the option `namespaces`.
 *
 * @param words Keywords that are allowed in place of a list.
 * @param subject Subject of the error message, such as `"an operator"`.
 * @throws {TypeError} If the value is neither a keyword nor a list of names
 * with at least one item.
 */
export function checkNamespaces(
  namespaces: unknown,
  words: readonly string[],
  subject: string,
): void {
  if (words.includes(namespaces as string)) return;
  if (!Array.isArray(namespaces) || namespaces.length === 0) {
    throw new TypeError(
      `Cannot watch namespaces for ${subject}: they must be ${
        words.map((word) => JSON.stringify(word)).join(", ")
      } or a list of names: received ${
        Array.isArray(namespaces)
          ? "[]"
          : JSON.stringify(namespaces) ?? typeText(namespaces)
      }`,
    );
  }
  for (const name of namespaces) {
    if (typeof name === "string" && NAMESPACE_NAME.test(name)) continue;
    throw new TypeError(
      `Cannot watch namespaces for ${subject}: a name has up to 63 lower-case letters, digits and dashes: received ${
        JSON.stringify(name)
      }`,
    );
  }
}

/** Keywords for the namespaces of operators and controllers. */
const NAMESPACE_WORDS: readonly string[] = ["all", "current"];

/** Row of the option `namespaces` in a table of options. */
export const NAMESPACES_OPTION: OptionRow<Namespaces | undefined> = {
  type: "any?",
  words: NAMESPACE_WORDS,
  check: (value, subject) => checkNamespaces(value, NAMESPACE_WORDS, subject),
};

/**
 * Resolves the option `namespaces`.
 *
 * @param current Namespace in which the operator runs, if it is known.
 * @param kind Kind to watch; if it is known to be cluster-scoped, the result is
 * `"all"`.
 * @throws {TypeError} If the value is `"current"` and the namespace of the
 * operator is not known.
 */
export function namespaceSet(
  namespaces: Namespaces,
  current: string | undefined,
  kind: Pick<Kind, "kind" | "scope">,
): NamespaceSet {
  if (kind.scope === "Cluster" || namespaces === "all") return "all";
  if (namespaces === "current") {
    if (current !== undefined) return [current];
    throw new TypeError(
      `Cannot watch the current namespace for ${kind.kind}: neither the kubeconfig's context nor the service account names one: received "current"`,
    );
  }
  return [...new Set(namespaces)].sort();
}
