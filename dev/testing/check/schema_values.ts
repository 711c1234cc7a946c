/**
 * Values for workloads from structural schemas: a valid one, and others for
 * each leaf. CEL rules are not evaluated, but enforced by the server.
 *
 * @module
 */
import type { OpenApiSchema } from "@coracle/operator/core";
import {
  isJsonObject,
  type JsonObject,
  ownValue,
  setOwn,
} from "@coracle/operator/internal";
import { validateSchema } from "../../apiserver/crd/schema/schema_validator.ts";
import { textMatching } from "./pattern_text.ts";

/** A change of one leaf of a value. */
export interface LeafChange {
  /** Path of the leaf, such as `["spec", "ports", 0, "name"]`. */
  readonly path: readonly (string | number)[];
  /** New value; undefined removes the field. */
  readonly value: unknown;
}

/** Maximum number of items or characters generated to satisfy a minimum. */
const MAX_SIZE = 64;

/** Example texts by field name, for fields without any other restriction. */
const NAMED_TEXTS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/image$/i, ["nginx:1.29", "nginx:1.28", "nginx:1.27"]],
  [/schedule|cron/i, ["0 * * * *", "30 2 * * *"]],
  [/url|uri|endpoint/i, ["http://example.com/a", "http://example.com/b"]],
  [
    /interval|timeout|duration|period|delay|ttl|retention|grace|after$|every$/i,
    ["1h", "30m"],
  ],
  [/size|memory|storage|capacity/i, ["1Gi", "2Gi"]],
  [/cpu/i, ["100m", "200m"]],
  [/host|domain/i, ["a.example.com", "b.example.com"]],
  [/version/i, ["1.0.0", "1.1.0"]],
  [/date|time(stamp)?$|at$/i, ["2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"]],
];

const FORMATS: Readonly<Record<string, readonly string[]>> = {
  "date-time": ["2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"],
  date: ["2026-02-01", "2026-03-01"],
  duration: ["1h", "30m"],
  uri: ["http://example.com/a", "http://example.com/b"],
  url: ["http://example.com/a", "http://example.com/b"],
  email: ["a@example.com", "b@example.com"],
  hostname: ["a.example.com", "b.example.com"],
  ipv4: ["10.0.0.1", "10.0.0.2"],
  ipv6: ["fd00::1", "fd00::2"],
  ip: ["10.0.0.1", "10.0.0.2"],
  cidr: ["10.0.0.0/24", "10.0.1.0/24"],
  mac: ["00:00:5e:00:53:01", "00:00:5e:00:53:02"],
  uuid: [
    "11111111-1111-4111-8111-111111111111",
    "22222222-2222-4222-8222-222222222222",
  ],
  byte: ["YQ==", "Yg=="],
};

const TEXTS = ["a", "b", "sample", "1", "1h", "10Mi", "0 * * * *"];

/**
 * Generates a value for a structural schema, with or without optional fields.
 *
 * @param schema Structural schema.
 * @param options.optional Whether optional fields without a default are set.
 * @param options.name Name of the field.
 * @returns The value; undefined if none can be generated.
 */
export function fittingValue(
  schema: OpenApiSchema,
  { optional = true, name = "" }: {
    readonly optional?: boolean;
    readonly name?: string;
  } = {},
): unknown {
  if (schema.default !== undefined) return structuredClone(schema.default);
  if (schema.type === "object") return fittingObject(schema, optional);
  if (schema.type !== "array") return scalars(schema, name)[0];
  const least = numberOf(schema["minItems"]) ?? 0;
  const wanted = Math.min(Math.max(least, optional ? 1 : 0), MAX_SIZE);
  const most = numberOf(schema["maxItems"]) ?? Infinity;
  return listOf(schema.items ?? {}, Math.min(wanted, most), optional);
}

function fittingObject(schema: OpenApiSchema, optional: boolean): JsonObject {
  const { properties = {}, required = [], additionalProperties } = schema;
  const value: JsonObject = schema["x-kubernetes-embedded-resource"] === true
    ? { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "sample" } }
    : {};
  for (const [name, field] of Object.entries(properties)) {
    if (!optional && !required.includes(name)) continue;
    if (Object.hasOwn(value, name) && isValid(value[name], field)) continue;
    const fitting = fittingValue(field, { optional, name });
    if (fitting !== undefined) setOwn(value, name, fitting);
  }
  const least = numberOf(schema["minProperties"]) ?? 0;
  const missing = least - Object.keys(value).length;
  if (!isSchema(additionalProperties)) return value;
  const wanted = Math.min(Math.max(missing, optional ? 1 : 0), MAX_SIZE);
  for (const key of keysOf(additionalProperties, wanted)) {
    if (Object.hasOwn(value, key)) continue;
    value[key] = fittingValue(additionalProperties, { optional });
  }
  return value;
}

/** Keys of a map: those of a quantity are names of resources. */
function keysOf(schema: OpenApiSchema, count: number): readonly string[] {
  const known = schema["x-kubernetes-int-or-string"] === true
    ? ["cpu", "memory"]
    : [];
  return Array.from(
    { length: count },
    (_, at) => known[at] ?? `key-${at + 1}`,
  );
}

/** Generates items that differ if possible, for sets and maps. */
function listOf(
  items: OpenApiSchema,
  count: number,
  optional: boolean,
): unknown[] {
  return Array.from(
    { length: count },
    (_, at) => differentItem(items, at, optional),
  );
}

/** Generates the n-th of several different items. */
function differentItem(
  items: OpenApiSchema,
  at: number,
  optional: boolean,
): unknown {
  if (items.type !== "object") {
    const all = scalars(items, "");
    return all[at] ?? nth(items, at) ?? all[0] ??
      fittingValue(items, { optional });
  }
  const value = fittingObject(items, optional);
  if (at === 0) return value;
  for (const [name, field] of Object.entries(items.properties ?? {})) {
    if (!Object.hasOwn(value, name) || typeof value[name] === "object") {
      continue;
    }
    const other = scalars(field, name)[at] ?? nth(field, at);
    if (other !== undefined) value[name] = other;
  }
  return value;
}

/** Generates the n-th text or number; undefined if it is not valid. */
function nth(schema: OpenApiSchema, at: number): unknown {
  const value = schema.type === "string"
    ? `item-${at + 1}`
    : schema.type === "integer" || schema.type === "number"
    ? at + 1
    : undefined;
  return value !== undefined && isValid(value, schema) ? value : undefined;
}

/**
 * Changes of a value, each of one leaf: other values of scalars, added and
 * removed list items and map keys, and added and removed optional objects.
 *
 * @param schema Structural schema of the value.
 * @param value Current value.
 */
export function leafChanges(
  schema: OpenApiSchema,
  value: unknown,
  path: readonly (string | number)[] = [],
): readonly LeafChange[] {
  if (
    schema.type === "object" && (isJsonObject(value) || value === undefined)
  ) {
    return objectChanges(schema, value, path);
  }
  if (
    schema.type === "array" && (Array.isArray(value) || value === undefined)
  ) {
    return listChanges(schema, value, path);
  }
  const name = String(path.at(-1) ?? "");
  const others = scalars(schema, name).filter((other) => other !== value);
  // Nothing at all is often a case of its own, such as no replicas.
  const chosen = Array.isArray(schema.enum)
    ? others.slice(0, MAX_SIZE)
    : others.includes(0)
    ? [...others.filter((other) => other !== 0).slice(0, 1), 0]
    : others.slice(0, 2);
  return chosen.map((other) => ({ path, value: other }));
}

function objectChanges(
  schema: OpenApiSchema,
  value: JsonObject | undefined,
  path: readonly (string | number)[],
): readonly LeafChange[] {
  const { properties = {}, required = [], additionalProperties } = schema;
  if (value === undefined) {
    const added = fittingValue(schema, { optional: true });
    return isJsonObject(added) && Object.keys(added).length > 0
      ? [{ path, value: added }]
      : [];
  }
  const changes: LeafChange[] = [];
  for (const [name, field] of Object.entries(properties)) {
    const at = [...path, name];
    const present = ownValue(value, name);
    changes.push(...leafChanges(field, present, at));
    const isOptional = !required.includes(name) && field.default === undefined;
    if (isOptional && present !== undefined) {
      changes.push({ path: at, value: undefined });
    }
  }
  if (!isSchema(additionalProperties)) return changes;
  const keys = Object.keys(value).filter((key) =>
    !Object.hasOwn(properties, key)
  );
  const [first] = keys;
  if (first !== undefined) {
    const at = [...path, first];
    changes.push(...leafChanges(additionalProperties, value[first], at));
    changes.push({ path: at, value: undefined });
  }
  const free = keysOf(additionalProperties, keys.length + 1)
    .find((key) => !Object.hasOwn(value, key));
  const added = fittingValue(additionalProperties, { optional: true });
  if (added !== undefined && free !== undefined) {
    changes.push({ path: [...path, free], value: added });
  }
  return changes;
}

function listChanges(
  schema: OpenApiSchema,
  value: readonly unknown[] | undefined,
  path: readonly (string | number)[],
): readonly LeafChange[] {
  if (value === undefined) {
    const added = fittingValue(schema, { optional: true });
    return Array.isArray(added) && added.length > 0
      ? [{ path, value: added }]
      : [];
  }
  const { items = {} } = schema;
  const changes: LeafChange[] = [];
  // Items are replaced as a whole list: merge patches know no other way.
  if (value.length > 0) {
    for (const change of leafChanges(items, value[0], [])) {
      const first = changed(value[0], change);
      if (first === undefined) continue;
      changes.push({ path, value: [first, ...value.slice(1)] });
    }
  }
  const least = numberOf(schema["minItems"]) ?? 0;
  const most = numberOf(schema["maxItems"]) ?? Infinity;
  if (value.length < most) {
    const item = differentItem(items, value.length, true);
    if (item !== undefined) changes.push({ path, value: [...value, item] });
  }
  if (value.length > least && value.length > 0) {
    changes.push({ path, value: value.slice(0, -1) });
  }
  return changes;
}

/** Returns a value with one leaf changed, without modifying the given one. */
export function changed(value: unknown, change: LeafChange): unknown {
  const [first, ...path] = change.path;
  if (first === undefined) return change.value;
  if (Array.isArray(value)) {
    return value.map((item, at) =>
      at === first ? changed(item, { ...change, path }) : item
    );
  }
  const copy: JsonObject = isJsonObject(value) ? { ...value } : {};
  const inner = changed(ownValue(copy, String(first)), { ...change, path });
  if (inner === undefined) delete copy[String(first)];
  else setOwn(copy, String(first), inner);
  return copy;
}

/** Scalar values that are valid for a schema, the usual one first. */
function scalars(schema: OpenApiSchema, name: string): readonly unknown[] {
  const found = candidates(schema, name).filter((value) =>
    isValid(value, schema)
  );
  return [...new Set(found)];
}

function candidates(schema: OpenApiSchema, name: string): readonly unknown[] {
  if (Array.isArray(schema.enum)) {
    return schema.enum.filter((value) => value !== null);
  }
  if (schema["x-kubernetes-int-or-string"] === true) return [1, "50%", 2];
  switch (schema.type) {
    case "boolean":
      return [false, true];
    case "integer":
    case "number":
      return numbers(schema);
    case "string":
      return texts(schema, name);
    case "object":
      return schema["x-kubernetes-preserve-unknown-fields"] === true
        ? [{}]
        : [];
    default:
      return schema["x-kubernetes-preserve-unknown-fields"] === true
        ? ["a", "b"]
        : [];
  }
}

function numbers(schema: OpenApiSchema): readonly number[] {
  const least = numberOf(schema["minimum"]);
  const most = numberOf(schema["maximum"]);
  const step = numberOf(schema["multipleOf"]) ?? 1;
  const bounds = [least, most].flatMap((bound) =>
    bound === undefined || Math.abs(bound) > 2 ** 31
      ? []
      : [bound, bound + step, bound - step]
  );
  const usual = [1, 2, 3, 0, step, 2 * step, ...bounds];
  if (usual.some((value) => isValid(value, schema))) return usual;
  // Limits that are far from zero, close to each other, or between multiples.
  const first = Math.ceil((least ?? 0) / step) * step;
  const last = Math.floor((most ?? 0) / step) * step;
  const middle = ((least ?? 0) + (most ?? 0)) / 2;
  return [first, first + step, last, last - step, middle];
}

function texts(schema: OpenApiSchema, name: string): readonly string[] {
  const { format = "" } = schema;
  const known = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (known !== undefined) return known;
  const pattern = schema["pattern"];
  const least = numberOf(schema["minLength"]) ?? 0;
  const named = NAMED_TEXTS.find(([part]) => part.test(name))?.[1] ?? [];
  const padded = least > 0 && least <= MAX_SIZE * 16
    ? ["a".repeat(least), "b".repeat(least)]
    : [];
  const made = typeof pattern === "string"
    ? [textMatching(pattern, 0), textMatching(pattern, 1)]
    : [];
  const usual = [...named, ...TEXTS, ...padded, ...made];
  return usual.filter((text): text is string => text !== undefined);
}

/** Whether the server accepts a value, apart from CEL rules. */
function isValid(value: unknown, schema: OpenApiSchema): boolean {
  return validateSchema(value, schema).length === 0;
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isSchema(value: unknown): value is OpenApiSchema {
  return isJsonObject(value);
}
