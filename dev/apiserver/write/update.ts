import {
  type ManagedFieldsEntry,
  type ObjectMeta,
  timestamp,
  type UntypedObject,
} from "@coracle/operator/client";
import { jsonEquals, mutableCopy } from "@coracle/operator/internal";
import { attributesOf } from "../admission/admission.ts";
import type { ServerResponse } from "../http/exchange.ts";
import { checkParamAccess } from "../access/param_access.ts";
import { checkEscalation } from "../access/role_escalation.ts";
import { checkPodSigner } from "../access/signer_access.ts";
import { updateManagedFields } from "../field_management.ts";
import { holdsContent } from "../namespace_checks.ts";
import { subresourcesOf } from "../registry.ts";
import { fixed, settle } from "../settle.ts";
import {
  apiVersionIn,
  dryRunObject,
  hasStoredDefaults,
  isStoredForm,
  objectIn,
} from "../storage/object_view.ts";
import { representationOf } from "../read/respond.ts";
import { checkBodySize } from "../request/body.ts";
import { readObjectBody } from "../request/object_body.ts";
import {
  readWriteOptions,
  type WriteOptions,
} from "../request/query_options.ts";
import {
  hookContext,
  keyOfRequest,
  kindSubjectOf,
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import {
  badRequest,
  conflict,
  invalid,
  notFound,
  serverError,
} from "../status.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import {
  checkCustomType,
  createObject,
  respondWritten,
  withoutUnknown,
  type Written,
} from "./create.ts";
import {
  finalizerWarnings,
  metadataUpdateProblems,
  reportedCauses,
} from "../validation/object_meta.ts";
import type { ResourceDefinition } from "../registry.ts";

/** Handles a PUT to an object or a subresource. */
export async function update(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request);
  checkBodySize(request.http.body);
  const options = readWriteOptions(request, "UpdateOptions");
  const read = () => readObjectBody(request, options.fieldValidation);
  let object = await read();
  checkPath(request, object.metadata);
  const written = await settle(
    () =>
      updateObject(request, {
        options,
        uid: object.metadata.uid,
        conditional: true,
        next: () => object,
        mayCreate: request.definition.allowCreateOnUpdate &&
          request.subresource === undefined,
      }),
    request.warnings,
    async () => {
      object = await read();
    },
  );
  return await respondWritten(request, written, representation);
}

/**
 * Checks that an object has the name and namespace of the path.
 *
 * @throws {StatusError} 400 if they differ.
 */
export function checkPath(
  { name, namespace }: ResourceRequest,
  metadata: ObjectMeta,
): void {
  if (!metadata.name) {
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (metadata.name !== name) {
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  if (
    namespace !== undefined && metadata.namespace &&
    metadata.namespace !== namespace
  ) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
}

/** Options of {@linkcode updateObject}. */
export interface UpdateHow {
  readonly options: WriteOptions;
  /** UID precondition, if the client sent one. */
  readonly uid?: string | undefined;
  /**
   * Whether a resourceVersion is required where the resource demands it: for a
   * PUT, but not for a patch.
   */
  readonly conditional?: boolean | undefined;
  /**
   * Function that computes the new object; it may modify and return the copy of
   * the live object.
   */
  readonly next: (live: UntypedObject) => UntypedObject;
  /** Whether `next` has already set managedFields. */
  readonly managed?: boolean | undefined;
  /** Whether a missing object is created, by `next` from an empty object. */
  readonly mayCreate?: boolean | undefined;
  /**
   * Copy of the object from which managedFields are computed, and whether the
   * write may change an entry; by default the object and each entry.
   */
  readonly owned?: {
    readonly show: (object: UntypedObject) => UntypedObject;
    readonly takes: (entry: ManagedFieldsEntry) => boolean;
  } | undefined;
  /** Changes the managedFields of the new object once they are computed. */
  readonly arrangeOwners?: ((next: UntypedObject) => void) | undefined;
  /** Conversion to and from the form of the object that admission changes; by default the object itself. */
  readonly admitted?: {
    readonly show: (object: UntypedObject) => UntypedObject;
    readonly take: (
      object: UntypedObject,
      shown: UntypedObject,
    ) => UntypedObject;
  } | undefined;
}

/**
 * Updates a stored object in one synchronous step.
 *
 * @throws {StatusError} If the update is rejected.
 */
export function updateObject(
  request: ResourceRequest,
  how: UpdateHow,
): Written {
  const { context, definition } = request;
  const collection = context.store.collectionOf(definition);
  const stored = collection.get(keyOfRequest(request));
  const { options } = how;
  if (stored === undefined) {
    if (!how.mayCreate) throw notFound(subjectOf(request));
    checkStored(request, { uid: how.uid });
    return createMissing(request, how);
  }
  checkStored(request, { uid: how.uid }, stored);
  const live = objectIn(stored, request);
  let next = how.next(mutableCopy(live));
  const apply = how.managed === true;
  if (!apply) recordOwners(request, { live, next }, how);
  how.arrangeOwners?.(next);
  const hooks = hookContext(request, { dryRun: options.dryRun, apply });
  const { show, take } = how.admitted ?? {};
  const attributes = attributesOf(request, {
    operation: "UPDATE",
    object: show ? show(next) : next,
    oldObject: show ? show(live) : live,
    options,
    hooks,
  });
  context.admission.run("mutate", attributes);
  const admitted = attributes.object as UntypedObject;
  next = take ? take(next, admitted) : admitted;
  keepTimes(live, next);
  checkVersion(request, next.metadata, {
    stored,
    conditional: how.conditional === true,
  });
  keepSystemFields(request, next, live);
  checkEscalation(request, next, live);
  definition.prepareForUpdate?.(next, live, hooks);
  next.metadata.uid ||= live.metadata.uid;
  checkCustomType(request, next);
  const found = [
    ...metadataUpdateProblems(
      next.metadata,
      live.metadata,
      definition,
      context.release,
    ),
    ...definition.validateUpdate?.(next, live, hooks) ?? [],
  ];
  const causes = reportedCauses(found, definition, context.release);
  if (causes.length > 0) throw invalid(invalidSubject(request), causes);
  checkParamAccess(request, next, live);
  checkPodSigner(request, next, live);
  if (definition.custom) {
    request.warnings.push(...finalizerWarnings(next.metadata, live.metadata));
  }
  if (request.subresource === undefined) {
    request.warnings.push(...definition.warnings?.(next, live) ?? []);
  }
  attributes.object = show ? show(next) : next;
  context.admission.run("validate", attributes);
  if (apply && definition.custom) next = withoutUnknown(request, next);
  return store(request, { stored, live, next, dryRun: options.dryRun });
}

/**
 * Error subject of an object; Events of both groups are named after the core
 * group.
 */
function invalidSubject(
  request: ResourceRequest,
): ReturnType<typeof kindSubjectOf> {
  const subject = kindSubjectOf(request);
  return subject.kind === "Event" && subject.group === "events.k8s.io"
    ? { ...subject, group: "" }
    : subject;
}

function createMissing(request: ResourceRequest, how: UpdateHow): Written {
  const { definition, name = "", namespace } = request;
  const empty: UntypedObject = {
    apiVersion: apiVersionIn(request),
    kind: definition.kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  };
  const object = how.next(empty);
  object.metadata.name ||= name;
  return createObject(request, object, {
    options: how.options,
    apply: how.managed === true,
    authorizes: true,
  });
}

/**
 * Checks preconditions of a write as etcd's storage does.
 *
 * @param stored The object; undefined if it does not exist.
 * @throws {StatusError} 409 if the object has another UID or resourceVersion.
 */
export function checkStored(
  request: ResourceRequest,
  { uid, resourceVersion }: {
    readonly uid?: string | undefined;
    readonly resourceVersion?: string | undefined;
  },
  stored?: StoredObject,
): void {
  for (
    const [what, wanted, found] of [
      ["UID", uid, stored?.uid],
      ["ResourceVersion", resourceVersion, stored && `${stored.revision}`],
    ]
  ) {
    if (!wanted || wanted === found) continue;
    const path = storagePath(request.definition, keyOfRequest(request));
    throw conflict(
      subjectOf(request),
      `StorageError: invalid object, Code: 4, Key: ${path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${
        found ?? ""
      }`,
    );
  }
}

function recordOwners(
  request: ResourceRequest,
  { live, next }: { live: UntypedObject; next: UntypedObject },
  how: UpdateHow,
): void {
  const { definition, version, subresource, context } = request;
  const write = {
    definition,
    version,
    manager: how.options.fieldManager,
    subresource: subresource?.name,
    time: timestamp(fixed("now", () => context.clock.wallTime())),
    keepsOwners: context.release.keepsOwners,
  };
  if (how.owned === undefined) return updateManagedFields(live, next, write);
  const { show, takes } = how.owned;
  const entries = live.metadata.managedFields ?? [];
  const before = show(live);
  const compared = show(next);
  before.metadata.managedFields = entries.filter(takes);
  updateManagedFields(before, compared, write);
  const changed = compared.metadata.managedFields ?? [];
  const all = [...changed, ...entries.filter((entry) => !takes(entry))];
  if (all.length === 0) delete next.metadata.managedFields;
  else next.metadata.managedFields = all;
}

/** Keeps the timestamps of managedFields if nothing else changes. */
function keepTimes(live: UntypedObject, next: UntypedObject): void {
  const before = live.metadata.managedFields;
  const after = next.metadata.managedFields;
  if (before === undefined || before.length !== after?.length) return;
  if (!jsonEquals(withoutOwners(live), withoutOwners(next))) return;
  const timeless = (entries: typeof before) =>
    Object.fromEntries(entries.map(({ time: _, ...entry }) => [
      JSON.stringify([
        entry.manager,
        entry.operation,
        entry.apiVersion,
        entry.subresource,
      ]),
      entry,
    ]));
  if (jsonEquals(timeless(before), timeless(after))) {
    next.metadata.managedFields = before;
  }
}

function withoutOwners(object: UntypedObject): unknown {
  const { managedFields: _, resourceVersion: __, ...metadata } =
    object.metadata;
  return { ...object, metadata };
}

function checkVersion(
  request: ResourceRequest,
  metadata: ObjectMeta,
  { stored, conditional }: {
    readonly stored: StoredObject;
    readonly conditional: boolean;
  },
): void {
  const given = metadata.resourceVersion ?? "";
  const current = String(stored.revision);
  if (given !== "" && !/^\d+$/.test(given)) {
    throw serverError(
      `strconv.ParseUint: parsing ${JSON.stringify(given)}: invalid syntax`,
    );
  }
  if (given === "" || given === "0") {
    if (conditional && !request.definition.allowUnconditionalUpdate) {
      throw invalid(subjectOf(request), [{
        reason: "FieldValueInvalid",
        message: "Invalid value: 0: must be specified for an update",
        field: "metadata.resourceVersion",
      }]);
    }
    metadata.resourceVersion = current;
  } else if (given !== current) {
    throw conflict(
      subjectOf(request),
      "the object has been modified; please apply your changes to the latest version and try again",
    );
  }
}

/** Restores the fields that an update cannot change. */
function keepSystemFields(
  request: ResourceRequest,
  next: UntypedObject,
  live: UntypedObject,
): void {
  const { metadata } = next;
  placeLike(metadata, live.metadata);
  Reflect.deleteProperty(metadata, "selfLink");
  for (const field of ["generation", "creationTimestamp"] as const) {
    if (live.metadata[field] === undefined) delete metadata[field];
    else Object.assign(metadata, { [field]: live.metadata[field] });
  }
  // A deletionTimestamp cannot be removed; setting one is rejected.
  const { deletionTimestamp } = live.metadata;
  if (deletionTimestamp) metadata.deletionTimestamp = deletionTimestamp;
  metadata.deletionGracePeriodSeconds ??=
    live.metadata.deletionGracePeriodSeconds;
  if (metadata.deletionGracePeriodSeconds === undefined) {
    delete metadata.deletionGracePeriodSeconds;
  }
  restoreFields(request, next, live);
}

function placeLike(metadata: ObjectMeta, live: ObjectMeta): void {
  if (live.namespace === undefined) delete metadata.namespace;
  else metadata.namespace ||= live.namespace;
}

/**
 * Restores the fields outside the written subresource; a write of the object
 * restores the status.
 */
function restoreFields(
  request: ResourceRequest,
  next: UntypedObject,
  live: UntypedObject,
): void {
  const { subresource } = request;
  const restore = (field: string) => {
    if (Object.hasOwn(live, field)) next[field] = live[field];
    else delete next[field];
  };
  if (subresource === undefined) {
    if (subresourcesOf(request).some(({ name }) => name === "status")) {
      restore("status");
    }
    return;
  }
  const { fields } = subresource;
  if (fields === undefined) return;
  const kept = new Set(["apiVersion", "kind", "metadata", ...fields]);
  for (const field of new Set([...Object.keys(next), ...Object.keys(live)])) {
    if (!kept.has(field)) restore(field);
  }
}

function store(
  request: ResourceRequest,
  { stored, live, next, dryRun }: {
    readonly stored: StoredObject;
    readonly live: UntypedObject;
    readonly next: UntypedObject;
    readonly dryRun: boolean;
  },
): Written {
  const { context, definition } = request;
  const home = context.resources.home(definition);
  if (isGone(request, next)) {
    // The answer has the object without its last finalizer, at the
    // resourceVersion that it had; watches see the previous state.
    if (!dryRun) context.store.delete(stored);
    return { object: next, created: false };
  }
  if (dryRun) {
    return { object: dryRunObject(next, home, request), created: false };
  }
  const converted = home.convert(next, home.storageVersion);
  const before = isStoredForm(stored, request) ? live : stored.parse();
  if (jsonEquals(converted, before)) {
    return { stored, created: false };
  }
  const current = hasStoredDefaults(request);
  return {
    stored: context.store.put(home, converted, current),
    created: false,
  };
}

/** Whether a deleted object can be removed from the store. */
function isGone(request: ResourceRequest, object: UntypedObject): boolean {
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (deletionTimestamp === undefined || finalizers.length > 0) return false;
  if (request.definition.prepareForDeletion) return true;
  return holdsContent(request.definition)
    ? !(object.spec as { finalizers?: string[] } | undefined)?.finalizers
      ?.length
    : object.metadata.deletionGracePeriodSeconds === 0;
}

/** Resources that etcd stores under older names. */
const OLD_NAMES: ReadonlyMap<string, string> = new Map([
  ["/services", "services/specs"],
  ["/endpoints", "services/endpoints"],
  ["/nodes", "minions"],
  ["networking.k8s.io/ingresses", "ingress"],
]);

/** Key of an object in kube-apiserver's etcd, as in some messages. */
function storagePath(
  { group, plural, custom, storedAs }: ResourceDefinition,
  key: string,
): string {
  const home = storedAs ?? { group, plural };
  const folder = OLD_NAMES.get(`${home.group}/${home.plural}`) ??
    (custom || home.group === "apiextensions.k8s.io"
      ? `${home.group}/${home.plural}`
      : home.plural);
  return `/registry/${folder}/${key}`;
}
