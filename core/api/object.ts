/** Who owns an object, as `metadata.ownerReferences` says it. */
export interface OwnerReference {
  /** The version of the owner's kind, such as `apps/v1`. */
  apiVersion: string;
  /** The kind of the owner. */
  kind: string;
  /** The name of the owner, in the same namespace or in none. */
  name: string;
  /** Which incarnation of the owner. */
  uid: string;
  /** Whether the owner manages the object; only one owner may. */
  controller?: boolean | undefined;
  /** Whether a foreground deletion of the owner waits for the object. */
  blockOwnerDeletion?: boolean | undefined;
}

/** Which manager set which fields, as `metadata.managedFields` says it. */
export interface ManagedFieldsEntry {
  /** Who it is. */
  manager?: string | undefined;
  /** How the fields were set. */
  operation?: "Apply" | "Update" | undefined;
  /** The version in which the fields are named. */
  apiVersion?: string | undefined;
  /** When the entry was written last. */
  time?: string | undefined;
  /** The form of `fieldsV1`. */
  fieldsType?: "FieldsV1" | undefined;
  /** The fields, as a tree of `f:`, `k:` and `v:` names. */
  fieldsV1?: Record<string, unknown> | undefined;
  /** The subresource through which they were set. */
  subresource?: string | undefined;
}

/** The metadata of a stored object. */
export interface ObjectMeta {
  /** Unique among the objects of the kind and namespace. */
  name: string;
  /** Where the object lives; absent for cluster-scoped kinds. */
  namespace?: string | undefined;
  /** What the server made the name from. */
  generateName?: string | undefined;
  /** Which incarnation of the name it is. */
  uid?: string | undefined;
  /** The version of the stored object; opaque. */
  resourceVersion?: string | undefined;
  /** How often what the user asks for has changed. */
  generation?: number | undefined;
  /** When it was made. */
  creationTimestamp?: string | undefined;
  /** When its deletion was asked for; absent while it may stay. */
  deletionTimestamp?: string | undefined;
  /** How many seconds its deletion may take. */
  deletionGracePeriodSeconds?: number | undefined;
  /** What selectors look at. */
  labels?: Record<string, string> | undefined;
  /** Further notes of tools and people. */
  annotations?: Record<string, string> | undefined;
  /** With whom it goes. */
  ownerReferences?: OwnerReference[] | undefined;
  /** Who has to clean up before it may vanish. */
  finalizers?: string[] | undefined;
  /** Who has set which fields. */
  managedFields?: ManagedFieldsEntry[] | undefined;
}

/** Any Kubernetes object. */
export interface KubernetesObject {
  /** The version of its kind, such as `apps/v1`. */
  apiVersion?: string | undefined;
  /** Its kind, such as `Deployment`. */
  kind?: string | undefined;
  /** What every object has. */
  metadata: ObjectMeta;
}

/** An object of a kind that is not known at compile time. */
export interface UntypedObject extends KubernetesObject {
  /** Whatever its kind has. */
  [field: string]: unknown;
}

/** The metadata of a list. */
export interface ListMeta {
  /** The version at which the list was read: a watch can begin there. */
  resourceVersion?: string | undefined;
  /** What the next page is asked for with; absent on the last. */
  continue?: string | undefined;
  /** How many objects the further pages have, where it is known. */
  remainingItemCount?: number | undefined;
  /** The shard that was asked for, if the server has kept to it. */
  shardInfo?: { selector: string } | undefined;
}

/** One page of objects. */
export interface ObjectList<T extends KubernetesObject> {
  /** Where the page stands. */
  readonly metadata: ListMeta;
  /** The objects of the page. */
  readonly items: T[];
}

/**
 * Says, in types only, what a writer may send where defaults fill in the rest.
 *
 * @typeParam W The type of an object as it may be written.
 */
export interface WrittenAs<W extends KubernetesObject> {
  /** Never set: it only carries the type. */
  readonly "~written"?: W | undefined;
}

/** The type of objects as they may be written; for most it is the type itself. */
export type WrittenForm<T extends KubernetesObject> = T extends
  WrittenAs<infer W> ? KubernetesObject extends W ? T : W
  : T;

/**
 * What a caller sends to make an object: `apiVersion` and `kind` come from the
 * kind descriptor, a name may be left to `generateName`, and fields with a
 * default may be absent.
 */
export type NewObject<T extends KubernetesObject> =
  & Omit<WrittenForm<T>, "apiVersion" | "kind" | "metadata" | "~written">
  & {
    apiVersion?: string | undefined;
    kind?: string | undefined;
    metadata: Partial<ObjectMeta>;
  };

/** Every field optional, at any depth; lists are given whole. */
export type DeepPartial<T> = T extends readonly unknown[] ? T
  : T extends object ? { [K in keyof T]?: DeepPartial<T[K]> | undefined }
  : T;

/** An apply configuration: the fields that the caller wants to own. */
export type ApplyObject<T extends KubernetesObject> =
  & DeepPartial<Omit<T, "metadata">>
  & {
    metadata:
      & Partial<Omit<ObjectMeta, "name">>
      & Pick<ObjectMeta, "name">;
  };
