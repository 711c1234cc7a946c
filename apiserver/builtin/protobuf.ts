import { Buffer } from "node:buffer";
import type { JsonObject } from "../../core/patch/json_value.ts";
import type { Schema } from "../../core/patch/schema.ts";
import { FIELD_NUMBERS } from "./data/field_numbers.ts";
import {
  definitionOfKind,
  type GoType,
  goType,
  specialForm,
} from "./go_types.ts";
import {
  malformed,
  wireBytes,
  wireFields,
  wireNumber,
  WireReader,
  wireText,
} from "./wire_reader.ts";

/** JSON names of fields by field number; an object stands for a struct that Go embeds. */
interface FieldNumbers {
  readonly [number: string]: string | FieldNumbers;
}

/** First bytes of every protobuf body of Kubernetes (`k8s\0`). */
const MAGIC: readonly number[] = [0x6b, 0x38, 0x73, 0];

let numbers: Readonly<Record<string, FieldNumbers>> | undefined;

function numbersOf(type: GoType): FieldNumbers {
  numbers ??= JSON.parse(FIELD_NUMBERS) as Record<string, FieldNumbers>;
  const found = numbers[type.definition];
  if (found === undefined) throw malformed(`a ${type.name}`);
  return found;
}

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
  const definition = definitionOfKind(apiVersion, kind);
  if (definition === undefined) {
    throw malformed(`a kind that has none: ${apiVersion} ${kind}`);
  }
  const type = goType(definition);
  return { apiVersion, kind, ...readMessage(type, wireBytes(envelope.get(2))) };
}

function readMessage(type: GoType, bytes: Uint8Array): JsonObject {
  const object: JsonObject = {};
  readFields(bytes, { object, type, numbers: numbersOf(type) });
  return object;
}

/** Object into which the fields of a message are decoded. */
interface Target {
  readonly object: JsonObject;
  readonly type: GoType;
  readonly numbers: FieldNumbers;
}

function readFields(bytes: Uint8Array, target: Target): void {
  const { object, type } = target;
  const reader = new WireReader(bytes);
  for (let field = reader.next(); field; field = reader.next()) {
    const name = target.numbers[field.number];
    if (typeof name === "object") {
      readFields(wireBytes(field.value), { object, type, numbers: name });
      continue;
    }
    const schema = name && type.fields.get(name)?.schema;
    if (name && schema) readField(object, { name, schema, value: field.value });
  }
}

/** Decodes a field; repeated fields append to lists and maps, otherwise the last one wins. */
function readField(
  object: JsonObject,
  field: {
    readonly name: string;
    readonly schema: Schema;
    readonly value: number | Uint8Array;
  },
): void {
  const { name, schema, value } = field;
  if (specialForm(schema) === undefined) {
    if (schema.items !== undefined) {
      const list = (object[name] ??= []) as unknown[];
      list.push(readValue(schema.items, value));
      return;
    }
    if (schema.additionalProperties !== undefined) {
      const map = (object[name] ??= {}) as JsonObject;
      const entry = wireFields(wireBytes(value));
      Object.defineProperty(map, wireText(entry.get(1)), {
        value: readEntry(schema.additionalProperties, entry.get(2)),
        enumerable: true,
        configurable: true,
        writable: true,
      });
      return;
    }
  }
  object[name] = readValue(schema, value);
}

/** Value of a map entry; a list as the value is wrapped in a message. */
function readEntry(
  schema: Schema,
  value: number | Uint8Array | undefined,
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
  value: number | Uint8Array | undefined,
): unknown {
  switch (specialForm(schema)) {
    case "quantity":
      return wireText(wireFields(wireBytes(value)).get(1));
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
    case undefined:
      break;
  }
  switch (schema.type) {
    case "string":
      return wireText(value);
    case "boolean":
      return wireNumber(value) !== 0;
    case "integer":
      return wireNumber(value);
    case "number":
      return readDouble(wireBytes(value));
    default:
      return readMessage(goType(schema.definition ?? ""), wireBytes(value));
  }
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
  return json === "" ? null : JSON.parse(json);
}

function readDouble(bytes: Uint8Array): number {
  if (bytes.length !== 8) throw malformed(`${bytes.length} bytes for a double`);
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
