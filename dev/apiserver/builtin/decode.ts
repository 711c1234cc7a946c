import type { Quantity } from "@coracle/operator/client";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { Schema } from "../merge/schema.ts";
import { parseQuantity } from "../validation/quantity_text.ts";
import { goJsonType } from "../validation/go_value.ts";
import { type GoField, type GoType, goType, specialForm } from "./go_types.ts";
import { isFloat, isInteger, isNumber, takeFloats } from "../exact_json.ts";

/** Error of a body that cannot be decoded into its kind. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

/** Path to a value as a linked list of steps; formatted only for messages. */
interface FieldStep {
  readonly parent: FieldStep | undefined;
  /** Name of a field, or index of an item. */
  readonly step: string | number;
  /** Struct of the field; undefined for items and map entries. */
  readonly struct: string | undefined;
}

function pathText(at: FieldStep | undefined): string {
  if (at === undefined) return "";
  const parent = pathText(at.parent);
  if (typeof at.step === "number") return `${parent}[${at.step}]`;
  return parent === "" ? at.step : `${parent}.${at.step}`;
}

/** Path of struct fields as Go's decoder writes it. */
function goFieldPath(at: FieldStep): string {
  const fields: string[] = [];
  let struct = "";
  for (let up: FieldStep | undefined = at; up !== undefined; up = up.parent) {
    if (up.struct === undefined) continue;
    fields.unshift(String(up.step));
    struct ||= up.struct;
  }
  return `${struct}.${fields.join(".")}`;
}

/**
 * Decodes a JSON tree as Go decodes it into a struct and encodes it again:
 * known fields only, in the order of the struct, with canonical values; empty
 * optional fields are omitted, and absent required structs become empty ones.
 *
 * @returns Decoded object, and a message for each unknown field.
 * @throws {DecodeError} If a value has the wrong type.
 */
export function decodeTyped(
  type: GoType,
  body: unknown,
): { object: JsonObject; problems: string[] } {
  if (!isJsonObject(body)) throw wrongType(body, undefined, "Go value");
  const unknown: string[] = [];
  const object = decodeStruct(type, body, undefined, unknown);
  return { object, problems: unknown.map((path) => `unknown field "${path}"`) };
}

/**
 * Decodes the `metadata` of a custom or embedded resource.
 *
 * @returns Decoded metadata, and the paths of unknown fields in alphabetical order.
 * @throws {DecodeError} If a value has the wrong type.
 */
export function decodeObjectMeta(
  metadata: unknown,
): { metadata: JsonObject; unknown: string[] } {
  const type = goType("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
  const given = metadata ?? {};
  if (!isJsonObject(given)) throw wrongType(given, undefined, "v1.ObjectMeta");
  const unknown: string[] = [];
  const decoded = decodeStruct(type, given, undefined, unknown);
  return { metadata: decoded, unknown: unknown.sort() };
}

/** Struct with no field set. */
export function emptyStruct(type: GoType): JsonObject {
  return decodeStruct(type, {}, undefined, []);
}

function decodeStruct(
  type: GoType,
  value: JsonObject,
  at: FieldStep | undefined,
  unknown: string[],
): JsonObject {
  const decoded = new Map<string, unknown>();
  // In document order, which is the order of the reported unknown fields.
  for (const [name, given] of Object.entries(value)) {
    const field = type.fields.get(name);
    const here = { parent: at, step: name, struct: type.name };
    if (field === undefined) {
      unknown.push(pathText(here));
    } else if (given !== null && given !== undefined) {
      decoded.set(name, decodeValue(field.schema, given, here, unknown));
    }
  }
  const result: JsonObject = {};
  for (const field of type.fields.values()) {
    const written = writeField(field, decoded.get(field.name));
    if (written !== undefined) result[field.name] = written;
  }
  return result;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === "" || value === 0 ||
    value === false ||
    typeof value === "object" && value !== null &&
      Object.keys(value).length === 0;
}

function writeField(field: GoField, value: unknown): unknown {
  switch (field.presence) {
    case "omitted":
      return isEmpty(value) ? undefined : value;
    case "pointer":
      return value;
    case "nullPointer":
      return value ?? null;
    case "struct":
      return value ?? zeroOf(field.schema);
    case "always":
      return value ?? zeroOf(field.schema);
  }
}

/** Zero value of an unset field that is always written. */
function zeroOf(schema: Schema): unknown {
  switch (specialForm(schema)) {
    case "quantity":
      return "0";
    case "intOrString":
      return 0;
    case undefined:
      break;
    default:
      return null;
  }
  switch (schema.type) {
    case "string":
      return "";
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "object":
      return schema.properties.size > 0 && schema.definition !== undefined
        ? emptyStruct(goType(schema.definition))
        : null;
    default:
      return null;
  }
}

function decodeValue(
  schema: Schema,
  value: unknown,
  at: FieldStep,
  unknown: string[],
): unknown {
  const special = specialForm(schema);
  if (isFloat(value)) {
    const type = special === "intOrString"
      ? "int32"
      : special === undefined && schema.type === "integer"
      ? schema.format ?? "int64"
      : undefined;
    if (type !== undefined) {
      throw wrongType(value, at, type, `number ${value.description}`);
    }
    if (special !== "quantity") value = Number(value.description);
  }
  switch (special) {
    case "quantity":
      return decodeQuantity(value).toString();
    case "intOrString":
      if (typeof value === "string") return value;
      return decodeInteger("int32", value, at);
    case "time":
    case "microTime":
      return decodeMoment(value, at, special);
    case "bytes":
      return decodeBytes(value, at);
    case "any":
      takeFloats(value);
      return value;
  }
  switch (schema.type) {
    case "array":
      return decodeList(schema, value, at, unknown);
    case "object":
      return decodeObject(schema, value, at, unknown);
    case "string":
      if (typeof value === "string") return value;
      throw wrongType(value, at, "string");
    case "boolean":
      if (typeof value === "boolean") return value;
      throw wrongType(value, at, "bool");
    case "integer":
      return decodeInteger(schema.format, value, at);
    default:
      if (isNumber(value)) return Number(value);
      throw wrongType(value, at, "float64");
  }
}

function decodeObject(
  schema: Schema,
  value: unknown,
  at: FieldStep,
  unknown: string[],
): JsonObject {
  const entries = schema.additionalProperties;
  if (!isJsonObject(value)) {
    throw wrongType(value, at, entries ? "map[string]string" : goName(schema));
  }
  if (entries === undefined) {
    return decodeStruct(goType(schema.definition ?? ""), value, at, unknown);
  }
  const isResources = specialForm(entries) === "quantity";
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [
      name,
      entry === null
        ? zeroOf(entries)
        : isResources
        ? decodeQuantity(entry).roundUpToMilli().toString()
        : decodeValue(
          entries,
          entry,
          { parent: at, step: name, struct: undefined },
          unknown,
        ),
    ]),
  );
}

function decodeList(
  schema: Schema,
  value: unknown,
  at: FieldStep,
  unknown: string[],
): unknown[] {
  const { items } = schema;
  if (!Array.isArray(value) || items === undefined) {
    throw wrongType(value, at, `[]${goName(items)}`);
  }
  return value.map((item, index) =>
    item === null ? zeroOf(items) : decodeValue(
      items,
      item,
      { parent: at, step: index, struct: undefined },
      unknown,
    )
  );
}

/** Name of a type in Go's messages, such as `v1.PodSpec`. */
function goName({ definition, type }: Partial<Schema> = {}): string {
  return definition?.split(".").slice(-2).join(".") ?? type ?? "interface {}";
}

const INTEGER_LIMITS: Readonly<Record<string, number>> = {
  int32: 2 ** 31,
  int64: 2 ** 63,
};

function decodeInteger(
  type = "int64",
  value: unknown,
  at: FieldStep,
): number | bigint {
  const limit = INTEGER_LIMITS[type] ?? 2 ** 63;
  if (isInteger(value) && value < limit && value >= -limit) return value;
  const shown = isNumber(value) ? `number ${value}` : undefined;
  throw wrongType(value, at, type, shown);
}

function decodeQuantity(value: unknown): Quantity {
  const text = isFloat(value)
    ? value.description
    : isNumber(value)
    ? String(value)
    : value;
  try {
    return parseQuantity(typeof text === "string" ? text.trim() : "");
  } catch (error) {
    throw new DecodeError((error as Error).message);
  }
}

function decodeMoment(
  value: unknown,
  at: FieldStep,
  form: "time" | "microTime",
): string {
  if (typeof value !== "string") throw wrongType(value, at, "string");
  const moment = decodeTime(value, form);
  if ("problem" in moment) throw new DecodeError(moment.problem);
  return moment.text;
}

const BASE64 =
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function decodeBytes(value: unknown, at: FieldStep): string {
  if (typeof value !== "string") throw wrongType(value, at, "[]uint8");
  const text = value.replace(/[\r\n]/g, "");
  if (BASE64.test(text)) return text;
  const wrong = text.search(/[^A-Za-z0-9+/]/);
  throw new DecodeError(
    `illegal base64 data at input byte ${wrong < 0 ? text.length : wrong}`,
  );
}

function wrongType(
  value: unknown,
  at: FieldStep | undefined,
  type: string,
  shown: string = goJsonType(value),
): DecodeError {
  const where = at === undefined
    ? "Go value"
    : `Go struct field ${goFieldPath(at)}`;
  return new DecodeError(
    `json: cannot unmarshal ${shown} into ${where} of type ${type}`,
  );
}

const LAYOUTS = {
  time: "2006-01-02T15:04:05Z07:00",
  microTime: "2006-01-02T15:04:05.000000Z07:00",
} as const;

const MOMENT =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})$/;

/**
 * Parses a time as Go does and formats it as the server does: in UTC, with
 * second or microsecond precision.
 *
 * @returns Formatted time, or the problem with Go's message.
 */
function decodeTime(
  text: string,
  form: "time" | "microTime",
): { text: string } | { problem: string } {
  const match = MOMENT.exec(text);
  const [, , , , , , , fraction = "", zone] = match ?? [];
  const seconds = text.slice(0, 19);
  const time = match ? Date.parse(`${seconds}${zone}`) : NaN;
  // Date.parse accepts days that Go rejects, such as February 30.
  const day = Number(match?.[3]);
  const inMonth = new Date(Date.parse(`${seconds}Z`)).getUTCDate() === day;
  const needsFraction = form === "microTime" && fraction.length !== 6;
  if (Number.isNaN(time) || !inMonth || needsFraction) {
    return { problem: parseProblem(text, form) };
  }
  const utc = new Date(time).toISOString().slice(0, 19);
  return {
    text: form === "time"
      ? `${utc}Z`
      : `${utc}.${fraction.slice(0, 6).padEnd(6, "0")}Z`,
  };
}

function parseProblem(text: string, form: "time" | "microTime"): string {
  const shown = JSON.stringify(text);
  return `parsing time ${shown} as "${
    LAYOUTS[form]
  }": cannot parse ${shown} as "2006"`;
}
