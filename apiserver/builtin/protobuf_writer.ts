import { Buffer } from "node:buffer";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import type { Schema } from "../merge/schema.ts";
import { definitionOfKind, type GoField, goType } from "./go_types.ts";
import {
  JSON_SCHEMA,
  MAGIC,
  type MessageFields,
  messageFields,
  wireForm,
} from "./protobuf_fields.ts";
import { WireWriter } from "./wire_writer.ts";

/**
 * Encodes an object of a built-in kind as kube-apiserver does: a
 * `runtime.Unknown` with the message, after the magic number.
 *
 * @param object JSON tree with `apiVersion` and `kind`; the former may be absent
 * for documents of discovery.
 * @throws {TypeError} If the kind has no form in protobuf.
 */
export function writeProtobuf(object: JsonObject): Uint8Array {
  const { apiVersion = "", kind = "" } = object;
  const definition = definitionOfKind(String(apiVersion || "v1"), String(kind));
  if (definition === undefined) {
    throw new TypeError(
      `Cannot encode an object as protobuf: its kind has no such form: received ${apiVersion} ${kind}`,
    );
  }
  const writer = new WireWriter();
  writer.text(4, "");
  writer.text(3, "");
  writer.nest(2, () => writeMessage(writer, definition, object));
  writer.nest(1, () => {
    writer.text(2, String(kind));
    writer.text(1, String(apiVersion));
  });
  writer.raw(MAGIC);
  return writer.bytes;
}

/** Encodes the frame of a watch event: its length in four bytes, then the event. */
export function writeWatchEvent(type: string, object: JsonObject): Uint8Array {
  const writer = new WireWriter();
  writer.nest(2, () => writer.text(1, writeProtobuf(object)));
  writer.text(1, type);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, writer.length);
  writer.raw(length);
  return writer.bytes;
}

function writeMessage(
  writer: WireWriter,
  definition: string,
  object: JsonObject,
): void {
  writeFields(writer, messageFields(goType(definition)), object);
}

function writeFields(
  writer: WireWriter,
  fields: MessageFields,
  object: JsonObject,
): void {
  for (const { number, field } of fields.values()) {
    if ("name" in field) writeField(writer, number, { field, object });
    else writer.nest(number, () => writeFields(writer, field, object));
  }
}

function writeField(
  writer: WireWriter,
  number: number,
  { field, object }: { readonly field: GoField; readonly object: JsonObject },
): void {
  const { schema, presence, name } = field;
  const value = object[name];
  if (value === undefined || value === null) {
    const isPointer = presence === "pointer" || presence === "nullPointer";
    // A time that JSON omits when it is zero is a message nevertheless.
    if (presence === "struct" || !isPointer && wireForm(schema) === "time") {
      writeEmpty(writer, number, schema);
    } else if (!isPointer) writeZero(writer, number, schema);
    return;
  }
  if (wireForm(schema) === undefined) {
    const { items, additionalProperties: values } = schema;
    if (items !== undefined) {
      for (const item of [...value as unknown[]].reverse()) {
        writeValue(writer, number, { schema: items, value: item });
      }
      return;
    }
    if (values !== undefined) {
      const map = value as JsonObject;
      for (const key of Object.keys(map).sort(byBytes).reverse()) {
        writer.nest(number, () => {
          writeEntry(writer, values, map[key]);
          writer.text(1, key);
        });
      }
      return;
    }
  }
  writeValue(writer, number, { schema, value });
}

/** Compares texts by their UTF-8 bytes, as Go does. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Value of a map entry; a list is wrapped in a message. */
function writeEntry(writer: WireWriter, schema: Schema, value: unknown): void {
  const { items } = schema;
  if (items === undefined) writeValue(writer, 2, { schema, value });
  else {
    writer.nest(2, () => {
      for (const item of [...value as unknown[]].reverse()) {
        writeValue(writer, 1, { schema: items, value: item });
      }
    });
  }
}

/** Writes the zero value of a struct, as Go does for a field that is not a pointer. */
function writeEmpty(writer: WireWriter, number: number, schema: Schema): void {
  const form = wireForm(schema);
  if (form === "quantity" || form === "intOrString") {
    return writeValue(writer, number, { schema, value: 0 });
  }
  writer.nest(number, () => {
    if (form === undefined && schema.definition) {
      writeMessage(writer, schema.definition, {});
    }
  });
}

/** Writes the zero value of a scalar, as Go does for fields without a pointer. */
function writeZero(writer: WireWriter, number: number, schema: Schema): void {
  if (wireForm(schema) !== undefined) return;
  if (schema.type === "string") writer.text(number, "");
  else if (schema.type === "number") writer.double(number, 0);
  else if (schema.type === "integer" || schema.type === "boolean") {
    writer.number(number, 0);
  }
}

function writeValue(
  writer: WireWriter,
  number: number,
  { schema, value }: { readonly schema: Schema; readonly value: unknown },
): void {
  switch (wireForm(schema)) {
    case "quantity":
      return writer.nest(number, () => writer.text(1, String(value)));
    case "intOrString":
      return writer.nest(number, () => {
        const isText = typeof value === "string";
        writer.text(3, isText ? value : "");
        writer.number(2, isText ? 0 : Number(value));
        writer.number(1, isText ? 1 : 0);
      });
    case "time":
    case "microTime":
      return writer.nest(number, () => {
        if (typeof value !== "string") return;
        const [, micros = "0"] = /\.(\d{1,6})/.exec(value) ?? [];
        writer.number(2, Number(micros.padEnd(6, "0")) * 1000);
        writer.number(1, Math.floor(Date.parse(value) / 1000));
      });
    case "bytes":
      return writer.text(number, Buffer.from(String(value), "base64"));
    case "any":
      return writer.nest(number, () => {
        if (value !== null) writer.text(1, JSON.stringify(value));
      });
    case "empty":
      return writer.nest(number, () => {});
    case "schemaOrArray":
      return writer.nest(number, () => writeSchemas(writer, value));
    case "schemaOrTexts":
      return writer.nest(number, () => {
        if (isJsonObject(value)) writeSchema(writer, 1, value);
        else for (const one of texts(value)) writer.text(2, one);
      });
    case "schemaOrBool":
      return writer.nest(number, () => {
        if (isJsonObject(value)) writeSchema(writer, 2, value);
        writer.number(1, value === false ? 0 : 1);
      });
    case undefined:
      break;
  }
  switch (schema.type) {
    case "string":
      return writer.text(number, String(value));
    case "boolean":
      return writer.number(number, value === true ? 1 : 0);
    case "integer":
      return writer.number(number, Number(value));
    case "number":
      return writer.double(number, Number(value));
    default:
      return writer.nest(
        number,
        () => writeMessage(writer, schema.definition ?? "", asObject(value)),
      );
  }
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String).reverse() : [];
}

function writeSchemas(writer: WireWriter, value: unknown): void {
  if (!Array.isArray(value)) return writeSchema(writer, 1, value);
  for (const one of [...value].reverse()) writeSchema(writer, 2, one);
}

function writeSchema(writer: WireWriter, field: number, value: unknown): void {
  writer.nest(field, () => writeMessage(writer, JSON_SCHEMA, asObject(value)));
}
