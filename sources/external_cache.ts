import { immediate } from "../core/callback.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import { keyOf, keyText } from "../core/api/object_key.ts";
import {
  checkOptions,
  type OptionRules,
  typeText,
} from "../core/api/options.ts";
import { jsonEquals } from "../core/patch/json_value.ts";
import { BaseSource } from "./source_run.ts";

/** Options of a cache of external resources. */
export interface ExternalCacheOptions<R> {
  /**
   * Id of a resource, unique among those of its primary. By default a primary
   * has at most one resource.
   */
  readonly id?: ((resource: R) => string) | undefined;
  /**
   * Whether two states of a resource are equal. By default they are compared as
   * JSON.
   */
  readonly equals?: ((a: R, b: R) => boolean) | undefined;
  /**
   * Filters of the changes that trigger runs: `add`, `update` and `delete` for
   * one type of change, `generic` for all. A filter that is left out accepts
   * every change.
   */
  readonly filters?: {
    readonly add?: ((resource: R) => boolean) | undefined;
    readonly update?: ((resource: R, previous: R) => boolean) | undefined;
    readonly delete?: ((resource: R) => boolean) | undefined;
    readonly generic?: ((resource: R) => boolean) | undefined;
  } | undefined;
}

type ExternalFilters<R> = NonNullable<ExternalCacheOptions<R>["filters"]>;

/** Validation rules of the options of a cache. */
export const CACHE_RULES: OptionRules<ExternalCacheOptions<never>> = {
  id: "function?",
  equals: "function?",
  filters: "object?",
};
const FILTER_RULES: OptionRules<ExternalFilters<never>> = {
  add: "function?",
  update: "function?",
  delete: "function?",
  generic: "function?",
};

/**
 * Returns what a program has given as the resources of a primary.
 *
 * @param source The name of the source.
 * @throws {TypeError} If it is no list.
 */
export function resourcesOf<R>(
  found: Iterable<R>,
  source: string,
  primary: string,
): Iterable<R> {
  const isList = typeof Object(found)[Symbol.iterator] === "function";
  if (isList && typeof found !== "string") return found;
  throw new TypeError(
    `Cannot use the resources of ${primary} for "${source}": they must be a list: received ${
      typeText(found)
    }`,
  );
}

interface Entry<R> {
  readonly resource: R;
  /**
   * State before a write by the operator that no fetch has confirmed: a fetch
   * that was in progress during the write still returns it.
   */
  readonly unconfirmed?: { readonly previous: R | undefined } | undefined;
}

/**
 * Cache of external resources, by primary and id.
 *
 * Writes and deletions by the operator are applied directly, so that the first
 * fetch that returns them finds no change. One later fetch that still returns
 * the earlier state is ignored.
 */
export class ExternalCache<R> {
  readonly #primaries: Map<string, Map<string, Entry<R>>> = new Map();
  /** Deletions by the operator since the last fetch, by primary and id. */
  readonly #deleted: Map<string, Map<string, R>> = new Map();
  readonly #id: (resource: R) => string;
  readonly #equals: (a: R, b: R) => boolean;
  readonly #filters: ExternalFilters<R>;

  /**
   * Creates an empty cache.
   *
   * @throws {TypeError} If a filter is unknown or not a function.
   */
  constructor(options: ExternalCacheOptions<R> = {}) {
    const { id = () => "", equals = jsonEquals, filters = {} } = options;
    checkOptions(filters, FILTER_RULES, "a source, filters");
    this.#id = (resource) => immediate(id(resource), "id()");
    this.#equals = (a, b) => immediate(equals(a, b), "equals()");
    this.#filters = filters;
  }

  of(primary: string): R[] {
    return [...this.#primaries.get(primary)?.values() ?? []]
      .map(({ resource }) => resource);
  }

  /** Whether the cache has an entry for a primary, even without resources. */
  has(primary: string): boolean {
    return this.#primaries.has(primary);
  }

  /** Primaries with resources or deletions, some twice. */
  primaries(): string[] {
    return [...this.#primaries.keys(), ...this.#deleted.keys()];
  }

  /**
   * Replaces the resources of a primary by those of a fetch.
   *
   * @returns Whether there is a change that the filters accept.
   */
  replace(primary: string, resources: Iterable<R>): boolean {
    const before = this.#primaries.get(primary) ?? new Map<string, Entry<R>>();
    const after = new Map<string, Entry<R>>();
    const deleted = this.#deleted.get(primary);
    this.#deleted.delete(primary);
    let matters = false;
    for (const resource of resources) {
      const id = this.#id(resource);
      const gone = deleted?.get(id);
      if (gone !== undefined && this.#equals(gone, resource)) continue;
      const entry = before.get(id);
      if (entry !== undefined && this.#isStale(entry, resource)) {
        after.set(id, { resource: entry.resource });
        continue;
      }
      after.set(id, { resource });
      matters = this.#changed(resource, entry?.resource) || matters;
    }
    for (const [id, { resource, unconfirmed }] of before) {
      if (after.has(id)) continue;
      // A fetch from before the creation cannot return the resource.
      if (unconfirmed !== undefined && unconfirmed.previous === undefined) {
        after.set(id, { resource });
      } else matters = this.#gone(resource) || matters;
    }
    this.#primaries.set(primary, after);
    return matters;
  }

  /**
   * Adds or updates a resource.
   *
   * @returns Whether there is a change that the filters accept.
   */
  put(primary: string, resource: R): boolean {
    this.#deleted.get(primary)?.delete(this.#id(resource));
    return this.#changed(resource, this.#set(primary, { resource }));
  }

  /** Updates a resource after a write by the operator. */
  ownWrite(primary: string, resource: R): void {
    const id = this.#id(resource);
    const previous = this.#primaries.get(primary)?.get(id)?.resource;
    this.#set(primary, { resource, unconfirmed: { previous } });
  }

  /** Removes a resource after a deletion by the operator. */
  ownDelete(primary: string, resource: R): void {
    const id = this.#id(resource);
    this.#primaries.get(primary)?.delete(id);
    const deleted = this.#deleted.get(primary) ?? new Map<string, R>();
    this.#deleted.set(primary, deleted.set(id, resource));
  }

  /**
   * Removes one resource, or all resources of a primary.
   *
   * @returns Whether there is a change that the filters accept.
   */
  delete(primary: string, id?: string): boolean {
    const entries = this.#primaries.get(primary);
    if (entries === undefined) return false;
    let matters = false;
    for (const [key, { resource }] of [...entries]) {
      if (id !== undefined && key !== id) continue;
      entries.delete(key);
      matters = this.#gone(resource) || matters;
    }
    return matters;
  }

  forget(primary: string): void {
    this.#primaries.delete(primary);
    this.#deleted.delete(primary);
  }

  clear(): void {
    this.#primaries.clear();
    this.#deleted.clear();
  }

  /** Sets an entry and returns the resource that it replaces. */
  #set(primary: string, entry: Entry<R>): R | undefined {
    const entries = this.#primaries.get(primary) ?? new Map<string, Entry<R>>();
    const id = this.#id(entry.resource);
    const previous = entries.get(id)?.resource;
    this.#primaries.set(primary, entries.set(id, entry));
    return previous;
  }

  #isStale({ unconfirmed }: Entry<R>, fetched: R): boolean {
    return unconfirmed?.previous !== undefined &&
      this.#equals(unconfirmed.previous, fetched);
  }

  #changed(resource: R, previous: R | undefined): boolean {
    const { add, update } = this.#filters;
    if (previous === undefined) {
      return this.#accepts(resource, "add", add?.(resource));
    }
    return !this.#equals(resource, previous) &&
      this.#accepts(resource, "update", update?.(resource, previous));
  }

  #gone(resource: R): boolean {
    return this.#accepts(resource, "delete", this.#filters.delete?.(resource));
  }

  /** Whether both filters, for its type and for all types, accept a change. */
  #accepts(
    resource: R,
    filter: keyof ExternalFilters<R>,
    isAccepted = true,
  ): boolean {
    const { generic } = this.#filters;
    return immediate(isAccepted, `filters.${filter}`) &&
      (immediate(generic?.(resource), "filters.generic") ?? true);
  }
}

/** Base class of event sources that cache external resources. */
export abstract class CachingSource<P extends KubernetesObject, R>
  extends BaseSource<P> {
  /** Resources by primary. */
  protected readonly cache: ExternalCache<R>;

  constructor(
    options: ExternalCacheOptions<R> & {
      readonly name: string;
      readonly leaderOnly?: boolean | undefined;
    },
  ) {
    super(options.name, options.leaderOnly);
    this.cache = new ExternalCache(options);
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.cache.clear();
  }

  ownExternalWrite(primary: P, resource: R): void {
    const key = keyText(keyOf(primary));
    if (this.isKnown(key)) this.cache.ownWrite(key, resource);
  }

  ownExternalDelete(primary: P, resource: R): void {
    const key = keyText(keyOf(primary));
    if (this.isKnown(key)) this.cache.ownDelete(key, resource);
  }

  /** Whether a primary exists: nothing would forget the resources of another. */
  protected isKnown(key: string): boolean {
    return this.run?.context.primaries.has(key) ?? false;
  }
}
