import type { UntypedObject } from "../../api/object.ts";
import { isJsonObject, type JsonObject } from "../../patch/json_value.ts";
import { MAX_BODY_BYTES, type ServerRequest } from "../http/exchange.ts";
import { badRequest, StatusError } from "../status.ts";
import { MAX_DEPTH, notJson, type ParsedJson, parseJson } from "./json_body.ts";

const decoder = new TextDecoder();

/** The media type of a body, without its parameters. */
export function mediaType(request: ServerRequest): string {
  return (request.headers["content-type"] ?? "").split(";")[0]?.trim()
    .toLowerCase() ?? "";
}

/** 415: the body is in no form that is read here. */
export function unsupportedMediaType(
  accepted: readonly string[],
): StatusError {
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
 * Checks that a body was not too long to be read.
 *
 * @throws {StatusError} 413 if it was.
 */
export function checkBodySize(body: Uint8Array): void {
  if (body.length <= MAX_BODY_BYTES) return;
  throw new StatusError({
    code: 413,
    reason: "RequestEntityTooLarge",
    message: `Request entity too large: limit is ${MAX_BODY_BYTES}`,
  });
}

/** What a body is written in. */
export type BodyForm = "json" | "yaml" | "protobuf";

/**
 * Parses a body.
 *
 * @throws {SyntaxError} If it is not what its form says.
 */
export async function parseBody(
  body: Uint8Array,
  form: BodyForm,
): Promise<ParsedJson> {
  if (form === "json") return parseJson(body);
  if (form === "protobuf") {
    const { readProtobuf } = await import("../builtin/protobuf.ts");
    return { value: readProtobuf(body), duplicates: [] };
  }
  return await parseYaml(decoder.decode(body));
}

async function parseYaml(text: string): Promise<ParsedJson> {
  // Most of what is sent as YAML is JSON, which needs no library.
  if (/^\s*[{[]/.test(text)) {
    try {
      return parseJson(new TextEncoder().encode(text));
    } catch {
      // Flow mappings begin with the same brackets.
    }
  }
  const { isMap, isScalar, parseDocument, visit } = await import("yaml");
  const document = parseDocument(text, {
    uniqueKeys: false,
    schema: "yaml-1.1",
    merge: true,
    customTags: (tags) => tags.filter((tag) => tag !== "timestamp"),
  });
  const [error] = document.errors;
  if (error) throw new SyntaxError(error.message.split("\n")[0]);
  const duplicates = new Set<string>();
  visit(document, {
    Map(_, map, path) {
      const names = new Set<unknown>();
      if (path.length > MAX_DEPTH * 2) {
        throw notJson("exceeded max depth");
      }
      for (const { key } of map.items) {
        const name = isScalar(key) ? key.value : key;
        if (names.has(name) && isMap(map)) duplicates.add(String(name));
        names.add(name);
      }
    },
  });
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  // Keys that are no texts become ones, as in JSON.
  return {
    value: JSON.parse(JSON.stringify(value ?? null)),
    duplicates: [...duplicates],
  };
}

/** What Go says of the first bytes of something that it cannot read. */
export function summary(body: Uint8Array): string {
  if (body.length === 0) return "<empty>";
  const part = body.subarray(0, 30);
  const shown = body[0] === 0x7b
    ? decoder.decode(part)
    : [...part].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return body.length > 30 ? `${shown} ...` : shown;
}

/** A value as a tree that may be an object of Kubernetes: with metadata. */
export function asObject(value: JsonObject): UntypedObject {
  const { metadata } = value;
  if (metadata === undefined || metadata === null) {
    return { ...value, metadata: {} } as unknown as UntypedObject;
  }
  if (!isJsonObject(metadata)) {
    throw badRequest(
      `json: cannot unmarshal ${typeof metadata} into Go struct field .metadata of type v1.ObjectMeta`,
    );
  }
  return value as unknown as UntypedObject;
}
