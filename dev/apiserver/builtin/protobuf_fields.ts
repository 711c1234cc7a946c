import type { Schema } from "../merge/schema.ts";
import { FIELD_NUMBERS } from "./data/field_numbers.ts";
import type { GoField, GoType, SpecialForm } from "./go_types.ts";
import { specialForm } from "./go_types.ts";
import { malformed } from "./wire_reader.ts";

/** JSON names of fields by field number; an object stands for a nested struct. */
interface FieldNumbers {
  readonly [number: string]: string | FieldNumbers;
}

/**
 * Field of a message: a field of the JSON object, or a nested message with some
 * of the object's fields, for an embedded Go struct or a list with its own
 * type.
 */
export interface MessageField {
  readonly number: number;
  readonly field: GoField | MessageFields;
}

/** Fields of a message by number, in descending order: that of the encoded message. */
export type MessageFields = ReadonlyMap<number, MessageField>;

/** First bytes of every protobuf body of Kubernetes (`k8s\0`). */
export const MAGIC: Uint8Array = Uint8Array.of(0x6b, 0x38, 0x73, 0);

let numbers: Readonly<Record<string, string | FieldNumbers>> | undefined;
const MESSAGES: Map<string, MessageFields> = new Map();

/**
 * Fields of the message of a struct.
 *
 * @throws {SyntaxError} If the struct has no form in protobuf.
 */
export function messageFields(type: GoType): MessageFields {
  let fields = MESSAGES.get(type.definition);
  if (fields === undefined) {
    numbers ??= JSON.parse(FIELD_NUMBERS) as typeof numbers;
    const found = numbers?.[type.definition];
    if (found === undefined) throw malformed(`a ${type.name}`);
    fields = fieldsOf(
      type,
      typeof found === "string" ? namesByNumber(type, found) : found,
    );
    MESSAGES.set(type.definition, fields);
  }
  return fields;
}

/** Names by number, from the numbers in the order of the names; empty for none. */
function namesByNumber(type: GoType, numbers: string): FieldNumbers {
  const inOrder = numbers.split(" ");
  const names = [...type.fields.keys()].sort();
  return Object.fromEntries(
    names.flatMap((name, index) =>
      inOrder[index] ? [[inOrder[index], name]] : []
    ),
  );
}

function fieldsOf(type: GoType, numbers: FieldNumbers): MessageFields {
  const fields = new Map<number, MessageField>();
  for (const [key, name] of Object.entries(numbers).reverse()) {
    const field = typeof name === "object"
      ? fieldsOf(type, name)
      : type.fields.get(name);
    const number = Number(key);
    if (field !== undefined) fields.set(number, { number, field });
  }
  return fields;
}

/**
 * Form of a value on the wire: a special form, a struct without fields
 * (`empty`), or a union of the schemas of CustomResourceDefinitions; undefined
 * if the schema determines it.
 */
export type WireForm = SpecialForm | "empty" | SchemaUnion | undefined;

/** Union message with a schema or another value. */
export type SchemaUnion = "schemaOrArray" | "schemaOrBool" | "schemaOrTexts";

const APIEXTENSIONS =
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/** Name of the OpenAPI definition of the schemas in CustomResourceDefinitions. */
export const JSON_SCHEMA: string = `${APIEXTENSIONS}JSONSchemaProps`;

const FORMS: Readonly<Record<string, WireForm>> = {
  [`${APIEXTENSIONS}JSON`]: "any",
  [`${APIEXTENSIONS}CustomResourceSubresourceStatus`]: "empty",
  [`${JSON_SCHEMA}OrArray`]: "schemaOrArray",
  [`${JSON_SCHEMA}OrBool`]: "schemaOrBool",
  [`${JSON_SCHEMA}OrStringArray`]: "schemaOrTexts",
};

/** Form of a value on the wire. */
export function wireForm(schema: Schema): WireForm {
  return FORMS[schema.definition ?? ""] ?? specialForm(schema);
}
