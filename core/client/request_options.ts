import type { FieldRequirement, FieldSelector } from "../api/field_selector.ts";
import type { LabelRequirement } from "../api/label_requirement.ts";
import type { LabelSelector } from "../api/label_selector.ts";
import type { OptionRules } from "../api/option_rules.ts";

/** What every call takes. */
export interface RequestOptions {
  /** Ends the call when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** What every call that writes takes. */
export interface WriteOptions extends RequestOptions {
  /**
   * Whether the server only checks the write and answers what it would store.
   *
   * @default {false}
   */
  readonly dryRun?: boolean | undefined;
  /**
   * Whose fields these are, at most 128 characters.
   *
   * @default {the client's `fieldManager`}
   */
  readonly fieldManager?: string | undefined;
  /**
   * What the server does with unknown and duplicate fields.
   *
   * @default {the server's own, "Warn"}
   */
  readonly fieldValidation?: "Ignore" | "Warn" | "Strict" | undefined;
}

/** Options of a server-side apply. */
export interface ApplyOptions extends WriteOptions {
  /**
   * Whether to take over fields that another manager owns, instead of failing
   * with a conflict.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
}

/**
 * How a patch is meant: `merge` (RFC 7396), `json` (RFC 6902) or `strategic`
 * (merge with list keys, built-in kinds only).
 */
export type PatchType = "merge" | "json" | "strategic";

/** Options of a patch. */
export interface PatchOptions extends WriteOptions {
  /**
   * How the body is meant.
   *
   * @default {"merge"}
   */
  readonly type?: PatchType | undefined;
}

/** Options of a read of one object. */
export interface GetOptions extends RequestOptions {
  /**
   * `"0"` allows an answer from the server's cache.
   *
   * @default {the newest state}
   */
  readonly resourceVersion?: string | undefined;
}

/** Which objects are meant. */
export interface SelectionOptions extends RequestOptions {
  /**
   * Only this namespace.
   *
   * @default {all}
   */
  readonly namespace?: string | undefined;
  /**
   * Only objects with such labels.
   *
   * @default {all}
   */
  readonly labelSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
  /**
   * Only objects with such fields.
   *
   * @default {all}
   */
  readonly fieldSelector?:
    | string
    | FieldSelector
    | readonly FieldRequirement[]
    | undefined;
  /**
   * Only objects of such a shard, as `shardSelector()` writes it. A server that
   * does not know shards, as those before Kubernetes 1.36, sends all objects.
   *
   * @default {all}
   */
  readonly shardSelector?: string | undefined;
}

/** How the state that a list shows relates to the given resource version. */
export type ResourceVersionMatch = "Exact" | "NotOlderThan";

/** Options of a list. */
export interface ListOptions extends SelectionOptions {
  /**
   * At most this many objects in one page; a server may give fewer.
   *
   * @default {all in one page}
   */
  readonly limit?: number | undefined;
  /**
   * Where the next page starts, from the last page's metadata.
   *
   * @default {at the first object}
   */
  readonly continue?: string | undefined;
  /**
   * Which state is asked for.
   *
   * @default {the newest}
   */
  readonly resourceVersion?: string | undefined;
  /**
   * How `resourceVersion` is meant.
   *
   * @default {"NotOlderThan", or "Exact" with a `limit`}
   */
  readonly resourceVersionMatch?: ResourceVersionMatch | undefined;
}

/** Options of a watch. */
export interface WatchOptions extends SelectionOptions {
  /**
   * Events after this state.
   *
   * @default {the server's present state first}
   */
  readonly resourceVersion?: string | undefined;
  /** How `resourceVersion` is meant; needed with `sendInitialEvents`. */
  readonly resourceVersionMatch?: ResourceVersionMatch | undefined;
  /**
   * Whether the server tells its progress by BOOKMARK events.
   *
   * @default {false}
   */
  readonly bookmarks?: boolean | undefined;
  /**
   * Whether the server begins with its whole state and marks its end by a
   * bookmark (WatchList).
   *
   * @default {false}
   */
  readonly sendInitialEvents?: boolean | undefined;
  /**
   * After how many seconds the server ends the watch in order.
   *
   * @default {the server's own: of kube-apiserver, 30 to 60 minutes}
   */
  readonly timeoutSeconds?: number | undefined;
}

/** What happens to the objects that an object owns. */
export type PropagationPolicy = "Background" | "Foreground" | "Orphan";

/** Options of a deletion. */
export interface DeleteOptions extends RequestOptions {
  /**
   * Whether the server only checks the deletion.
   *
   * @default {false}
   */
  readonly dryRun?: boolean | undefined;
  /**
   * What happens to owned objects.
   *
   * @default {the kind's own, "Background" for most}
   */
  readonly propagationPolicy?: PropagationPolicy | undefined;
  /**
   * Seconds for a graceful end; zero means at once.
   *
   * @default {the object's own}
   */
  readonly gracePeriodSeconds?: number | undefined;
  /**
   * The deletion fails with a conflict unless the object is this one.
   *
   * @default {none: any will do}
   */
  readonly preconditions?: {
    readonly uid?: string | undefined;
    readonly resourceVersion?: string | undefined;
  } | undefined;
}

/** Options of a deletion of many objects. */
export interface DeleteCollectionOptions
  extends SelectionOptions, Omit<DeleteOptions, "preconditions"> {}

/** Which part of an object a request is about. */
export interface SubresourceOption {
  /** The part; the object itself when absent. */
  readonly subresource?: Subresource | undefined;
}

/** A named part of an object with a path of its own. */
export type Subresource = "status" | "scale" | (string & Record<never, never>);

const REQUEST: OptionRules<RequestOptions> = { signal: "signal?" };
const PART: OptionRules<RequestOptions & SubresourceOption> = {
  ...REQUEST,
  subresource: "name?",
};
const WRITE: OptionRules<WriteOptions & SubresourceOption> = {
  ...PART,
  dryRun: "boolean?",
  fieldManager: "string?",
  fieldValidation: ["Ignore", "Warn", "Strict", undefined],
};
const SELECTION: OptionRules<SelectionOptions> = {
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
  preconditions: "object?",
};
const { preconditions: _onlyOfOne, ...DELETE_MANY } = DELETE;

/** What the options of each kind of request must be. */
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
