/**
 * Every verb of the Kubernetes API as a plain value: pure functions from what
 * is wanted to an {@linkcode ApiRequest}. Sending is a transport's job.
 *
 * @module
 */
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
import { checkOptions, typeText } from "../api/option_rules.ts";
import {
  type ApplyOptions,
  type DeleteCollectionOptions,
  type DeleteOptions,
  type GetOptions,
  type ListOptions,
  type PatchOptions,
  type PatchType,
  REQUEST_RULES,
  type RequestOptions,
  type SelectionOptions,
  type Subresource,
  type SubresourceOption,
  type WatchOptions,
  type WriteOptions,
} from "./request_options.ts";
import type { HttpRequest } from "./transport/transport.ts";

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

/**
 * Deletes an object.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of another type,
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
    action: `delete ${describe(kind, key)}`,
    method: "DELETE",
    path: objectPath(kind, key),
    ...deletion(options),
  };
}

/**
 * Deletes all selected objects of a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * another type, or a selector makes no sense.
 */
export function deleteCollectionRequest(
  kind: ResolvedKind,
  options: DeleteCollectionOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.deleteCollection, "deleteCollection");
  return {
    verb: "deletecollection",
    action: `delete ${describeMany(kind, options.namespace)}`,
    method: "DELETE",
    path: withQuery(
      collectionPath(kind, options.namespace),
      selectionQuery(options),
    ),
    ...deletion(options),
  };
}

function deletion(
  options: DeleteOptions,
): Pick<HttpRequest, "headers" | "body" | "signal"> {
  const { gracePeriodSeconds, preconditions, propagationPolicy } = options;
  return {
    headers: { accept: JSON_TYPE, "content-type": JSON_TYPE },
    body: JSON.stringify({
      kind: "DeleteOptions",
      apiVersion: "v1",
      dryRun: options.dryRun ? ["All"] : undefined,
      gracePeriodSeconds,
      preconditions,
      propagationPolicy,
    }),
    signal: options.signal,
  };
}

/** What a query may hold; `undefined` is left out. */
export type QueryValue = string | number | boolean | undefined;

/** Adds a query to a path. */
export function withQuery(
  path: string,
  query: Readonly<Record<string, QueryValue | readonly string[]>>,
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) {
      search.append(name, String(item));
    }
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The query that selects objects. */
export function selectionQuery(
  options: SelectionOptions,
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

/** The query that says how to write. */
export function writeQuery(options: WriteOptions): Record<string, QueryValue> {
  const { fieldManager, fieldValidation } = options;
  return {
    dryRun: options.dryRun ? "All" : undefined,
    fieldManager,
    fieldValidation,
  };
}

/**
 * An object for people: `status of ConfigMap default/web`.
 *
 * @throws {TypeError} If the key is none.
 */
export function describe(
  kind: Pick<Kind, "kind">,
  key: ObjectKey,
  subresource?: Subresource,
): string {
  const given: unknown = key;
  if (typeof given !== "object" || given === null || !("name" in given)) {
    throw new TypeError(
      `Cannot address a ${kind.kind}: its key must be an object with a name, such as { namespace, name }: received ${
        typeof given === "string" ? JSON.stringify(given) : typeText(given)
      }`,
    );
  }
  const part = subresource === undefined ? "" : `${subresource} of `;
  return `${part}${kind.kind} ${keyText(key)}`;
}

/** The objects of a collection for people. */
export function describeMany(kind: ResolvedKind, namespace?: string): string {
  return namespace === undefined || kind.scope === "Cluster"
    ? `${kind.kind} objects`
    : `${kind.kind} objects in namespace ${namespace}`;
}

/**
 * Refuses what is no object to be sent.
 *
 * @param action What is done with it, to read after "Cannot".
 * @throws {TypeError} If it is no object with metadata.
 */
export function checkObject(
  kind: Pick<Kind, "kind">,
  object: ObjectBody,
  action: string,
): void {
  const given: unknown = object;
  const { metadata } = Object(given) as { readonly metadata?: unknown };
  if (
    typeof given === "object" && typeof metadata === "object" &&
    metadata !== null
  ) return;
  throw new TypeError(
    `Cannot ${action} ${kind.kind}: it must be an object with "metadata": received ${
      typeof given === "object" && given !== null && !Array.isArray(given)
        ? `one with ${Object.keys(given).join(", ") || "nothing"}`
        : typeText(given)
    }`,
  );
}

/**
 * Which object is meant by what is sent.
 *
 * @throws {TypeError} If it is none, or has no name.
 */
export function keyFor(
  kind: ResolvedKind,
  object: ObjectBody,
  action: string,
): ObjectKey {
  checkObject(kind, object, action);
  const { name, namespace } = object.metadata;
  if (!name) {
    throw new TypeError(
      `Cannot ${action} ${kind.kind}: "metadata.name" must be set: received ${
        JSON.stringify(name)
      }`,
    );
  }
  return { namespace, name };
}

/**
 * Where an object is made.
 *
 * @throws {TypeError} If it needs a namespace and has none.
 */
export function namespaceFor(
  kind: ResolvedKind,
  key: ObjectKey,
): string | undefined {
  if (kind.scope === "Namespaced" && !key.namespace) {
    throw new TypeError(
      `Cannot create ${kind.kind}: a namespaced kind needs "metadata.namespace": received name "${key.name}" alone`,
    );
  }
  return key.namespace;
}

/**
 * The object as JSON, with the kind's `apiVersion` and `kind`.
 *
 * @throws {TypeError} If it is of another kind.
 */
export function encode(kind: Kind, object: ObjectBody): string {
  const apiVersion = apiVersionOf(kind);
  if (
    (object.kind ?? kind.kind) !== kind.kind ||
    (object.apiVersion ?? apiVersion) !== apiVersion
  ) {
    throw new TypeError(
      `Cannot send a ${
        kindText(kind)
      }: the object is of another kind: received ${
        object.apiVersion ?? apiVersion
      } ${object.kind ?? kind.kind}`,
    );
  }
  return JSON.stringify({ ...object, apiVersion, kind: kind.kind });
}

/**
 * A patch as JSON.
 *
 * @param action What is patched, to read after "Cannot".
 * @throws {TypeError} If it is neither an object nor, for patches of the type
 * `json`, a list of operations.
 */
export function encodePatch(
  body: unknown,
  type: PatchType,
  action: string,
): string {
  const isList = Array.isArray(body);
  if (type === "json" ? isList : isPlain(body) && !isList) {
    return JSON.stringify(body);
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

/**
 * Options with defaults for those that were not given. What is no object stays
 * as it is: the request refuses it.
 */
export function withDefaults<O extends object>(
  options: O,
  defaults: Partial<O>,
): O {
  if (!isPlain(options)) return options;
  const all: Record<string, unknown> = { ...options as object };
  for (const [name, value] of Object.entries(defaults)) {
    if (all[name] === undefined) all[name] = value;
  }
  return all as O;
}

/** Options for a part of an object. What is no object stays as it is. */
export function ofPart<O extends object>(
  options: O,
  subresource: Subresource,
): O & { readonly subresource: Subresource } {
  return (isPlain(options) ? { ...options, subresource } : options) as
    & O
    & { readonly subresource: Subresource };
}

function isPlain(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
