import type { Scope } from "../api/kind.ts";

/** One resource that a server serves. */
export interface DiscoveredResource {
  /** The API group; empty for the core group. */
  readonly group: string;
  /** The version, such as `v1`. */
  readonly version: string;
  /** The kind in the singular, such as `Deployment`. */
  readonly kind: string;
  /** The name in paths. */
  readonly plural: string;
  /** The name for one; empty where the server does not tell. */
  readonly singular: string;
  /** Where its objects live. */
  readonly scope: Scope;
  /** Short names for people's commands, such as `deploy`. */
  readonly shortNames: readonly string[];
  /** Names of sets that it belongs to, such as `all`. */
  readonly categories: readonly string[];
  /** What can be done with it, such as `get` and `watch`. */
  readonly verbs: readonly string[];
  /** The names of its subresources, such as `status`. */
  readonly subresources: readonly string[];
}

interface Entry {
  readonly [name: string]: unknown;
}

/**
 * Reads an APIGroupDiscoveryList, which tells of many groups at once; groups
 * whose server did not answer are left out, as the list says that they are
 * stale.
 */
export function readAggregated(list: unknown): DiscoveredResource[] {
  return entries(entry(list)["items"]).flatMap((group) =>
    entries(group["versions"]).flatMap((version) =>
      version["freshness"] === "Stale"
        ? []
        : entries(version["resources"]).flatMap((resource) => {
          const kind = text(entry(resource["responseKind"])["kind"]);
          const plural = text(resource["resource"]);
          if (kind === "" || plural === "") return [];
          return [{
            group: text(entry(group["metadata"])["name"]),
            version: text(version["version"]),
            kind,
            plural,
            singular: text(resource["singularResource"]),
            scope: scopeOf(resource["scope"] === "Namespaced"),
            shortNames: texts(resource["shortNames"]),
            categories: texts(resource["categories"]),
            verbs: texts(resource["verbs"]),
            subresources: entries(resource["subresources"]).map((part) =>
              text(part["subresource"])
            ),
          }];
        })
    )
  );
}

/** Reads an APIResourceList, which tells of one group and version. */
export function readResourceList(
  list: unknown,
  { group, version }: { readonly group: string; readonly version: string },
): DiscoveredResource[] {
  const resources = entries(entry(list)["resources"]);
  const parts = resources.map(({ name }) => text(name))
    .filter((name) => name.includes("/"));
  return resources.filter(({ name }) => !text(name).includes("/"))
    .map((resource) => {
      const plural = text(resource["name"]);
      return {
        group: text(resource["group"]) || group,
        version: text(resource["version"]) || version,
        kind: text(resource["kind"]),
        plural,
        singular: text(resource["singularName"]),
        scope: scopeOf(resource["namespaced"] === true),
        shortNames: texts(resource["shortNames"]),
        categories: texts(resource["categories"]),
        verbs: texts(resource["verbs"]),
        subresources: parts.filter((name) => name.startsWith(`${plural}/`))
          .map((name) => name.slice(plural.length + 1)),
      };
    });
}

/** Reads which groups and versions an APIVersions or APIGroupList names. */
export function readGroupVersions(
  list: unknown,
): { readonly group: string; readonly version: string }[] {
  const { groups, versions } = entry(list);
  return [
    ...texts(versions).map((version) => ({ group: "", version })),
    ...entries(groups).flatMap((group) =>
      entries(group["versions"]).map((version) => ({
        group: text(group["name"]),
        version: text(version["version"]),
      }))
    ),
  ];
}

function scopeOf(namespaced: boolean): Scope {
  return namespaced ? "Namespaced" : "Cluster";
}

function entry(value: unknown): Entry {
  return typeof value === "object" && value !== null ? value as Entry : {};
}

function entries(value: unknown): Entry[] {
  return Array.isArray(value) ? value.map(entry) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function texts(value: unknown): string[] {
  return Array.isArray(value)
    ? value.filter((item) => item === text(item))
    : [];
}
