import { ApiError } from "../api/api_error.ts";
import {
  apiVersionOf,
  checkKind,
  type Kind,
  kindText,
  type ResolvedKind,
  type Scope,
} from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import { type ApiRequest, pathRequest } from "./request.ts";
import type { RequestOptions } from "./request_options.ts";

/** How long what a server said stays good, in milliseconds. */
const LIFETIME = 600_000;
const AGGREGATED_TYPES = [
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
  "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
  "application/json",
].join(",");

/** What {@linkcode Discovery} needs. */
export interface DiscoveryParts {
  /** Sends a request and decodes its answer. */
  json(request: ApiRequest): Promise<unknown>;
  readonly clock: Clock;
}

/** What an API server says of itself. */
export interface ServerVersion {
  /** The first part of the version, such as `1`. */
  readonly major: string;
  /** The second part of the version, such as `32`. */
  readonly minor: string;
  /** The whole version, such as `v1.32.0`. */
  readonly gitVersion: string;
}

interface Answer {
  readonly at: number;
  readonly resources: Promise<readonly DiscoveredResource[]>;
}

/**
 * Asks a server what it serves and remembers the answers for ten minutes. A kind
 * that is not among them is asked for again at once, since it may be a minute
 * old.
 */
export class Discovery {
  readonly #parts: DiscoveryParts;
  /** By `apiVersion`: one question each, also while it is under way. */
  readonly #answers = new Map<string, Answer>();

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
  }

  /**
   * Gives a kind its plural and scope.
   *
   * @throws {ApiError} If the server does not serve the kind; `isNotFound`.
   */
  async resolve<T extends KubernetesObject>(
    kind: Kind<T>,
  ): Promise<ResolvedKind<T>> {
    checkKind(kind, "a request");
    const { group, version } = kind;
    const known = this.#recall(kind);
    const resource = (known && await find(kind, known)) ??
      await find(kind, this.#remember(kind));
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
   * Everything that the server serves, by aggregated discovery, or by one
   * question for each group and version where the server is older than that.
   */
  async resources(): Promise<DiscoveredResource[]> {
    const roots = await Promise.all(["/api", "/apis"].map(async (root) => {
      const list = await this.#parts.json(
        pathRequest(root, { accept: AGGREGATED_TYPES }),
      );
      if (kindOf(list) === "APIGroupDiscoveryList") return readAggregated(list);
      const versions = await Promise.allSettled(
        readGroupVersions(list).map((version) => this.#ask(version)),
      );
      // A group whose server is down must not hide the others.
      return versions.flatMap((result) =>
        result.status === "fulfilled" ? result.value : []
      );
    }));
    return roots.flat();
  }

  /** What the server says of itself; asked anew each time. */
  async version(options: RequestOptions): Promise<ServerVersion> {
    const request = pathRequest("/version", options);
    return await this.#parts.json(request) as ServerVersion;
  }

  #recall(kind: Kind): Answer["resources"] | undefined {
    const answer = this.#answers.get(apiVersionOf(kind));
    return answer !== undefined &&
        this.#parts.clock.now() - answer.at < LIFETIME
      ? answer.resources
      : undefined;
  }

  #remember(kind: Kind): Answer["resources"] {
    const key = apiVersionOf(kind);
    const resources = this.#ask(kind);
    const answer: Answer = { at: this.#parts.clock.now(), resources };
    this.#answers.set(key, answer);
    resources.catch(() => {
      if (this.#answers.get(key) === answer) this.#answers.delete(key);
    });
    return resources;
  }

  async #ask(
    names: { readonly group: string; readonly version: string },
  ): Promise<DiscoveredResource[]> {
    const { group, version } = names;
    const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    return readResourceList(await this.#parts.json(pathRequest(root)), names);
  }
}

/** Finds a kind among resources; a version that is not served has none. */
async function find(
  kind: Kind,
  answer: Promise<readonly DiscoveredResource[]>,
): Promise<DiscoveredResource | undefined> {
  try {
    return (await answer).find((resource) => resource.kind === kind.kind);
  } catch (error) {
    if (ApiError.is(error) && error.isNotFound) return undefined;
    throw error;
  }
}

function kindOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "kind" in value
    ? value.kind
    : undefined;
}

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
