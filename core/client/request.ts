/**
 * Verbs of the Kubernetes API as pure functions that build an
 * {@linkcode ApiRequest}. The functions refuse invalid arguments before
 * anything is sent; a transport sends the request.
 *
 * @module
 */
import { prunedField } from "../json/prune.ts";
import { checkIntegers, isJsonObject } from "../patch/json_value.ts";
import { fieldSelectorText } from "../api/field_selector.ts";
import {
  apiVersionOf,
  collectionPath,
  type Kind,
  kindText,
  objectPath,
  type ResolvedKind,
} from "../api/kind.ts";
import { labelSelectorText } from "../api/label_selector.ts";
import type { ObjectMeta } from "../api/object.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import { checkOptions, typeText } from "../api/options.ts";
import {
  type ApplyOptions,
  type CollectionOptions,
  type DeleteCollectionOptions,
  type DeleteOptions,
  type GetOptions,
  type ListOptions,
  type PatchOptions,
  type PatchType,
  REQUEST_RULES,
  type RequestOptions,
  type Subresource,
  type SubresourceOption,
  type WatchOptions,
  type WriteOptions,
} from "./request_options.ts";
import type { HttpRequest } from "./transport/transport.ts";

/** Verb of a request, as in RBAC rules, audit logs and metrics. */
export type ApiVerb = ApiRequest["verb"];

/** HTTP request with its Kubernetes verb and a description for errors. */
export interface ApiRequest extends HttpRequest {
  /** Verb, as in RBAC rules. */
  readonly verb:
    | "get"
    | "list"
    | "watch"
    | "create"
    | "update"
    | "patch"
    | "delete"
    | "deletecollection"
    | "connect";
  /** Text that follows "Cannot" in errors, such as `get Pod default/web`. */
  readonly action: string;
  /**
   * Kind of the object in the response, or `List` for a list of any kind; any
   * object by default.
   */
  readonly responseKind?: string | undefined;
  /**
   * Whether the client may retry the request; `false` where the caller retries
   * by itself and needs to see every failure.
   *
   * @default {true}
   */
  readonly mayRetry?: boolean | undefined;
}

/** Object in the body of a request; its metadata determines the path. */
export interface ObjectBody {
  /** API version; defaults to that of the kind. */
  readonly apiVersion?: string | undefined;
  /** Name of the kind; defaults to that of the kind. */
  readonly kind?: string | undefined;
  /** Metadata with name and namespace. */
  readonly metadata: Partial<ObjectMeta>;
}

const JSON_TYPE = "application/json";
/** Headers of a content type, as a shared object that middleware recognizes. */
type Headers = Readonly<Record<string, string>>;
const ACCEPT_JSON: Headers = Object.freeze({ accept: JSON_TYPE });
const JSON_HEADERS: Headers = bodyHeaders(JSON_TYPE);
const APPLY_HEADERS: Headers = bodyHeaders("application/apply-patch+yaml");
const PATCH_HEADERS: Readonly<Record<PatchType, Headers>> = {
  merge: bodyHeaders("application/merge-patch+json"),
  json: bodyHeaders("application/json-patch+json"),
  strategic: bodyHeaders("application/strategic-merge-patch+json"),
};

function bodyHeaders(type: string): Headers {
  return Object.freeze({ accept: JSON_TYPE, "content-type": type });
}

/**
 * Builds the request that reads one object.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of the wrong type,
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
    responseKind: kindAt(kind, subresource),
    action: `get ${describe(kind, key, subresource)}`,
    method: "GET",
    path: withQuery(objectPath(kind, key, subresource), { resourceVersion }),
    headers: ACCEPT_JSON,
    signal,
  };
}

/**
 * Builds the request that lists one page of a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * the wrong type, or a selector is malformed.
 */
export function listRequest(
  kind: ResolvedKind,
  options: ListOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.list, "list");
  const { limit, resourceVersion, resourceVersionMatch, signal } = options;
  return {
    verb: "list",
    responseKind: "List",
    action: `list ${describeCollection(kind, options.namespace)}`,
    method: "GET",
    path: withQuery(collectionPath(kind, options.namespace), {
      ...selectionQuery(options),
      limit,
      continue: options.continue,
      resourceVersion,
      resourceVersionMatch,
    }),
    headers: ACCEPT_JSON,
    signal,
  };
}

/**
 * Builds the request that watches a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * the wrong type, or a selector is malformed.
 */
export function watchRequest(
  kind: ResolvedKind,
  options: WatchOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.watch, "watch");
  const { resourceVersion, resourceVersionMatch, signal } = options;
  return {
    verb: "watch",
    action: `watch ${describeCollection(kind, options.namespace)}`,
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
    headers: ACCEPT_JSON,
    signal,
    mayPause: true,
  };
}

/**
 * Builds the request that creates an object.
 *
 * @throws {TypeError} If the object is not an object of this kind, or a
 * namespaced one has no namespace.
 */
export function createRequest(
  kind: ResolvedKind,
  object: ObjectBody,
  options: WriteOptions & SubresourceOption = {},
): ApiRequest {
  checkObject(kind, object, "create");
  const { name, generateName, namespace } = object.metadata;
  const key = { namespace, name: name ?? `${generateName ?? ""}*` };
  const { subresource } = options;
  if (subresource === undefined && kind.scope === "Namespaced" && !namespace) {
    throw new TypeError(
      `Cannot create ${kind.kind}: a namespaced kind needs "metadata.namespace": received name "${key.name}" alone`,
    );
  }
  const path = subresource === undefined
    ? collectionPath(kind, namespace)
    : objectPath(kind, key, subresource);
  const action = `create ${describe(kind, key, subresource)}`;
  return {
    verb: "create",
    responseKind: kindAt(kind, subresource),
    action,
    method: "POST",
    path: withQuery(path, writeQuery(options)),
    headers: JSON_HEADERS,
    body: subresource === undefined
      ? encodeObject(kind, object, action)
      : encodeJson(object, action),
    signal: options.signal,
  };
}

/**
 * Builds the request that replaces an object; with `metadata.resourceVersion`
 * set, only if the object has not changed since.
 *
 * @throws {TypeError} If the object is of another kind, has no name, or lacks a
 * field that its cache does not keep.
 * @throws {RangeError} If it has an integer beyond 2^53 − 1, which reading rounds.
 */
export function replaceRequest(
  kind: ResolvedKind,
  object: ObjectBody,
  options: WriteOptions & SubresourceOption = {},
): ApiRequest {
  const key = keyFor(kind, object, "replace");
  const action = `replace ${describe(kind, key, options.subresource)}`;
  const body = encodeObject(kind, object, action);
  if (/\d{16}/.test(body)) {
    const { status } = object as { readonly status?: unknown };
    const isStatus = options.subresource === "status";
    checkIntegers(action, isStatus ? { status } : object);
  }
  const pruned = prunedField(object, options.subresource);
  if (pruned !== undefined) {
    throw new TypeError(
      `Cannot ${action}: its cache does not keep "${pruned}", which would be lost; use apply or patch`,
    );
  }
  return {
    verb: "update",
    responseKind: kindAt(kind, options.subresource),
    action,
    method: "PUT",
    path: withQuery(
      objectPath(kind, key, options.subresource),
      writeQuery(options),
    ),
    headers: JSON_HEADERS,
    body,
    signal: options.signal,
  };
}

/**
 * Builds a server-side apply request: it creates the object or updates the
 * given fields, and removes fields that the same manager applied before and
 * that are now absent.
 *
 * @throws {TypeError} If the object is of another kind or has no name, or no
 * field manager is given.
 */
export function applyRequest(
  kind: ResolvedKind,
  object: ObjectBody,
  options: ApplyOptions & SubresourceOption = {},
): ApiRequest {
  const key = keyFor(kind, object, "apply");
  const action = `apply ${describe(kind, key, options.subresource)}`;
  if (!options.fieldManager) {
    throw new TypeError(
      `Cannot ${action}: "fieldManager" must not be empty: received ${
        JSON.stringify(options.fieldManager)
      }`,
    );
  }
  return {
    verb: "patch",
    responseKind: kindAt(kind, options.subresource),
    action,
    method: "PATCH",
    path: withQuery(objectPath(kind, key, options.subresource), {
      ...writeQuery(options),
      force: options.force || undefined,
    }),
    headers: APPLY_HEADERS,
    body: encodeObject(kind, object, action),
    signal: options.signal,
  };
}

/**
 * Builds the request that patches an object.
 *
 * @param body A partial object or, for patches of type `json`, a list of
 * operations.
 * @throws {TypeError} If the body does not fit the type of the patch.
 */
export function patchRequest(
  kind: ResolvedKind,
  key: ObjectKey,
  body: unknown,
  options: PatchOptions & SubresourceOption = {},
): ApiRequest {
  const { type = "merge", subresource, signal } = options;
  const action = `patch ${describe(kind, key, subresource)}`;
  return {
    verb: "patch",
    responseKind: kindAt(kind, subresource),
    action,
    method: "PATCH",
    path: withQuery(objectPath(kind, key, subresource), writeQuery(options)),
    headers: PATCH_HEADERS[type],
    body: encodePatch(body, type, action),
    signal,
  };
}

/**
 * Builds the request that deletes an object.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of the wrong type,
 * or a namespaced object has no namespace.
 */
export function deleteRequest(
  kind: ResolvedKind,
  key: ObjectKey,
  options: DeleteOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.delete, "delete");
  return {
    verb: "delete",
    responseKind: kind.kind,
    action: `delete ${describe(kind, key)}`,
    method: "DELETE",
    path: objectPath(kind, key),
    ...deletion(options),
  };
}

/**
 * Builds the request that deletes all selected objects of a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * the wrong type, or a selector is malformed.
 */
export function deleteCollectionRequest(
  kind: ResolvedKind,
  options: DeleteCollectionOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.deleteCollection, "deleteCollection");
  return {
    verb: "deletecollection",
    action: `delete ${describeCollection(kind, options.namespace)}`,
    method: "DELETE",
    path: withQuery(
      collectionPath(kind, options.namespace),
      selectionQuery(options),
    ),
    ...deletion(options),
  };
}

/**
 * Builds the request that reads any path with a JSON response, such as
 * `/version`.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of the wrong type.
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

/**
 * Describes an object for errors: `status of ConfigMap default/web`.
 *
 * @throws {TypeError} If the key is not an object with a name.
 */
export function describe(
  kind: Pick<Kind, "kind">,
  key: ObjectKey,
  subresource?: Subresource,
): string {
  const given: unknown = key;
  if (typeof given !== "object" || given === null || !("name" in given)) {
    throw new TypeError(
      `Cannot address ${kind.kind}: its key must be an object with a name, such as { namespace, name }: received ${
        typeof given === "string" ? JSON.stringify(given) : typeText(given)
      }`,
    );
  }
  const prefix = subresource === undefined ? "" : `${subresource} of `;
  return `${prefix}${kind.kind} ${keyText(key)}`;
}

/** Value of a query parameter; `undefined` omits the parameter. */
export type QueryValue = string | number | boolean | undefined;

/** Adds query parameters to a path; an array becomes a repeated parameter. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, QueryValue | readonly string[]>>,
): string {
  let text = "";
  const add = (name: string, value: QueryValue) => {
    text += `${text === "" ? "?" : "&"}${name}=${queryText(String(value))}`;
  };
  for (const name of Object.keys(query)) {
    const value = query[name];
    if (Array.isArray(value)) { for (const item of value) add(name, item); }
    else if (value !== undefined) add(name, value as QueryValue);
  }
  return path + text;
}

/** Text that needs no encoding in a query. */
const PLAIN = /^[-\w.*]*$/;

function queryText(value: string): string {
  return PLAIN.test(value)
    ? value
    : new URLSearchParams({ "": value }).toString().slice(1);
}

/**
 * Fills in defaults for absent options. A value that is not an object is
 * returned unchanged; the check of the request refuses it.
 */
export function withDefaults<O extends object>(
  options: O,
  defaults: Partial<O>,
): O {
  if (!isJsonObject(options)) return options;
  const all: Record<string, unknown> = { ...options as object };
  for (const [name, value] of Object.entries(defaults)) {
    if (all[name] === undefined) all[name] = value;
  }
  return all as O;
}

/** Adds a subresource to options. A value that is not an object is unchanged. */
export function withSubresource<O extends object>(
  options: O,
  subresource: Subresource,
): O & { readonly subresource: Subresource } {
  return (isJsonObject(options) ? { ...options, subresource } : options) as
    & O
    & { readonly subresource: Subresource };
}

/** Kind of the response of a request about an object or its subresource. */
function kindAt(kind: Kind, part: Subresource | undefined): string | undefined {
  if (part === undefined || part === "status") return kind.kind;
  return part === "scale" ? "Scale" : undefined;
}

function describeCollection(kind: ResolvedKind, namespace?: string): string {
  return namespace === undefined || kind.scope === "Cluster"
    ? `${kind.kind} objects`
    : `${kind.kind} objects in namespace ${namespace}`;
}

/** Refuses a value that is not an object with metadata. */
export function checkObject(
  kind: Pick<Kind, "kind">,
  given: unknown,
  action: string,
): void {
  const { metadata } = Object(given) as { readonly metadata?: unknown };
  if (
    typeof given === "object" && typeof metadata === "object" &&
    metadata !== null
  ) return;
  throw new TypeError(
    `Cannot ${action} ${kind.kind}: it must be an object with "metadata": received ${
      isJsonObject(given)
        ? `one with ${Object.keys(given).join(", ") || "nothing"}`
        : typeText(given)
    }`,
  );
}

/** Key of an object in a request body; refuses one without a name. */
export function keyFor(
  kind: Pick<Kind, "kind">,
  object: ObjectBody,
  action: string,
): ObjectKey {
  checkObject(kind, object, action);
  const { name, namespace } = object.metadata;
  if (!name || typeof name !== "string") {
    throw new TypeError(
      `Cannot ${action} ${kind.kind}: "metadata.name" must be set: received ${
        name === "" ? "an empty text" : typeText(name)
      }`,
    );
  }
  return { namespace, name };
}

/** Encodes an object with the kind's `apiVersion` and `kind`. */
function encodeObject(kind: Kind, object: ObjectBody, action: string): string {
  const apiVersion = apiVersionOf(kind);
  if (
    (object.kind ?? kind.kind) !== kind.kind ||
    (object.apiVersion ?? apiVersion) !== apiVersion
  ) {
    throw new TypeError(
      `Cannot send ${kindText(kind)}: the object is of another kind: received ${
        object.apiVersion ?? apiVersion
      } ${object.kind ?? kind.kind}`,
    );
  }
  return encodeJson({ ...object, apiVersion, kind: kind.kind }, action);
}

/** Encodes a body as JSON; refuses circular references and BigInts. */
export function encodeJson(value: unknown, action: string): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    const [why = ""] = String((cause as Error).message).split("\n");
    throw new TypeError(`Cannot ${action}: it is no JSON: ${why}`, { cause });
  }
}

function encodePatch(body: unknown, type: PatchType, action: string): string {
  const isList = Array.isArray(body);
  if (type === "json" ? isList : isJsonObject(body)) {
    return encodeJson(body, action);
  }
  throw new TypeError(
    `Cannot ${action}: ${
      isList
        ? 'a list of operations needs { type: "json" }'
        : type === "json"
        ? 'a patch of the type "json" must be a list of operations'
        : "its patch must be an object"
    }: received ${typeText(body)}`,
  );
}

function selectionQuery(
  options: CollectionOptions,
): Record<string, QueryValue> {
  const { labelSelector, fieldSelector, shardSelector } = options;
  return {
    labelSelector: labelSelector === undefined
      ? undefined
      : labelSelectorText(labelSelector) || undefined,
    fieldSelector: fieldSelector === undefined
      ? undefined
      : fieldSelectorText(fieldSelector) || undefined,
    shardSelector,
  };
}

function writeQuery(options: WriteOptions): Record<string, QueryValue> {
  const { dryRun, fieldManager, fieldValidation } = options;
  return { dryRun: dryRun ? "All" : undefined, fieldManager, fieldValidation };
}

function deletion(
  options: DeleteOptions,
): Pick<HttpRequest, "headers" | "body" | "signal"> {
  const { dryRun, gracePeriodSeconds, preconditions, propagationPolicy } =
    options;
  return {
    headers: JSON_HEADERS,
    body: JSON.stringify({
      kind: "DeleteOptions",
      apiVersion: "v1",
      dryRun: dryRun ? ["All"] : undefined,
      gracePeriodSeconds,
      preconditions,
      propagationPolicy,
    }),
    signal: options.signal,
  };
}
