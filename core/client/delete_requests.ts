/**
 * Deletions as plain values, as `request.ts` makes those of the other verbs.
 *
 * @module
 */
import { collectionPath, objectPath, type ResolvedKind } from "../api/kind.ts";
import type { ObjectKey } from "../api/object_key.ts";
import { checkOptions } from "../api/option_rules.ts";
import { selectionQuery, withQuery } from "./query.ts";
import type { ApiRequest } from "./request.ts";
import {
  type DeleteCollectionOptions,
  type DeleteOptions,
  REQUEST_RULES,
} from "./request_options.ts";
import { describe, describeMany } from "./request_subject.ts";
import type { HttpRequest } from "./transport.ts";

const JSON_TYPE = "application/json";

/**
 * Deletes an object.
 *
 * @throws {TypeError | RangeError} If an option is unknown or of another type,
 * or a namespaced object has no namespace.
 */
export function deleteRequest(
  kind: ResolvedKind,
  key: ObjectKey,
  options: DeleteOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.delete, "delete");
  return {
    verb: "delete",
    action: `delete ${describe(kind, key)}`,
    method: "DELETE",
    path: objectPath(kind, key),
    ...deletion(options),
  };
}

/**
 * Deletes all selected objects of a collection.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or of
 * another type, or a selector makes no sense.
 */
export function deleteCollectionRequest(
  kind: ResolvedKind,
  options: DeleteCollectionOptions = {},
): ApiRequest {
  checkOptions(options, REQUEST_RULES.deleteCollection, "deleteCollection");
  return {
    verb: "deletecollection",
    action: `delete ${describeMany(kind, options.namespace)}`,
    method: "DELETE",
    path: withQuery(
      collectionPath(kind, options.namespace),
      selectionQuery(options),
    ),
    ...deletion(options),
  };
}

function deletion(
  options: DeleteOptions,
): Pick<HttpRequest, "headers" | "body" | "signal"> {
  const { gracePeriodSeconds, preconditions, propagationPolicy } = options;
  return {
    headers: { accept: JSON_TYPE, "content-type": JSON_TYPE },
    body: JSON.stringify({
      kind: "DeleteOptions",
      apiVersion: "v1",
      dryRun: options.dryRun ? ["All"] : undefined,
      gracePeriodSeconds,
      preconditions,
      propagationPolicy,
    }),
    signal: options.signal,
  };
}
