import type { ServerResponse } from "../http/exchange.ts";
import { readResourceVersion } from "../request/query_options.ts";
import {
  keyOfRequest,
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import { badRequest, notFound, StatusError } from "../status.ts";
import { pathSegmentProblems } from "../validation/names.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { representationOf, respondStored } from "./respond.ts";

/**
 * Stored object that a request names.
 *
 * @throws {StatusError} 404 if it does not exist, 400 if the name is invalid.
 */
export function findStored(request: ResourceRequest): StoredObject {
  const { context, definition, name = "" } = request;
  const problems = pathSegmentProblems(name);
  if (problems.length > 0) {
    throw badRequest(
      `Name parameter invalid: ${JSON.stringify(name)}: ${problems.join(";")}`,
    );
  }
  const stored = context.store.collectionOf(definition)
    .get(keyOfRequest(request));
  if (stored === undefined) throw notFound(subjectOf(request));
  return stored;
}

/** Error 504: the requested resourceVersion is newer than the server's. */
export function tooLargeVersion(wanted: number, current: number): StatusError {
  return new StatusError({
    code: 504,
    reason: "Timeout",
    message:
      `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    details: {
      causes: [{
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version",
      }],
      retryAfterSeconds: 1,
    },
  }, { "retry-after": "1" });
}

/** Handles a GET of one object. */
export function get(request: ResourceRequest): Promise<ServerResponse> {
  const representation = representationOf(request);
  const wanted = readResourceVersion(request.query.get("resourceVersion"));
  const { revision } = request.context.store;
  if (wanted !== undefined && wanted > revision) {
    throw tooLargeVersion(wanted, revision);
  }
  return respondStored(request, findStored(request), {
    status: 200,
    representation,
  });
}
