/**
 * Parsing of requests: path, query options, selectors, content negotiation and
 * bodies in JSON, YAML and protobuf, with the errors of kube-apiserver.
 * Guarantees: stored objects are neither read nor changed. Must not import
 * `write`, `controllers` or `discovery`.
 *
 * @module
 */
import type { ApiContext } from "../api_context.ts";
import type { ServerRequest } from "../http/exchange.ts";
import type {
  HookContext,
  ResourceDefinition,
  ResourceVersion,
  Subresource,
} from "../registry.ts";
import { fixed } from "../settle.ts";
import { type ErrorSubject, noSuchMethod, StatusError } from "../status.ts";
import { storageKey } from "../storage/stored_object.ts";
import type { User } from "./user.ts";

/** Request for a served resource. */
export interface ResourceRequest {
  readonly context: ApiContext;
  readonly http: ServerRequest;
  readonly query: URLSearchParams;
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersion;
  readonly subresource: Subresource | undefined;
  /**
   * Namespace; undefined for cluster-scoped resources and across all
   * namespaces.
   */
  readonly namespace: string | undefined;
  /** Object name; undefined for the collection. */
  readonly name: string | undefined;
  readonly user: User;
  /** Texts of the `Warning` headers, in order. */
  readonly warnings: string[];
  /** Audit annotations, by key. */
  readonly annotations: Record<string, string>;
}

/** Error subject of a request: plural, group and name. */
export function subjectOf(
  request: Pick<ResourceRequest, "definition" | "name">,
  name: string | undefined = request.name,
): ErrorSubject {
  const { group, plural } = request.definition;
  return { group, kind: plural, name };
}

/** Error subject of validation errors: kind, group and name. */
export function kindSubjectOf(
  request: Pick<ResourceRequest, "definition" | "name">,
  name: string | undefined = request.name,
): ErrorSubject {
  const { group, kind } = request.definition;
  return { group, kind, name };
}

/** Storage key of the object of a request. */
export function keyOfRequest(
  { namespace = "", name = "" }: Pick<ResourceRequest, "namespace" | "name">,
): string {
  return storageKey({ namespace, name });
}

/** Context of a request for hooks. */
export function hookContext(
  request: ResourceRequest,
  write: { readonly dryRun: boolean; readonly apply: boolean },
): HookContext {
  const { context, version, subresource, user, warnings } = request;
  return {
    version: version.name,
    subresource: subresource?.name,
    now: fixed("now", () => context.clock.wallTime()),
    dryRun: write.dryRun,
    apply: write.apply,
    isDeclarative: context.release.isDeclarative,
    user,
    find: ({ group, plural }, { namespace = "", name }) =>
      context.store.collection({ group, plural })
        .get(storageKey({ namespace, name }))?.parse(),
    *list(resource, namespace) {
      const collection = context.store.collection(resource);
      const stored = namespace === undefined
        ? collection.values()
        : collection.scan({ namespace });
      for (const one of stored) yield one.parse();
    },
    warn: (text) => {
      warnings.push(text);
    },
  };
}

const METHOD_VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** Error 405: the resource does not support the method. */
export function methodNotAllowed(
  { definition, http }: Pick<ResourceRequest, "definition" | "http">,
): StatusError {
  const { group, plural, custom } = definition;
  if (!custom) return noSuchMethod();
  const verb = METHOD_VERBS[http.method] ?? "";
  return new StatusError({
    code: 405,
    reason: "MethodNotAllowed",
    message:
      `${verb} is not supported on resources of kind "${plural}.${group}"`,
    details: { group, kind: plural },
  });
}
