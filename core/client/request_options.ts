import type { OptionRules } from "../api/options.ts";
import type { SelectionOptions } from "../api/selection.ts";

/** Options of every request. */
export interface RequestOptions {
  /** Signal that cancels the request. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of every write. */
export interface WriteOptions extends RequestOptions {
  /**
   * Whether to only validate: the server returns the result without storing it.
   *
   * @default {false}
   */
  readonly dryRun?: boolean | undefined;
  /**
   * Field manager of the written fields, 1 to 128 bytes. Defaults to the
   * client's `fieldManager`.
   */
  readonly fieldManager?: string | undefined;
  /**
   * Server-side validation of unknown and duplicate fields: ignore them, warn
   * (the default of API servers) or refuse the write.
   */
  readonly fieldValidation?: "Ignore" | "Warn" | "Strict" | undefined;
}

/** Options of a server-side apply. */
export interface ApplyOptions extends WriteOptions {
  /**
   * Whether to take over fields that other managers own; otherwise the apply
   * fails with a conflict.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
}

/**
 * Patch type: JSON merge patch (RFC 7396), JSON patch (RFC 6902) or strategic
 * merge patch (lists merged by key; built-in kinds only).
 */
export type PatchType = "merge" | "json" | "strategic";

/** Options of a patch. */
export interface PatchOptions extends WriteOptions {
  /**
   * Patch type: merge, JSON or strategic merge.
   *
   * @default {"merge"}
   */
  readonly type?: "merge" | "json" | "strategic" | undefined;
}

/** Options of a read of one object. */
export interface GetOptions extends RequestOptions {
  /**
   * Minimum resource version; `"0"` allows any cached state. The most recent
   * state is read by default.
   */
  readonly resourceVersion?: string | undefined;
}

/** Options of a request for a collection of objects. */
export interface CollectionOptions extends RequestOptions, SelectionOptions {
  /** Namespace. Defaults to all namespaces. */
  readonly namespace?: string | undefined;
}

/** Options of a list. */
export interface ListOptions extends CollectionOptions {
  /**
   * Maximum number of objects in a page; servers may return fewer. All objects
   * by default.
   */
  readonly limit?: number | undefined;
  /**
   * Continue token from the metadata of the previous page.
   */
  readonly continue?: string | undefined;
  /**
   * Resource version to list at. The most recent state by default.
   */
  readonly resourceVersion?: string | undefined;
  /**
   * Match rule for `resourceVersion`. Servers default to `"NotOlderThan"`, with
   * a `limit` to `"Exact"`.
   */
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan" | undefined;
}

/** Options of a watch. */
export interface WatchOptions extends CollectionOptions {
  /**
   * Resource version after which events start. Without it the current objects
   * are sent first, as ADDED events.
   */
  readonly resourceVersion?: string | undefined;
  /** Match rule for `resourceVersion`; required with `sendInitialEvents`. */
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan" | undefined;
  /**
   * Whether the server reports progress by BOOKMARK events.
   *
   * @default {false}
   */
  readonly bookmarks?: boolean | undefined;
  /**
   * Whether the server sends all current objects first and marks their end with
   * a bookmark (WatchList).
   *
   * @default {false}
   */
  readonly sendInitialEvents?: boolean | undefined;
  /**
   * Duration after which the server ends the watch, in seconds. Servers choose
   * 30 to 60 minutes by default.
   */
  readonly timeoutSeconds?: number | undefined;
}

/** Options of a deletion. */
export interface DeleteOptions extends RequestOptions {
  /**
   * Whether to only validate the deletion.
   *
   * @default {false}
   */
  readonly dryRun?: boolean | undefined;
  /**
   * Policy for the objects that the deleted object owns. Defaults to the policy
   * of the kind, `"Background"` for most.
   */
  readonly propagationPolicy?:
    | "Background"
    | "Foreground"
    | "Orphan"
    | undefined;
  /**
   * Time for a graceful termination, in seconds; zero deletes immediately.
   * Defaults to that of the object.
   */
  readonly gracePeriodSeconds?: number | undefined;
  /**
   * Preconditions; the deletion fails with a conflict if the object does not
   * match.
   */
  readonly preconditions?: {
    /** UID that the object must have. */
    readonly uid?: string | undefined;
    /** Resource version that the object must have. */
    readonly resourceVersion?: string | undefined;
  } | undefined;
}

/** Options of a deletion of many objects. */
export interface DeleteCollectionOptions
  extends CollectionOptions, Omit<DeleteOptions, "preconditions"> {}

/** Option for the subresource of a request. */
export interface SubresourceOption {
  /** Subresource; the object itself if absent. */
  readonly subresource?: Subresource | undefined;
}

/** Name of a subresource. */
export type Subresource = "status" | "scale" | (string & Record<never, never>);

const REQUEST: OptionRules<RequestOptions> = { signal: "signal?" };
const PART: OptionRules<RequestOptions & SubresourceOption> = {
  ...REQUEST,
  subresource: "name?",
};
const WRITE: OptionRules<WriteOptions & SubresourceOption> = {
  ...PART,
  dryRun: "boolean?",
  fieldManager: "manager?",
  fieldValidation: ["Ignore", "Warn", "Strict", undefined],
};
const SELECTION: OptionRules<CollectionOptions> = {
  ...REQUEST,
  namespace: "name?",
  labelSelector: "selector?",
  fieldSelector: "selector?",
  shardSelector: "string?",
};
const LIST: OptionRules<ListOptions> = {
  ...SELECTION,
  limit: "size?",
  continue: "string?",
  resourceVersion: "string?",
  resourceVersionMatch: ["Exact", "NotOlderThan", undefined],
};
const DELETE: OptionRules<DeleteOptions> = {
  ...REQUEST,
  dryRun: "boolean?",
  propagationPolicy: ["Background", "Foreground", "Orphan", undefined],
  gracePeriodSeconds: "size?",
  preconditions: {
    type: "object?",
    options: { uid: "string?", resourceVersion: "string?" },
  },
};
const { preconditions: _onlyForOne, ...DELETE_MANY } = DELETE;

/** Types of the options of each request. */
export const REQUEST_RULES: {
  readonly path: OptionRules<
    RequestOptions & { readonly accept?: string | undefined }
  >;
  readonly get: OptionRules<GetOptions & SubresourceOption>;
  readonly list: OptionRules<ListOptions>;
  readonly watch: OptionRules<WatchOptions>;
  readonly write: OptionRules<WriteOptions & SubresourceOption>;
  readonly apply: OptionRules<ApplyOptions & SubresourceOption>;
  readonly patch: OptionRules<PatchOptions & SubresourceOption>;
  readonly delete: OptionRules<DeleteOptions>;
  readonly deleteCollection: OptionRules<DeleteCollectionOptions>;
} = {
  path: { ...REQUEST, accept: "name?" },
  get: { ...PART, resourceVersion: "string?" },
  list: LIST,
  watch: {
    ...SELECTION,
    resourceVersion: "string?",
    resourceVersionMatch: ["Exact", "NotOlderThan", undefined],
    bookmarks: "boolean?",
    sendInitialEvents: "boolean?",
    timeoutSeconds: "size?",
  },
  write: WRITE,
  apply: { ...WRITE, force: "boolean?" },
  patch: { ...WRITE, type: ["merge", "json", "strategic", undefined] },
  delete: DELETE,
  deleteCollection: { ...SELECTION, ...DELETE_MANY },
};
