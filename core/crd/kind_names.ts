import type { DefinedKind, KindDefinition } from "./kind_definition.ts";

type DerivedName =
  | "plural"
  | "singular"
  | "listKind"
  | "shortNames"
  | "categories";

/** Label of RFC 1035, for kinds, versions and segments of a path. */
const DNS_1035_LABEL_REGEXP = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Subdomain of RFC 1123, for API groups. */
const DNS_1123_SUBDOMAIN_REGEXP =
  /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const LONGEST_SUBDOMAIN = 253;

/**
 * English plural of a kind in lower case, by rules without a dictionary: `Policy`
 * gives `policies`, `Ingress` gives `ingresses`, `Shelf` gives `shelves`.
 */
export function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  if (/(?:shel|hal|cal|wol|lea|loa|kni|li|wi)fe?$/.test(word)) {
    return word.replace(/fe?$/, "ves");
  }
  if (word.endsWith("sis")) return `${word.slice(0, -2)}es`;
  if (/(?:s|x|z|ch|sh)$/.test(word)) return `${word}es`;
  return `${word}s`;
}

/**
 * Derives the names of a kind that are not given, and checks all of them by the
 * rules of the API server.
 *
 * @throws {TypeError} If the API server would refuse a name.
 */
export function kindNames(
  options: Pick<KindDefinition, "group" | "version" | "kind" | DerivedName>,
): Pick<DefinedKind, DerivedName> {
  const { group, version, kind } = options;
  const problem = (what: string, why: string, value: unknown) =>
    new TypeError(
      `Cannot define the kind ${
        String(kind)
      }: '${what}' must be ${why}: received ${JSON.stringify(value)}`,
    );
  const checkLabel = (what: string, value: string, written = value) => {
    if (typeof value === "string" && DNS_1035_LABEL_REGEXP.test(value)) return;
    throw problem(
      what,
      "up to 63 letters, digits and '-', beginning with a letter, in lower case",
      written,
    );
  };
  if (
    typeof kind !== "string" ||
    !DNS_1035_LABEL_REGEXP.test(kind.toLowerCase())
  ) {
    throw problem("kind", "up to 63 letters and digits, as WebPage", kind);
  }
  if (typeof group !== "string" || !isDomain(group)) {
    throw problem("group", "a domain with a dot, as sample.example.com", group);
  }
  checkLabel("version", version);
  const plural = options.plural ?? pluralOf(kind);
  const singular = options.singular ?? kind.toLowerCase();
  const listKind = options.listKind ?? `${kind}List`;
  checkLabel("plural", plural);
  checkLabel("singular", singular);
  checkLabel("listKind", String(listKind).toLowerCase(), listKind);
  if (listKind === kind) {
    throw problem("listKind", "different from 'kind'", listKind);
  }
  const shortNames = Object.freeze([...options.shortNames ?? []]);
  const categories = Object.freeze([...options.categories ?? []]);
  for (const name of shortNames) checkLabel("shortNames", name);
  for (const name of categories) checkLabel("categories", name);
  if (`${plural}.${group}`.length > LONGEST_SUBDOMAIN) {
    throw problem("plural", `shorter, with '.${group}' up to 253`, plural);
  }
  return { plural, singular, listKind, shortNames, categories };
}

function isDomain(name: string): boolean {
  return name.includes(".") && name.length <= LONGEST_SUBDOMAIN &&
    DNS_1123_SUBDOMAIN_REGEXP.test(name);
}
