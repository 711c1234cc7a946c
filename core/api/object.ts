/** Who owns an object, as `metadata.ownerReferences` says it. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean | undefined;
  blockOwnerDeletion?: boolean | undefined;
}

/** Which manager set which fields, as `metadata.managedFields` says it. */
export interface ManagedFieldsEntry {
  manager?: string | undefined;
  operation?: "Apply" | "Update" | undefined;
  apiVersion?: string | undefined;
  time?: string | undefined;
  fieldsType?: "FieldsV1" | undefined;
  fieldsV1?: Record<string, unknown> | undefined;
  subresource?: string | undefined;
}

/** The metadata of a stored object. */
export interface ObjectMeta {
  name: string;
  namespace?: string | undefined;
  generateName?: string | undefined;
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  generation?: number | undefined;
  creationTimestamp?: string | undefined;
  deletionTimestamp?: string | undefined;
  deletionGracePeriodSeconds?: number | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  ownerReferences?: OwnerReference[] | undefined;
  finalizers?: string[] | undefined;
  managedFields?: ManagedFieldsEntry[] | undefined;
}

/** Any Kubernetes object. */
export interface KubernetesObject {
  apiVersion?: string | undefined;
  kind?: string | undefined;
  metadata: ObjectMeta;
}

/** An object of a kind that is not known at compile time. */
export interface UntypedObject extends KubernetesObject {
  [field: string]: unknown;
}

/** The metadata of a list. */
export interface ListMeta {
  resourceVersion?: string | undefined;
  continue?: string | undefined;
  remainingItemCount?: number | undefined;
}

/** One page of objects. */
export interface ObjectList<T extends KubernetesObject> {
  readonly metadata: ListMeta;
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
