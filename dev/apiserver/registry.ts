import type { User } from "./request/user.ts";
import type { ObjectKey, Scope, UntypedObject } from "@coracle/operator/client";
import type { StatusCause } from "@coracle/operator/internal";
import type { FieldSet } from "./merge/field_set.ts";
import type { Schema } from "./merge/schema.ts";
import type { KubernetesRelease } from "./kubernetes_release.ts";
import type { WebhookCaller } from "./admission/webhook_caller.ts";
import type { Random } from "./random.ts";
import type { ServerRequest } from "./http/exchange.ts";

/** Verbs of resources, in the order in which roles list them. */
export const VERBS = [
  "get",
  "list",
  "watch",
  "create",
  "update",
  "patch",
  "delete",
  "deletecollection",
] as const;

/** Verb of a resource, as in discovery. */
export type Verb = typeof VERBS[number];

/** Group and plural of a resource. */
export interface GroupResource {
  readonly group: string;
  readonly plural: string;
}

/** Resource of CustomResourceDefinitions. */
export const CRDS: GroupResource = {
  group: "apiextensions.k8s.io",
  plural: "customresourcedefinitions",
};

/** Finalizer that keeps a CustomResourceDefinition until its objects are deleted. */
export const CRD_CLEANUP_FINALIZER =
  "customresourcecleanup.apiextensions.k8s.io";

/** Request context of a hook. */
export interface HookContext {
  /** API version of the write's request. */
  readonly version: string;
  /** Subresource, such as `status`; undefined for the object itself. */
  readonly subresource?: string | undefined;
  /** Time of the request, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Whether the write is a dry run. */
  readonly dryRun: boolean;
  /** Whether the write is a server-side apply. */
  readonly apply: boolean;
  /** Whether validation is declarative, as from 1.37. */
  readonly isDeclarative?: boolean | undefined;
  readonly user: User;
  /** Finds another stored object; frozen, in its storage version. */
  find(resource: GroupResource, key: ObjectKey): UntypedObject | undefined;
  /** Stored objects of a resource, in one namespace or all; frozen. */
  list(resource: GroupResource, namespace?: string): Iterable<UntypedObject>;
  /** Adds a `Warning` header to the response. */
  warn(text: string): void;
}

/** Result of decoding a body. */
export interface DecodedBody {
  /**
   * Object with known fields only, before defaulting; may be the body itself.
   */
  readonly object: UntypedObject;
  /**
   * Problems of strict field validation, with kube-apiserver's messages:
   * `unknown field "spec.x"`. (Duplicate keys are found by the server.)
   */
  readonly problems: readonly string[];
}

/** Column of a Table. */
export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** Version of a resource: its schema, and the steps of a request in it. */
export interface ResourceVersion {
  /** Name of the version, such as `v1`. */
  readonly name: string;
  /** Whether the version is served. */
  readonly served: boolean;
  /**
   * Text of the `Warning` header of a deprecated version; undefined otherwise.
   */
  readonly deprecationWarning?: string | undefined;
  /**
   * Schema of an object in this version, for patches and field ownership; may
   * be loaded lazily.
   */
  readonly schema: Schema;
  /**
   * Decodes a parsed body or a patched object into an object of this version:
   * checks types as decoding in Go does, and drops unknown fields. For a body,
   * the server has checked `apiVersion` and `kind` before.
   *
   * @throws {StatusError} If it cannot be decoded, with the status of
   * kube-apiserver.
   */
  decode(body: UntypedObject): DecodedBody;
  /**
   * Sets defaults, in place. Runs on requests and, with `defaultOnRead`, on
   * reads.
   */
  setDefaults(object: UntypedObject): void;
  /**
   * Empty object, with the fields that the kind always shows; undefined for
   * custom resources. Shared between calls: copy it before a change.
   */
  empty?(): UntypedObject;
  /** Columns of a Table, the name first. */
  readonly columns: readonly TableColumn[];
  /**
   * Cells of one row, one per column. The time `now` is in milliseconds since
   * the Unix epoch.
   */
  cells(object: UntypedObject, now: number): readonly unknown[];
  /**
   * Whether a Table without rows has null instead of a list, as in
   * kube-apiserver for kinds without columns.
   */
  readonly nullRows?: boolean | undefined;
  /** Conditions of a row, such as that a pod has completed. */
  rowConditions?(
    object: UntypedObject,
  ): readonly Readonly<Record<string, string>>[] | undefined;
  /**
   * Selectable fields besides `metadata.name` and `metadata.namespace`, with
   * functions that read them as text (empty if absent).
   */
  readonly selectableFields: ReadonlyMap<
    string,
    (object: UntypedObject) => string
  >;
  /** Paths of the scale subresource; undefined without it. */
  readonly scale?: ScalePaths | undefined;
  /** Subresources of the version. Defaults to those of the definition. */
  readonly subresources?: readonly Subresource[] | undefined;
}

/** Paths of a Scale's fields in the object, such as `.spec.replicas`. */
export interface ScalePaths {
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** Path of a selector as text, or as a LabelSelector (built-in kinds). */
  readonly labelSelector?: string | undefined;
}

/** Subresource of a resource, such as `status`. */
export interface Subresource {
  /** Name, such as `status`, `scale`, `finalize`, `eviction`. */
  readonly name: string;
  /** Kind of requests and responses; for `scale`, Scale of autoscaling/v1. */
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  /** Verbs: some of get, update, patch, create. */
  readonly verbs: readonly Verb[];
  /**
   * Top-level fields that a write to the subresource may change (besides
   * metadata); for `status` it is `["status"]`.
   */
  readonly fields?: readonly string[] | undefined;
}

/** Subresources of a resource in one of its versions. */
export function subresourcesOf({ definition, version }: {
  readonly definition: Pick<ResourceDefinition, "subresources">;
  readonly version: Pick<ResourceVersion, "subresources">;
}): readonly Subresource[] {
  return version.subresources ?? definition.subresources;
}

/**
 * Number of times kube-apiserver validates the metadata of an updated object.
 * Clients see each cause once per check, because duplicate causes are not removed.
 */
export interface MetadataChecks {
  /**
   * Number of validations as an update of the kind, in addition to the generic
   * update validation.
   */
  readonly changes: number;
  /** Number of validations as a whole object of the kind. */
  readonly whole: number;
  /** Whether these validations accept finalizers without a domain. */
  readonly finalizers: boolean;
}

/** Validation rule of object names. */
export type NameRule =
  | "dns-subdomain"
  | "dns-1035-label"
  | "dns-label"
  | "ip-address"
  | "path-segment";

/**
 * Definition of a resource that the server serves, built-in or custom. Router,
 * storage, watch and lifecycle depend on nothing else.
 *
 * Steps of a write; objects are plain JSON values:
 *
 * 1. body → `version.decode` → `version.setDefaults`
 * 2. for an update or patch: the stored object is converted to the request's
 *    version (`live`)
 * 3. `updateManagedFields` or, for apply, `applyPatch` (in
 *    `field_management.ts`), in the request's version
 * 4. mutating admission (`admission/`)
 * 5. `prepareForCreate` or `prepareForUpdate`, in place (after the server has
 *    set uid and creationTimestamp, kept immutable metadata, and restored the
 *    fields that the subresource may not change)
 * 6. `validateCreate` or `validateUpdate` (after the server has validated
 *    metadata): causes become one 422
 * 7. validating admission
 * 8. `convert` to the storage version, storage
 *
 * Copying rule: bodies may have a key `__proto__`. Copy by spread,
 * `Object.fromEntries` or `structuredClone`; never assign a key from outside to
 * an object that does not have it.
 */
export interface ResourceDefinition extends GroupResource {
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly scope: Scope;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  /** All versions, preferred first. */
  readonly versions: readonly ResourceVersion[];
  /** Storage version; one of `versions`. */
  readonly storageVersion: string;
  /**
   * Whether a CRD defines the resource; some responses differ for custom
   * resources.
   */
  readonly custom: boolean;
  /**
   * Resource under which the objects are stored, if it differs: `events` of
   * `events.k8s.io` has the objects of the core group.
   */
  readonly storedAs?: GroupResource | undefined;
  /** Subresources, such as `status`; none if the versions have their own. */
  readonly subresources: readonly Subresource[];
  readonly nameRule: NameRule;
  /** Whether a PUT to a missing object creates it. */
  readonly allowCreateOnUpdate: boolean;
  /** Whether a PUT without resourceVersion is accepted. */
  readonly allowUnconditionalUpdate: boolean;
  /** Whether DELETE returns the object rather than a Status. */
  readonly returnsDeletedObject: boolean;
  /** Whether objects have `metadata.generation`. */
  readonly hasGeneration: boolean;
  /** Validations of the metadata of an update; by default one as an update. */
  readonly metadataChecks?: MetadataChecks | undefined;
  /** Default propagation policy; Orphan for some old kinds. */
  readonly defaultDeletionPolicy?: "Background" | "Orphan" | undefined;

  /**
   * Fields that a write to the object or a subresource resets, so that no
   * manager can own them. By default `status` for the object, if it has a
   * status subresource, and `spec` for that subresource.
   */
  resetFields?(subresource: string | undefined): FieldSet | undefined;
  /**
   * Converts an object to another version; returns a new object if anything
   * differs. The source version is in `apiVersion`. Definitions with shared
   * objects (`storedAs`) also convert each other's objects.
   *
   * @throws {StatusError} If the stored version is unknown.
   */
  convert(object: UntypedObject, version: string): UntypedObject;
  /**
   * Calls the conversion webhook once for several objects, for the later
   * conversion of each; undefined without a webhook.
   */
  prepareConversion?(objects: readonly UntypedObject[], version: string): void;
  /**
   * Sets or drops server-owned fields of a new object, such as `status`. The
   * server has set `metadata.generation` to 1 if `hasGeneration`.
   */
  prepareForCreate?(object: UntypedObject, context: HookContext): void;
  /**
   * Restores the fields that a write must not change and increments
   * `metadata.generation` when the spec changed; `object.metadata.generation`
   * is the live one on entry. Also called for subresources, named by
   * `context.subresource`.
   */
  prepareForUpdate?(
    object: UntypedObject,
    live: UntypedObject,
    context: HookContext,
  ): void;
  /** Validates a new object; the server validates metadata. */
  validateCreate?(
    object: UntypedObject,
    context: HookContext,
  ): readonly StatusCause[];
  /** Validates an update; the server validates metadata. */
  validateUpdate?(
    object: UntypedObject,
    live: UntypedObject,
    context: HookContext,
  ): readonly StatusCause[];
  /** Warnings for a valid object, besides what the live object had; not for subresources. */
  warnings?(object: UntypedObject, live?: UntypedObject): readonly string[];
  /**
   * Changes an object when its deletion starts, in place: a CRD gets the
   * condition `Terminating` and a finalizer.
   */
  prepareForDeletion?(object: UntypedObject, context: HookContext): void;
  /**
   * Grace period in seconds; undefined or 0 deletes immediately. The value
   * `requested` is the client's.
   */
  gracePeriod?(
    object: UntypedObject,
    requested: number | undefined,
  ): number | undefined;
}

/** Write for which managed fields are updated. */
export interface ManagedWrite {
  readonly definition: ResourceDefinition;
  /** Version of the request. */
  readonly version: ResourceVersion;
  /**
   * Field manager: the `fieldManager` parameter, or the user agent up to its
   * first slash.
   */
  readonly manager: string;
  readonly subresource?: string | undefined;
  /** Time of the entry, such as `2024-01-02T03:04:05Z`. */
  readonly time: string;
  /** Whether the owners before the write are kept where new ones cannot be determined. */
  readonly keepsOwners?: boolean | undefined;
}

/**
 * Exports of `builtin/builtin_definitions.ts`. The creation of definitions must
 * be cheap, because a server for a test starts within 20 ms: schemas and
 * columns are read from the data on first use.
 */
export interface BuiltinResources {
  /**
   * All built-in resources of a release of Kubernetes, by default the newest,
   * including CustomResourceDefinition.
   */
  builtinDefinitions(
    release?: KubernetesRelease,
  ): readonly ResourceDefinition[];
}

/** Parts of the server that a conversion by a webhook needs. */
export interface ConversionDeps {
  readonly webhooks: WebhookCaller;
  readonly random: Random;
}

/**
 * Exports of `crd/custom_resources.ts`, pure functions: the server stores CRDs
 * like any object, computes their next status after every change, stores it,
 * and serves the established ones.
 */
export interface CustomResources {
  /** Resource definition of an accepted CRD. */
  customResourceDefinition(
    crd: UntypedObject,
    deps: ConversionDeps,
  ): ResourceDefinition;
  /**
   * Next status of a CRD: accepted names, conditions and stored versions,
   * considering the other CRDs. Returns the CRD's own status if nothing
   * changes.
   *
   * @param now Time of transitions, in milliseconds since the Unix epoch.
   */
  nextCrdStatus(
    crd: UntypedObject,
    others: Iterable<UntypedObject>,
    now: number,
  ): unknown;
  /** Loads expensive modules that a request needs. */
  prepareRequest(request: ServerRequest): Promise<void> | undefined;
  /** Loads expensive modules that restored objects need. */
  prepareObjects(objects: Iterable<unknown>): Promise<void> | undefined;
}

/** Go's name of a built-in type without a version. */
export function internalType(
  { group, kind }: { readonly group: string; readonly kind: string },
): string {
  // Events of both groups are one type.
  const isCore = group === "" || kind === "Event";
  return `${isCore ? "core" : group.split(".")[0]}.${kind}`;
}
