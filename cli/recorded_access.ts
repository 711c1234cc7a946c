import { untyped } from "../core/api/kind.ts";
import { UsageError } from "./command.ts";
import type { AccessVerb, KindAccess } from "../testing/rbac.ts";
import {
  ANY_WATCHED_NAMESPACE,
  readRequests,
  type RecordedRequest,
} from "../testing/request_record.ts";

/** Verbs of requests that write objects. */
const WRITES: readonly string[] = ["create", "update", "patch"];

/**
 * Requests of the file of `--recorded`; undefined without the flag.
 *
 * @throws {UsageError} If it cannot be read or is not a record.
 */
export function recordedRequests(
  file: string | undefined,
): readonly RecordedRequest[] | undefined {
  try {
    return file === undefined ? undefined : readRequests(file);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

export function recordedAccess(
  requests: readonly RecordedRequest[],
  watched: "all" | readonly string[],
): readonly KindAccess[] {
  const namespaced = new Set(
    requests.filter(({ namespace }) => namespace !== undefined).map(resourceOf),
  );
  return requests.map((request): KindAccess => {
    const { group, verb, namespace } = request;
    const [plural = "", subresource] = request.resource.split("/");
    const isNamespaced = namespaced.has(resourceOf(request));
    return {
      kind: untyped({
        group,
        version: "v1",
        kind: plural,
        plural,
        scope: isNamespaced ? "Namespaced" : "Cluster",
      }),
      verbs: [verb as AccessVerb],
      subresource,
      namespaces: watched === "all" || namespace === undefined
        ? "all"
        : namespace === ANY_WATCHED_NAMESPACE
        ? watched
        : [namespace],
    };
  });
}

/** Resources of requests that write objects, excluding subresources. */
export function writtenResources(
  requests: readonly RecordedRequest[],
): readonly string[] {
  return [
    ...new Set(
      requests.filter(({ verb, resource }) =>
        WRITES.includes(verb) && !resource.includes("/")
      ).map(resourceOf),
    ),
  ];
}

/** Text of recorded requests, with one line per resource. */
export function recordText(requests: readonly RecordedRequest[]): string {
  const verbs = new Map<string, Set<string>>();
  for (const request of requests) {
    const resource = resourceOf(request);
    verbs.set(resource, (verbs.get(resource) ?? new Set()).add(request.verb));
  }
  return [...verbs].sort(([a], [b]) => a < b ? -1 : 1)
    .map(([resource, seen]) =>
      `  ${resource}: ${[...seen].sort().join(", ")}\n`
    )
    .join("");
}

/** Resource with its group, such as `deployments.apps/status`. */
function resourceOf({ group, resource }: RecordedRequest): string {
  if (group === "") return resource;
  const [plural, subresource] = resource.split("/");
  return `${plural}.${group}${
    subresource === undefined ? "" : `/${subresource}`
  }`;
}
