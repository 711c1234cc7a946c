/**
 * Discovery of the API server: groups, versions and resources, aggregated
 * discovery and the OpenAPI documents. Computed from the served resource
 * definitions. Must not import storage or writes.
 *
 * @module
 */
import { createHash } from "node:crypto";
import {
  apiVersionOf,
  compareTexts,
  compareVersions,
} from "@coracle/operator/internal";
import {
  type ResourceDefinition,
  type ResourceVersion,
  type Subresource,
  subresourcesOf,
} from "../registry.ts";
import type { Resources } from "../resources.ts";

/** Version of a group with its served resources. */
export interface ServedVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly ServedResource[];
}

/** Resource in one version. */
export interface ServedResource {
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersion;
}

/**
 * Served groups with their versions, preferred version first. Built-in groups
 * keep their order; custom groups follow by name.
 */
export function servedGroups(
  resources: Resources,
): ReadonlyMap<string, readonly ServedVersion[]> {
  const groups = new Map<string, Map<string, ServedResource[]>>();
  const definitions = [...resources.definitions()];
  const builtin = definitions.filter(({ custom }) => !custom);
  const custom = definitions.filter((definition) => definition.custom)
    .sort((a, b) =>
      compareTexts(a.group, b.group) || compareTexts(a.plural, b.plural)
    );
  for (const definition of [...builtin, ...custom]) {
    const versions = groups.get(definition.group) ?? new Map();
    groups.set(definition.group, versions);
    for (const version of definition.versions) {
      if (!version.served) continue;
      const served = versions.get(version.name) ?? [];
      versions.set(version.name, served);
      served.push({ definition, version });
    }
  }
  return new Map([...groups].map(([group, versions]) => [
    group,
    [...versions].sort(([a], [b]) => compareVersions(a, b))
      .map(([version, resources]) => ({
        group,
        version,
        resources: resources.sort((a, b) =>
          compareTexts(a.definition.plural, b.definition.plural)
        ),
      })),
  ]));
}

/** Response body of `/apis/GROUP`. */
export function apiGroup(
  name: string,
  versions: readonly ServedVersion[],
): Record<string, unknown> {
  const entries = versions.map(({ version }) => ({
    groupVersion: apiVersionOf({ group: name, version }),
    version,
  }));
  return { name, versions: entries, preferredVersion: entries[0] };
}

/** Response body of `/apis`. */
export function apiGroupList(resources: Resources): object {
  const groups = [...servedGroups(resources)].filter(([name]) => name !== "")
    .map(([name, versions]) => apiGroup(name, versions));
  return { kind: "APIGroupList", apiVersion: "v1", groups };
}

/** Response body of `/apis/GROUP/VERSION` and `/api/v1`. */
export function apiResourceList(served: ServedVersion): object {
  const { group, version, resources } = served;
  return {
    kind: "APIResourceList",
    // Omitted for the core group, as in Go.
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: apiVersionOf({ group, version }),
    resources: resources.flatMap((resource) => [
      apiResource(resource.definition),
      ...sortedSubresources(resource).map((subresource) =>
        subresourceEntry(resource.definition, subresource, version)
      ),
    ]),
  };
}

function apiResource(definition: ResourceDefinition): unknown {
  const { plural, singular, scope, kind, verbs, shortNames, categories } =
    definition;
  return {
    name: plural,
    singularName: singular,
    namespaced: scope === "Namespaced",
    kind,
    verbs,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(verbs.includes("list") && verbs.length > 2
      ? { storageVersionHash: storageVersionHash(definition) }
      : {}),
  };
}

/** Hash that changes with the storage version of a resource. */
function storageVersionHash(definition: ResourceDefinition): string {
  const { storedAs, storageVersion, kind } = definition;
  const { group } = storedAs ?? definition;
  return createHash("sha256").update(`${group}/${storageVersion}/${kind}`)
    .digest().subarray(0, 8).toString("base64");
}

/**
 * Subresources in kube-apiserver's order: `status` before `scale` for custom
 * resources, otherwise by name.
 */
function sortedSubresources(
  resource: ServedResource,
): readonly Subresource[] {
  const subresources = subresourcesOf(resource);
  return resource.definition.custom
    ? subresources
    : [...subresources].sort((a, b) => compareTexts(a.name, b.name));
}

function subresourceEntry(
  definition: ResourceDefinition,
  { name, group, version, kind, verbs }: Subresource,
  current: string,
): unknown {
  const foreign = group !== definition.group ||
    (definition.custom && version !== current);
  return {
    name: `${definition.plural}/${name}`,
    singularName: "",
    namespaced: definition.scope === "Namespaced",
    ...(foreign && group !== "" ? { group, version } : {}),
    kind,
    verbs,
  };
}

/** Response body of aggregated discovery: every group with all its resources. */
export function groupDiscoveryList(
  groups: Iterable<readonly [string, readonly ServedVersion[]]>,
  apiVersion: string,
): object {
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion,
    metadata: {},
    items: [...groups].map(([name, versions]) => ({
      metadata: { ...(name === "" ? {} : { name }), creationTimestamp: null },
      versions: versions.map(({ version, resources }) => ({
        version,
        resources: resources.map((resource) =>
          resourceDiscovery(resource, version)
        ),
        freshness: "Current",
      })),
    })),
  };
}

function resourceDiscovery(
  resource: ServedResource,
  version: string,
): unknown {
  const { plural, singular, kind, scope, verbs, shortNames, categories } =
    resource.definition;
  const { custom, group } = resource.definition;
  const subresources = sortedSubresources(resource);
  // Built-in resources name the group of a response kind only if it is another
  // one.
  const own = custom ? { group, version, kind } : emptyKind(kind);
  return {
    resource: plural,
    responseKind: own,
    scope,
    singularResource: singular,
    verbs,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subresources.length > 0
      ? {
        subresources: subresources.map((one) => ({
          subresource: one.name,
          responseKind: custom && one.group === ""
            ? own
            : one.group === group
            ? emptyKind(one.kind)
            : { group: one.group, version: one.version, kind: one.kind },
          verbs: one.verbs,
        })),
      }
      : {}),
  };
}

function emptyKind(kind: string): unknown {
  return { group: "", version: "", kind };
}
