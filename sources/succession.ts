import type { KubernetesObject } from "../core/api/object.ts";
import { parseKey } from "../core/api/object_key.ts";
import { compareResourceVersions } from "../core/api/resource_version.ts";
import type { CacheEvent } from "../core/cache/informer/cache_event.ts";
import type { InformerLease } from "../core/cache/informer/informer_lease.ts";
import type { NamespaceSet } from "../core/controller/event_source.ts";
import { newestOf } from "../core/controller/primary_source.ts";

/** What of an informer tells how far it is. */
type Followed<S extends KubernetesObject> = Pick<
  InformerLease<S>,
  "keys" | "resourceVersion"
>;

/**
 * What a watch knows that takes the place of another one: what that one told
 * needs no second word, and what it has not told yet it never will.
 *
 * @typeParam S The type of the objects.
 */
export class Succession<S extends KubernetesObject> {
  readonly #former: Followed<S>;
  readonly #next: Followed<S>;
  /**
   * The newest version in the cache of the next one when runs began to read it:
   * of what is newer, a run that the former watch triggered may have missed.
   */
  readonly #read: string;

  /**
   * @param former The watch that ends.
   * @param next The one that takes its place.
   */
  constructor(former: Followed<S>, next: Followed<S>) {
    this.#former = former;
    this.#next = next;
    this.#read = newestOf(next);
  }

  /** Whether the former watch told the state of an event, or a later one. */
  isTold({ initial, key, header }: CacheEvent<S>): boolean {
    const { resourceVersion } = header;
    const told = this.#former.resourceVersion(key) ?? "";
    return initial &&
      compareResourceVersions(resourceVersion, this.#read) <= 0 &&
      compareResourceVersions(told, resourceVersion) >= 0;
  }

  /**
   * The objects of which the former watch has not told the end, or a change.
   *
   * @param namespaces Those that are watched now: what is not in them has been
   * left, and is not gone.
   */
  *missed(namespaces: NamespaceSet): Generator<string, void, undefined> {
    for (const key of this.#former.keys()) {
      const { namespace = "" } = parseKey(key);
      if (namespaces !== "all" && !namespaces.includes(namespace)) continue;
      const told = this.#former.resourceVersion(key) ?? "";
      const version = this.#next.resourceVersion(key);
      if (
        version === undefined || compareResourceVersions(told, version) < 0
      ) yield key;
    }
  }
}
