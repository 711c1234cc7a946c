/**
 * Writes: create, update, patch, apply, delete and the subresources, each
 * through the steps described at `ResourceDefinition` in `registry.ts`.
 * Guarantees: a rejected or dry-run write leaves the store unchanged. Independent
 * of particular kinds; must not import `builtin`, `crd` or `controllers`.
 *
 * @module
 */
import { timestamp, type UntypedObject } from "@coracle/operator/client";
import { parseApiVersion } from "@coracle/operator/internal";
import type { ServerResponse } from "../http/exchange.ts";
import { checkParamAccess } from "../access/param_access.ts";
import { checkCreates, checkEscalation } from "../access/role_escalation.ts";
import { updateManagedFields } from "../field_management.ts";
import { attributesOf } from "../admission/admission.ts";
import { CRDS } from "../registry.ts";
import { fixed, release, settle } from "../settle.ts";
import {
  apiVersionIn,
  dryRunObject,
  hasStoredDefaults,
} from "../storage/object_view.ts";
import {
  representationOf,
  respondObject,
  respondStored,
} from "../read/respond.ts";
import { checkBodySize } from "../request/body.ts";
import { bodyForm, readObjectBody } from "../request/object_body.ts";
import {
  readWriteOptions,
  type WriteOptions,
} from "../request/query_options.ts";
import {
  hookContext,
  kindSubjectOf,
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import {
  alreadyExists,
  badRequest,
  fieldError,
  invalid,
  serverError,
  StatusError,
} from "../status.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import {
  finalizerWarnings,
  metadataProblems,
  reportedCauses,
} from "../validation/object_meta.ts";

/**
 * Result of a write: a stored object, or the object that a dry run would have
 * stored.
 */
export type Written =
  | { readonly stored: StoredObject; readonly created: boolean }
  | { readonly object: UntypedObject; readonly created: boolean };

/** Responds with the written object in the requested representation. */
export async function respondWritten(
  request: ResourceRequest,
  written: Written,
  representation: ReturnType<typeof representationOf>,
): Promise<ServerResponse> {
  const how = { status: written.created ? 201 : 200, representation };
  return "stored" in written
    ? await respondStored(request, written.stored, how)
    : await respondObject(request, written.object, how);
}

/** Handles a POST to a collection. */
export async function create(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request);
  bodyForm(request);
  checkBodySize(request.http.body);
  const options = readWriteOptions(request, "CreateOptions");
  const read = () => readObjectBody(request, options.fieldValidation);
  let object = await read();
  const written = await settle(
    () =>
      createObject(request, object, { options, apply: false, posted: true }),
    request.warnings,
    async () => {
      object = await read();
    },
  );
  return await respondWritten(request, written, representation);
}

/** Options of {@linkcode createObject}. */
export interface CreateHow {
  readonly options: WriteOptions;
  /** Whether managedFields were already set by an apply. */
  readonly apply: boolean;
  /** Whether the request is a POST, whose object must not have a resourceVersion. */
  readonly posted?: boolean | undefined;
  /** Whether a PUT or an apply creates, whose user must have that right, too. */
  readonly authorizes?: boolean | undefined;
}

/**
 * Creates an object.
 *
 * @param request Resource and namespace of the object.
 * @param object The object, decoded and defaulted; it is modified.
 * @param how Options of the write.
 * @throws {StatusError} If the object is rejected.
 */
export function createObject(
  request: ResourceRequest,
  object: UntypedObject,
  how: CreateHow,
): Written {
  const { context, definition } = request;
  const { options, apply, posted = false } = how;
  const hooks = hookContext(request, { dryRun: options.dryRun, apply });
  checkNotTerminating(request);
  placeInNamespace(request, object);
  for (const field of NOT_FROM_CLIENTS) {
    Reflect.deleteProperty(object.metadata, field);
  }
  if (!apply) {
    updateManagedFields(undefined, object, {
      definition,
      version: request.version,
      manager: options.fieldManager,
      subresource: undefined,
      time: timestamp(hooks.now),
    });
  }
  const attributes = attributesOf(request, {
    operation: "CREATE",
    object,
    options,
    hooks,
  });
  context.admission.run("mutate", attributes);
  object = attributes.object as UntypedObject;
  checkEscalation(request, object);
  setSystemFields(request, object);
  if (definition.hasGeneration) object.metadata.generation = 1;
  definition.prepareForCreate?.(object, hooks);
  validateNew(request, object, hooks);
  checkParamAccess(request, object);
  if (how.authorizes) checkCreates(request);
  context.admission.run("validate", {
    ...attributes,
    name: object.metadata.name,
  });
  if (apply && definition.custom) object = withoutUnknown(request, object);
  const home = context.resources.home(definition);
  const collection = context.store.collectionOf(definition);
  const { name, namespace = "", resourceVersion = "" } = object.metadata;
  if (posted && !options.dryRun && isVersion(resourceVersion)) {
    throw serverError(
      "resourceVersion should not be set on objects to be created",
    );
  }
  const existing = collection.get(storageKey({ namespace, name }));
  if (existing) throw exists(request, name, existing);
  if (options.dryRun) {
    return { object: dryRunObject(object, home, request), created: true };
  }
  const stored = context.store.put(
    home,
    home.convert(object, home.storageVersion),
    hasStoredDefaults(request),
  );
  release("uid", "suffix", "volume");
  return { stored, created: true };
}

/**
 * Applied custom resource as it is stored: an apply is merged and validated with
 * the fields that a schema without fields does not have.
 */
export function withoutUnknown(
  { version }: ResourceRequest,
  object: UntypedObject,
): UntypedObject {
  return version.decode(object).object;
}

/** Whether a text is a valid resourceVersion; Go treats any other text as absent. */
function isVersion(text: string): boolean {
  return /^0*[1-9]\d{0,19}$/.test(text) &&
    BigInt.asUintN(64, BigInt(text)) === BigInt(text);
}

/** Rejects new custom resources while their definition is being deleted. */
function checkNotTerminating({ context, definition }: ResourceRequest): void {
  const { group, plural, custom } = definition;
  if (!custom) return;
  const crd = context.store.collection(CRDS).get(`${plural}.${group}`);
  if (!crd?.terminating) return;
  throw new StatusError({
    code: 405,
    reason: "MethodNotAllowed",
    message:
      "create not allowed while custom resource definition is terminating",
    details: { group, kind: plural },
  });
}

function exists(
  request: ResourceRequest,
  name: string,
  existing: StoredObject,
): StatusError {
  const error = alreadyExists(subjectOf(request, name));
  if (!existing.terminating) return error;
  return new StatusError({
    ...error.status,
    message: `object is being deleted: ${error.status.message}`,
  });
}

/**
 * Sets the namespace of the request's path on an object.
 *
 * @throws {StatusError} If the object names another namespace.
 */
export function placeInNamespace(
  request: ResourceRequest,
  { metadata }: UntypedObject,
): void {
  const { namespace, definition } = request;
  if (definition.scope === "Cluster") delete metadata.namespace;
  else if (metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  } else metadata.namespace = namespace;
}

/** Metadata fields of a new object that are ignored, because clients may not set them. */
const NOT_FROM_CLIENTS = [
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "selfLink",
];

function setSystemFields(
  request: ResourceRequest,
  { metadata }: UntypedObject,
): void {
  const { clock, random, store } = request.context;
  metadata.uid = fixed("uid", () => random.uid());
  metadata.creationTimestamp = timestamp(fixed("now", () => clock.wallTime()));
  const { generateName, namespace = "" } = metadata;
  if (metadata.name || !generateName) return;
  // Names have at most 63 characters, and five are random here.
  const prefix = generateName.slice(0, 58);
  const collection = store.collectionOf(request.definition);
  for (let attempt = 0; attempt < 8; attempt++) {
    metadata.name = prefix + fixed("suffix", () => random.suffix());
    if (!collection.get(storageKey({ namespace, name: metadata.name }))) break;
    release("suffix");
  }
}

function validateNew(
  request: ResourceRequest,
  object: UntypedObject,
  hooks: ReturnType<typeof hookContext>,
): void {
  const { definition, context: { release } } = request;
  const { metadata } = object;
  checkCustomType(request, object);
  const found = [
    ...metadataProblems(metadata, definition, release),
    ...definition.validateCreate?.(object, hooks) ?? [],
  ];
  const causes = reportedCauses(found, definition, release);
  if (causes.length > 0) {
    throw invalid(kindSubjectOf(request, metadata.name), causes);
  }
  if (definition.custom) {
    request.warnings.push(...finalizerWarnings(metadata));
  }
  request.warnings.push(...definition.warnings?.(object) ?? []);
}

/**
 * Checks apiVersion and kind of a custom resource.
 *
 * @throws {StatusError} 422 if they do not match.
 */
export function checkCustomType(
  request: ResourceRequest,
  { kind = "", apiVersion = "", metadata }: UntypedObject,
): void {
  const { definition } = request;
  if (!definition.custom) return;
  const expected = apiVersionIn(request);
  const causes = [
    ...(kind === definition.kind
      ? []
      : [fieldError.invalid("kind", kind, `must be ${definition.kind}`)]),
    ...(apiVersion === expected
      ? []
      : [fieldError.invalid("apiVersion", apiVersion, `must be ${expected}`)]),
  ];
  if (causes.length === 0) return;
  const { group } = parseApiVersion(apiVersion);
  throw invalid({ group, kind, name: metadata.name }, causes);
}
