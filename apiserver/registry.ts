import type { StatusCause } from "../core/api/api_error.ts";
import type { Scope } from "../core/api/kind.ts";
import type { ObjectKey } from "../core/api/object_key.ts";
import type { UntypedObject } from "../core/api/object.ts";
import type { FieldSet } from "../core/patch/field_set.ts";
import type { Schema } from "../core/patch/schema.ts";
import type { ServerRequest } from "./http/exchange.ts";

/** What a resource can be asked to do, in discovery's words. */
export type Verb =
  | "create"
  | "delete"
  | "deletecollection"
  | "get"
  | "list"
  | "patch"
  | "update"
  | "watch";

/** Names a resource: what stands in a path, without the version. */
export interface GroupResource {
  readonly group: string;
  readonly plural: string;
}

/** Where the definitions of custom resources live. */
export const CRDS: GroupResource = {
  group: "apiextensions.k8s.io",
  plural: "customresourcedefinitions",
};

/** What a hook may know of the request that it is called for. */
export interface HookContext {
  /** The version that the request speaks. */
  readonly version: string;
  /** `status`, `scale` or another; undefined for the object itself. */
  readonly subresource?: string | undefined;
  /** The time of the request in milliseconds since the Unix epoch. */
  readonly now: number;
  /** Whether nothing will be stored. */
  readonly dryRun: boolean;
  /** Whether the write is a server-side apply. */
  readonly apply: boolean;
  /** The name of the user who asks. */
  readonly user: string;
  /** Looks at another stored object; frozen, in its storage version. */
  find(resource: GroupResource, key: ObjectKey): UntypedObject | undefined;
  /** The stored objects of a resource, of one namespace or of all; frozen. */
  list(resource: GroupResource, namespace?: string): Iterable<UntypedObject>;
  /** Adds a `Warning` header to the answer. */
  warn(text: string): void;
}

/** What a decode makes of a body. */
export interface DecodedBody {
  /** The object with only known fields, not yet defaulted; may be the body. */
  readonly object: UntypedObject;
  /**
   * What strict field validation objects to, in kube-apiserver's words:
   * `unknown field "spec.x"`. (Duplicate keys are found by the server itself.)
   */
  readonly problems: readonly string[];
}

/** One column of a Table. */
export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** One version of a resource: its shape, and what a request in it goes through. */
export interface ResourceVersion {
  /** Such as `v1`. */
  readonly name: string;
  /** Whether requests in it are answered. */
  readonly served: boolean;
  /** Present when it is deprecated: the text of the `Warning` header. */
  readonly deprecationWarning?: string | undefined;
  /**
   * The schema of an object in this version, for patches and field ownership;
   * looked at only when needed, so that loading it may be lazy.
   */
  readonly schema: Schema;
  /**
   * Turns a parsed body (or the outcome of a patch) into an object of this
   * version: checks what decoding in Go would, and drops unknown fields. The
   * `apiVersion` and `kind` are checked before by the server, for a body.
   *
   * @throws {StatusError} If it cannot be decoded, with the status that
   * kube-apiserver answers.
   */
  decode(body: UntypedObject): DecodedBody;
  /** Fills in defaults, in place. Runs on requests and, where `defaultOnRead`, on reads. */
  setDefaults(object: UntypedObject): void;
  /**
   * An object of which nothing is set, with the fields that the kind shows all
   * the same; absent where it has none (custom resources).
   */
  empty?(): UntypedObject;
  /** The columns of a Table, the name first. */
  readonly columns: readonly TableColumn[];
  /** The cells of one row, one for each column. `now` in epoch milliseconds. */
  cells(object: UntypedObject, now: number): readonly unknown[];
  /**
   * Whether a Table has null in the place of no rows: of kinds for which
   * kube-apiserver has no columns of their own.
   */
  readonly nullRows?: boolean | undefined;
  /** What else a row says of its object: that a pod has ended. */
  rowConditions?(
    object: UntypedObject,
  ): readonly Readonly<Record<string, string>>[] | undefined;
  /**
   * The fields, beside `metadata.name` and `metadata.namespace`, that field
   * selectors may name, and how to read them (as text; empty when absent).
   */
  readonly selectableFields: ReadonlyMap<
    string,
    (object: UntypedObject) => string
  >;
  /** Where replicas live, if there is a scale subresource. */
  readonly scale?: ScalePaths | undefined;
}

/** Where the fields of a Scale live in the object: dotted, as `.spec.replicas`. */
export interface ScalePaths {
  readonly specReplicas: string;
  readonly statusReplicas: string;
  /** A field that holds a selector as text, or as a LabelSelector (built-ins). */
  readonly labelSelector?: string | undefined;
}

/** A path below an object, such as `status`. */
export interface Subresource {
  /** Such as `status`, `scale`, `finalize`, `eviction`. */
  readonly name: string;
  /** The kind that requests and answers carry; for `scale` Scale of autoscaling/v1. */
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  /** Only those of get, update, patch, create. */
  readonly verbs: readonly Verb[];
  /**
   * Which top-level fields a write to it may change (beside metadata, whose
   * writable parts follow from `metadata`): for `status` it is `["status"]`.
   */
  readonly fields?: readonly string[] | undefined;
}

/** Which names the objects of a resource may bear. */
export type NameRule =
  | "dns-subdomain"
  | "dns-label"
  | "dns-1035-label"
  | "path-segment";

/**
 * A resource that the server serves. Built-in kinds and custom resources are
 * both described by it; router, storage, watch and lifecycle know nothing else.
 *
 * A write goes through these steps; objects are plain JSON trees:
 *
 * 1. body → `version.decode` → `version.setDefaults`
 * 2. for an update or patch: the stored object, converted to the request's
 *    version, is the `live` one
 * 3. `updateManagedFields` or, for apply, `applyPatch` (see
 *    `managed_fields.ts`), in the request's version
 * 4. `prepareForCreate` / `prepareForUpdate` in place (after the server has
 *    set uid, creationTimestamp, kept what is immutable in metadata, and
 *    restored the fields that the subresource may not change)
 * 5. `admit`, then `validateCreate` / `validateUpdate` (after metadata was
 *    validated by the server): causes become one 422
 * 6. `convert` to the storage version, storage
 *
 * Copying rule: bodies may hold a key `__proto__`. Copy by spread,
 * `Object.fromEntries` or `structuredClone`; never by assigning a key that came
 * from outside to an object that does not have it.
 */
export interface ResourceDefinition extends GroupResource {
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly scope: Scope;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly Verb[];
  /** All versions, the most preferred first. */
  readonly versions: readonly ResourceVersion[];
  /** The version in which objects are stored; one of `versions`. */
  readonly storageVersion: string;
  /** Whether a CRD made it; some answers differ for custom resources. */
  readonly custom: boolean;
  /**
   * Where its objects live, if not under its own name: `events` of
   * `events.k8s.io` shows the objects of the core group.
   */
  readonly storedAs?: GroupResource | undefined;
  /** The subresources, `status` and `scale` among them. */
  readonly subresources: readonly Subresource[];
  readonly nameRule: NameRule;
  /** A PUT to a missing object creates it. */
  readonly allowCreateOnUpdate: boolean;
  /** A PUT without resourceVersion overwrites whatever is there. */
  readonly allowUnconditionalUpdate: boolean;
  /** Whether DELETE answers with the object rather than with a Status. */
  readonly returnsDeletedObject: boolean;
  /** Whether `metadata.generation` is kept; else it stays absent. */
  readonly hasGeneration: boolean;
  /** How garbage collection goes without a policy: orphan for old kinds. */
  readonly defaultDeletionPolicy?: "Background" | "Orphan" | undefined;

  /**
   * The fields that a write to the object or a subresource puts back, so that
   * nobody comes to own them. Absent: `status` for the object where it has a
   * status subresource, `spec` for that one.
   */
  resetFields?(subresource: string | undefined): FieldSet | undefined;
  /**
   * The object in another version, as a new object when anything differs. The
   * source tells its version by `apiVersion`. Definitions that share their
   * objects (`storedAs`) take each other's too.
   *
   * @throws {StatusError} If the stored version is not known any more.
   */
  convert(object: UntypedObject, version: string): UntypedObject;
  /**
   * Sets what the server owns in a new object (such as dropping `status`). The
   * server has set `metadata.generation` to 1 where `hasGeneration`.
   */
  prepareForCreate?(object: UntypedObject, context: HookContext): void;
  /**
   * Keeps what this write may not change and moves `metadata.generation` when
   * the spec changed; `object.metadata.generation` is the live one on entry.
   * Also called for subresources, which `context.subresource` names.
   */
  prepareForUpdate?(
    object: UntypedObject,
    live: UntypedObject,
    context: HookContext,
  ): void;
  /**
   * What admission plug-ins of a default cluster do, in place.
   *
   * @throws {StatusError} If they refuse.
   */
  admit?(
    object: UntypedObject,
    live: UntypedObject | undefined,
    context: HookContext,
  ): void;
  /** What is wrong with a new object; metadata is checked by the server. */
  validateCreate?(
    object: UntypedObject,
    context: HookContext,
  ): readonly StatusCause[];
  /** What is wrong with a change; metadata is checked by the server. */
  validateUpdate?(
    object: UntypedObject,
    live: UntypedObject,
    context: HookContext,
  ): readonly StatusCause[];
  /**
   * What else the beginning of a deletion changes in an object, in place: a CRD
   * gets the condition `Terminating`, and a finalizer that holds it.
   */
  prepareForDeletion?(object: UntypedObject, context: HookContext): void;
  /**
   * Seconds to wait before a deletion is final; undefined or 0 deletes at once.
   * `requested` is what the client asked for.
   */
  gracePeriod?(
    object: UntypedObject,
    requested: number | undefined,
  ): number | undefined;
}

/** What field management needs to know of a write. */
export interface ManagedWrite {
  readonly definition: ResourceDefinition;
  /** The version of the request. */
  readonly version: ResourceVersion;
  /** The `fieldManager` parameter, or the user agent up to its first slash. */
  readonly manager: string;
  readonly subresource?: string | undefined;
  /** The time for the entry, as in `2024-01-02T03:04:05Z`. */
  readonly time: string;
}

/**
 * What `managed_fields.ts` exports as functions of these names:
 *
 * `updateManagedFields` sets `next.metadata.managedFields` after a create,
 * update or patch. `applyPatch` merges an apply configuration into the live
 * object (undefined: create) and gives the new object with its managedFields.
 */
export interface FieldManagement {
  updateManagedFields(
    live: UntypedObject | undefined,
    next: UntypedObject,
    write: ManagedWrite,
  ): void;
  /** @throws {StatusError} 409 on conflicts, 500 when it does not fit the schema. */
  applyPatch(
    live: UntypedObject | undefined,
    applied: UntypedObject,
    write: ManagedWrite & { readonly force: boolean },
  ): UntypedObject;
}

/** The resources that the server serves at present. */
export interface ResourceSource {
  /** Every definition, in no particular order. */
  definitions(): Iterable<ResourceDefinition>;
  /** The definition of a group and plural; undefined if not served. */
  find(group: string, plural: string): ResourceDefinition | undefined;
}

/**
 * What `builtin/builtin_definitions.ts` exports as functions of these names. Making the
 * definitions must cost next to nothing (a server for a test starts within
 * 20 ms): schemas and columns are read from the data when first asked for.
 */
export interface BuiltinResources {
  /** Every built-in resource, CustomResourceDefinition among them. */
  builtinDefinitions(): readonly ResourceDefinition[];
  /** The OpenAPI v3 document of `api/v1` or `apis/apps/v1`. */
  builtinOpenApi(path: string): unknown;
}

/**
 * What `crd/custom_resources.ts` exports as functions of these names. They are
 * pure: the server stores CRDs like any object, asks for their next status
 * after every change, stores that, and serves what is established.
 */
export interface CustomResources {
  /** The definition that serves the objects of an accepted CRD. */
  customResourceDefinition(crd: UntypedObject): ResourceDefinition;
  /**
   * The status that a CRD should have: accepted names, conditions and stored
   * versions, seen the other CRDs. Gives the CRD's own status when nothing
   * changes.
   *
   * @param now The time for transition times, in epoch milliseconds.
   */
  nextCrdStatus(
    crd: UntypedObject,
    others: Iterable<UntypedObject>,
    now: number,
  ): unknown;
  /** The OpenAPI v3 document of one group and version of custom resources. */
  customOpenApi(
    groupVersion: { readonly group: string; readonly version: string },
    definitions: readonly ResourceDefinition[],
  ): unknown;
  /** Loads what a request needs and is costly to load. */
  prepareRequest(request: ServerRequest): Promise<void> | undefined;
  /** Loads what stored objects need when they come back. */
  prepareObjects(objects: Iterable<unknown>): Promise<void> | undefined;
}
