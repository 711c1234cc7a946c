import {
  isJsonObject,
  type JsonObject,
} from "../../../core/patch/json_value.ts";
import { timestamp } from "../../../core/api/timestamp.ts";
import { goJsonType } from "../../validation/go_value.ts";

/** Error of a value that cannot be decoded, with the message of Go's JSON library. */
export class DecodingError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DecodingError";
  }
}

/** Go type of a field of ObjectMeta. */
interface MetaField {
  /** Name of the Go type in messages. */
  readonly type: string;
  /** Fields of the struct, or of the structs in the list. */
  readonly fields?: Readonly<Record<string, MetaField>>;
  /** Whether an empty value is kept (no `omitempty`). */
  readonly keepsEmpty?: boolean;
}

const STRING: MetaField = { type: "string" };
const KEPT_STRING: MetaField = { type: "string", keepsEmpty: true };
const POINTER_BOOL: MetaField = { type: "bool", keepsEmpty: true };
const TIME: MetaField = { type: "v1.Time" };

const OBJECT_META: Readonly<Record<string, MetaField>> = {
  name: STRING,
  generateName: STRING,
  namespace: STRING,
  selfLink: STRING,
  uid: { type: "types.UID" },
  resourceVersion: STRING,
  generation: { type: "int64" },
  creationTimestamp: TIME,
  deletionTimestamp: TIME,
  deletionGracePeriodSeconds: { type: "int64", keepsEmpty: true },
  labels: { type: "map[string]string" },
  annotations: { type: "map[string]string" },
  ownerReferences: {
    type: "[]v1.OwnerReference",
    fields: {
      apiVersion: KEPT_STRING,
      kind: KEPT_STRING,
      name: KEPT_STRING,
      uid: { type: "types.UID", keepsEmpty: true },
      controller: POINTER_BOOL,
      blockOwnerDeletion: POINTER_BOOL,
    },
  },
  finalizers: { type: "[]string" },
  managedFields: {
    type: "[]v1.ManagedFieldsEntry",
    fields: {
      manager: STRING,
      operation: { type: "v1.ManagedFieldsOperationType" },
      apiVersion: STRING,
      time: TIME,
      fieldsType: STRING,
      fieldsV1: { type: "v1.FieldsV1" },
      subresource: STRING,
    },
  },
};

/** JSON types by Go type. */
const JSON_TYPES: Readonly<Record<string, string>> = {
  "string": "string",
  "types.UID": "string",
  "v1.ManagedFieldsOperationType": "string",
  "v1.Time": "string",
  "int64": "number",
  "bool": "bool",
  "map[string]string": "object",
  "v1.FieldsV1": "object",
};

/** Decoded `metadata`. */
export interface DecodedMeta {
  readonly metadata: JsonObject;
  /** Dotted paths of the fields unknown to ObjectMeta, in alphabetical order. */
  readonly unknown: readonly string[];
}

/**
 * Decodes the `metadata` of a custom or embedded resource as Go decodes
 * ObjectMeta; drops unknown fields and empty values.
 *
 * @throws {DecodingError} If a value has the wrong type.
 */
export function decodeObjectMeta(metadata: unknown): DecodedMeta {
  const unknown: string[] = [];
  if (metadata === null) return { metadata: {}, unknown };
  if (!isJsonObject(metadata)) {
    throw new DecodingError(
      `json: cannot unmarshal ${
        goJsonType(metadata)
      } into Go value of type v1.ObjectMeta`,
    );
  }
  const decoded = decodeStruct(metadata, OBJECT_META, {
    struct: "ObjectMeta",
    path: "",
    unknown,
  });
  return { metadata: decoded, unknown: unknown.sort() };
}

/** Path of the value being decoded, with the list of unknown fields found. */
interface MetaPath {
  readonly struct: string;
  /** Path in `metadata`, as in Go's messages. */
  readonly path: string;
  readonly unknown: string[];
}

function decodeStruct(
  source: JsonObject,
  fields: Readonly<Record<string, MetaField>>,
  at: MetaPath,
): JsonObject {
  const result: JsonObject = {};
  for (const [name, field] of Object.entries(fields)) {
    if (field.keepsEmpty && JSON_TYPES[field.type] === "string") {
      result[name] = "";
    }
  }
  for (const [name, value] of Object.entries(source)) {
    const path = at.path === "" ? name : `${at.path}.${name}`;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) at.unknown.push(path);
    else if (value !== null) {
      const decoded = decodeField(value, field, { ...at, path });
      if (field.keepsEmpty || !isEmpty(decoded)) result[name] = decoded;
    }
  }
  return result;
}

function decodeField(value: unknown, field: MetaField, at: MetaPath): unknown {
  const { type, fields } = field;
  if (type.startsWith("[]")) {
    if (!Array.isArray(value)) throw mismatch(value, type, at);
    return value.map((item: unknown, index) =>
      fields === undefined
        ? scalar(item, "string", at)
        : decodeStruct(struct(item, type.slice(2), at), fields, {
          struct: type.replace("[]v1.", ""),
          path: `${at.path}[${index}]`,
          unknown: at.unknown,
        })
    );
  }
  const decoded = scalar(value, type, at);
  if (type === "map[string]string") {
    return Object.fromEntries(
      Object.entries(decoded as JsonObject).map(([key, entry]) =>
        [key, entry === null ? "" : scalar(entry, "string", at)] as const
      ),
    );
  }
  if (type === "v1.Time") return decodeTime(String(decoded));
  return decoded;
}

function struct(value: unknown, type: string, at: MetaPath): JsonObject {
  if (value === null) return {};
  if (!isJsonObject(value)) throw mismatch(value, type, at);
  return value;
}

function scalar(value: unknown, type: string, at: MetaPath): unknown {
  const jsonType = goJsonType(value);
  if (jsonType !== JSON_TYPES[type]) throw mismatch(value, type, at);
  if (type === "int64" && !Number.isInteger(value)) {
    throw mismatch(value, type, at, `number ${String(value)}`);
  }
  return value;
}

function mismatch(
  value: unknown,
  type: string,
  at: MetaPath,
  jsonType: string = goJsonType(value),
): DecodingError {
  const field = at.path.replace(/\[\d+\]/g, "");
  return new DecodingError(
    `json: cannot unmarshal ${jsonType} into Go struct field ${at.struct}.${field} of type ${type}`,
  );
}

function isEmpty(value: unknown): boolean {
  if (typeof value === "object" && value !== null) {
    return Object.keys(value).length === 0;
  }
  return value === "" || value === 0 || value === false;
}

const RFC3339_REGEXP =
  /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Decodes a time to UTC with second precision. */
function decodeTime(text: string): string {
  const time = Date.parse(text);
  if (!RFC3339_REGEXP.test(text) || Number.isNaN(time)) {
    const shown = JSON.stringify(text);
    throw new DecodingError(
      `parsing time ${shown} as "2006-01-02T15:04:05Z07:00": cannot parse ${shown} as "2006"`,
    );
  }
  return timestamp(time);
}
