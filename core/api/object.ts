/** Owner of an object, in `metadata.ownerReferences`. */
export interface OwnerReference {
  /** API version of the owner, such as `apps/v1`. */
  apiVersion: string;
  /** Kind of the owner, such as `Deployment`. */
  kind: string;
  /** Name of the owner, which is in the same namespace or cluster-scoped. */
  name: string;
  /** UID of the owner: a later object of its name is another owner. */
  uid: string;
  /** Whether the owner is the managing controller; at most one owner is. */
  controller?: boolean | undefined;
  /** Whether a foreground deletion of the owner waits for this object. */
  blockOwnerDeletion?: boolean | undefined;
}

/** Fields that one manager has set, in `metadata.managedFields`. */
export interface ManagedFieldsEntry {
  /** Name of the field manager. */
  manager?: string | undefined;
  /** Operation that set the fields. */
  operation?: "Apply" | "Update" | undefined;
  /** API version that the field names belong to. */
  apiVersion?: string | undefined;
  /** Time of the last change of the entry. */
  time?: string | undefined;
  /** Format of `fieldsV1`. */
  fieldsType?: "FieldsV1" | undefined;
  /** Fields as a tree of names with the prefixes `f:`, `k:` and `v:`. */
  fieldsV1?: Record<string, unknown> | undefined;
  /** Subresource through which the fields were set. */
  subresource?: string | undefined;
}

/** Metadata of an object, the same for all kinds. */
export interface ObjectMeta {
  /** Name, unique among the objects of the kind in the namespace. */
  name: string;
  /** Namespace; absent for cluster-scoped kinds. */
  namespace?: string | undefined;
  /** Prefix from which the server generated the name. */
  generateName?: string | undefined;
  /** UID; distinguishes a recreated object from its predecessor. */
  uid?: string | undefined;
  /** Resource version; opaque, and different after every write. */
  resourceVersion?: string | undefined;
  /**
   * Generation of the desired state; incremented by the API server on changes of
   * the spec.
   */
  generation?: number | undefined;
  /** Time of creation by the clock of the server, in RFC 3339 to the second. */
  creationTimestamp?: string | undefined;
  /** Time at which the deletion was requested; absent without a deletion. */
  deletionTimestamp?: string | undefined;
  /** Seconds that the deletion leaves the object, such as for a Pod to end. */
  deletionGracePeriodSeconds?: number | undefined;
  /** Labels, which selectors match. */
  labels?: Record<string, string> | undefined;
  /** Annotations of tools and people. */
  annotations?: Record<string, string> | undefined;
  /** Owners; the object is deleted with its last owner. */
  ownerReferences?: OwnerReference[] | undefined;
  /** Finalizers, which must be removed before the object can be deleted. */
  finalizers?: string[] | undefined;
  /** Fields by the manager that has set them. */
  managedFields?: ManagedFieldsEntry[] | undefined;
}

/** A Kubernetes object of any kind. */
export interface KubernetesObject {
  /** API version of the kind, such as `apps/v1`. */
  apiVersion?: string | undefined;
  /** Kind, such as `Deployment`. */
  kind?: string | undefined;
  /** Metadata, which objects of all kinds have. */
  metadata: ObjectMeta;
}

/** A Kubernetes object of a kind whose type is not known at compile time. */
export interface UntypedObject extends KubernetesObject {
  /** Fields of the kind, such as `spec` and `status`. */
  [field: string]: unknown;
}

/** Metadata of a list, or of one page of it. */
export interface ListMeta {
  /** Resource version of the list, at which a watch can start. */
  resourceVersion?: string | undefined;
  /** Token for the next page; absent on the last page. */
  continue?: string | undefined;
  /** Number of objects on further pages, if the server knows it. */
  remainingItemCount?: number | undefined;
  /** Shard of the list, if the server has applied the shard selector. */
  shardInfo?: { selector: string } | undefined;
}

/** One page of a list of objects. */
export interface ObjectList<T extends KubernetesObject> {
  /** Metadata of the page. */
  readonly metadata: ListMeta;
  /** Objects of this page; `metadata.continue` leads to the next. */
  readonly items: T[];
}

/**
 * Type-level marker of a kind whose objects can be written with fewer fields than
 * they are read with, because defaults fill in the rest.
 *
 * @typeParam W The type of an object that can be written.
 */
export interface WrittenAs<W extends KubernetesObject> {
  /** Type of an object that can be written; never set. */
  "~written"?(object: W): void;
}

/**
 * An object to create: `apiVersion` and `kind` are taken from the kind
 * descriptor, the name may be left to `generateName`, and fields with a default
 * may be absent.
 *
 * @typeParam T The type of the object, or of a kind that `defineKind` returned.
 */
export type NewObject<
  T extends KubernetesObject | WrittenAs<KubernetesObject>,
> =
  & Omit<
    T extends KubernetesObject ? T : T extends WrittenAs<infer W> ? W : never,
    "apiVersion" | "kind" | "metadata"
  >
  & {
    apiVersion?: string | undefined;
    kind?: string | undefined;
    metadata: Partial<ObjectMeta>;
  };

/**
 * Object or list with read-only fields and elements at any depth. Entries of maps
 * may be undefined, which JSON leaves out.
 */
export type ReadonlyDeep<T> = T extends readonly (infer Item)[]
  ? readonly ReadonlyDeep<Item>[]
  : T extends object ? {
      readonly [K in keyof T]:
        | ReadonlyDeep<T[K]>
        | (string extends K ? undefined : never);
    }
  : T;

/**
 * Part of an object: every field is optional at any depth, and lists are
 * complete. In a merge patch, `null` removes a field.
 *
 * @typeParam T The type of the object.
 * @typeParam Empty The types of a field without a value.
 */
export type DeepPartial<T, Empty = null | undefined> = T extends
  readonly (infer Item)[] ? readonly ReadonlyDeep<Item>[]
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K], Empty> | Empty }
  : T;

/**
 * An apply configuration: the fields that the caller wants to own, and the
 * name.
 *
 * The type requires the fields that the server needs to create an object and
 * that other managers do not set: required fields beside `spec`, such as the
 * `roleRef` of a RoleBinding, and the `selector` beside a `template` of pods.
 */
export type ApplyObject<T extends KubernetesObject> =
  & DeepPartial<Omit<T, "metadata">, undefined>
  & {
    metadata:
      & Partial<Omit<ObjectMeta, "name">>
      & Pick<ObjectMeta, "name">;
  }
  & {
    readonly [
      K in keyof T as K extends "metadata" | "spec" | "status" ? never
        : Record<never, never> extends Pick<T, K> ? never
        : K
    ]: DeepPartial<T[K], undefined>;
  }
  & (T extends { spec: { selector: object; template: object } } ? {
      readonly spec?:
        | { readonly template?: undefined }
        | { readonly selector: object }
        | undefined;
    }
    : unknown);
