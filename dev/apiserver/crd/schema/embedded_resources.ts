import type { ObjectMeta } from "@coracle/operator/client";
import {
  isJsonObject,
  type JsonObject,
  type OpenApiSchema,
  type StatusCause,
} from "@coracle/operator/internal";
import { fieldError } from "../../status.ts";
import {
  metadataProblems,
  typeProblems,
} from "../../validation/object_meta.ts";
import { visitSchema } from "./json_tree.ts";
import { childPath } from "../../validation/field_path.ts";
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
  const unknown: string[] = [];
  visitSchema(value, schema, path, (value, schema, path) => {
    if (!isEmbedded(value, schema)) return;
    unknown.push(...decodeMeta(value, path));
  }, childPath);
  return unknown.sort();
}

function isEmbedded(
  value: unknown,
  schema: OpenApiSchema,
): value is JsonObject {
  return schema["x-kubernetes-embedded-resource"] === true &&
    isJsonObject(value);
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
  const causes: StatusCause[] = [];
  visitSchema(value, schema, path, (value, schema, path) => {
    if (!isEmbedded(value, schema)) return;
    causes.push(...typeProblems(value, path));
    if (value.metadata === undefined) return;
    causes.push(...metaCauses(value.metadata, childPath(path, "metadata")));
  });
  return causes;
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
