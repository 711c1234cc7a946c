import { ApiError, ifFound } from "../api/api_error.ts";
import {
  apiVersionOf,
  checkKind,
  type Kind,
  kindText,
  type ResolvedKind,
  type Scope,
  versionPath,
} from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import { type ApiRequest, pathRequest } from "./request.ts";
import type { RequestOptions } from "./request_options.ts";

/** Lifetime of cached discovery responses, in milliseconds. */
const CACHE_LIFETIME_MS = 600_000;
const AGGREGATED_TYPES = [
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
  "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
  "application/json",
].join(",");

/** Dependencies of {@linkcode Discovery}, which a connection provides. */
export interface DiscoveryDeps {
  /** Sends a request and decodes its response. */
  json(request: ApiRequest): Promise<unknown>;
  /** Source of time, for the age of cached responses. */
  readonly clock: Clock;
}

/** Version of an API server (`/version`). */
export interface ServerVersion {
  /** Major version, such as `1`. */
  readonly major: string;
  /** Minor version, such as `32`. */
  readonly minor: string;
  /** Complete version, such as `v1.32.0`. */
  readonly gitVersion: string;
}

interface CachedResources {
  /** Time of the request, in milliseconds of the clock. */
  readonly at: number;
  readonly resources: Promise<readonly DiscoveredResource[]>;
}

/**
 * API discovery of a server, cached for ten minutes. A kind that is missing in
 * the cache is requested again immediately, because its definition may be new, as
 * is one whose path the server has answered with 404, because it may have another
 * plural or scope now.
 */
export class Discovery {
  readonly #deps: DiscoveryDeps;
  /** Responses by `apiVersion`, including pending ones. */
  readonly #cache = new Map<string, CachedResources>();

  constructor(deps: DiscoveryDeps) {
    this.#deps = deps;
  }

  /**
   * Completes a kind with its plural and scope.
   *
   * @throws {ApiError} With `isNotFound`, if the server does not serve the kind.
   */
  async resolve<T extends KubernetesObject>(
    kind: Kind<T>,
    fresh = false,
  ): Promise<ResolvedKind<T>> {
    checkKind(kind, "a request");
    const { group, version } = kind;
    const { at = -Infinity, resources } = this.#cache.get(apiVersionOf(kind)) ??
      {};
    const isFresh = !fresh && this.#deps.clock.now() - at < CACHE_LIFETIME_MS;
    const known = isFresh ? resources : undefined;
    const resource = (known && await find(kind, known)) ??
      await find(kind, this.#fetch(kind));
    if (resource === undefined) {
      throw new ApiError(
        `Cannot find kind ${
          kindText(kind)
        }: the server does not serve it: received 404 NotFound`,
        {
          status: 404,
          reason: "NotFound",
          details: { group, kind: kind.kind },
        },
      );
    }
    const { plural, scope } = resource;
    return { group, version, kind: kind.kind, plural, scope };
  }

  /**
   * Lists all resources of the server, by aggregated discovery, or by one
   * request per group and version if the server does not support it.
   */
  async resources(): Promise<DiscoveredResource[]> {
    const roots = await Promise.all(["/api", "/apis"].map(async (root) => {
      const answer = this.#deps.json(
        pathRequest(root, { accept: AGGREGATED_TYPES }),
      );
      // Servers of custom resources alone have no core group, as client-go knows.
      const list = root === "/api" ? await ifFound(answer) : await answer;
      if (entry(list)["kind"] === "APIGroupDiscoveryList") {
        return readAggregated(list);
      }
      const versions = await Promise.allSettled(
        readGroupVersions(list).map((version) => this.#list(version)),
      );
      // A group whose server is unavailable must not hide the others.
      return versions.flatMap((result) =>
        result.status === "fulfilled" ? result.value : []
      );
    }));
    return roots.flat();
  }

  /** Reads the version of the server; not cached. */
  async version(options: RequestOptions): Promise<ServerVersion> {
    const request = pathRequest("/version", options);
    return await this.#deps.json(request) as ServerVersion;
  }

  /** Forgets the group and version of a path that the server does not serve. */
  forget(path: string): void {
    const [, apiVersion] =
      /^\/(?:api|apis)\/(v[^/]+|[^/]+\/[^/]+)\//.exec(path) ??
        [];
    if (apiVersion !== undefined) this.#cache.delete(apiVersion);
  }

  #fetch(kind: Kind): CachedResources["resources"] {
    const key = apiVersionOf(kind);
    const resources = this.#list(kind);
    const entry: CachedResources = { at: this.#deps.clock.now(), resources };
    this.#cache.set(key, entry);
    resources.catch(() => {
      if (this.#cache.get(key) === entry) this.#cache.delete(key);
    });
    return resources;
  }

  async #list(
    names: { readonly group: string; readonly version: string },
  ): Promise<DiscoveredResource[]> {
    const { group, version } = names;
    const root = versionPath({ group, version, kind: "resource" });
    return readResourceList(await this.#deps.json(pathRequest(root)), names);
  }
}

/** Finds a kind among resources; `undefined` if it is not served. */
async function find(
  kind: Kind,
  resources: Promise<readonly DiscoveredResource[]>,
): Promise<DiscoveredResource | undefined> {
  const served = await ifFound(resources);
  return served?.find((resource) => resource.kind === kind.kind);
}

/** Resource that a server serves. */
export interface DiscoveredResource {
  /** API group; empty for the core group. */
  readonly group: string;
  /** Version, such as `v1`. */
  readonly version: string;
  /** Name of the kind, such as `Deployment`. */
  readonly kind: string;
  /** Plural name, as in paths. */
  readonly plural: string;
  /** Singular name; empty if the server does not report it. */
  readonly singular: string;
  /** Scope of the objects: namespaced or cluster-wide. */
  readonly scope: Scope;
  /** Short names for kubectl, such as `deploy`. */
  readonly shortNames: readonly string[];
  /** Categories for kubectl, such as `all`. */
  readonly categories: readonly string[];
  /** Supported verbs, such as `get` and `watch`. */
  readonly verbs: readonly string[];
  /** Names of the subresources, such as `status`. */
  readonly subresources: readonly string[];
}

interface Entry {
  readonly [name: string]: unknown;
}

/**
 * Reads an APIGroupDiscoveryList (all groups in one response). Stale groups,
 * whose server did not respond, are omitted.
 */
function readAggregated(list: unknown): DiscoveredResource[] {
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

/** Reads an APIResourceList (one group and version). */
function readResourceList(
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

/** Reads the groups and versions of an APIVersions or APIGroupList. */
function readGroupVersions(
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
