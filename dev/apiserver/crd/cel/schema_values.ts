import { Buffer } from "node:buffer";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  type OpenApiSchema,
} from "@coracle/operator/internal";
import { CelError, NO_SUCH_OVERLOAD } from "../../cel/cel_errors.ts";
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  STRING,
  struct,
  TIMESTAMP,
  typeText,
} from "../../cel/cel_type.ts";
import { parseTime } from "../../cel/go_time.ts";
import {
  type CelMap,
  Duration,
  equal,
  type ListRelation,
  related,
  type Timestamp,
} from "../../cel/values.ts";
import { durationNanos } from "../schema/formats.ts";
import { celName, fieldName, isReserved } from "./cel_names.ts";
import { withMeta } from "./declared_type.ts";
import { isFloat, isInteger, isWrittenFloat } from "../../exact_json.ts";

/** Values of a schema node in CEL. */
export interface SchemaValues {
  readonly type: CelType;
  /** Converts a JSON value that the schema allows; an error if it does not. */
  convert(value: unknown): unknown;
}

/**
 * Values of the nodes of a schema. Nodes of unknown type have none, and rules
 * cannot access them.
 */
export class SchemaTypes {
  readonly #known: Map<OpenApiSchema, SchemaValues | undefined> = new Map();
  #count = 0;

  /**
   * Values of a schema node; undefined if rules cannot access it.
   *
   * @param root Whether the node is a whole object, which has metadata.
   */
  of(schema: OpenApiSchema, root = false): SchemaValues | undefined {
    if (!this.#known.has(schema)) {
      this.#known.set(schema, this.#make(schema, root));
    }
    return this.#known.get(schema);
  }

  #make(schema: OpenApiSchema, root: boolean): SchemaValues | undefined {
    const values = this.#values(
      root || schema["x-kubernetes-embedded-resource"] === true
        ? withMeta(schema)
        : schema,
    );
    if (values === undefined) return undefined;
    const { type, convert } = values;
    return {
      type,
      convert: (value) =>
        value !== null ? convert(value) : schema.nullable ? null : new CelError(
          "invalid data, got null for schema with nullable=false",
        ),
    };
  }

  #values(schema: OpenApiSchema): SchemaValues | undefined {
    if (schema["x-kubernetes-int-or-string"]) {
      return { type: DYN, convert: intOrString };
    }
    const { type, additionalProperties: values } = schema;
    switch (type) {
      case "array":
        return this.#list(schema);
      case "object":
        return typeof values === "object"
          ? this.#map(values)
          : this.#object(schema);
      case "string":
        return textValues(schema.format);
      case "boolean":
        return { type: BOOL, convert: (value) => value };
      case "integer":
        return { type: INT, convert: int };
      case "number":
        return { type: DOUBLE, convert: double };
      default:
        return undefined;
    }
  }

  #list(schema: OpenApiSchema): SchemaValues | undefined {
    const items = schema.items && this.of(schema.items);
    if (items === undefined) return undefined;
    const relation = relationOf(schema);
    return {
      type: listOf(items.type),
      convert: (value) =>
        Array.isArray(value)
          ? related(
            value.map((item, index) =>
              items.convert(asWritten(value, index, item))
            ),
            relation,
          )
          : wrongData("an array", "array"),
    };
  }

  #map(schema: OpenApiSchema): SchemaValues | undefined {
    const values = this.of(schema);
    return values && {
      type: mapOf(STRING, values.type),
      convert: (value) =>
        isJsonObject(value)
          ? new JsonMap(value, () => values)
          : wrongData("a map", "object"),
    };
  }

  #object(schema: OpenApiSchema): SchemaValues {
    const fields = new Map<string, SchemaValues>();
    const types = new Map<string, CelType>();
    for (const [field, property] of Object.entries(schema.properties ?? {})) {
      const values = this.of(property);
      const name = celName(field);
      if (values === undefined || name === undefined) continue;
      fields.set(field, values);
      types.set(name, values.type);
    }
    return {
      type: struct(
        `object ${this.#count++}`,
        // A reserved word need not be escaped where a field is selected.
        (name) =>
          types.get(name) ??
            (isReserved(name) ? types.get(`__${name}__`) : undefined),
        [...types.keys()],
      ),
      convert: (value) =>
        isJsonObject(value)
          ? new JsonMap(value, (name) => fields.get(name), true)
          : wrongData("a map", "object"),
    };
  }
}

/** Field or item; one that was written as a float as its text, which is no number. */
export function asWritten(
  owner: object,
  name: string | number,
  value: unknown,
): unknown {
  return isWrittenFloat(owner, name) ? Symbol(String(value)) : value;
}

function wrongData(expected: string, type: string): CelError {
  return new CelError(
    `invalid data, expected ${expected} for the provided schema with type=${type}`,
  );
}

function relationOf(schema: OpenApiSchema): ListRelation | undefined {
  const kind = schema["x-kubernetes-list-type"];
  if (kind === "set") return { kind };
  return kind === "map"
    ? {
      kind,
      keys: (schema["x-kubernetes-list-map-keys"] ?? [])
        .map((key) => celName(key) ?? key),
    }
    : undefined;
}

/** JSON object in CEL, whose values are converted when they are read. */
class JsonMap implements CelMap {
  readonly #json: JsonObject;
  readonly #values: (name: string) => SchemaValues | undefined;
  /** Whether names are those of fields, which are escaped in CEL. */
  readonly #isObject: boolean;
  readonly #converted: Map<string, unknown> = new Map();

  constructor(
    json: JsonObject,
    values: (name: string) => SchemaValues | undefined,
    isObject = false,
  ) {
    this.#json = json;
    this.#values = values;
    this.#isObject = isObject;
  }

  get size(): number {
    return Object.keys(this.#json).length;
  }

  find(key: unknown): unknown {
    if (typeof key !== "string") return NO_SUCH_OVERLOAD;
    const name = this.#isObject ? fieldName(key) : key;
    return name === undefined ? undefined : this.#read(name);
  }

  #read(name: string): unknown {
    if (!Object.hasOwn(this.#json, name)) return undefined;
    const value = this.#json[name];
    if (value === undefined || (value === null && this.#isObject)) {
      return undefined;
    }
    if (!this.#converted.has(name)) {
      this.#converted.set(
        name,
        this.#values(name)?.convert(asWritten(this.#json, name, value)),
      );
    }
    return this.#converted.get(name);
  }

  keys(): readonly unknown[] {
    return Object.keys(this.#json)
      .filter((name) => this.#values(name) !== undefined)
      .map((name) => this.#isObject ? celName(name) ?? name : name);
  }

  /** Whether another map has the same values; those without schema as JSON. */
  equals(other: CelMap): boolean {
    if (this.size !== other.size) return false;
    return Object.entries(this.#json).every(([name, value]) => {
      if (this.#values(name) === undefined) {
        return !(other instanceof JsonMap) ||
          !Object.hasOwn(other.#json, name) ||
          jsonEquals(value, other.#json[name]);
      }
      const own = this.#read(name);
      const found = other.find(this.#isObject ? celName(name) ?? name : name);
      return own === undefined || found === undefined
        ? own === found
        : equal(own, found);
    });
  }
}

function double(value: unknown): unknown {
  return Number(isFloat(value) ? value.description : value);
}

function int(value: unknown): unknown {
  return typeof value === "bigint"
    ? value
    : isInteger(value)
    ? BigInt(value)
    : new CelError("invalid data, expected int, got float64");
}

function intOrString(value: unknown): unknown {
  if (typeof value === "string" || typeof value === "bigint") return value;
  return isInteger(value) ? BigInt(value) : new CelError(
    "invalid data, expected XIntOrString value to be either a string or integer",
  );
}

function textValues(format: string | undefined): SchemaValues {
  switch (format) {
    case "byte":
      return { type: BYTES, convert: (value) => bytesOf(String(value)) };
    case "duration":
      return {
        type: DURATION,
        convert: (value) => durationOf(String(value)),
      };
    case "date":
      return {
        type: TIMESTAMP,
        convert: (value) => dateOf(String(value)),
      };
    case "date-time":
      return { type: TIMESTAMP, convert: (value) => timeOf(String(value)) };
    default:
      return { type: STRING, convert: (value) => value };
  }
}

/*
 * An update may keep a text that its format does not allow, so every text can come
 * here; what kube-apiserver cannot read is an error, not a failure of the server.
 */

function durationOf(text: string): Duration | CelError {
  const nanos = durationNanos(text);
  return nanos === undefined
    ? new CelError(
      `Invalid duration ${text}: unable to parse ${text} as duration`,
    )
    : new Duration(nanos);
}

function dateOf(text: string): Timestamp | CelError {
  return parseTime(`${text}T00:00:00Z`) ??
    unreadable("date", text, `parsing time "${text}": day out of range`);
}

function timeOf(text: string): Timestamp | CelError {
  return parseTime(text) ?? unreadable(
    "date-time",
    text,
    text[10] === "T"
      ? `parsing time "${text}": extra text: "${
        text.slice(19).replace(/^[.,]\d+/, "")
      }"`
      : `parsing time "${text}" as "2006-01-02T15:04:05": cannot parse "${
        text.slice(10)
      }" as "T"`,
  );
}

/** Bytes of a text in the alphabet of URLs, the only one that rules can read. */
function bytesOf(text: string): Uint8Array | CelError {
  const wrong = base64Problem(text);
  if (wrong >= 0) {
    const why = `illegal base64 data at input byte ${wrong}`;
    return unreadable("byte", text, why);
  }
  return Buffer.from(text, "base64url");
}

/** Position of what is wrong in a text in base64 with padding; negative if nothing is. */
function base64Problem(text: string): number {
  const wrong = text.search(/[^\w=\r\n-]|(?<==)[^=\r\n]/);
  const length = text.replace(/[\r\n]/g, "").length;
  return wrong < 0 && length % 4 !== 0 ? length - length % 4 : wrong;
}

function unreadable(format: string, text: string, why: string): CelError {
  return new CelError(`Invalid ${format} formatted string ${text}: ${why}`);
}

/** Converts a value without declared type by its JSON type. */
export function dynamic(value: unknown): unknown {
  if (typeof value === "number") {
    return isInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map(dynamic);
  return isJsonObject(value) ? new JsonMap(value, () => ANY) : value;
}

const ANY: SchemaValues = { type: DYN, convert: dynamic };

/**
 * Text of types in the messages of a rule: objects have no names of their own, but
 * those of their paths from the value of the rule.
 */
export function schemaTypeText(root: CelType): (type: CelType) => string {
  const text = (type: CelType): string => {
    if (type.kind === "struct") {
      return pathOf(type, root, "selfType0") ?? type.name;
    }
    return type.params.length === 0
      ? typeText(type)
      : `${type.name}(${type.params.map(text).join(", ")})`;
  };
  return text;
}

function pathOf(
  type: CelType,
  within: CelType,
  path: string,
): string | undefined {
  if (type.name === within.name && within.kind === "struct") return path;
  const inner: [string, CelType | undefined][] = within.kind === "list"
    ? [["@idx", within.params[0]]]
    : within.kind === "map"
    ? [["@elem", within.params[1]]]
    : (within.fieldNames ?? []).map((name) => [name, within.field?.(name)]);
  for (const [name, part] of inner) {
    const found = part && pathOf(type, part, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
