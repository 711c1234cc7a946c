import type { UntypedObject } from "@coracle/operator/client";
import {
  isJsonObject,
  type JsonObject,
  parseApiVersion,
} from "@coracle/operator/internal";
import { goJsonType } from "../validation/go_value.ts";
import { internalType } from "../registry.ts";
import { apiVersionIn } from "../storage/object_view.ts";
import { badRequest, type StatusError } from "../status.ts";
import {
  asObject,
  type BodyForm,
  checkBodySize,
  mediaType,
  parseBody,
  type ParsedBody,
  summary,
  unsupportedMediaType,
} from "./body.ts";
import { inDocumentOrder, NumberRangeError } from "./json_body.ts";
import type { FieldValidation } from "./query_options.ts";
import { PROTOBUF } from "./negotiation.ts";
import type { ResourceRequest } from "./resource_request.ts";

/** Accepted media types of objects; protobuf only for built-in kinds. */
const ACCEPTED = ["application/json", "application/yaml", PROTOBUF];

/**
 * Encoding of a body.
 *
 * @param mayBeProtobuf Whether its kind has a form in protobuf.
 * @throws {StatusError} 415 if it is not supported.
 */
export function bodyForm(
  request: ResourceRequest,
  mayBeProtobuf: boolean = !request.definition.custom,
): BodyForm {
  const type = mediaType(request.http);
  if (type === "" || type === "application/json") return "json";
  if (type === "application/yaml") return "yaml";
  if (type === PROTOBUF && mayBeProtobuf) return "protobuf";
  throw unsupportedMediaType(ACCEPTED);
}

/**
 * Reads the object of a create or update: decoded, pruned and defaulted in its
 * version.
 *
 * @throws {StatusError} 400, 413, 415 or 422 if it is invalid.
 */
export async function readObjectBody(
  request: ResourceRequest,
  validation: FieldValidation,
): Promise<UntypedObject> {
  const { definition, version } = request;
  const { value, warnings, objections } = await readTree(
    request,
    definition.kind,
    true,
  );
  checkType(request, value);
  const decoded = decode(request, asObject(value));
  // Custom resources name their duplicate fields first.
  const inOrder = (texts: readonly string[]) =>
    definition.custom || warnings.length === 0 || warnings !== objections
      ? texts
      : inDocumentOrder(request.http.body, texts);
  applyValidation(
    request,
    inOrder([...warnings, ...decoded.problems]),
    validation,
    () =>
      badRequest(
        `${definition.kind} in version ${
          JSON.stringify(version.name)
        } cannot be handled as a ${definition.kind}: strict decoding error: ${
          inOrder([...objections, ...decoded.problems]).join(", ")
        }`,
      ),
  );
  version.setDefaults(decoded.object);
  return decoded.object;
}

/**
 * Parses a body, with Go's error messages.
 *
 * @param written Whether floats stay as they are written, for a decoder.
 */
export async function readTree(
  request: ResourceRequest,
  kind: string,
  written = false,
): Promise<ParsedBody & { readonly value: JsonObject }> {
  const form = bodyForm(request);
  const { body } = request.http;
  checkBodySize(body);
  const unrecognized = (why: string) =>
    badRequest(
      `the object provided is unrecognized (must be of type ${kind}): ${why} (${
        summary(body)
      })`,
    );
  const fail = (why: string) =>
    unrecognized(`couldn't get version/kind; json parse error: ${why}`);
  let parsed;
  try {
    parsed = await parseBody(body, form, written);
  } catch (error) {
    const { message } = error as Error;
    if (error instanceof NumberRangeError) {
      throw badRequest(
        `${kind} in version ${
          JSON.stringify(request.version.name)
        } cannot be handled as a ${kind}: ${message}`,
      );
    }
    if (form === "protobuf") throw badRequest(message);
    if (form === "yaml") throw unrecognized(message);
    throw fail(message);
  }
  // Go decodes null as an empty object.
  const value = parsed.value === null ? {} : parsed.value;
  if (!isJsonObject(value)) {
    throw fail(notAnObject(value));
  }
  return { ...parsed, value };
}

/** Go's message about a body that is no JSON object. */
export function notAnObject(value: unknown): string {
  return `json: cannot unmarshal ${
    goJsonType(value)
  } into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`;
}

/**
 * Checks `apiVersion` and `kind`, and sets them where they may be absent.
 *
 * @throws {StatusError} 400 if they do not match.
 */
export function checkType(request: ResourceRequest, value: JsonObject): void {
  const { definition } = request;
  const expected = apiVersionIn(request);
  // Go decodes null as an empty text.
  const kind = value.kind ?? "";
  const apiVersion = value.apiVersion ?? "";
  if (typeof kind !== "string" || typeof apiVersion !== "string") {
    const isKind = typeof apiVersion === "string";
    throw badRequest(
      `the object provided is unrecognized (must be of type ${definition.kind}): couldn't get version/kind; json parse error: json: cannot unmarshal ${
        goJsonType(isKind ? kind : apiVersion)
      } into Go struct field .${
        isKind ? "kind" : "apiVersion"
      } of type string (${summary(request.http.body)})`,
    );
  }
  if (definition.custom) checkCustomBody(request, { kind, apiVersion });
  else {
    checkBuiltinType(request, {
      kind: kind || definition.kind,
      apiVersion: apiVersion || expected,
    });
    value.kind = definition.kind;
    value.apiVersion = expected;
  }
}

interface TypeMeta {
  readonly kind: string;
  readonly apiVersion: string;
}

function checkCustomBody(
  request: ResourceRequest,
  { kind, apiVersion }: TypeMeta,
): void {
  const { body } = request.http;
  const expected = apiVersionIn(request);
  if (kind === "") {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${request.definition.kind}): Object 'Kind' is missing in '${
        new TextDecoder().decode(body)
      }' (${summary(body)})`,
    );
  }
  if (apiVersion !== expected) throw versionMismatch(apiVersion, expected);
}

function versionMismatch(apiVersion: string, expected: string): StatusError {
  return badRequest(
    `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
  );
}

function checkBuiltinType(
  request: ResourceRequest,
  { kind, apiVersion }: TypeMeta,
): void {
  const { definition, context } = request;
  const expected = apiVersionIn(request);
  if (kind === definition.kind && apiVersion === expected) return;
  const { group, version } = parseApiVersion(apiVersion);
  if (version.includes("/")) {
    throw badRequest(
      `the object provided is unrecognized (must be of type ${definition.kind}): unexpected GroupVersion string: ${apiVersion} (${
        summary(request.http.body)
      })`,
    );
  }
  const other = context.resources.findKind(group, kind) ??
    context.resources.findKind(group, kind.replace(/List$/, ""));
  const known = other?.versions.some(({ name }) => name === version) &&
    !other.custom;
  if (known && kind === definition.kind) {
    throw versionMismatch(apiVersion, expected);
  }
  throw badRequest(
    `${kind} in version ${
      JSON.stringify(version)
    } cannot be handled as a ${definition.kind}: ${
      known
        ? `converting (${version}.${kind}) to (${
          internalType(definition)
        }): unknown conversion`
        : `no kind ${JSON.stringify(kind)} is registered for version ${
          JSON.stringify(apiVersion)
        } in scheme "pkg/runtime/scheme.go:111"`
    }`,
  );
}

/** Decodes a JSON value into an object with metadata. */
export function decode(
  { version }: ResourceRequest,
  tree: UntypedObject,
): { object: UntypedObject; problems: readonly string[] } {
  const { object, problems } = version.decode(tree);
  const decoded = asObject(object);
  // Decoding omits empty lists, but an empty list resets managedFields.
  if (tree.metadata.managedFields?.length === 0) {
    decoded.metadata.managedFields = [];
  }
  return { object: decoded, problems };
}

/**
 * Applies the requested field validation to problems of strict decoding.
 *
 * @param request Request whose response gets the warnings.
 * @param problems Unknown and duplicate fields.
 * @param validation Requested field validation.
 * @param refusal Creates the error for `Strict`.
 */
export function applyValidation(
  request: ResourceRequest,
  problems: readonly string[],
  validation: FieldValidation,
  refusal: () => StatusError,
): void {
  if (problems.length === 0 || validation === "Ignore") return;
  if (validation === "Strict") throw refusal();
  request.warnings.push(...problems);
}
