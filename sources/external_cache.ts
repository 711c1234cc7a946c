import { checkOptions, type OptionRules } from "../core/api/options.ts";
import { jsonEquals } from "../core/patch/json_value.ts";

/** Which changes of outside resources matter. What is left out accepts. */
export interface ExternalFilters<R> {
  /** A resource is new. */
  readonly add?: ((resource: R) => boolean) | undefined;
  /** A resource changed. */
  readonly update?: ((resource: R, previous: R) => boolean) | undefined;
  /** A resource is gone. */
  readonly delete?: ((resource: R) => boolean) | undefined;
  /** Any of these. */
  readonly generic?: ((resource: R) => boolean) | undefined;
}

/** How an {@linkcode ExternalCache} tells resources apart. */
export interface ExternalCacheOptions<R> {
  /**
   * What names a resource among those of one primary.
   *
   * @default {every primary has at most one resource}
   */
  readonly id?: ((resource: R) => string) | undefined;
  /**
   * Whether two states of a resource are the same.
   *
   * @default {the same as JSON}
   */
  readonly equals?: ((a: R, b: R) => boolean) | undefined;
  /**
   * Which changes matter.
   *
   * @default {all}
   */
  readonly filters?: ExternalFilters<R> | undefined;
}

/** What the options of a cache must be. */
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

interface Entry<R> {
  readonly resource: R;
  /**
   * The state before our own write, while no fetch has confirmed the write: a
   * fetch that was under way during the write still shows it.
   */
  readonly unconfirmed?: { readonly previous: R | undefined } | undefined;
}

/**
 * The last known state of resources outside the cluster, by primary and id.
 *
 * Own writes and deletions go in directly, so that the fetch which sees them
 * first finds no change; one following fetch that still shows the state before
 * is not believed.
 *
 * @typeParam R The type of the resources.
 */
export class ExternalCache<R> {
  readonly #primaries: Map<string, Map<string, Entry<R>>> = new Map();
  /** What we deleted ourselves since the last fetch, by primary and id. */
  readonly #deleted: Map<string, Map<string, R>> = new Map();
  readonly #id: (resource: R) => string;
  readonly #equals: (a: R, b: R) => boolean;
  readonly #filters: ExternalFilters<R>;

  /**
   * Makes an empty cache.
   *
   * @param options How resources are told apart.
   * @throws {TypeError} If a filter is unknown or no function.
   */
  constructor(options: ExternalCacheOptions<R> = {}) {
    const { id = () => "", equals = jsonEquals, filters = {} } = options;
    checkOptions(filters, FILTER_RULES, "a source, filters");
    this.#id = id;
    this.#equals = equals;
    this.#filters = filters;
  }

  /** The resources of a primary. */
  of(primary: string): R[] {
    return [...this.#primaries.get(primary)?.values() ?? []]
      .map(({ resource }) => resource);
  }

  /** Whether anything was ever put in for the primary and not forgotten. */
  has(primary: string): boolean {
    return this.#primaries.has(primary);
  }

  /** The primaries that have resources, or had them when last looked at. */
  primaries(): string[] {
    return [...this.#primaries.keys()];
  }

  /**
   * Takes in everything that a fetch found for a primary; what is not among it
   * is gone.
   *
   * @returns Whether anything changed that matters.
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
      // A fetch from before our create cannot know the resource.
      if (unconfirmed !== undefined && unconfirmed.previous === undefined) {
        after.set(id, { resource });
      } else matters = this.#gone(resource) || matters;
    }
    this.#primaries.set(primary, after);
    return matters;
  }

  /**
   * Takes in one resource that somebody told us of.
   *
   * @returns Whether it is a change that matters.
   */
  put(primary: string, resource: R): boolean {
    const entries = this.#entries(primary);
    const id = this.#id(resource);
    const previous = entries.get(id)?.resource;
    entries.set(id, { resource });
    return this.#changed(resource, previous);
  }

  /** Takes in what our own write has made of a resource. */
  ownWrite(primary: string, resource: R): void {
    const entries = this.#entries(primary);
    const id = this.#id(resource);
    const previous = entries.get(id)?.resource;
    entries.set(id, { resource, unconfirmed: { previous } });
    this.#deleted.get(primary)?.delete(id);
  }

  /** Takes out what we deleted ourselves. */
  ownDelete(primary: string, resource: R): void {
    const id = this.#id(resource);
    this.#primaries.get(primary)?.delete(id);
    const deleted = this.#deleted.get(primary) ?? new Map<string, R>();
    this.#deleted.set(primary, deleted.set(id, resource));
  }

  /**
   * Takes out one resource, or all of a primary.
   *
   * @param primary Whose.
   * @param id Which; all of them by default.
   * @returns Whether it is a change that matters.
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

  /** Forgets a primary as if nothing had ever been known of it. */
  forget(primary: string): void {
    this.#primaries.delete(primary);
    this.#deleted.delete(primary);
  }

  /** Forgets everything. */
  clear(): void {
    this.#primaries.clear();
    this.#deleted.clear();
  }

  #entries(primary: string): Map<string, Entry<R>> {
    let entries = this.#primaries.get(primary);
    if (entries === undefined) {
      entries = new Map();
      this.#primaries.set(primary, entries);
    }
    return entries;
  }

  #isStale({ unconfirmed }: Entry<R>, fetched: R): boolean {
    return unconfirmed?.previous !== undefined &&
      this.#equals(unconfirmed.previous, fetched);
  }

  #changed(resource: R, previous: R | undefined): boolean {
    const { add, update, generic } = this.#filters;
    if (previous === undefined) {
      return (add?.(resource) ?? true) && (generic?.(resource) ?? true);
    }
    return !this.#equals(resource, previous) &&
      (update?.(resource, previous) ?? true) && (generic?.(resource) ?? true);
  }

  #gone(resource: R): boolean {
    const { delete: filter, generic } = this.#filters;
    return (filter?.(resource) ?? true) && (generic?.(resource) ?? true);
  }
}
