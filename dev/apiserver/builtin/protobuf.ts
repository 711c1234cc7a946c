import { Buffer } from "node:buffer";
import { type JsonObject, setOwn } from "@coracle/operator/internal";
import type { Schema } from "../merge/schema.ts";
import { decodeTyped } from "./decode.ts";
import {
  definitionOfKind,
  type GoField,
  type GoType,
  goType,
} from "./go_types.ts";
import {
  JSON_SCHEMA,
  MAGIC,
  type MessageFields,
  messageFields,
  wireForm,
} from "./protobuf_fields.ts";
import {
  malformed,
  wireBytes,
  wireFields,
  wireInteger,
  wireNumber,
  WireReader,
  wireText,
  type WireValue,
} from "./wire_reader.ts";
import { readJson } from "../exact_json.ts";

/**
 * Decodes a protobuf body of a built-in kind, as typed Go clients and kubectl
 * send it, into the JSON tree of the object. Unknown fields are dropped, as in
 * Go.
 *
 * @param body `runtime.Unknown` envelope with the object.
 * @throws {SyntaxError} If the body is malformed or its kind is unknown.
 */
export function readProtobuf(body: Uint8Array): JsonObject {
  if (MAGIC.some((byte, index) => body[index] !== byte)) {
    throw malformed("no magic number");
  }
  const envelope = wireFields(body.subarray(MAGIC.length));
  const meta = wireFields(wireBytes(envelope.get(1)));
  const apiVersion = wireText(meta.get(1));
  const kind = wireText(meta.get(2));
  // Go registers the options of a deletion in every group version.
  const group = kind === "DeleteOptions" ? "v1" : apiVersion;
  const definition = definitionOfKind(group, kind);
  if (definition === undefined) {
    throw malformed(`a kind that has none: ${apiVersion} ${kind}`);
  }
  const type = goType(definition);
  return { apiVersion, kind, ...readMessage(type, wireBytes(envelope.get(2))) };
}

function readMessage(type: GoType, bytes: Uint8Array): JsonObject {
  const object: JsonObject = {};
  readFields(bytes, object, messageFields(type));
  return object;
}

function readFields(
  bytes: Uint8Array,
  object: JsonObject,
  fields: MessageFields,
): void {
  const reader = new WireReader(bytes);
  for (let read = reader.next(); read; read = reader.next()) {
    const field = fields.get(read.number)?.field;
    if (field === undefined) continue;
    if ("name" in field) readField(object, field, read.value);
    else readFields(wireBytes(read.value), object, field);
  }
}

/** Decodes a field; repeated fields append to lists and maps, otherwise the last one wins. */
function readField(
  object: JsonObject,
  { name, schema }: GoField,
  value: WireValue,
): void {
  if (wireForm(schema) === undefined) {
    if (schema.items !== undefined) {
      const list = (object[name] ??= []) as unknown[];
      list.push(readValue(schema.items, value));
      return;
    }
    if (schema.additionalProperties !== undefined) {
      const map = (object[name] ??= {}) as JsonObject;
      const entry = wireFields(wireBytes(value));
      const item = readEntry(schema.additionalProperties, entry.get(2));
      setOwn(map, wireText(entry.get(1)), item);
      return;
    }
  }
  object[name] = readValue(schema, value);
}

/** Value of a map entry; a list as the value is wrapped in a message. */
function readEntry(
  schema: Schema,
  value: WireValue | undefined,
): unknown {
  if (schema.items === undefined) return readValue(schema, value);
  const list: unknown[] = [];
  const reader = new WireReader(wireBytes(value));
  for (let field = reader.next(); field; field = reader.next()) {
    if (field.number === 1) list.push(readValue(schema.items, field.value));
  }
  return list;
}

function readValue(
  schema: Schema,
  value: WireValue | undefined,
): unknown {
  switch (wireForm(schema)) {
    case "quantity":
      return wireText(wireFields(wireBytes(value)).get(1)) || "0";
    case "intOrString":
      return readIntOrString(wireBytes(value));
    case "time":
      return readTime(wireBytes(value), 0);
    case "microTime":
      return readTime(wireBytes(value), 6);
    case "bytes":
      return Buffer.from(wireBytes(value)).toString("base64");
    case "any":
      return readAny(wireBytes(value));
    case "empty":
      return {};
    case "schemaOrArray":
      return readSchemas(wireBytes(value), "schemas");
    case "schemaOrTexts":
      return readSchemas(wireBytes(value), "texts");
    case "schemaOrBool": {
      const fields = wireFields(wireBytes(value));
      return readSchema(fields.get(2)) ?? wireNumber(fields.get(1)) !== 0;
    }
    case undefined:
      break;
  }
  switch (schema.type) {
    case "string":
      return wireText(value);
    case "boolean":
      return wireNumber(value) !== 0;
    case "integer":
      return wireInteger(value);
    case "number":
      return readDouble(wireBytes(value));
    default:
      return readMessage(goType(schema.definition ?? ""), wireBytes(value));
  }
}

/** Reads the schema in a protobuf union, and leaves out fields that encode zero values. */
function readSchema(
  value: WireValue | undefined,
): JsonObject | undefined {
  if (value === undefined) return undefined;
  const type = goType(JSON_SCHEMA);
  return decodeTyped(type, readMessage(type, wireBytes(value))).object;
}

/** Schema, or a list of schemas or texts in its place. */
function readSchemas(bytes: Uint8Array, kind: "schemas" | "texts"): unknown {
  const list: unknown[] = [];
  let single: JsonObject | undefined;
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field; field = reader.next()) {
    const { number, value } = field;
    if (number === 1) single = readSchema(value);
    if (number === 2) {
      list.push(kind === "schemas" ? readSchema(value) : wireText(value));
    }
  }
  return list.length > 0 ? list : single ?? null;
}

function readIntOrString(bytes: Uint8Array): unknown {
  const fields = wireFields(bytes);
  return wireNumber(fields.get(1)) === 0
    ? wireNumber(fields.get(2))
    : wireText(fields.get(3));
}

/** Time with second or microsecond precision; null if unset. */
function readTime(bytes: Uint8Array, digits: 0 | 6): string | null {
  if (bytes.length === 0) return null;
  const fields = wireFields(bytes);
  const date = new Date(wireNumber(fields.get(1)) * 1000);
  if (Number.isNaN(date.getTime())) throw malformed("a time out of range");
  const seconds = date.toISOString().slice(0, 19);
  const micros = Math.floor(wireNumber(fields.get(2)) / 1000);
  return digits === 0
    ? `${seconds}Z`
    : `${seconds}.${String(micros).padStart(6, "0")}Z`;
}

/** Arbitrary JSON value, which is transferred as JSON text. */
function readAny(bytes: Uint8Array): unknown {
  const json = wireText(wireFields(bytes).get(1));
  return json === "" ? null : readJson(json);
}

function readDouble(bytes: Uint8Array): number {
  if (bytes.length !== 8) throw malformed(`${bytes.length} bytes for a double`);
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
