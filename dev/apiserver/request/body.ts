import type { UntypedObject } from "@coracle/operator/client";
import {
  isJsonObject,
  type JsonObject,
  loadModule,
} from "@coracle/operator/internal";
import { DecodeError, decodeTyped } from "../builtin/decode.ts";
import { goType } from "../builtin/go_types.ts";
import { MAX_BODY_BYTES, type ServerRequest } from "../http/exchange.ts";
import { badRequest, StatusError } from "../status.ts";
import { goJsonType } from "../validation/go_value.ts";
import { mayHaveFloats, readJson, readWrittenJson } from "../exact_json.ts";
import { parseJson } from "./json_body.ts";

const decoder = new TextDecoder();

/** Media type of a body, without parameters. */
export function mediaType(request: ServerRequest): string {
  return (request.headers["content-type"] ?? "").split(";")[0]?.trim()
    .toLowerCase() ?? "";
}

/** Error 415: the media type is not supported. */
export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  return new StatusError({
    code: 415,
    reason: "UnsupportedMediaType",
    message:
      `the body of the request was in an unknown format - accepted media types include: ${
        accepted.join(", ")
      }`,
  });
}

/**
 * Checks the size of a body.
 *
 * @throws {StatusError} 413 if it is too large.
 */
export function checkBodySize(body: Uint8Array): void {
  if (body.length <= MAX_BODY_BYTES) return;
  throw new StatusError({
    code: 413,
    reason: "RequestEntityTooLarge",
    message: `Request entity too large: limit is ${MAX_BODY_BYTES}`,
  });
}

/** Encoding of a body. */
export type BodyForm = "json" | "yaml" | "protobuf";

/** Parsed body with its duplicate fields. */
export interface ParsedBody {
  readonly value: unknown;
  /** Warnings, one per duplicate field. */
  readonly warnings: readonly string[];
  /** Duplicate fields, as parts of the error of strict validation. */
  readonly objections: readonly string[];
}

/** Protobuf reader; loaded when a client first sends protobuf. */
let protobufReader: typeof import("../builtin/protobuf.ts") | undefined;

/**
 * Parses a body.
 *
 * @param written Whether floats of JSON stay as they are written, for a decoder.
 * In YAML, a whole float is an integer.
 * @throws {SyntaxError} If it is malformed.
 */
export async function parseBody(
  body: Uint8Array,
  form: BodyForm,
  written = false,
): Promise<ParsedBody> {
  if (form === "protobuf") {
    const { readProtobuf } = protobufReader ??= await loadModule(
      import("../builtin/protobuf.ts"),
    );
    return { value: readProtobuf(body), warnings: [], objections: [] };
  }
  if (form === "yaml") {
    const text = decoder.decode(body);
    const parsed = parsePlainJson(body, text);
    if (parsed !== undefined) return parsed;
    const { parseYaml } = await loadModule(import("./yaml_body.ts"));
    const { value, problems } = await parseYaml(text);
    const list = problems.map((problem) => `\n  ${problem}`).join("");
    return {
      value,
      warnings: problems,
      objections: list === "" ? [] : [`yaml: unmarshal errors:${list}`],
    };
  }
  return parseJsonBody(body, written ? readWrittenJson : readJson);
}

/**
 * Parses YAML that is also JSON, as many clients write it: one line of
 * printable ASCII without merge keys, floats and duplicate fields.
 *
 * @returns `undefined` if the text needs a YAML parser.
 */
function parsePlainJson(
  body: Uint8Array,
  text: string,
): ParsedBody | undefined {
  if (!/^\{[ -~]*\}$/.test(text) || /\\u|"<<"/.test(text)) return undefined;
  if (mayHaveFloats(text)) return undefined;
  try {
    const parsed = parseJsonBody(body, readJson);
    return parsed.warnings.length === 0 ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function parseJsonBody(body: Uint8Array, read: typeof readJson): ParsedBody {
  const { value, duplicates } = parseJson(body, read);
  const warnings = duplicates.map((path) =>
    `duplicate field ${JSON.stringify(path)}`
  );
  return { value, warnings, objections: warnings };
}

/** First bytes of an unreadable body, as quoted in Go's errors. */
export function summary(body: Uint8Array): string {
  if (body.length === 0) return "<empty>";
  const part = body.subarray(0, 30);
  const shown = body[0] === 0x7b
    ? decoder.decode(part)
    : [...part].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return body.length > 30 ? `${shown} ...` : shown;
}

/** Value as a Kubernetes object, with metadata added if absent. */
export function asObject(value: JsonObject): UntypedObject {
  const { metadata } = value;
  if (metadata === undefined || metadata === null) {
    return { ...value, metadata: {} } as unknown as UntypedObject;
  }
  if (!isJsonObject(metadata)) {
    throw badRequest(
      `json: cannot unmarshal ${
        goJsonType(metadata)
      } into Go struct field .metadata of type v1.ObjectMeta`,
    );
  }
  return value as unknown as UntypedObject;
}

/**
 * Decodes a JSON value into a struct of Kubernetes' API, such as DeleteOptions.
 *
 * @param definition Name of the OpenAPI definition of the struct.
 * @throws {StatusError} 400 if a value has the wrong type.
 */
export function decodeKind(
  definition: string,
  value: JsonObject,
): ReturnType<typeof decodeTyped> {
  try {
    return decodeTyped(goType(definition), value);
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(error.message);
    throw error;
  }
}
