/**
 * Every verb of the Kubernetes API as a plain value: pure functions from what
 * is wanted to an {@linkcode ApiRequest}. Sending is a transport's job.
 *
 * @module
 */
import { collectionPath, objectPath, type ResolvedKind } from "../api/kind.ts";
import type { ObjectMeta } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import { checkOptions } from "../api/option_rules.ts";
import {
  checkObject,
  describe,
  describeMany,
  encode,
  encodePatch,
  keyFor,
  namespaceFor,
} from "./request_subject.ts";
import { selectionQuery, withQuery, writeQuery } from "./query.ts";
import {
  type ApplyOptions,
  type GetOptions,
  type ListOptions,
  type PatchOptions,
  type PatchType,
  REQUEST_RULES,
  type RequestOptions,
  type SubresourceOption,
  type WatchOptions,
  type WriteOptions,
} from "./request_options.ts";
import type { HttpRequest } from "./transport.ts";

/** The verb of a request, as RBAC rules, audit logs and metrics name it. */
export type Verb =
  | "get"
  | "list"
  | "watch"
  | "create"
  | "update"
  | "patch"
  | "delete"
  | "deletecollection"
  | "connect";

/** A request that can say what it is for. */
export interface ApiRequest extends HttpRequest {
  /** What is done, as RBAC rules name it. */
  readonly verb: Verb;
  /** What it is for, to read after "Cannot": `get Pod default/web`. */
  readonly action: string;
  /**
   * Whether the client may send it again when it failed; `false` where the
   * caller does that himself and wants to know of every failure.
   *
   * @default {true}
   */
  readonly mayRetry?: boolean | undefined;
  /**
   * Whether its answer may pause for as long as it likes: a stream, or one whose
   * reader has limits of his own.
   *
   * @default {false}
   */
  readonly mayPause?: boolean | undefined;
  /**
   * Called whenever it is about to be sent, after all waiting for a turn or for
   * another attempt. What it throws ends the request.
   */
  readonly beforeSend?: (() => void) | undefined;
}

/** Any object that a request can carry: its metadata tells where it goes. */
export interface ObjectBody {
  /** The kind's own when absent. */
  readonly apiVersion?: string | undefined;
  /** The kind's own when absent. */
  readonly kind?: string | undefined;
  /** Says which object it is. */
  readonly metadata: Partial<ObjectMeta>;
}

const PATCH_CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

const JSON_TYPE = "application/json";

/**
 * Reads one object.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of another type,
 * or a namespaced object has no namespace.
 */
export function getRequest(
  kind: ResolvedKind,
  key: ObjectKey,
  options: GetOptions & SubresourceOption = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.get, "get");
  const { resourceVersion, subresource, signal } = options;
  return {
    verb: "get",
    action: `get ${describe(kind, key, subresource)}`,
    method: "GET",
    path: withQuery(objectPath(kind, key, subresource), { resourceVersion }),
    headers: { accept: JSON_TYPE },
    signal,
  };
}

/**
 * Reads one page of a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * another type, or a selector makes no sense.
 */
export function listRequest(
  kind: ResolvedKind,
  options: ListOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.list, "list");
  const { limit, resourceVersion, resourceVersionMatch, signal } = options;
  return {
    verb: "list",
    action: `list ${describeMany(kind, options.namespace)}`,
    method: "GET",
    path: withQuery(collectionPath(kind, options.namespace), {
      ...selectionQuery(options),
      limit,
      continue: options.continue,
      resourceVersion,
      resourceVersionMatch,
    }),
    headers: { accept: JSON_TYPE },
    signal,
  };
}

/**
 * Opens a stream of the changes of a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * another type, or a selector makes no sense.
 */
export function watchRequest(
  kind: ResolvedKind,
  options: WatchOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.watch, "watch");
  const { resourceVersion, resourceVersionMatch, signal } = options;
  return {
    verb: "watch",
    action: `watch ${describeMany(kind, options.namespace)}`,
    method: "GET",
    path: withQuery(collectionPath(kind, options.namespace), {
      watch: true,
      ...selectionQuery(options),
      resourceVersion,
      resourceVersionMatch,
      allowWatchBookmarks: options.bookmarks || undefined,
      sendInitialEvents: options.sendInitialEvents || undefined,
      timeoutSeconds: options.timeoutSeconds,
    }),
    headers: { accept: JSON_TYPE },
    signal,
    mayPause: true,
  };
}

/**
 * Makes an object.
 *
 * @throws {TypeError} If the object is none or of another kind, or a namespaced
 * one has no namespace.
 */
export function createRequest(
  kind: ResolvedKind,
  object: ObjectBody,
  options: WriteOptions & SubresourceOption = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.write, "create");
  checkObject(kind, object, "create");
  const { name, generateName, namespace } = object.metadata;
  const key = { namespace, name: name ?? `${generateName ?? ""}*` };
  const { subresource } = options;
  const path = subresource === undefined
    ? collectionPath(kind, namespaceFor(kind, key))
    : objectPath(kind, key, subresource);
  return {
    verb: "create",
    action: `create ${describe(kind, key, subresource)}`,
    method: "POST",
    path: withQuery(path, writeQuery(options)),
    headers: { accept: JSON_TYPE, "content-type": JSON_TYPE },
    body: subresource === undefined
      ? encode(kind, object)
      : JSON.stringify(object),
    signal: options.signal,
  };
}

/**
 * Replaces an object; with its `metadata.resourceVersion` set, only if nobody
 * changed it meanwhile.
 *
 * @throws {TypeError} If the object is of another kind or has no name.
 */
export function replaceRequest(
  kind: ResolvedKind,
  object: ObjectBody,
  options: WriteOptions & SubresourceOption = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.write, "replace");
  const key = keyFor(kind, object, "replace");
  return {
    verb: "update",
    action: `replace ${describe(kind, key, options.subresource)}`,
    method: "PUT",
    path: withQuery(
      objectPath(kind, key, options.subresource),
      writeQuery(options),
    ),
    headers: { accept: JSON_TYPE, "content-type": JSON_TYPE },
    body: encode(kind, object),
    signal: options.signal,
  };
}

/**
 * Applies fields by server-side apply: makes the object or takes the given
 * fields over, and removes those that the same manager applied before.
 *
 * @throws {TypeError} If the object is of another kind or has no name, or no
 * field manager is given.
 */
export function applyRequest(
  kind: ResolvedKind,
  object: ObjectBody,
  options: ApplyOptions & SubresourceOption = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.apply, "apply");
  const key = keyFor(kind, object, "apply");
  const action = `apply ${describe(kind, key, options.subresource)}`;
  if (!options.fieldManager) {
    throw new TypeError(
      `Cannot ${action}: "fieldManager" must name who applies: received ${
        JSON.stringify(options.fieldManager)
      }`,
    );
  }
  return {
    verb: "patch",
    action,
    method: "PATCH",
    path: withQuery(objectPath(kind, key, options.subresource), {
      ...writeQuery(options),
      force: options.force || undefined,
    }),
    headers: {
      accept: JSON_TYPE,
      "content-type": "application/apply-patch+yaml",
    },
    body: encode(kind, object),
    signal: options.signal,
  };
}

/**
 * Changes an object by a patch: an object, or a list of JSON operations.
 *
 * @throws {TypeError} If the patch is not what its type needs.
 */
export function patchRequest(
  kind: ResolvedKind,
  key: ObjectKey,
  body: unknown,
  options: PatchOptions & SubresourceOption = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.patch, "patch");
  const { type = "merge", subresource, signal } = options;
  const action = `patch ${describe(kind, key, subresource)}`;
  return {
    verb: "patch",
    action,
    method: "PATCH",
    path: withQuery(objectPath(kind, key, subresource), writeQuery(options)),
    headers: { accept: JSON_TYPE, "content-type": PATCH_CONTENT_TYPES[type] },
    body: encodePatch(body, type, action),
    signal,
  };
}

/**
 * Reads any path that answers JSON, such as `/version`.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of another type.
 */
export function pathRequest(
  path: string,
  options: RequestOptions & { readonly accept?: string | undefined } = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.path, `a request of ${path}`);
  return {
    verb: "get",
    action: `read ${path}`,
    method: "GET",
    path,
    headers: { accept: options.accept ?? JSON_TYPE },
    signal: options.signal,
  };
}
