import type { Environment } from "@marcbachmann/cel-js";
import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import { isJsonObject } from "../../../core/patch/json_value.ts";
import { durationClass } from "./cel_environment.ts";
import { celName } from "./cel_names.ts";
import { celEqual } from "./equality.ts";
import { listValue } from "./related_lists.ts";
import { canonicalText } from "../schema/json_tree.ts";

/** A type of CEL, and how JSON becomes a value of it. */
export interface CelType {
  /** As signatures write it, such as `list<int>`. */
  readonly name: string;
  /**
   * @throws {TypeError} If the value does not fit; the schema was checked
   * before, so that only formats are left to fail.
   */
  convert(value: unknown): unknown;
}

/** What the root of every object has, whatever its schema says. */
const ROOT_PROPERTIES: Readonly<Record<string, OpenApiSchema>> = {
  apiVersion: { type: "string" },
  kind: { type: "string" },
  metadata: {
    type: "object",
    properties: {
      name: { type: "string" },
      generateName: { type: "string" },
    },
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
 * The types of a schema, registered in an environment. A node that rules cannot
 * see, because its type is not known, has none.
 */
export class CelTypes {
  readonly #environment: Environment;
  readonly #known: Map<OpenApiSchema, CelType | undefined> = new Map();
  /** The items of keyed lists in one run, by their text. */
  readonly #items: Map<string, unknown> = new Map();
  #count = 0;

  /** @param environment Where the types of objects are registered. */
  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Forgets the values of the last run: what is compared comes after. */
  begin(): void {
    this.#items.clear();
  }

  /**
   * The type of a node.
   *
   * @param root Whether it is a whole object, which has metadata.
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
    // The library compares its sets in any order, by the identity of items.
    const item = relation === "map"
      ? (value: unknown) => this.#shared(value, convert)
      : convert;
    return {
      name: `list<${name}>`,
      convert: (value) =>
        listValue((value as readonly unknown[]).map(item), schema),
    };
  }

  /** Equal values become one object. */
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
            .map(([key, one]) => [key, type.convert(one)] as const),
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

/** Rules see a field that is null as one that is not there. */
function isPresent([, value]: readonly [string, unknown]): boolean {
  return value !== null;
}

/** An item may be null; the library knows no such type. */
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

/** Go's durations, and the longer units that the format takes too. */
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

/** A value whose type only the value tells. */
function dynamic(value: unknown): unknown {
  if (typeof value === "number") {
    return Number.isInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map(dynamic);
  if (!isJsonObject(value)) return value;
  return new Map(
    Object.entries(value).map(([key, one]) => [key, dynamic(one)] as const),
  );
}
