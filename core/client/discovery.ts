import { ApiError } from "../api/api_error.ts";
import {
  apiVersionOf,
  checkKind,
  type Kind,
  kindText,
  type ResolvedKind,
} from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Clock } from "../clock.ts";
import {
  type DiscoveredResource,
  readAggregated,
  readGroupVersions,
  readResourceList,
} from "./discovered_resource.ts";
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
