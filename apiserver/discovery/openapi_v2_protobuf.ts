import { WireWriter } from "../builtin/wire_writer.ts";
import type { SwaggerDocument } from "./openapi_v2.ts";

/**
 * Fields of gnostic's messages: number and type. `[]` around a type marks a
 * list, `{}` a map as a list of names and values; `any` is a value as YAML, and
 * `x-` stands for the extensions.
 */
const MESSAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Document: {
    swagger: "1 text",
    info: "2 Info",
    paths: "8 Paths",
    definitions: "9 Schemas",
    parameters: "10 Schemas Parameter",
  },
  Info: { title: "1 text", version: "2 text" },
  PathItem: {
    get: "2 Operation",
    put: "3 Operation",
    post: "4 Operation",
    delete: "5 Operation",
    patch: "8 Operation",
    parameters: "9 []ParametersItem",
  },
  Operation: {
    tags: "1 []text",
    operationId: "5 text",
    produces: "6 []text",
    consumes: "7 []text",
    parameters: "8 []ParametersItem",
    responses: "9 Responses",
    schemes: "10 []text",
    "x-": "13",
  },
  JsonReference: { $ref: "1 text" },
  BodyParameter: {
    name: "2 text",
    in: "3 text",
    required: "4 bool",
    schema: "5 Schema",
  },
  QueryParameter: {
    in: "2 text",
    name: "4 text",
    type: "6 text",
    uniqueItems: "20 bool",
  },
  PathParameter: {
    required: "1 bool",
    in: "2 text",
    name: "4 text",
    type: "5 text",
    uniqueItems: "19 bool",
  },
  Response: { description: "1 text", schema: "2 SchemaItem" },
  Schema: {
    $ref: "1 text",
    format: "2 text",
    title: "3 text",
    description: "4 text",
    default: "5 any",
    multipleOf: "6 double",
    maximum: "7 double",
    exclusiveMaximum: "8 bool",
    minimum: "9 double",
    exclusiveMinimum: "10 bool",
    maxLength: "11 int",
    minLength: "12 int",
    pattern: "13 text",
    maxItems: "14 int",
    minItems: "15 int",
    uniqueItems: "16 bool",
    maxProperties: "17 int",
    minProperties: "18 int",
    required: "19 []text",
    enum: "20 []any",
    additionalProperties: "21 SchemaOrBool",
    type: "22 TypeItem",
    items: "23 SchemaItem",
    properties: "25 Schemas",
    "x-": "31",
  },
};

/** OpenAPI v2 document as protobuf, with the messages of gnostic's OpenAPIv2. */
export function openApiV2Protobuf(document: SwaggerDocument): Uint8Array {
  const writer = new WireWriter();
  writeMessage(writer, "Document", document);
  return writer.bytes;
}

type Json = Readonly<Record<string, unknown>>;

function writeMessage(writer: WireWriter, name: string, object: Json): void {
  const fields = MESSAGES[name] ?? {};
  const extensions = Object.keys(object).filter((key) => key.startsWith("x-"));
  for (const [key, field] of Object.entries(fields).reverse()) {
    const [number, type = "", of = ""] = field.split(" ");
    if (key === "x-") {
      for (const extension of extensions.reverse()) {
        writer.nest(Number(number), () => {
          writer.nest(2, () => writeAny(writer, object[extension]));
          writer.text(1, extension);
        });
      }
      continue;
    }
    const value = object[key];
    if (value === undefined) continue;
    for (
      const one of type.startsWith("[]")
        ? [...value as unknown[]].reverse()
        : [value]
    ) {
      const how = { type: type.replace("[]", ""), value: one, of };
      writeValue(writer, Number(number), how);
    }
  }
}

function writeAny(writer: WireWriter, value: unknown): void {
  writer.text(2, `${JSON.stringify(value)}\n`);
}

function writeValue(
  writer: WireWriter,
  field: number,
  { type, value, of }: {
    readonly type: string;
    readonly value: unknown;
    readonly of: string;
  },
): void {
  switch (type) {
    case "text":
      return writer.text(field, String(value));
    case "bool":
      return writer.number(field, value === true ? 1 : 0);
    case "int":
      return writer.number(field, Number(value));
    case "double":
      return writer.double(field, Number(value));
  }
  writer.nest(field, () => writeInside(writer, { type, value, of }));
}

/** Writes a nested message, whose fields may depend on the value. */
function writeInside(
  writer: WireWriter,
  { type, value, of }: {
    readonly type: string;
    readonly value: unknown;
    readonly of: string;
  },
): void {
  const object = value as Json;
  const named = (number: number, message: string, choice = 0) => {
    for (const [name, inner] of Object.entries(object).reverse()) {
      writer.nest(number, () => {
        writer.nest(2, () => {
          if (choice === 0) return writeAs(writer, message, inner as Json);
          writer.nest(choice, () => writeAs(writer, message, inner as Json));
        });
        writer.text(1, name);
      });
    }
  };
  switch (type) {
    case "any":
      return writeAny(writer, value);
    case "TypeItem":
      return writer.text(1, String(value));
    case "SchemaItem":
      return writer.nest(1, () => writeMessage(writer, "Schema", object));
    case "SchemaOrBool":
      return typeof value === "boolean"
        ? writer.number(2, value ? 1 : 0)
        : writer.nest(1, () => writeMessage(writer, "Schema", object));
    case "Paths":
      return named(2, "PathItem");
    case "Responses":
      return named(1, "Response", 1);
    case "Schemas":
      return named(1, of || "Schema");
    case "ParametersItem":
      return object.$ref === undefined
        ? writer.nest(1, () => writeParameter(writer, object))
        : writer.nest(2, () => writeMessage(writer, "JsonReference", object));
    default:
      return writeMessage(writer, type, object);
  }
}

function writeAs(writer: WireWriter, message: string, object: Json): void {
  if (message === "Parameter") writeParameter(writer, object);
  else writeMessage(writer, message, object);
}

function writeParameter(writer: WireWriter, object: Json): void {
  if (object.in === "body") {
    writer.nest(1, () => writeMessage(writer, "BodyParameter", object));
    return;
  }
  writer.nest(2, () => {
    const isPath = object.in === "path";
    writer.nest(isPath ? 4 : 3, () =>
      writeMessage(
        writer,
        isPath ? "PathParameter" : "QueryParameter",
        object,
      ));
  });
}
