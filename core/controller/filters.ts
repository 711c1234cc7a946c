import type { KubernetesObject } from "../api/object.ts";
import type { OptionRules } from "../api/options.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import { immediate } from "../callback.ts";

/**
 * Filters of the events of an informer. An event is accepted if the filter of its
 * type, `generic` and `event` all accept it; a filter that is left out accepts
 * everything. If a filter throws, the event is accepted and the error is logged.
 *
 * Objects are decoded for every filter except `event`, which is therefore cheaper
 * if it only needs the metadata.
 *
 * @typeParam T Type of the objects.
 *
 * @example Only changes of ConfigMaps with a label
 * ```ts
 * import type { Filters } from "@coracle/operator/core";
 * import type { ConfigMap } from "@coracle/operator/kinds";
 *
 * const filters: Filters<ConfigMap> = {
 *   event: ({ header }) => header.label("team") === "payments",
 * };
 * ```
 */
export interface Filters<T extends KubernetesObject = KubernetesObject> {
  /** Filter of new objects. */
  readonly add?: ((object: T) => boolean) | undefined;
  /** Filter of changed objects; the previous state is not always known. */
  readonly update?:
    | ((object: T, previous: T | undefined) => boolean)
    | undefined;
  /**
   * Filter of deleted objects, given their last known state and whether a later
   * state was missed. Not allowed for primaries, whose deletion is always handled.
   */
  readonly delete?:
    | ((object: T, finalStateUnknown: boolean) => boolean)
    | undefined;
  /** Filter of all events, given the object. */
  readonly generic?: ((object: T) => boolean) | undefined;
  /** Filter of all events, given the event, which is valid during the call only. */
  readonly event?: ((event: CacheEvent<T>) => boolean) | undefined;
}

export const FILTER_RULES: OptionRules<Filters> = {
  add: "function?",
  update: "function?",
  delete: "function?",
  generic: "function?",
  event: "function?",
};

/** Filter that accepts events that all given filters accept. */
export function allOf<Args extends readonly unknown[]>(
  ...filters: readonly ((...args: Args) => boolean)[]
): (...args: Args) => boolean {
  return (...args) =>
    filters.every((filter) =>
      immediate(filter(...args), "a filter of allOf()")
    );
}

/** Filter that accepts events that at least one given filter accepts. */
export function anyOf<Args extends readonly unknown[]>(
  ...filters: readonly ((...args: Args) => boolean)[]
): (...args: Args) => boolean {
  return (...args) =>
    filters.some((filter) => immediate(filter(...args), "a filter of anyOf()"));
}

/**
 * Filter that accepts events that none of the given filters accepts.
 *
 * @example Our ConfigMaps that are not paused
 * ```ts
 * import { allOf, noneOf } from "@coracle/operator/core";
 * import type { ConfigMap } from "@coracle/operator/kinds";
 *
 * const isPaused = ({ data }: ConfigMap) => data?.["paused"] === "true";
 * const isOurs = ({ metadata }: ConfigMap) => metadata.name.startsWith("our-");
 * const filters = { generic: allOf(isOurs, noneOf(isPaused)) };
 * if (!filters.generic({ metadata: { name: "our-map" } })) throw new Error("No");
 * ```
 */
export function noneOf<Args extends readonly unknown[]>(
  ...filters: readonly ((...args: Args) => boolean)[]
): (...args: Args) => boolean {
  return (...args) =>
    !filters.some((filter) =>
      immediate(filter(...args), "a filter of noneOf()")
    );
}

/**
 * Whether filters accept an event; rethrows their errors.
 *
 * @throws {TypeError} If a filter returns a promise.
 */
export function accepts<T extends KubernetesObject>(
  filters: Filters<T>,
  event: CacheEvent<T>,
): boolean {
  return decided(filters.event?.(event), "event") &&
    decided(filters.generic?.(event.object), "generic") &&
    decided(ofType(filters, event), TYPES[event.type]);
}

/** Name of the filter for each type of event. */
const TYPES = { added: "add", updated: "update", deleted: "delete" } as const;

/** Result of the filter for the type of an event; undefined without one. */
function ofType<T extends KubernetesObject>(
  filters: Filters<T>,
  event: CacheEvent<T>,
): boolean | undefined {
  switch (event.type) {
    case "added":
      return filters.add?.(event.object);
    case "updated":
      return filters.update?.(event.object, event.previous);
    case "deleted":
      return filters.delete?.(event.object, event.finalStateUnknown);
  }
}

function decided(result: boolean | undefined, filter: string): boolean {
  return immediate(result, `filters.${filter}`) ?? true;
}

/** Options of the default filter of a controller. */
export interface DefaultFilterOptions {
  /** Finalizer of the controller; undefined if it uses none. */
  readonly finalizer: string | undefined;
  /** Whether updates with an unchanged generation are ignored. */
  readonly generationAware: boolean;
  /** Annotation that pauses an object; undefined if absent. */
  readonly pauseAnnotation: string | undefined;
  /** Annotations that request a run when they get a new value. */
  readonly requestAnnotations: readonly string[];
  /** Annotations that cause a run whenever they change. */
  readonly watchedAnnotations: readonly string[];
}

/**
 * Default filter of the updates of primaries. It accepts an update if the
 * generation has changed or does not exist, the finalizer of the controller was
 * or is missing, the deletion has started, the pause annotation or a watched one
 * has changed, a request annotation has a new value, or the previous state is not known. It
 * decodes no object, except after a relist: a server whose data was restored
 * from a backup may have given the same generation to another spec.
 */
export function isRelevantUpdate(
  event: Pick<
    CacheEvent,
    | "header"
    | "previousHeader"
    | "hasSameMetadata"
    | "relist"
    | "object"
    | "previous"
  >,
  options: DefaultFilterOptions,
): boolean {
  const { header } = event;
  const { finalizer, generationAware, pauseAnnotation, requestAnnotations } =
    options;
  if (!generationAware) return true;
  const generation = header.generation;
  if (generation === undefined) return true;
  if (event.relist && !hasSameSpec(event)) return true;
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
  for (const name of options.watchedAnnotations) {
    if (header.annotation(name) !== previous.annotation(name)) return true;
  }
  for (const name of requestAnnotations) {
    const token = header.annotation(name);
    if (token !== undefined && token !== previous.annotation(name)) return true;
  }
  return finalizer !== undefined &&
    !(header.hasFinalizer(finalizer) && previous.hasFinalizer(finalizer));
}

/** Whether two states are equal in all fields that count for the generation. */
function hasSameSpec(
  { object, previous }: Pick<CacheEvent, "object" | "previous">,
): boolean {
  const before = fieldsOf(previous ?? {});
  const after = fieldsOf(object);
  return before.size === after.size &&
    [...after].every(([name, value]) => before.get(name) === value);
}

/** Fields of an object that count for the generation, as JSON. */
function fieldsOf(object: object): Map<string, string> {
  const counted = Object.entries(object).filter(([name]) =>
    !["apiVersion", "kind", "metadata", "status"].includes(name)
  );
  return new Map(counted.map(([name, value]) => [name, JSON.stringify(value)]));
}
