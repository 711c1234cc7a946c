import type { UntypedObject } from "@coracle/operator/client";
import { type JsonObject, parseApiVersion } from "@coracle/operator/internal";
import type { ResourceDefinition, ResourceVersion } from "../registry.ts";
import type { Attributes, Operation } from "./admission.ts";
import { settle } from "../settle.ts";
import { storageKey } from "../storage/stored_object.ts";
import { apiVersionIn } from "../storage/object_view.ts";
import { userInfo } from "../request/user.ts";
import { readJson, writeJson } from "../exact_json.ts";

/** Resource and version in which a webhook or policy sees a request. */
export interface Match {
  readonly definition: ResourceDefinition;
  readonly version: ResourceVersion;
}

/** Stored Namespace of a request; undefined for cluster-scoped objects. */
export function namespaceObject(
  attributes: Attributes,
): UntypedObject | undefined {
  const { context, namespace } = attributes.request;
  return namespace === undefined
    ? undefined
    : context.store.collection({ group: "", plural: "namespaces" })
      .get(storageKey({ namespace: "", name: namespace }))?.parse();
}

/** Object in the version of a match. */
export async function objectFor(
  object: UntypedObject | undefined,
  match: Match,
): Promise<UntypedObject | undefined> {
  const { definition, version } = match;
  return object === undefined || object.apiVersion === apiVersionIn(match) ||
      object.kind !== definition.kind
    ? object
    : await settle(() => definition.convert(object, version.name));
}

/** Request of an admission review, without its UID and objects. */
export function reviewRequest(
  attributes: Attributes,
  match: Match,
): JsonObject {
  const { request, operation, dryRun, name, namespace } = attributes;
  const { definition, version, subresource, user } = request;
  const own = { definition, version };
  return {
    kind: kindOf(match, attributes),
    resource: resourceOf(match),
    ...(subresource && { subResource: subresource.name }),
    requestKind: kindOf(own, attributes),
    requestResource: resourceOf(own),
    ...(subresource && { requestSubResource: subresource.name }),
    ...(name && { name }),
    ...(namespace && { namespace }),
    operation,
    userInfo: userInfo(user) as JsonObject,
    dryRun,
    options: optionsOf(attributes),
  };
}

const OPTIONS: Readonly<Record<Operation, string>> = {
  CREATE: "CreateOptions",
  UPDATE: "UpdateOptions",
  DELETE: "DeleteOptions",
  CONNECT: "",
};

/** Options of the operation as the client sent them. */
function optionsOf(
  { operation, options, dryRun, request: { query } }: Attributes,
): JsonObject | null {
  if (operation === "CONNECT") return null;
  const given: JsonObject = {};
  if ("uid" in options) {
    const { dryRun: _, uid, resourceVersion, ...rest } = options;
    Object.assign(given, rest);
    if (uid !== undefined || resourceVersion !== undefined) {
      given.preconditions = { uid, resourceVersion };
    }
  } else {
    for (const name of ["fieldManager", "fieldValidation"]) {
      const value = query.get(name);
      if (value) given[name] = value;
    }
  }
  return {
    kind: OPTIONS[operation],
    apiVersion: "meta.k8s.io/v1",
    // As JSON, which has no undefined.
    ...readJson(writeJson(given)) as JsonObject,
    ...(dryRun && { dryRun: ["All"] }),
  };
}

/** Kind of the object of a request in the version of a match. */
function kindOf(
  { definition, version }: Match,
  { object, oldObject, request }: Attributes,
): JsonObject {
  const { kind = definition.kind, apiVersion = "" } = object ?? oldObject ?? {};
  if (kind === definition.kind || kind === request.definition.kind) {
    return {
      group: definition.group,
      version: version.name,
      kind: definition.kind,
    };
  }
  return { ...parseApiVersion(apiVersion), kind };
}

function resourceOf({ definition, version }: Match): JsonObject {
  return {
    group: definition.group,
    version: version.name,
    resource: definition.plural,
  };
}
