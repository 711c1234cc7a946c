import type { ApiContext } from "../api_context.ts";
import type { ResourceDefinition } from "../registry.ts";
import type { DeleteOptions, WriteOptions } from "../request/query_options.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import { ADMINISTRATOR } from "../request/user.ts";
import { storageVersionOf } from "../resources.ts";

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
  return {
    context,
    http: {
      method: "PATCH",
      target: "",
      headers: {},
      body: new Uint8Array(),
    },
    query: NO_QUERY,
    definition,
    version: storageVersionOf(definition),
    subresource: definition.subresources.find((subresource) =>
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
export function internalDelete(
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
