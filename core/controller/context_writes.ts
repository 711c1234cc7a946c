import type { Kind } from "../api/kind.ts";
import type {
  ApplyObject,
  KubernetesObject,
  NewObject,
} from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { OptionRules } from "../api/options.ts";
import type { PropagationPolicy } from "../client/request_options.ts";

/** What every write of a {@linkcode Context} takes. */
export interface ContextWriteOptions {
  /**
   * Whether the event of this write triggers a run, as a change by somebody
   * else would.
   *
   * @default {false}
   */
  readonly trigger?: boolean | undefined;
  /**
   * Ends the request when it fires.
   *
   * @default {the signal of the run}
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of the writes that may turn out to be needless. */
export interface ContextMatchOptions extends ContextWriteOptions {
  /**
   * Whether nothing is sent where the cache shows that the write would change
   * nothing. What no cache of the controller has is always sent.
   *
   * @default {true}
   */
  readonly match?: boolean | undefined;
  /**
   * Writes the status alone.
   *
   * @default {the object without its status}
   */
  readonly subresource?: "status" | undefined;
}

/** Whether an object that is written becomes part of its primary. */
export interface OwnedOption {
  /**
   * Whether the primary becomes the controlling owner of the object, so that it
   * is garbage collected with it. It cannot across namespaces, nor can a
   * namespaced primary own a cluster-scoped object: there, and where only the
   * status is written, the default is false.
   *
   * @default {true}
   */
  readonly owned?: boolean | undefined;
}

/** Options of {@linkcode ContextWrites.create}. */
export interface ContextCreateOptions
  extends ContextWriteOptions, OwnedOption {}

/** Options of {@linkcode ContextWrites.apply}. */
export interface ContextApplyOptions extends ContextMatchOptions, OwnedOption {}

/** Options of {@linkcode ContextWrites.patch}. */
export interface ContextPatchOptions extends ContextMatchOptions {
  /**
   * How the body is read. Strategic merge patches, whose effect only the server
   * knows, are always sent.
   *
   * @default {"merge"}
   */
  readonly type?: "merge" | "json" | "strategic" | undefined;
}

/** Options of {@linkcode ContextWrites.delete}. */
export interface ContextDeleteOptions
  extends Pick<ContextWriteOptions, "signal"> {
  /**
   * What happens to the objects that it owns.
   *
   * @default {"Background"}
   */
  readonly propagationPolicy?: PropagationPolicy | undefined;
  /**
   * Only this incarnation is deleted.
   *
   * @default {any}
   */
  readonly uid?: string | undefined;
}

const WRITE: OptionRules<ContextWriteOptions> = {
  trigger: "boolean?",
  signal: "signal?",
};
const MATCH: OptionRules<ContextMatchOptions> = {
  ...WRITE,
  match: "boolean?",
  subresource: ["status", undefined],
};

/** What the options of each write of a context must be. */
export const CONTEXT_RULES: {
  readonly intent: OptionRules<OwnedOption>;
  readonly create: OptionRules<ContextCreateOptions>;
  readonly apply: OptionRules<ContextApplyOptions>;
  readonly patch: OptionRules<ContextPatchOptions>;
  readonly replace: OptionRules<ContextMatchOptions>;
  readonly delete: OptionRules<ContextDeleteOptions>;
} = {
  intent: { owned: "boolean?" },
  create: { ...WRITE, owned: "boolean?" },
  apply: { ...MATCH, owned: "boolean?" },
  patch: { ...MATCH, type: ["merge", "json", "strategic", undefined] },
  replace: MATCH,
  delete: {
    signal: "signal?",
    propagationPolicy: ["Background", "Foreground", "Orphan", undefined],
    uid: "name?",
  },
};

/**
 * How a run writes objects, its primary included.
 *
 * - What the caches of the controller show to be so already is not sent.
 * - The answer of a write is in the caches before its promise is fulfilled, so
 *   that every later read, and every later run, sees it.
 * - The event of a write does not trigger a run; what others change at the same
 *   time always does.
 * - A status that does not fit the schema of its kind is refused before it is
 *   sent.
 *
 * `ctx.client` has none of this: it sends what it is told, and its writes come
 * back as events like those of others. For those who know JOSDK: the default
 * matches and filters, `match: false` is its forced filter, with `trigger: true`
 * beside it only the cache is written through, and `replace` locks
 * optimistically.
 */
export interface ContextWrites {
  /**
   * Makes an object as described, by server-side apply, or changes it so. The
   * namespace is by default that of the primary.
   *
   * @returns The object as it is stored now.
   */
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: ContextApplyOptions,
  ): Promise<T>;
  /**
   * An object as {@linkcode ContextWrites.apply} would send it: with its
   * namespace and the primary among its owners. Nothing is sent.
   */
  intent<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: OwnedOption,
  ): Promise<ApplyObject<T>>;
  /** Makes an object; it is an error if it exists. */
  create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options?: ContextCreateOptions,
  ): Promise<T>;
  /**
   * Changes parts of an object.
   *
   * @returns The object as it is stored now.
   */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    body: unknown,
    options?: ContextPatchOptions,
  ): Promise<T>;
  /**
   * Puts an object in place of the stored one, under its optimistic lock.
   *
   * @param kind Its kind.
   * @param object The whole object, with the `metadata.resourceVersion` that it
   * was read with.
   * @returns The object as it is stored now.
   * @throws {TypeError} If it has no `resourceVersion`, or comes from a cache
   * that leaves out fields, which would be lost.
   * @throws {ApiError} `isConflict` if anybody changed it meanwhile.
   */
  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options?: ContextMatchOptions,
  ): Promise<T>;
  /**
   * Changes an object again and again while others change it: up to ten times it
   * is read, changed and put under its optimistic lock.
   *
   * @param kind Its kind.
   * @param key Which object; a name is one in the namespace of the primary.
   * @param change Changes the copy that it is given; it may be called more than
   * once.
   * @returns The object as it is stored now; undefined if it is gone.
   * @throws {ApiError} `isConflict` if others were faster each time.
   */
  modify<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    change: (object: T) => void,
    options?: ContextMatchOptions,
  ): Promise<T | undefined>;
  /** Deletes an object; it is no error if it is gone already. */
  delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: string | ObjectKey,
    options?: ContextDeleteOptions,
  ): Promise<void>;
  /**
   * Adds a finalizer to the primary, for reconcilers that decide themselves
   * which objects have one; others are given theirs by the framework.
   *
   * @param finalizer By default that of the controller.
   */
  addFinalizer(finalizer?: string): Promise<void>;
  /**
   * Takes a finalizer from the primary, whatever others change meanwhile.
   *
   * @param finalizer By default that of the controller.
   */
  removeFinalizer(finalizer?: string): Promise<void>;
}
