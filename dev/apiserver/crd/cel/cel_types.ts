import type { Environment } from "@marcbachmann/cel-js";
import { isJsonObject, type OpenApiSchema } from "@coracle/operator/internal";
import { durationClass } from "./cel_environment.ts";
import { celName } from "./cel_names.ts";
import { celEqual } from "./equality.ts";
import { listValue } from "./related_lists.ts";
import { canonicalText } from "../schema/json_tree.ts";

/** CEL type with the conversion of JSON values to it. */
export interface CelType {
  /** Name in signatures, such as `list<int>`. */
  readonly name: string;
  /**
   * Converts a JSON value that the schema allows.
   *
   * @throws {TypeError} If the value does not match its format.
   */
  convert(value: unknown): unknown;
}

/** Properties of every whole object in rules, besides those of its schema. */
const ROOT_PROPERTIES: Readonly<Record<string, OpenApiSchema>> = {
  apiVersion: { type: "string" },
  kind: { type: "string" },
  metadata: {
    type: "object",
    properties: { name: { type: "string" }, generateName: { type: "string" } },
  },
};

const DYN: CelType = { name: "dyn", convert: dynamic };
const STRING: CelType = { name: "string", convert: (value) => value };
const BOOL: CelType = { name: "bool", convert: (value) => value };
const DOUBLE: CelType = { name: "double", convert: Number };
const INT: CelType = {
  name: "int",
  convert: (value) => BigInt(Math.trunc(Number(value))),
};

/**
 * CEL types of the nodes of a schema, registered in an environment. Nodes of
 * unknown type have no CEL type, and rules cannot access them.
 */
export class CelTypes {
  readonly #environment: Environment;
  readonly #known: Map<OpenApiSchema, CelType | undefined> = new Map();
  /** Converted items of lists of type `map` in the current validation, by canonical text. */
  readonly #items: Map<string, unknown> = new Map();
  #count = 0;

  /**
   * Creates an empty registry of types.
   *
   * @param environment Environment in which object types are registered.
   */
  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Clears the values of the previous validation; called before values are converted. */
  begin(): void {
    this.#items.clear();
  }

  /**
   * CEL type of a schema node; undefined if rules cannot access it.
   *
   * @param root Whether the node is a whole object, which has metadata.
   */
  typeOf(schema: OpenApiSchema, root = false): CelType | undefined {
    const whole = root || schema["x-kubernetes-embedded-resource"] === true;
    if (!this.#known.has(schema)) {
      this.#known.set(schema, this.#make(whole ? withRoot(schema) : schema));
    }
    return this.#known.get(schema);
  }

  #make(schema: OpenApiSchema): CelType | undefined {
    if (schema["x-kubernetes-int-or-string"]) return DYN;
    switch (schema.type) {
      case "array":
        return this.#list(schema);
      case "object":
        return typeof schema.additionalProperties === "object"
          ? this.#map(schema.additionalProperties)
          : this.#object(schema);
      case "string":
        return textType(schema.format);
      case "boolean":
        return BOOL;
      case "integer":
        return INT;
      case "number":
        return DOUBLE;
      default:
        return undefined;
    }
  }

  #list(schema: OpenApiSchema): CelType | undefined {
    const type = schema.items && this.typeOf(schema.items);
    if (type === undefined) return undefined;
    const { name, convert } = schema.items?.nullable ? nullable(type) : type;
    const relation = schema["x-kubernetes-list-type"];
    // The library compares sets in any order, and their items by identity.
    const item = relation === "map"
      ? (value: unknown) => this.#shared(value, convert)
      : convert;
    return {
      name: `list<${name}>`,
      convert: (value) =>
        listValue((value as readonly unknown[]).map(item), schema),
    };
  }

  /** Converts a value; equal values yield the same object. */
  #shared(value: unknown, convert: CelType["convert"]): unknown {
    const text = canonicalText(value);
    const known = this.#items.get(text) ?? convert(value);
    this.#items.set(text, known);
    return known;
  }

  #map(values: OpenApiSchema): CelType | undefined {
    const type = this.typeOf(values);
    return type && {
      name: `map<string, ${type.name}>`,
      convert: (value) =>
        new Map(
          Object.entries(value as object).filter(isPresent)
            .map(([key, inner]) => [key, type.convert(inner)] as const),
        ),
    };
  }

  #object(schema: OpenApiSchema): CelType {
    const fields = new Map<
      string,
      { readonly name: string; readonly type: CelType }
    >();
    for (const [field, property] of Object.entries(schema.properties ?? {})) {
      const name = celName(field);
      const type = this.typeOf(property);
      if (name !== undefined && type) fields.set(field, { name, type });
    }
    const name = `Object${this.#count++}`;
    const ctor = class {};
    this.#environment.registerType(name, {
      ctor,
      fields: Object.fromEntries(
        [...fields.values()].map((field) => [field.name, field.type.name]),
      ),
    });
    this.#environment.registerOperator(`${name} == ${name}`, celEqual);
    return {
      name,
      convert: (value) => {
        const object = new ctor() as Record<string, unknown>;
        for (
          const [field, inner] of Object.entries(value as object)
            .filter(isPresent)
        ) {
          const known = fields.get(field);
          if (known) object[known.name] = known.type.convert(inner);
        }
        return object;
      },
    };
  }
}

function withRoot(schema: OpenApiSchema): OpenApiSchema {
  return {
    ...schema,
    properties: { ...schema.properties, ...ROOT_PROPERTIES },
  };
}

/** Whether a field is set; null fields are absent in rules. */
function isPresent([, value]: readonly [string, unknown]): boolean {
  return value !== null;
}

/** Dynamic type for nullable items, which the CEL library cannot express. */
function nullable({ convert }: CelType): CelType {
  return {
    name: "dyn",
    convert: (value) => value === null ? null : convert(value),
  };
}

function textType(format: string | undefined): CelType {
  switch (format) {
    case "byte":
      return { name: "bytes", convert: (value) => bytesOf(String(value)) };
    case "duration":
      return {
        name: "google.protobuf.Duration",
        convert: (value) => durationOf(String(value)),
      };
    case "date":
    case "date-time":
    case "datetime":
      return {
        name: "google.protobuf.Timestamp",
        convert: (value) => new Date(String(value)),
      };
    default:
      return STRING;
  }
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

const NANOSECONDS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3_600e9,
  d: 86_400e9,
  w: 604_800e9,
};

/** Parses a duration in Go's syntax or with the longer units of the format. */
function durationOf(text: string): object {
  let total = 0;
  for (
    const [, amount, unit = "s"] of text.matchAll(
      /(\d*\.?\d+)\s*(ns|us|µs|ms|s|m|h|d|w)?[a-z]*/g,
    )
  ) total += Number(amount) * (NANOSECONDS[unit] ?? 0);
  const sign = text.startsWith("-") ? -1 : 1;
  const seconds = Math.trunc(total / 1e9);
  return new (durationClass())(
    BigInt(sign * seconds),
    sign * Math.round(total - seconds * 1e9),
  );
}

/** Converts a value without declared type by its JSON type. */
export function dynamic(value: unknown): unknown {
  if (typeof value === "number") {
    return Number.isInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map(dynamic);
  if (!isJsonObject(value)) return value;
  return new Map(
    Object.entries(value).map(([key, inner]) => [key, dynamic(inner)] as const),
  );
}
