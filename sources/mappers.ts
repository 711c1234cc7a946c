import { type Kind, parseApiVersion } from "../core/api/kind.ts";
import type { KubernetesObject, OwnerReference } from "../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../core/api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../core/api/options.ts";
import type { CacheEvent } from "../core/cache/informer/cache_event.ts";
import type { IndexDefinition } from "../core/cache/store/object_store.ts";
import type { ObjectHeader } from "../core/json/object_header.ts";

/**
 * A secondary as a mapper sees it: its metadata, read from the bytes, and the
 * object itself, decoded when it is asked for.
 */
export interface MappedObject<S extends KubernetesObject> {
  /** The name. */
  readonly name: string;
  /** The namespace; empty for cluster-scoped kinds. */
  readonly namespace: string;
  /** The owners. */
  readonly ownerReferences: readonly OwnerReference[];
  /** The value of a label. */
  label(key: string): string | undefined;
  /** The value of an annotation. */
  annotation(key: string): string | undefined;
  /** The whole object. */
  readonly object: S;
}

/**
 * Tells which primaries a secondary belongs to, and how the cache finds the
 * secondaries of a primary. Mappers are pure: an update is mapped before and
 * after it, and the primaries of both run.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the secondaries.
 */
export interface Mapper<
  P extends KubernetesObject,
  S extends KubernetesObject,
> {
  /** The primaries of a secondary. */
  primariesOf(
    secondary: MappedObject<S>,
    primaryKind: Kind<P>,
  ): Iterable<ObjectKey | string>;
  /** The index by which the cache finds the secondaries of a primary. */
  readonly index: IndexDefinition<S>;
  /** Under which value of the index the secondaries of a primary are. */
  indexValue(primary: P): string;
}

/** Options of {@linkcode byOwner}. */
export interface ByOwnerOptions {
  /**
   * Whether only the controlling owner counts.
   *
   * @default {false}
   */
  readonly controllerOnly?: boolean | undefined;
}

const OWNER_RULES: OptionRules<ByOwnerOptions> = { controllerOnly: "boolean?" };

/**
 * Maps by owner references to the primary's group and kind, in whatever version:
 * an owner reference stays what it is when the version of its kind goes on.
 *
 * @param options Which owners count.
 * @throws {TypeError} If an option is unknown or of another type.
 */
export function byOwner<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(options: ByOwnerOptions = {}): Mapper<P, S> {
  checkOptions(options, OWNER_RULES, "byOwner()");
  return {
    index: { byOwner: true },
    indexValue: (primary) => primary.metadata.uid ?? "",
    primariesOf: ({ ownerReferences, namespace }, primaryKind) =>
      ownerReferences
        .filter((owner) =>
          owner.kind === primaryKind.kind &&
          parseApiVersion(owner.apiVersion).group === primaryKind.group &&
          (owner.controller === true || !options.controllerOnly)
        )
        .map(({ name }) =>
          keyText(
            primaryKind.scope === "Cluster" ? { name } : { namespace, name },
          )
        ),
  };
}

/** Options of {@linkcode byLabel} and {@linkcode byAnnotation}. */
export interface ByMetadataOptions {
  /**
   * The label or annotation that holds the namespace of the primary.
   *
   * @default {the primary is in the namespace of the secondary}
   */
  readonly namespace?: string | undefined;
}

const METADATA_RULES: OptionRules<ByMetadataOptions> = { namespace: "name?" };

/**
 * Maps by a label that holds the name of the primary.
 *
 * @param label The label.
 * @param options Where the namespace is.
 * @throws {TypeError | RangeError} If the label is no text, or an option is
 * unknown or makes no sense.
 */
export function byLabel<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(label: string, options: ByMetadataOptions = {}): Mapper<P, S> {
  checkOption(label, "name", { name: "label", subject: "byLabel()" });
  checkOptions(options, METADATA_RULES, "byLabel()");
  return byMetadata(
    (secondary, key) => secondary.label(key),
    { name: label, namespace: options.namespace, index: { byLabel: label } },
  );
}

/** The annotations of {@linkcode byAnnotation} unless told otherwise. */
export const PRIMARY_NAME_ANNOTATION = "coracle.dev/primary-name";
/** Holds the namespace of the primary, where it is in another one. */
export const PRIMARY_NAMESPACE_ANNOTATION = "coracle.dev/primary-namespace";

/**
 * Maps by an annotation that holds the name of the primary: for secondaries that
 * cannot have an owner reference, since they are in another namespace or in
 * none.
 *
 * @param annotation The annotation.
 * @param options Where the namespace is.
 * @throws {TypeError | RangeError} If the annotation is no text, or an option is
 * unknown or makes no sense.
 */
export function byAnnotation<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  annotation: string = PRIMARY_NAME_ANNOTATION,
  options: ByMetadataOptions = { namespace: PRIMARY_NAMESPACE_ANNOTATION },
): Mapper<P, S> {
  checkOption(annotation, "name", {
    name: "annotation",
    subject: "byAnnotation()",
  });
  checkOptions(options, METADATA_RULES, "byAnnotation()");
  return byMetadata(
    (secondary, key) => secondary.annotation(key),
    {
      name: annotation,
      namespace: options.namespace,
      index: { byAnnotation: annotation },
    },
  );
}

function byMetadata<P extends KubernetesObject, S extends KubernetesObject>(
  read: (secondary: MappedObject<S>, key: string) => string | undefined,
  keys: {
    readonly name: string;
    readonly namespace: string | undefined;
    readonly index: IndexDefinition<S>;
  },
): Mapper<P, S> {
  return {
    index: keys.index,
    indexValue: (primary) => primary.metadata.name,
    primariesOf(secondary, primaryKind) {
      const name = read(secondary, keys.name);
      if (!name) return [];
      const namespace = keys.namespace === undefined
        ? undefined
        : read(secondary, keys.namespace);
      return [
        keyText(
          primaryKind.scope === "Cluster"
            ? { name }
            : { namespace: namespace ?? secondary.namespace, name },
        ),
      ];
    },
  };
}

/**
 * Maps by a function of the object, which costs decoding every secondary that
 * changes.
 *
 * @param primaries The primaries of a secondary, as keys or `namespace/name`.
 * @throws {TypeError} If it is no function.
 *
 * @example Pods of a node
 * ```ts
 * import { Pod } from "@coracle/operator/kinds";
 * import { byFunction, watch } from "@coracle/operator/sources";
 *
 * const pods = watch(Pod, {
 *   mapper: byFunction(({ spec }) => spec?.nodeName ? [spec.nodeName] : []),
 * });
 * if (!pods.name.includes("Pod")) throw new Error("Unexpected name");
 * ```
 */
export function byFunction<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  primaries: (secondary: S) => Iterable<ObjectKey | string>,
): Mapper<P, S> {
  checkOption(primaries, "function", {
    name: "primaries",
    subject: "byFunction()",
  });
  const texts = (object: S) => keyTexts(primaries(object));
  return {
    index: { byFunction: texts },
    indexValue: (primary) => keyText(keyOf(primary)),
    primariesOf: ({ object }) => texts(object),
  };
}

/**
 * The keys that a user's function gave, as text.
 *
 * @throws {TypeError} If it gave something else.
 */
export function keyTexts(keys: Iterable<ObjectKey | string>): string[] {
  const given: unknown = keys;
  if (
    typeof given !== "object" || given === null || !(Symbol.iterator in given)
  ) {
    throw new TypeError(
      `Cannot map to primaries: a list of keys must be given: received ${
        given === null ? "null" : typeof given
      }`,
    );
  }
  return Array.from(keys, (key: unknown) => {
    if (typeof key === "string") return key;
    const { name } = (key ?? {}) as { readonly name?: unknown };
    if (typeof name === "string") return keyText(key as ObjectKey);
    throw new TypeError(
      `Cannot map to primaries: a key is "namespace/name" or has a name: received ${
        JSON.stringify(key)
      }`,
    );
  });
}

/** A decoded object as mappers see it. */
export function mapped<S extends KubernetesObject>(
  object: S,
): MappedObject<S> {
  const { name, namespace, labels, annotations, ownerReferences } =
    object.metadata;
  return {
    name,
    namespace: namespace ?? "",
    ownerReferences: ownerReferences ?? [],
    label: (key) => labels?.[key],
    annotation: (key) => annotations?.[key],
    object,
  };
}

/**
 * One side of an event as mappers see it, decoded only if they want that.
 *
 * A class, as there is one for every event: each literal with getters would
 * have a hidden class of its own, which only a full collection takes away.
 */
export class MappedEvent<S extends KubernetesObject>
  implements MappedObject<S> {
  readonly #event: CacheEvent<S>;
  readonly #side: "object" | "previous";
  readonly #header: ObjectHeader;
  #isDecoded = false;

  constructor(event: CacheEvent<S>, side: "object" | "previous") {
    this.#event = event;
    this.#side = side;
    this.#header = side === "object" ? event.header : event.previousHeader!;
  }

  /** Whether the object was asked for. */
  get isDecoded(): boolean {
    return this.#isDecoded;
  }

  get name(): string {
    return this.#header.name;
  }

  get namespace(): string {
    return this.#header.namespace;
  }

  get ownerReferences(): readonly OwnerReference[] {
    return this.#header.ownerReferences;
  }

  get object(): S {
    this.#isDecoded = true;
    return this.#event[this.#side]!;
  }

  label(key: string): string | undefined {
    return this.#header.label(key);
  }

  annotation(key: string): string | undefined {
    return this.#header.annotation(key);
  }
}
