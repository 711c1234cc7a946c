import type { KubernetesObject } from "../api/object.ts";
import type { OptionRules } from "../api/options.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";

/**
 * Which events of an informer matter. What is left out accepts everything; an
 * event goes on if the filter of its type, `generic` and `event` all accept it.
 * A filter that throws accepts, and the error is logged.
 *
 * Objects are decoded when a filter of theirs is called. A filter that only
 * needs the metadata is cheaper as `event`, which reads it from the bytes.
 *
 * @typeParam T The type of the objects.
 */
export interface Filters<T extends KubernetesObject = KubernetesObject> {
  /** An object is new. */
  readonly add?: ((object: T) => boolean) | undefined;
  /** An object changed; the state before is not always known. */
  readonly update?:
    | ((object: T, previous: T | undefined) => boolean)
    | undefined;
  /**
   * An object is gone. Not for primaries, whose deletion must always be known.
   */
  readonly delete?:
    | ((object: T, finalStateUnknown: boolean) => boolean)
    | undefined;
  /** Any of these. */
  readonly generic?: ((object: T) => boolean) | undefined;
  /** Any of these, as the cache tells it; valid during the call only. */
  readonly event?: ((event: CacheEvent<T>) => boolean) | undefined;
}

/** What filters must be. */
export const FILTER_RULES: OptionRules<Filters> = {
  add: "function?",
  update: "function?",
  delete: "function?",
  generic: "function?",
  event: "function?",
};

/** A filter that accepts what all of these accept. */
export function allOf<Args extends readonly unknown[]>(
  ...filters: readonly ((...args: Args) => boolean)[]
): (...args: Args) => boolean {
  return (...args) => filters.every((filter) => filter(...args));
}

/** A filter that accepts what any of these accepts. */
export function anyOf<Args extends readonly unknown[]>(
  ...filters: readonly ((...args: Args) => boolean)[]
): (...args: Args) => boolean {
  return (...args) => filters.some((filter) => filter(...args));
}

/**
 * A filter that accepts what the other does not.
 *
 * @example Changes of what nobody has paused
 * ```ts
 * import { allOf, not } from "@coracle/operator/core";
 * import type { ConfigMap } from "@coracle/operator/kinds";
 *
 * const isPaused = ({ data }: ConfigMap) => data?.["paused"] === "true";
 * const isOurs = ({ metadata }: ConfigMap) => metadata.name.startsWith("our-");
 * const filters = { generic: allOf(isOurs, not(isPaused)) };
 * if (!filters.generic({ metadata: { name: "our-map" } })) throw new Error("No");
 * ```
 */
export function not<Args extends readonly unknown[]>(
  filter: (...args: Args) => boolean,
): (...args: Args) => boolean {
  return (...args) => !filter(...args);
}

/** Whether filters accept an event. What they throw is passed on. */
export function accepts<T extends KubernetesObject>(
  filters: Filters<T>,
  event: CacheEvent<T>,
): boolean {
  if (filters.event !== undefined && !filters.event(event)) return false;
  if (filters.generic !== undefined && !filters.generic(event.object)) {
    return false;
  }
  switch (event.type) {
    case "added":
      return filters.add?.(event.object) ?? true;
    case "updated":
      return filters.update?.(event.object, event.previous) ?? true;
    case "deleted":
      return filters.delete?.(event.object, event.finalStateUnknown) ?? true;
  }
}

/** What the default filter of a controller looks at. */
export interface DefaultFilterOptions {
  /** The finalizer of the controller; undefined when it uses none. */
  readonly finalizer: string | undefined;
  /** Whether changes that leave the generation as it was are ignored. */
  readonly generationAware: boolean;
  /** The annotation that pauses an object; undefined when none does. */
  readonly pauseAnnotation: string | undefined;
  /** The annotations that ask for a run when they get a new value. */
  readonly requestAnnotations: readonly string[];
}

/**
 * Whether an update of a primary matters to its controller, decided on the
 * scanned metadata: its generation rose or its kind has none, our finalizer was
 * or is missing, it was marked for deletion or paused just now or is paused no
 * longer, or what it was before is not known.
 */
export function isRelevantUpdate(
  event: Pick<CacheEvent, "header" | "previousHeader" | "hasSameMetadata">,
  options: DefaultFilterOptions,
): boolean {
  const { header } = event;
  const { finalizer, generationAware, pauseAnnotation, requestAnnotations } =
    options;
  if (!generationAware) return true;
  const generation = header.generation;
  if (generation === undefined) return true;
  if (event.hasSameMetadata) {
    return finalizer !== undefined && !header.hasFinalizer(finalizer);
  }
  const { previousHeader: previous } = event;
  if (previous === undefined || generation !== previous.generation) return true;
  if (
    header.deletionTimestamp !== undefined &&
    previous.deletionTimestamp === undefined
  ) return true;
  if (
    pauseAnnotation !== undefined &&
    header.annotation(pauseAnnotation) !== previous.annotation(pauseAnnotation)
  ) return true;
  for (const name of requestAnnotations) {
    const token = header.annotation(name);
    if (token !== undefined && token !== previous.annotation(name)) return true;
  }
  return finalizer !== undefined &&
    !(header.hasFinalizer(finalizer) && previous.hasFinalizer(finalizer));
}
