import { RBAC_GROUP } from "./access/bootstrap_roles.ts";
import type { ApiContext } from "./api_context.ts";
import {
  pageNotFound,
  type ServerRequest,
  type ServerResponse,
} from "./http/exchange.ts";
import { createReview, isReview } from "./access/access_reviews.ts";
import { askNode, needsNode } from "./node_requests.ts";
import { get } from "./read/get.ts";
import { listPage, respondPage } from "./read/list.ts";
import { representationOf } from "./read/respond.ts";
import { watch } from "./read/watch.ts";
import {
  type ResourceDefinition,
  type Subresource,
  subresourcesOf,
  type Verb,
} from "./registry.ts";
import { readListOptions } from "./request/query_options.ts";
import type { RequestInfo, ResourcePath } from "./request/request_info.ts";
import {
  methodNotAllowed,
  type ResourceRequest,
  subjectOf,
} from "./request/resource_request.ts";
import { readSelection } from "./request/object_selection.ts";
import type { User } from "./request/user.ts";
import { servedVersion } from "./resources.ts";
import { settle } from "./settle.ts";
import {
  badRequest,
  noSuchPath,
  notFound,
  type StatusError,
} from "./status.ts";
import { bindPod, isBinding } from "./write/bind.ts";
import { create } from "./write/create.ts";
import { remove, removeCollection } from "./write/delete.ts";
import { patch, patchType } from "./write/patch.ts";
import { getScale, patchScale, updateScale } from "./write/scale.ts";
import { postSubresource } from "./write/subresources.ts";
import { update } from "./write/update.ts";

/** Request whose path names a group, a version and a resource. */
export interface RoutedRequest {
  readonly http: ServerRequest;
  readonly info: RequestInfo;
  readonly user: User;
  readonly warnings: string[];
  readonly annotations: Record<string, string>;
}

/** Dispatches a request that names a resource. */
export async function route(
  context: ApiContext,
  request: RoutedRequest,
): Promise<ServerResponse> {
  const { info, http } = request;
  const path = info.resource as ResourcePath;
  const definition = context.resources.find(path.group, path.plural);
  const version = definition && servedVersion(definition, path.version);
  if (definition === undefined || version === undefined) {
    return nothingServed(context, path);
  }
  if (definition.group === RBAC_GROUP) context.authorizer.prepare();
  if (!fitsScope(definition, path, http.method)) {
    if (definition.custom) return pageNotFound();
    throw noSuchPath();
  }
  context.flows.provide(definition);
  const subresource = subresourcesOf({ definition, version }).find(({ name }) =>
    name === path.subresource
  );
  const resourceRequest: ResourceRequest = {
    context,
    http,
    query: info.query,
    definition,
    version,
    subresource,
    namespace: path.namespace,
    name: path.name || undefined,
    user: request.user,
    warnings: request.warnings,
    annotations: request.annotations,
  };
  if (version.deprecationWarning !== undefined) {
    request.warnings.push(version.deprecationWarning);
  }
  if (path.subresource !== undefined && subresource === undefined) {
    if (!definition.custom) throw noSuchPath();
    throw notFound(subjectOf(resourceRequest));
  }
  if (needsNode(resourceRequest)) return await askNode(resourceRequest);
  if (path.rest.length > 0 && !definition.custom) throw noSuchPath();
  return await dispatch(resourceRequest, path);
}

/** Whether a resource stores no objects, but executes or answers them. */
function isExecuted(definition: ResourceDefinition): boolean {
  return isReview(definition) || isBinding(definition);
}

/** Error for a resource that is not served. */
function nothingServed(
  { resources }: ApiContext,
  { group }: ResourcePath,
): ServerResponse {
  if (resources.isBuiltinGroup(group)) throw noSuchPath();
  return pageNotFound();
}

function fitsScope(
  { scope, custom }: ResourceDefinition,
  { namespace, name, watch }: ResourcePath,
  method: string,
): boolean {
  if (scope === "Cluster") return namespace === undefined;
  if (namespace !== undefined) return true;
  // Only list and watch work across namespaces; for custom resources nothing
  // else does.
  return name === undefined && (method === "GET" || watch || !custom);
}

async function dispatch(
  request: ResourceRequest,
  path: ResourcePath,
): Promise<ServerResponse> {
  const { http, subresource, definition, name, namespace } = request;
  const collection = name === undefined;
  const across = collection && definition.scope === "Namespaced" &&
    namespace === undefined;
  if (path.watch && http.method !== "GET") throw methodNotAllowed(request);
  if (subresource === undefined && isExecuted(definition)) {
    if (!collection || across) throw noSuchPath();
    if (http.method !== "POST") throw methodNotAllowed(request);
  }
  switch (http.method) {
    case "HEAD":
    case "GET":
      if (http.method === "HEAD" && !definition.custom) {
        throw methodNotAllowed(request);
      }
      if (subresource) return await getSubresource(request, subresource);
      if (collection || path.watch) return await listOrWatch(request, path);
      allow(request, definition.verbs, "get");
      return await get(request);
    case "POST":
      if (subresource) return await postSubresource(request, subresource);
      if (across || (!collection && !definition.custom)) {
        throw methodNotAllowed(request);
      }
      allow(request, definition.verbs, "create");
      if (isReview(definition)) return await createReview(request);
      if (isBinding(definition)) return await bindPod(request);
      return await create(request);
    case "PUT":
      if (collection) throw nameless(request);
      if (subresource?.name === "scale") return await updateScale(request);
      allow(request, (subresource ?? definition).verbs, "update");
      return await update(request);
    case "PATCH":
      if (collection) {
        if (definition.custom) patchType(request);
        throw nameless(request);
      }
      if (subresource?.name === "scale") return await patchScale(request);
      allow(request, (subresource ?? definition).verbs, "patch");
      return await patch(request);
    case "DELETE":
      if (subresource || across) throw methodNotAllowed(request);
      if (collection) {
        allow(request, definition.verbs, "deletecollection");
        return await removeCollection(request);
      }
      allow(request, definition.verbs, "delete");
      return await remove(request);
    default:
      throw methodNotAllowed(request);
  }
}

async function getSubresource(
  request: ResourceRequest,
  subresource: Subresource,
): Promise<ServerResponse> {
  if (subresource.name === "scale") return await getScale(request);
  allow(request, subresource.verbs, "get");
  return await get(request);
}

async function listOrWatch(
  request: ResourceRequest,
  path: ResourcePath,
): Promise<ServerResponse> {
  const { query, definition } = request;
  const listed = representationOf(request);
  const options = readListOptions(query, path.watch);
  const representation = options.watch
    ? representationOf(request, { watch: true })
    : listed;
  allow(request, definition.verbs, options.watch ? "watch" : "list");
  const selection = readSelection(query, request, path);
  return options.watch
    ? await watch(request, { selection, options, representation })
    : await respondPage(
      request,
      await settle(() => listPage(request, selection, options)),
      representation,
    );
}

function allow(
  request: ResourceRequest,
  verbs: readonly Verb[],
  verb: Verb,
): void {
  if (!verbs.includes(verb)) throw methodNotAllowed(request);
}

/**
 * Error for a write to a collection that requires a name; custom resources have
 * their own message.
 */
function nameless(request: ResourceRequest): StatusError {
  return request.definition.custom
    ? badRequest("name must be provided")
    : methodNotAllowed(request);
}
