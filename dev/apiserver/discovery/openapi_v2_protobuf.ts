import { GNOSTIC_MESSAGES } from "../builtin/data/gnostic_messages.ts";
import { WireWriter } from "../builtin/wire_writer.ts";
import type { SwaggerDocument } from "./openapi_v2.ts";
import { writeJson } from "../exact_json.ts";

/** OpenAPI v2 document as protobuf, with the messages of gnostic's OpenAPIv2. */
export function openApiV2Protobuf(document: SwaggerDocument): Uint8Array {
  const writer = new DocumentWriter();
  writer.message("Document", document);
  return writer.bytes;
}

type Json = Readonly<Record<string, unknown>>;

/** Writer of gnostic's messages. */
class DocumentWriter extends WireWriter {
  message(name: string, object: Json): void {
    if (name === "Parameter") return this.#parameter(object);
    const fields = Object.entries(GNOSTIC_MESSAGES[name] ?? {}).reverse();
    for (const [key, field] of fields) {
      const [number = "", type = "", of = ""] = field.split(" ");
      if (key === "x-") this.#extensions(Number(number), object);
      const value = object[key];
      if (value === undefined) continue;
      const list = type.startsWith("[]") ? value as unknown[] : [value];
      for (const one of [...list].reverse()) {
        this.#value(Number(number), type.replace("[]", ""), one, of);
      }
    }
  }

  #extensions(number: number, object: Json): void {
    const names = Object.keys(object).filter((key) => key.startsWith("x-"));
    for (const name of names.reverse()) {
      this.nest(number, () => {
        this.nest(2, () => this.#any(object[name]));
        this.text(1, name);
      });
    }
  }

  #any(value: unknown): void {
    this.text(2, `${writeJson(value)}\n`);
  }

  #value(field: number, type: string, value: unknown, of: string): void {
    switch (type) {
      case "text":
        return this.text(field, String(value));
      case "bool":
        return this.number(field, value === true ? 1 : 0);
      case "int":
        return this.number(field, Number(value));
      case "double":
        return this.double(field, Number(value));
    }
    this.nest(field, () => this.#content(type, value, of));
  }

  /** Writes the content of a nested message, whose fields may depend on the value. */
  #content(type: string, value: unknown, of: string): void {
    const object = value as Json;
    switch (type) {
      case "any":
        return this.#any(value);
      case "TypeItem":
        return this.text(1, String(value));
      case "SchemaItem":
        return this.nest(1, () => this.message("Schema", object));
      case "SchemaOrBool":
        return typeof value === "boolean"
          ? this.number(2, value ? 1 : 0)
          : this.nest(1, () => this.message("Schema", object));
      case "Paths":
        return this.#named(
          2,
          object,
          (inner) => this.message("PathItem", inner),
        );
      case "Responses":
        return this.#named(1, object, (inner) => {
          this.nest(1, () => this.message("Response", inner));
        });
      case "Schemas":
        return this.#named(1, object, (inner) => {
          this.message(of || "Schema", inner);
        });
      case "ParametersItem":
        return object.$ref === undefined
          ? this.nest(1, () => this.#parameter(object))
          : this.nest(2, () => this.message("JsonReference", object));
      default:
        return this.message(type, object);
    }
  }

  /** Writes the entries of a map as a list of names and values. */
  #named(number: number, map: Json, write: (inner: Json) => void): void {
    for (const [name, inner] of Object.entries(map).reverse()) {
      this.nest(number, () => {
        this.nest(2, () => write(inner as Json));
        this.text(1, name);
      });
    }
  }

  #parameter(object: Json): void {
    if (object.in === "body") {
      return this.nest(1, () => this.message("BodyParameter", object));
    }
    const isPath = object.in === "path";
    const name = isPath ? "PathParameter" : "QueryParameter";
    this.nest(2, () => {
      this.nest(isPath ? 4 : 3, () => this.message(name, object));
    });
  }
}
