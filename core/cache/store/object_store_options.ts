import type { Kind } from "../../api/kind.ts";
import type { LabelRequirement } from "../../api/label_requirement.ts";
import type { LabelSelector } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { MemoryBudget } from "./memory_budget.ts";
import type { IndexDefinition, OnIndexError } from "./object_indexes.ts";

/**
 * What a put did: `unchanged` means that uid and resourceVersion are those
 * stored; `stale` that a newer version is stored. Neither changes the store.
 */
export type PutOutcome = "added" | "updated" | "unchanged" | "stale";

/**
 * Fetches the JSON of an object of which only the key was kept; undefined if it
 * is gone.
 */
export type FetchObject = (
  key: ObjectKey,
) => Promise<Uint8Array | undefined>;

/** Options of an object store. */
export interface ObjectStoreOptions<T extends KubernetesObject> {
  /** Restored on objects that came as items of a list, which leave it out. */
  readonly kind: Kind<T>;
  /**
   * Paths that are not kept; reading one throws an error that names it.
   *
   * @default {[]}
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Indexes from the start, by name.
   *
   * @default {{}}
   */
  readonly indexes?:
    | Readonly<Record<string, IndexDefinition<T>>>
    | undefined;
  /**
   * The bytes that this store shares with others; without one nothing sinks,
   * and 8 MiB of decoded objects are kept.
   *
   * @default {undefined}
   */
  readonly budget?: MemoryBudget | undefined;
  /**
   * Allows the store to keep the keys alone of what does not fit into the
   * budget; `read` then fetches an object.
   *
   * @default {undefined}
   */
  readonly fetch?: FetchObject | undefined;
  /**
   * Told when an index function throws; the object then has no values there.
   *
   * @default {() => {}}
   */
  readonly onIndexError?: OnIndexError | undefined;
}

/** Which objects to list. */
export interface StoreListOptions {
  /**
   * Only this namespace.
   *
   * @default {undefined}
   */
  readonly namespace?: string | undefined;
  /**
   * Only objects whose labels match; decided on the bytes.
   *
   * @default {undefined}
   */
  readonly labelSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
}

/** Options of a put. */
export interface PutOptions {
  /**
   * Takes an older version, too: for the answer of a server whose
   * resourceVersions began anew.
   *
   * @default {false}
   */
  readonly force?: boolean | undefined;
}
