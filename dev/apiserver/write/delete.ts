import { timestamp, type UntypedObject } from "@coracle/operator/client";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  mutableCopy,
} from "@coracle/operator/internal";
import { admit } from "../admission/admission.ts";
import type { ServerResponse } from "../http/exchange.ts";
import { holdsContent } from "../namespace_checks.ts";
import { findStored } from "../read/get.ts";
import { listPage, respondPage } from "../read/list.ts";
import { settle } from "../settle.ts";
import { hasStoredDefaults, objectIn } from "../storage/object_view.ts";
import {
  representationOf,
  respondObject,
  respondStored,
  respondValue,
} from "../read/respond.ts";
import {
  type DeleteOptions,
  readDeleteOptions,
  readListOptions,
} from "../request/query_options.ts";
import { goJsonType } from "../validation/go_value.ts";
import { checkBodySize, parseBody } from "../request/body.ts";
import { NumberRangeError } from "../request/json_body.ts";
import { bodyForm, notAnObject } from "../request/object_body.ts";
import {
  hookContext,
  kindSubjectOf,
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import { readSelection } from "../request/object_selection.ts";
import { badRequest, conflict, StatusError } from "../status.ts";
import type { StoredObject } from "../storage/stored_object.ts";

/**
 * Accepted kinds of DeleteOptions: every group has its own, with equal fields.
 */
const OPTIONS_KINDS: ReadonlySet<unknown> = new Set([
  undefined,
  "",
  "DeleteOptions",
]);

/** Result of a deletion. */
export interface Deleted {
  /** Stored object, unless the response is a Status. */
  readonly stored: StoredObject | undefined;
  /** Object of a dry run, which stores nothing. */
  readonly object?: UntypedObject | undefined;
  /**
   * Whether the object was removed; otherwise finalizers or a grace period hold
   * it.
   */
  readonly gone: boolean;
}

/** Handles a DELETE of one object. */
export async function remove(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request);
  const options = await readOptions(request);
  const { stored, deleted } = await settle(() => {
    const stored = findStored(request);
    return { stored, deleted: deleteObject(request, stored, options) };
  }, request.warnings);
  const accepted = !deleted.gone && options.orphanDependents === false;
  const how = { status: accepted ? 202 : 200, representation };
  if (deleted.object) return await respondObject(request, deleted.object, how);
  if (deleted.stored) return await respondStored(request, deleted.stored, how);
  const { name, group, kind } = subjectOf(request);
  return await respondValue(how.status, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: {
      name,
      ...(group === "" ? {} : { group }),
      kind,
      uid: stored.uid,
    },
  }, representation);
}

/** Warning to clients that delete Jobs without a propagation policy. */
const PODS_STAY =
  "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

async function readOptions(request: ResourceRequest): Promise<DeleteOptions> {
  const options = await readGivenOptions(request);
  const { plural, group } = request.definition;
  if (
    plural === "jobs" && group === "batch" &&
    options.propagationPolicy === undefined &&
    options.orphanDependents === undefined
  ) request.warnings.push(PODS_STAY);
  return options;
}

async function readGivenOptions(
  request: ResourceRequest,
): Promise<DeleteOptions> {
  const { http, query } = request;
  if (http.body.length === 0) return readDeleteOptions(query, undefined);
  checkBodySize(http.body);
  const value = await readOptionsBody(request);
  const { kind, apiVersion } = value;
  const wrong = [["kind", kind], ["apiVersion", apiVersion]].find((
    [, text],
  ) => typeof (text ?? "") !== "string");
  if (wrong !== undefined) {
    throw unreadable(
      `json: cannot unmarshal ${goJsonType(wrong[1])} into Go struct field .${
        wrong[0]
      } of type string`,
    );
  }
  if (!OPTIONS_KINDS.has(kind ?? undefined)) {
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${
        JSON.stringify(apiVersion || "meta.k8s.io/v1")
      } in scheme "pkg/runtime/scheme.go:111"`,
    );
  }
  return readDeleteOptions(query, value);
}

/**
 * Reads a body with DeleteOptions, which may be protobuf for custom kinds, too.
 *
 * @throws {StatusError} 400 or 415 if it is no object.
 */
async function readOptionsBody(request: ResourceRequest): Promise<JsonObject> {
  const form = bodyForm(request, true);
  let value: unknown;
  try {
    value = (await parseBody(request.http.body, form)).value ?? {};
  } catch (error) {
    const { message } = error as Error;
    throw form === "json" && !(error instanceof NumberRangeError)
      ? unreadable(message)
      : badRequest(message);
  }
  if (isJsonObject(value)) return value;
  throw unreadable(notAnObject(value));
}

function unreadable(why: string): StatusError {
  return badRequest(`couldn't get version/kind; json parse error: ${why}`);
}

/**
 * Handles a DELETE of a collection: deletes every selected object, one by one.
 */
export async function removeCollection(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request);
  const { query, namespace } = request;
  const list = readListOptions(query, false);
  const selection = readSelection(query, request, {
    namespace,
    name: undefined,
  });
  const options = await readOptions(request);
  const page = await settle(() => listPage(request, selection, list));
  for (const stored of page.objects) {
    const each = {
      ...request,
      name: stored.name,
      namespace: stored.namespace || undefined,
    };
    try {
      await settle(() => {
        deleteObject(each, findStored(each), options);
      }, request.warnings);
    } catch (error) {
      // Objects that were deleted concurrently are skipped.
      if (!(error instanceof StatusError) || error.status.code !== 404) {
        throw error;
      }
    }
  }
  return await respondPage(request, page, representation);
}

/**
 * Deletes an object, or sets its deletionTimestamp if finalizers, dependents or
 * a grace period hold it.
 *
 * @param evicts Whether admission has admitted an eviction instead of a
 * deletion.
 * @throws {StatusError} 409 if a precondition is not met.
 */
export function deleteObject(
  request: ResourceRequest,
  stored: StoredObject,
  options: DeleteOptions,
  evicts = false,
): Deleted {
  checkPreconditions(request, stored, options);
  const { context, definition } = request;
  const object = objectIn(stored, request);
  const before = mutableCopy(object);
  if (!evicts) {
    admit(request, { operation: "DELETE", oldObject: before, options });
  }
  const grace = beginDeletion(request, object, options);
  if (grace === "pending") {
    return answerWith(definition.returnsDeletedObject, stored, false);
  }
  const finalizers = collectorFinalizers(request, object, options);
  if (finalizers !== undefined) setFinalizers(object, finalizers);
  if (object.metadata.deletionTimestamp === undefined) {
    definition.prepareForDeletion?.(
      object,
      hookContext(request, { dryRun: options.dryRun, apply: false }),
    );
  }
  const held = (object.metadata.finalizers ?? []).length > 0 ||
    (holdsContent(definition) && hasContent(object));
  if (held) markDeleting(request, object, grace);
  const changed = !jsonEquals(before, object);
  const home = context.resources.home(definition);
  const put = () =>
    context.store.put(
      home,
      home.convert(object, home.storageVersion),
      hasStoredDefaults(request),
    );
  if (held || (grace !== undefined && grace > 0)) {
    if (options.dryRun) return { stored: undefined, object, gone: false };
    const kept = changed ? put() : stored;
    return { stored: kept, gone: false };
  }
  if (options.dryRun) {
    // A graceful deletion returns the deletionTimestamp, although nothing is
    // stored.
    return grace !== undefined && definition.returnsDeletedObject
      ? { stored: undefined, object, gone: true }
      : answerWith(definition.returnsDeletedObject, stored, true);
  }
  // Watches see the start of a graceful deletion even if it need not wait.
  const marked = grace !== undefined && changed ? put() : stored;
  const last = context.store.delete(marked);
  return answerWith(definition.returnsDeletedObject, last, true);
}

function answerWith(
  returnsObject: boolean,
  stored: StoredObject,
  gone: boolean,
): Deleted {
  return { stored: returnsObject ? stored : undefined, gone };
}

function checkPreconditions(
  request: ResourceRequest,
  stored: StoredObject,
  { uid, resourceVersion }: DeleteOptions,
): void {
  const subject = kindSubjectOf(request);
  if (uid !== undefined && uid !== stored.uid) {
    throw conflict(
      subject,
      `the UID in the precondition (${uid}) does not match the UID in record (${stored.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (
    resourceVersion !== undefined && resourceVersion !== String(stored.revision)
  ) {
    throw conflict(
      subject,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${stored.revision}). The object might have been modified`,
    );
  }
}

/**
 * Starts a graceful deletion if the resource supports it.
 *
 * @returns The grace period in seconds; undefined if absent; `pending` if an
 * earlier deletion continues unchanged.
 */
function beginDeletion(
  request: ResourceRequest,
  object: UntypedObject,
  options: DeleteOptions,
): number | "pending" | undefined {
  const { metadata } = object;
  const { clock } = request.context;
  const requested = options.gracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined) {
    const running = metadata.deletionGracePeriodSeconds ?? 0;
    if (running === 0) return undefined;
    // The grace period of a deletion in progress can only be shortened.
    if (requested === undefined || requested >= running) return "pending";
    const period = Math.max(requested, 0);
    metadata.deletionTimestamp = timestamp(
      Date.parse(metadata.deletionTimestamp) - (running - period) * 1000,
    );
    metadata.deletionGracePeriodSeconds = period;
    return period;
  }
  const period = request.definition.gracePeriod?.(object, requested);
  if (period === undefined) return undefined;
  metadata.deletionTimestamp = timestamp(clock.wallTime() + period * 1000);
  metadata.deletionGracePeriodSeconds = period;
  bumpGeneration(object);
  return period;
}

function bumpGeneration({ metadata }: UntypedObject): void {
  if ((metadata.generation ?? 0) > 0) {
    metadata.generation = Number(metadata.generation) + 1;
  }
}

/** Sets the deletionTimestamp of an object that cannot be removed yet. */
function markDeleting(
  request: ResourceRequest,
  object: UntypedObject,
  grace: number | undefined,
): void {
  const { metadata } = object;
  const { definition, context } = request;
  const now = context.clock.wallTime();
  // Namespaces and CRDs have deletion procedures of their own.
  const plain = !holdsContent(definition) &&
    definition.prepareForDeletion === undefined;
  if (metadata.deletionTimestamp === undefined) {
    if (plain) bumpGeneration(object);
    metadata.deletionTimestamp = timestamp(now);
  } else if (
    grace === undefined && Date.parse(metadata.deletionTimestamp) > now
  ) {
    metadata.deletionTimestamp = timestamp(now);
  }
  if (holdsContent(definition)) {
    object.status = { ...(object.status as object), phase: "Terminating" };
  }
  if (plain && grace === undefined) metadata.deletionGracePeriodSeconds = 0;
}

function hasContent(object: UntypedObject): boolean {
  const spec = object.spec as { finalizers?: string[] } | undefined;
  return (spec?.finalizers ?? []).length > 0;
}

const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** Finalizers of the garbage collector for a propagation policy. */
function collectorFinalizers(
  request: ResourceRequest,
  { metadata }: UntypedObject,
  options: DeleteOptions,
): string[] | undefined {
  const { finalizers = [] } = metadata;
  const mode = deletionMode(request, finalizers, options);
  const next = finalizers.filter((one) => one !== ORPHAN && one !== FOREGROUND);
  if (mode === "Orphan") next.push(ORPHAN);
  if (mode === "Foreground") next.push(FOREGROUND);
  return next.length === finalizers.length &&
      next.every((one) => finalizers.includes(one))
    ? undefined
    : next;
}

function deletionMode(
  request: ResourceRequest,
  finalizers: readonly string[],
  options: DeleteOptions,
): "Orphan" | "Foreground" | "Background" {
  if (options.orphanDependents !== undefined) {
    return options.orphanDependents ? "Orphan" : "Background";
  }
  switch (options.propagationPolicy) {
    case "Orphan":
    case "Foreground":
    case "Background":
      return options.propagationPolicy;
  }
  if (finalizers.includes(ORPHAN)) return "Orphan";
  if (finalizers.includes(FOREGROUND)) return "Foreground";
  return request.definition.defaultDeletionPolicy ?? "Background";
}

function setFinalizers(
  { metadata }: UntypedObject,
  finalizers: string[],
): void {
  if (finalizers.length === 0) delete metadata.finalizers;
  else metadata.finalizers = finalizers;
}
