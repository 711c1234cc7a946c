import { immediate } from "../../callback.ts";
import { type Kind, parseApiVersion } from "../../api/kind.ts";
import type { KubernetesObject, OwnerReference } from "../../api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
  typeText,
} from "../../api/options.ts";
import type { CacheEvent } from "../../cache/informer/cache_event.ts";
import type { IndexDefinition } from "../../cache/store/object_indexes.ts";
import type { EventHeader } from "../../json/object_header.ts";

/**
 * Mapper from secondaries to primaries, with an index that finds the
 * secondaries of a primary in the cache. Mappers are pure: an update maps the
 * old and the new state, and triggers the primaries of both.
 *
 * @typeParam P The type of the primaries.
 * @typeParam S The type of the secondaries.
 */
export interface Mapper<
  P extends KubernetesObject,
  S extends KubernetesObject,
> {
  /**
   * Maps a secondary to its primaries.
   *
   * @param secondary Metadata of the secondary, read from the encoded bytes, and
   * the object.
   * @param primaryKind Kind of the primaries.
   */
  primariesOf(
    secondary: {
      /** Name of the secondary. */
      readonly name: string;
      /** Namespace of the secondary; empty for cluster-scoped kinds. */
      readonly namespace: string;
      /** Owners that the secondary names, of any kind. */
      readonly ownerReferences: readonly OwnerReference[];
      /** Value of a label. */
      label(key: string): string | undefined;
      /** Value of an annotation. */
      annotation(key: string): string | undefined;
      /** Object, decoded on first use. */
      readonly object: S;
    },
    primaryKind: Kind<P>,
  ): Iterable<ObjectKey | string>;
  /** Index that finds the secondaries of a primary in the cache. */
  readonly index: IndexDefinition<S>;
  /** Index value of the secondaries of a primary. */
  indexValue(primary: P): string;
}

/** Secondary in the form that mappers receive. */
export type MappedObject<S extends KubernetesObject> = Parameters<
  Mapper<KubernetesObject, S>["primariesOf"]
>[0];

const OWNER_RULES: OptionRules<
  NonNullable<Parameters<typeof byOwner>[0]>
> = { controllerOnly: "boolean?" };

/**
 * Creates a mapper by owner references. The version of a reference is ignored,
 * because it stays the same when the kind gets a new one.
 *
 * @param options `controllerOnly` ignores owners that are not the controller
 * (false by default).
 * @throws {TypeError} If an option is unknown or of another type.
 */
export function byOwner<P extends KubernetesObject, S extends KubernetesObject>(
  options: { readonly controllerOnly?: boolean | undefined } = {},
): Mapper<P, S> {
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
        .map(({ name }) => primaryKey(primaryKind, namespace, name)),
  };
}

function primaryKey({ scope }: Kind, namespace: string, name: string): string {
  return keyText(scope === "Cluster" ? { name } : { namespace, name });
}

const METADATA_RULES: OptionRules<
  NonNullable<Parameters<typeof byLabel>[1]>
> = { namespace: "name?" };

/**
 * Creates a mapper by a label with the name of the primary.
 *
 * @param label The label.
 * @param options `namespace` is the label with the namespace of the primary, by
 * default that of the secondary.
 * @throws {TypeError | RangeError} If the label is not a string, or an option
 * is unknown or invalid.
 */
export function byLabel<P extends KubernetesObject, S extends KubernetesObject>(
  label: string,
  options: { readonly namespace?: string | undefined } = {},
): Mapper<P, S> {
  const index = { byLabel: label };
  return { index, ...byMetadata<P, S>("label", label, options) };
}

/** Default annotation with the name of the primary. */
export const PRIMARY_NAME_ANNOTATION = "coracle.dev/primary-name";
/** Default annotation with the namespace of a primary in another namespace. */
export const PRIMARY_NAMESPACE_ANNOTATION = "coracle.dev/primary-namespace";
/** Annotation with the kind and group of the primary of an owned object. */
export const PRIMARY_KIND_ANNOTATION = "coracle.dev/primary-kind";

/**
 * Creates a mapper by an annotation with the name of the primary, for
 * secondaries that cannot have an owner reference: in another namespace, or
 * cluster-scoped.
 *
 * @param annotation The annotation.
 * @param options `namespace` is the annotation with the namespace of the
 * primary; the default of the library if no annotation is given.
 * @throws {TypeError | RangeError} If the annotation is not a string, or an
 * option is unknown or invalid.
 */
export function byAnnotation<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  annotation: string = PRIMARY_NAME_ANNOTATION,
  options: { readonly namespace?: string | undefined } = {
    namespace: PRIMARY_NAMESPACE_ANNOTATION,
  },
): Mapper<P, S> {
  const index = { byAnnotation: annotation };
  return { index, ...byMetadata<P, S>("annotation", annotation, options) };
}

/** Formats kind and group of a primary for the annotation of its objects. */
export function kindAndGroup({ kind, group }: Kind): string {
  return group === "" ? kind : `${kind}.${group}`;
}

/** Annotations of an object that is owned without an owner reference. */
export function ownerAnnotations(
  { namespace, name }: ObjectKey,
  primaryKind: Kind,
): Record<string, string> {
  return {
    [PRIMARY_NAME_ANNOTATION]: name,
    ...(namespace && { [PRIMARY_NAMESPACE_ANNOTATION]: namespace }),
    [PRIMARY_KIND_ANNOTATION]: kindAndGroup(primaryKind),
  };
}

/**
 * Primary that the annotations of an object name, as kind and key; undefined if
 * they name none.
 */
export function annotatedOwner(
  object: Pick<MappedObject<KubernetesObject>, "annotation">,
): { readonly kind: string | undefined; readonly key: ObjectKey } | undefined {
  const name = object.annotation(PRIMARY_NAME_ANNOTATION);
  const namespace = object.annotation(PRIMARY_NAMESPACE_ANNOTATION);
  return name
    ? {
      kind: object.annotation(PRIMARY_KIND_ANNOTATION),
      key: { namespace, name },
    }
    : undefined;
}

/**
 * Mappers of owned objects. Objects with a controlling owner reference are
 * mapped by it, and others by the annotations that are written where owner
 * references are impossible.
 */
export function byOwnership<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(): readonly Mapper<P, S>[] {
  const owner = byOwner<P, S>({ controllerOnly: true });
  const annotations = byAnnotation<P, S>();
  return [owner, {
    ...annotations,
    primariesOf(secondary, primaryKind) {
      const kind = secondary.annotation(PRIMARY_KIND_ANNOTATION);
      if (kind !== undefined && kind !== kindAndGroup(primaryKind)) return [];
      const [controlling] = owner.primariesOf(secondary, primaryKind);
      return controlling === undefined
        ? annotations.primariesOf(secondary, primaryKind)
        : [];
    },
  }];
}

/** Mapper by labels or annotations with the name and namespace of the primary. */
function byMetadata<P extends KubernetesObject, S extends KubernetesObject>(
  field: "label" | "annotation",
  key: string,
  options: { readonly namespace?: string | undefined },
): Omit<Mapper<P, S>, "index"> {
  const subject = field === "label" ? "byLabel()" : "byAnnotation()";
  checkOption(key, "name", { name: field, subject });
  checkOptions(options, METADATA_RULES, subject);
  return {
    indexValue: (primary) => primary.metadata.name,
    primariesOf(secondary, primaryKind) {
      const name = secondary[field](key);
      if (!name) return [];
      const namespace = options.namespace &&
        secondary[field](options.namespace);
      return [primaryKey(primaryKind, namespace ?? secondary.namespace, name)];
    },
  };
}

/**
 * Creates a mapper by a function of the object. Every secondary that changes is
 * decoded.
 *
 * @param primaries Returns the primaries of a secondary, as keys or
 * `namespace/name`.
 * @throws {TypeError} If it is not a function.
 *
 * @example Pods of a node
 * ```ts
 * import { Pod } from "@coracle/operator/kinds";
 * import { byFunction, watch } from "@coracle/operator/sources";
 *
 * const pods = watch(Pod, {
 *   mapper: byFunction(({ spec }) => spec?.nodeName ? [spec.nodeName] : []),
 * });
 * ```
 */
export function byFunction<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(primaries: (secondary: S) => Iterable<ObjectKey | string>): Mapper<P, S> {
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
 * Converts the keys that a user's function returned to strings.
 *
 * @throws {TypeError} If it returned another value.
 */
export function keyTexts(keys: Iterable<ObjectKey | string>): string[] {
  const given: unknown = immediate(keys, "a function that maps to primaries");
  if (typeof given !== "object" || !(Symbol.iterator in (given ?? {}))) {
    throw new TypeError(
      `Cannot map to primaries: the function must return a list of keys: received ${
        typeText(given)
      }`,
    );
  }
  return Array.from(keys, (key: unknown) => {
    if (typeof key === "string") return key;
    const { name } = (key ?? {}) as { readonly name?: unknown };
    if (typeof name === "string") return keyText(key as ObjectKey);
    throw new TypeError(
      `Cannot map to primaries: a key must be "namespace/name" or have a name, as metadata does: received ${
        typeText(key)
      }`,
    );
  });
}

/** Wraps a decoded object for mappers. */
export function mapped<S extends KubernetesObject>(object: S): MappedObject<S> {
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
 * Old or new state of an event for mappers, decoded on first use.
 *
 * A class, because there is one for every event: object literals with getters
 * would each have a hidden class, which only a full garbage collection frees.
 */
export class MappedEvent<S extends KubernetesObject>
  implements MappedObject<S> {
  readonly #event: CacheEvent<S>;
  readonly #side: "object" | "previous";
  readonly #header: EventHeader;
  #isDecoded = false;

  constructor(event: CacheEvent<S>, side: "object" | "previous") {
    this.#event = event;
    this.#side = side;
    this.#header = side === "object" ? event.header : event.previousHeader!;
  }

  /** Whether the object was decoded. */
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
