import {
  applyJsonPatch,
  type JsonPatchOperation,
  timestamp,
  type UntypedObject,
} from "@coracle/operator/client";
import {
  applyMergePatch,
  isJsonObject,
  type JsonObject,
  mutableCopy,
  parseApiVersion,
} from "@coracle/operator/internal";
import { goJsonType, goText } from "../validation/go_value.ts";
import { applyStrategicMergePatch } from "../merge/strategic_merge_patch.ts";
import type { Schema } from "../merge/schema.ts";
import type { ServerResponse } from "../http/exchange.ts";
import { applyPatch } from "../field_management.ts";
import { fixed, settle } from "../settle.ts";
import { apiVersionIn } from "../storage/object_view.ts";
import { findStored } from "../read/get.ts";
import { representationOf } from "../read/respond.ts";
import {
  asObject,
  checkBodySize,
  mediaType,
  parseBody,
  type ParsedBody,
  unsupportedMediaType,
} from "../request/body.ts";
import { applyValidation, checkType, decode } from "../request/object_body.ts";
import {
  readWriteOptions,
  type WriteOptions,
} from "../request/query_options.ts";
import {
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import {
  badRequest,
  conflict,
  fieldError,
  internalError,
  invalid,
  StatusError,
  unprocessable,
} from "../status.ts";
import { respondWritten, type Written } from "./create.ts";
import { checkPath, type UpdateHow, updateObject } from "./update.ts";
import { rawInteger, writeJson } from "../exact_json.ts";

/** Patch type, by media type. */
export type PatchType = "json" | "merge" | "strategic" | "apply";

const TYPES: ReadonlyMap<string, PatchType> = new Map([
  ["application/json-patch+json", "json"],
  ["application/merge-patch+json", "merge"],
  ["application/strategic-merge-patch+json", "strategic"],
  ["application/apply-patch+yaml", "apply"],
]);

/** Maximum number of operations of a JSON patch. */
const MAX_OPERATIONS = 10_000;

/** Maximum number of characters that the copy operations of a JSON patch add. */
const MAX_COPIED = 3 * 1024 * 1024;

/** Parsed patch. */
export interface Patch extends ParsedBody {
  readonly type: PatchType;
}

/** Handles a PATCH of an object or a subresource. */
export async function patch(request: ResourceRequest): Promise<ServerResponse> {
  patchType(request);
  const representation = representationOf(request);
  const { patch, options } = await readPatch(request);
  const written = await settle(
    () =>
      patch.type === "apply"
        ? patchApplied(request, { patch, options })
        : updateObject(request, {
          options,
          next: (live) => {
            const next = patched(request, live, { patch, options });
            checkPath(request, next.metadata);
            return next;
          },
        }),
    request.warnings,
  );
  return await respondWritten(request, written, representation);
}

/**
 * Applies an apply configuration: merges it into the object, or creates the
 * object.
 */
export function patchApplied(
  request: ResourceRequest,
  { patch, options, admitted, arrangeOwners, check }: {
    readonly patch: Patch;
    readonly options: WriteOptions;
    readonly admitted?: UpdateHow["admitted"];
    readonly arrangeOwners?: UpdateHow["arrangeOwners"];
    /** Called with the merged object, which it may refuse. */
    readonly check?: (object: UntypedObject) => void;
  },
): Written {
  return updateObject(request, {
    options,
    admitted,
    arrangeOwners,
    managed: true,
    mayCreate: request.subresource === undefined,
    next: (live) => {
      const object = applied(request, live, { patch, options });
      check?.(object);
      return object;
    },
  });
}

/**
 * Parses a patch and the query options.
 *
 * @throws {StatusError} 400, 413, 415 or 422 if it is invalid.
 */
export async function readPatch(
  request: ResourceRequest,
): Promise<{ patch: Patch; options: WriteOptions }> {
  const type = patchType(request);
  const { body } = request.http;
  checkBodySize(body);
  const options = readWriteOptions(request, "PatchOptions", type === "apply");
  const { checksPatchesFirst } = request.context.release;
  // Only an apply can create an object.
  if (type !== "apply" && !checksPatchesFirst) findStored(request);
  let parsed;
  try {
    parsed = await parseBody(
      body,
      type === "apply" ? "yaml" : "json",
      type !== "strategic",
    );
  } catch (error) {
    const { message } = error as Error;
    if (checksPatchesFirst && type !== "apply") {
      throw badRequest("invalid JSON patch");
    }
    if (checksPatchesFirst && !/^\s*\{/.test(new TextDecoder().decode(body))) {
      throw badRequest(`error encoding patch: ${message}`);
    }
    throw unreadable(type, message, {
      yaml: "error converting YAML to JSON",
      checksPatchesFirst,
    });
  }
  if (type !== "apply" && checksPatchesFirst) findStored(request);
  checkShape(type, parsed.value, checksPatchesFirst);
  // An empty document changes nothing.
  const value = parsed.value ?? (type === "json" ? [] : {});
  return { patch: { ...parsed, type, value }, options };
}

/**
 * Type of the patch that a request has by its media type.
 *
 * @throws {StatusError} 415 if the resource has no patches of that type.
 */
export function patchType(request: ResourceRequest): PatchType {
  const media = mediaType(request.http);
  const type = TYPES.get(media);
  const { custom } = request.definition;
  if (type !== undefined && !(custom && type === "strategic")) return type;
  if (custom) {
    throw unsupportedMediaType(
      [...TYPES.keys()].filter((name) => TYPES.get(name) !== "strategic"),
    );
  }
  throw new StatusError({
    code: 415,
    reason: "UnsupportedMediaType",
    message: "415: Unsupported Media Type",
    details: {},
  });
}

/** Go types of patches, which its decoder names. */
const LIST = "[]handlers.jsonPatchOp";
const OBJECT = "map[string]interface {}";

/** Error 400: a patch that cannot be decoded. */
function unreadable(
  type: PatchType,
  why: string,
  { yaml, checksPatchesFirst }: {
    readonly yaml: string;
    readonly checksPatchesFirst: boolean;
  },
): StatusError {
  return badRequest(
    type === "apply"
      ? `error decoding ${
        checksPatchesFirst ? "patch" : "YAML"
      }: ${yaml}: ${why}`
      : type === "strategic"
      ? why
      : `error decoding patch: ${why}`,
  );
}

function checkShape(
  type: PatchType,
  value: unknown,
  checksPatchesFirst: boolean,
): void {
  if (type === "json" ? Array.isArray(value) : isJsonObject(value)) {
    if (type === "json") checkOperations(value as readonly unknown[]);
    return;
  }
  if (value === null) {
    if (type !== "merge") return;
    throw badRequest("Invalid JSON Patch");
  }
  throw wrongType(
    type,
    value,
    `value of type ${type === "json" ? LIST : OBJECT}`,
    checksPatchesFirst,
  );
}

function wrongType(
  type: PatchType,
  value: unknown,
  expected: string,
  checksPatchesFirst = false,
): StatusError {
  return unreadable(
    type,
    `json: cannot unmarshal ${goJsonType(value)} into Go ${expected}`,
    {
      yaml: "error unmarshaling JSON: while decoding JSON",
      checksPatchesFirst,
    },
  );
}

function checkOperations(operations: readonly unknown[]): void {
  if (operations.length > MAX_OPERATIONS) {
    throw new StatusError({
      code: 413,
      reason: "RequestEntityTooLarge",
      message:
        `Request entity too large: The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${operations.length}`,
    });
  }
  for (const operation of operations) {
    if (operation === null) continue;
    if (!isJsonObject(operation)) {
      throw wrongType(
        "json",
        operation,
        "value of type handlers.jsonPatchOp",
      );
    }
    for (const name of ["op", "from", "path"]) {
      const text = operation[name] ?? "";
      if (typeof text === "string") continue;
      throw wrongType(
        "json",
        text,
        `struct field jsonPatchOp.${name} of type string`,
      );
    }
  }
}

/**
 * Applies a patch, other than an apply, to the live object, and decodes the
 * result.
 */
function patched(
  request: ResourceRequest,
  live: UntypedObject,
  { patch, options }: { readonly patch: Patch; readonly options: WriteOptions },
): UntypedObject {
  const { version } = request;
  const value = applyTo(live, patch, version.schema);
  if (!isJsonObject(value)) throw unprocessable();
  const { object, problems } = decodePatched(request, mutableCopy(value));
  applyValidation(
    request,
    [...patch.warnings, ...problems],
    options.fieldValidation,
    () =>
      invalidPatch(
        patch.type === "strategic" ? goText(patch.value) : value,
        `strict decoding error: ${
          [...patch.objections, ...problems].join(", ")
        }`,
      ),
  );
  version.setDefaults(object);
  return object;
}

/** Prefix of errors about the decoding of bodies, which errors about patches lack. */
const DECODE_PREFIX = /^\S* in version "[^"]*" cannot be handled as a \S+: /;

/** Decodes a patched object; errors are 422, attributed to the patch. */
function decodePatched(
  request: ResourceRequest,
  value: JsonObject,
): { object: UntypedObject; problems: readonly string[] } {
  try {
    // The type of a custom resource is checked by validation.
    if (request.definition.custom) checkPatchedType(value);
    else checkType(request, value);
    return decode(request, asObject(value));
  } catch (error) {
    if (!(error instanceof StatusError) || error.status.code !== 400) {
      throw error;
    }
    throw invalidPatch(value, error.message.replace(DECODE_PREFIX, ""));
  }
}

/**
 * Checks that a patched custom resource has a kind and an apiVersion that are
 * texts.
 *
 * @throws {StatusError} 422, or 500 without an apiVersion, as kube-apiserver.
 */
function checkPatchedType(value: JsonObject): void {
  for (const name of ["apiVersion", "kind"]) {
    const text = value[name] ?? "";
    if (typeof text === "string") continue;
    throw badRequest(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${
        goJsonType(text)
      } into Go struct field .${name} of type string`,
    );
  }
  if (!value.kind) {
    throw badRequest(`Object 'Kind' is missing in '${writeJson(value)}'`);
  }
  if (value.apiVersion) return;
  throw internalError(
    "Object 'apiVersion' is missing in 'object has no apiVersion field'",
  );
}

/** Error 422: the patched object cannot be decoded. */
export function invalidPatch(value: unknown, why: string): StatusError {
  const text = typeof value === "string"
    ? value
    : JSON.stringify(value, (_, part: unknown) => rawInteger(part));
  return invalid({ group: "", kind: "" }, [
    fieldError.invalid("patch", text, why),
  ]);
}

/**
 * Applies a patch, other than an apply, to a JSON value.
 *
 * @throws {StatusError} If the patch does not apply.
 */
export function applyTo(
  target: unknown,
  { type, value }: Patch,
  schema: Schema,
): unknown {
  switch (type) {
    case "json":
      try {
        return applyJsonPatch(target, value as JsonPatchOperation[], {
          maxCopied: MAX_COPIED,
        });
      } catch {
        throw unprocessable();
      }
    case "merge":
      return applyMergePatch(target, value);
    default:
      return applyStrategicMergePatch(schema, target, value);
  }
}

/** Merges an apply configuration into the live object. */
function applied(
  request: ResourceRequest,
  live: UntypedObject,
  { patch, options }: { readonly patch: Patch; readonly options: WriteOptions },
): UntypedObject {
  const { definition, version, subresource, context } = request;
  const configuration = asObject(patch.value as JsonObject);
  const isNew = live.metadata.uid === undefined;
  if (configuration.metadata.managedFields === undefined) {
    checkAppliedType(configuration, {
      kind: definition.kind,
      apiVersion: apiVersionIn(request),
    });
  }
  const object = applyPatch(isNew ? undefined : live, configuration, {
    definition,
    version,
    manager: options.fieldManager,
    subresource: subresource?.name,
    time: timestamp(fixed("now", () => context.clock.wallTime())),
    force: options.force === true,
  });
  checkPath(request, object.metadata);
  const { uid } = object.metadata;
  if (isNew && uid) {
    throw conflict(
      subjectOf(request),
      `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
    );
  }
  applyValidation(
    request,
    patch.warnings,
    options.fieldValidation,
    () =>
      badRequest(
        `error strict decoding ${
          context.release.checksPatchesFirst ? "patch" : "YAML"
        }: error converting YAML to JSON: ${patch.objections.join(", ")}`,
      ),
  );
  return object;
}

/**
 * Checks the type of an apply configuration.
 *
 * @throws {StatusError} 400 if it is another one.
 */
export function checkAppliedType(
  configuration: UntypedObject,
  expected: { readonly kind: string; readonly apiVersion: string },
): void {
  const text = (value: unknown) => typeof value === "string" ? value : "";
  const kind = text(configuration.kind);
  const apiVersion = text(configuration.apiVersion);
  if (kind === expected.kind && apiVersion === expected.apiVersion) return;
  const { group, version } = parseApiVersion(apiVersion);
  throw badRequest(`invalid object type: ${group}/${version}, Kind=${kind}`);
}
