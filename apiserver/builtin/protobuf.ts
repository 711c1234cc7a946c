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

/** Names of fields by number; an object stands for a struct that Go embeds. */
interface FieldNumbers {
  readonly [number: string]: string | FieldNumbers;
}

/** What every protobuf body of Kubernetes begins with. */
const MAGIC: readonly number[] = [0x6b, 0x38, 0x73, 0];

let numbers: Readonly<Record<string, FieldNumbers>> | undefined;

function numbersOf(type: GoType): FieldNumbers {
  numbers ??= JSON.parse(FIELD_NUMBERS) as Record<string, FieldNumbers>;
  const found = numbers[type.definition];
  if (found === undefined) throw malformed(`a ${type.name}`);
  return found;
}

/**
 * Reads a protobuf body, as typed Go clients such as kubectl's send built-in
 * kinds, into the tree that the same object is in JSON. Fields that are not
 * known are left out, as Go does.
 *
 * @param body The envelope with the object in it.
 * @throws {SyntaxError} If it is no such body, or its kind is not known.
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

/** What the fields of a message are read into. */
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

/** Lists and maps come item by item; of anything else the last counts. */
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

/** The value of a map's entry; a list in it has a message of its own. */
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

/** A time to the second or microsecond; null where none is set. */
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

/** Any JSON value, which travels as its own text. */
function readAny(bytes: Uint8Array): unknown {
  const json = wireText(wireFields(bytes).get(1));
  return json === "" ? null : JSON.parse(json);
}

function readDouble(bytes: Uint8Array): number {
  if (bytes.length !== 8) throw malformed(`${bytes.length} bytes for a double`);
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
}
