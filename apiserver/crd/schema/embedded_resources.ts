import type { StatusCause } from "../../../core/api/api_error.ts";
import type { ObjectMeta } from "../../../core/api/object.ts";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import {
  isJsonObject,
  type JsonObject,
} from "../../../core/patch/json_value.ts";
import { label1035Problems } from "../../validation/names.ts";
import { fieldError } from "../../status.ts";
import { metadataProblems } from "../../validation/object_meta.ts";
import { fieldSchema } from "./correlation.ts";
import { childPath, keyPath } from "../../validation/field_path.ts";
import { DecodeError, decodeObjectMeta } from "../../builtin/decode.ts";

/**
 * Decodes the `metadata` of every embedded resource in an object, in place;
 * drops unknown fields and empty values.
 *
 * @returns Paths of the unknown fields in alphabetical order.
 * @throws {DecodeError} If a value has the wrong type; the message contains
 * its path.
 */
export function decodeEmbedded(
  value: unknown,
  schema: OpenApiSchema | undefined,
  path = "",
): string[] {
  if (schema === undefined) return [];
  if (Array.isArray(value)) {
    return value.flatMap((item, index) =>
      decodeEmbedded(item, schema.items, keyPath(path, index))
    );
  }
  if (!isJsonObject(value)) return [];
  const unknown = schema["x-kubernetes-embedded-resource"]
    ? decodeMeta(value, path)
    : [];
  for (const [name, field] of Object.entries(value)) {
    unknown.push(
      ...decodeEmbedded(
        field,
        fieldSchema(schema, name),
        childPath(path, name),
      ),
    );
  }
  return unknown.sort();
}

function decodeMeta(object: JsonObject, path: string): string[] {
  for (const name of ["apiVersion", "kind"]) {
    if (Object.hasOwn(object, name) && typeof object[name] !== "string") {
      const cause = fieldError.invalid(
        childPath(path, name),
        object[name],
        "must be a string",
      );
      throw new DecodeError(`${cause.field}: ${cause.message}`);
    }
  }
  if (!Object.hasOwn(object, "metadata")) return [];
  const metadataPath = childPath(path, "metadata");
  try {
    const { metadata, unknown } = decodeObjectMeta(object.metadata);
    object.metadata = metadata;
    return unknown.map((name) => `${metadataPath}.${name}`);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    const cause = fieldError.invalid(
      metadataPath,
      object.metadata,
      error.message,
    );
    throw new DecodeError(`${cause.field}: ${cause.message}`);
  }
}

/** Validates the embedded resources in a value; returns the violations. */
export function embeddedCauses(
  value: unknown,
  schema: OpenApiSchema | undefined,
  path = "",
): StatusCause[] {
  if (schema === undefined) return [];
  if (Array.isArray(value)) {
    return value.flatMap((item, index) =>
      embeddedCauses(item, schema.items, keyPath(path, index))
    );
  }
  if (!isJsonObject(value)) return [];
  const causes = schema["x-kubernetes-embedded-resource"]
    ? resourceCauses(value, path)
    : [];
  for (const [name, field] of Object.entries(value)) {
    const named = Object.hasOwn(schema.properties ?? {}, name);
    const at = named ? childPath(path, name) : keyPath(path, name);
    causes.push(...embeddedCauses(field, fieldSchema(schema, name), at));
  }
  return causes;
}

function resourceCauses(object: JsonObject, path: string): StatusCause[] {
  const { apiVersion, kind, metadata } = object;
  const at = (name: string) => childPath(path, name);
  const causes = [
    ...textCauses(apiVersion, at("apiVersion")),
    ...textCauses(kind, at("kind")),
  ];
  if (typeof apiVersion === "string" && apiVersion.split("/").length > 2) {
    causes.push(fieldError.invalid(
      at("apiVersion"),
      apiVersion,
      `unexpected GroupVersion string: ${apiVersion}`,
    ));
  }
  if (typeof kind === "string" && kind !== "") {
    const problems = label1035Problems(kind.toLowerCase());
    if (problems.length > 0) {
      causes.push(fieldError.invalid(
        at("kind"),
        kind,
        `may have mixed case, but should otherwise match: ${
          problems.join(",")
        }`,
      ));
    }
  }
  return metadata === undefined
    ? causes
    : [...causes, ...metaCauses(metadata, at("metadata"))];
}

function textCauses(value: unknown, field: string): StatusCause[] {
  if (value === undefined) {
    return [fieldError.required(field)];
  }
  if (typeof value !== "string") {
    return [fieldError.invalid(field, value, "must be a string")];
  }
  return value === ""
    ? [fieldError.invalid(field, value, "must not be empty")]
    : [];
}

function metaCauses(metadata: unknown, path: string): StatusCause[] {
  let decoded: ObjectMeta;
  try {
    decoded = decodeObjectMeta(metadata).metadata as unknown as ObjectMeta;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return [fieldError.invalid(path, metadata, error.message)];
  }
  const named = { ...decoded, name: decoded.name || "fakename" };
  return metadataProblems(named, {
    nameRule: "path-segment",
    scope: decoded.namespace ? "Namespaced" : "Cluster",
    custom: false,
  }).map((cause) => ({
    ...cause,
    field: cause.field?.replace(/^metadata/, path),
  }));
}
