import type { UntypedObject } from "@coracle/operator/client";
import type { ApiContext } from "../api_context.ts";
import { type ResourceDefinition, subresourcesOf } from "../registry.ts";
import type { DeleteOptions, WriteOptions } from "../request/query_options.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import { ADMINISTRATOR } from "../request/user.ts";
import { storageVersionOf } from "../resources.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { deleteObject } from "../write/delete.ts";
import { updateObject } from "../write/update.ts";

const NO_QUERY: URLSearchParams = new URLSearchParams();

/** Request of a controller of the server itself, made without HTTP. */
export function internalRequest(
  context: ApiContext,
  definition: ResourceDefinition,
  target: {
    readonly namespace: string;
    readonly name: string;
    readonly subresource?: string | undefined;
  },
): ResourceRequest {
  const { namespace, name } = target;
  const version = storageVersionOf(definition);
  return {
    context,
    http: { method: "PATCH", target: "", headers: {}, body: new Uint8Array() },
    query: NO_QUERY,
    definition,
    version,
    subresource: subresourcesOf({ definition, version }).find((subresource) =>
      subresource.name === target.subresource
    ),
    namespace: namespace === "" ? undefined : namespace,
    name,
    user: ADMINISTRATOR,
    warnings: [],
    annotations: {},
  };
}

/** Options of a controller's write. */
export function internalWrite(fieldManager: string): WriteOptions {
  return {
    dryRun: false,
    fieldManager,
    fieldValidation: "Ignore",
    force: undefined,
  };
}

/** Options of a controller's deletion. */
function internalDelete(
  options: Partial<DeleteOptions> = {},
): DeleteOptions {
  return {
    dryRun: false,
    gracePeriodSeconds: undefined,
    propagationPolicy: "Background",
    orphanDependents: undefined,
    uid: undefined,
    resourceVersion: undefined,
    ...options,
  };
}

/** Request of a controller for a stored object or a subresource of it. */
function requestFor(
  context: ApiContext,
  stored: StoredObject,
  subresource?: string,
): ResourceRequest {
  const { namespace, name, definition } = stored;
  const { group, plural } = definition;
  const current = context.resources.find(group, plural) ?? definition;
  return internalRequest(context, current, { namespace, name, subresource });
}

/**
 * Updates a stored object, or a subresource of it, for a controller.
 *
 * @throws {StatusError} If the update is rejected.
 */
export function updateStored(
  context: ApiContext,
  stored: StoredObject,
  { manager, subresource, next }: {
    /** Field manager of the write. */
    readonly manager: string;
    readonly subresource?: string | undefined;
    /** Function that computes the new object; it may modify and return its argument. */
    readonly next: (live: UntypedObject) => UntypedObject;
  },
): void {
  updateObject(requestFor(context, stored, subresource), {
    options: internalWrite(manager),
    uid: stored.uid,
    next,
  });
}

/**
 * Deletes a stored object for a controller.
 *
 * @throws {StatusError} If the deletion is rejected.
 */
export function deleteStored(
  context: ApiContext,
  stored: StoredObject,
  options?: Partial<DeleteOptions>,
): void {
  deleteObject(requestFor(context, stored), stored, internalDelete(options));
}
