import { Buffer } from "node:buffer";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { Schema } from "../merge/schema.ts";
import { definitionOfKind, type GoField, goType } from "./go_types.ts";
import {
  JSON_SCHEMA,
  MAGIC,
  type MessageFields,
  messageFields,
  type WireForm,
  wireForm,
} from "./protobuf_fields.ts";
import { WireWriter } from "./wire_writer.ts";
import { writeJson } from "../exact_json.ts";

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
  const writer = new ObjectWriter();
  writer.text(4, "");
  writer.text(3, "");
  writer.nest(2, () => writer.message(definition, object));
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

/** Writer of the messages of built-in kinds, by the fields of their Go types. */
class ObjectWriter extends WireWriter {
  message(definition: string, object: JsonObject): void {
    this.#fields(messageFields(goType(definition)), object);
  }

  #fields(fields: MessageFields, object: JsonObject): void {
    for (const { number, field } of fields.values()) {
      if ("name" in field) this.#field(number, field, object[field.name]);
      else this.nest(number, () => this.#fields(field, object));
    }
  }

  #field(number: number, { schema, presence }: GoField, value: unknown): void {
    if (value === undefined || value === null) {
      const isPointer = presence === "pointer" || presence === "nullPointer";
      // A time that JSON omits when it is zero is a message nevertheless.
      if (presence === "struct" || !isPointer && wireForm(schema) === "time") {
        this.#empty(number, schema);
      } else if (!isPointer) this.#zero(number, schema);
      return;
    }
    const { items, additionalProperties: values } = schema;
    const isPlain = wireForm(schema) === undefined;
    if (isPlain && items !== undefined) this.#items(number, items, value);
    else if (isPlain && values !== undefined) {
      const map = value as JsonObject;
      for (const key of Object.keys(map).sort(byBytes).reverse()) {
        this.nest(number, () => {
          this.#entry(values, map[key]);
          this.text(1, key);
        });
      }
    } else this.#value(number, schema, value);
  }

  #items(number: number, schema: Schema, list: unknown): void {
    for (const item of [...list as unknown[]].reverse()) {
      this.#value(number, schema, item);
    }
  }

  /** Writes the value of a map entry; a list is wrapped in a message. */
  #entry(schema: Schema, value: unknown): void {
    const { items } = schema;
    if (items === undefined) this.#value(2, schema, value);
    else this.nest(2, () => this.#items(1, items, value));
  }

  /** Writes the zero value of a struct, as Go does for a field that is not a pointer. */
  #empty(number: number, schema: Schema): void {
    const form = wireForm(schema);
    if (form === "quantity" || form === "intOrString") {
      return this.#value(number, schema, 0);
    }
    this.nest(number, () => {
      if (form === undefined && schema.definition) {
        this.message(schema.definition, {});
      }
    });
  }

  /** Writes the zero value of a scalar, as Go does for fields without a pointer. */
  #zero(number: number, schema: Schema): void {
    if (wireForm(schema) !== undefined) return;
    if (schema.type === "string") this.text(number, "");
    else if (schema.type === "number") this.double(number, 0);
    else if (schema.type === "integer" || schema.type === "boolean") {
      this.number(number, 0);
    }
  }

  #value(number: number, schema: Schema, value: unknown): void {
    const form = wireForm(schema);
    if (form === "bytes") {
      return this.text(number, Buffer.from(String(value), "base64"));
    }
    if (form !== undefined) {
      return this.nest(number, () => this.#special(form, value));
    }
    switch (schema.type) {
      case "string":
        return this.text(number, String(value));
      case "boolean":
        return this.number(number, value === true ? 1 : 0);
      case "integer":
        return this.number(
          number,
          typeof value === "bigint" ? value : Number(value),
        );
      case "number":
        return this.double(number, Number(value));
      default:
        return this.nest(
          number,
          () => this.message(schema.definition ?? "", asObject(value)),
        );
    }
  }

  /** Writes the content of a message whose form does not follow from the schema. */
  #special(form: WireForm, value: unknown): void {
    switch (form) {
      case "quantity":
        return this.text(1, String(value));
      case "intOrString": {
        const isText = typeof value === "string";
        this.text(3, isText ? value : "");
        this.number(2, isText ? 0 : Number(value));
        return this.number(1, isText ? 1 : 0);
      }
      case "time":
      case "microTime": {
        if (typeof value !== "string") return;
        const [, micros = "0"] = /\.(\d{1,6})/.exec(value) ?? [];
        this.number(2, Number(micros.padEnd(6, "0")) * 1000);
        return this.number(1, Math.floor(Date.parse(value) / 1000));
      }
      case "any":
        if (value !== null) this.text(1, writeJson(value));
        return;
      case "schemaOrArray":
        if (!Array.isArray(value)) return this.#schema(1, value);
        for (const one of [...value].reverse()) this.#schema(2, one);
        return;
      case "schemaOrTexts":
        if (isJsonObject(value)) this.#schema(1, value);
        else for (const one of texts(value)) this.text(2, one);
        return;
      case "schemaOrBool":
        if (isJsonObject(value)) this.#schema(2, value);
        return this.number(1, value === false ? 0 : 1);
    }
  }

  #schema(field: number, value: unknown): void {
    this.nest(field, () => this.message(JSON_SCHEMA, asObject(value)));
  }
}

/** Compares texts by their UTF-8 bytes, as Go does. */
function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String).reverse() : [];
}
