import type { OpenApiSchema } from "@coracle/operator/core";
import type { CrdManifest } from "@coracle/operator/crd";
import { jsonEquals } from "@coracle/operator/internal";
import { formatOf } from "../apiserver/crd/schema/scalar_checks.ts";
import {
  COMBINED,
  combinedHoldsForOlder,
  fieldOf,
  holdsForOlder,
} from "./rule_on_older.ts";

/** Change of a schema that refuses or loses what the older one accepted. */
export interface SchemaChange {
  /** Path of the field, such as `spec.ports[].name`; empty for the whole. */
  readonly path: string;
  /** What changed, such as `maximum was 10, is 5`. */
  readonly what: string;
  /** Whether the field became required, and older objects may lack it. */
  readonly isRequired?: boolean;
  /** Whether the server drops what objects have there. */
  readonly isLoss?: boolean;
}

type Version = CrdManifest["spec"]["versions"][number];

/** Keywords that refuse more the larger they are, and those the smaller. */
const LOWER = ["minimum", "minLength", "minItems", "minProperties"] as const;
const UPPER = ["maximum", "maxLength", "maxItems", "maxProperties"] as const;
const PRESERVES = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING = "x-kubernetes-int-or-string";

/**
 * Changes of a definition that break objects or clients of an earlier one: what was
 * removed, or is narrower than before. What they are follows crdify; a default that
 * is new, a rule that compares with `oldSelf`, and one that asks only for new fields
 * or new values of an enum break nothing.
 *
 * @returns Sentences without a full stop, in the order of versions and fields.
 */
export function incompatibleChanges(
  definition: CrdManifest,
  earlier: CrdManifest,
): readonly string[] {
  const { name } = earlier.metadata;
  const found: string[] = [];
  const changed = (what: string, before: unknown, now: unknown) => {
    if (!jsonEquals(before, now)) {
      found.push(`${name}: ${turned(what, before, now)}`);
    }
  };
  changed("scope", earlier.spec.scope, definition.spec.scope);
  changed("kind", earlier.spec.names.kind, definition.spec.names.kind);
  for (const before of earlier.spec.versions) {
    const version = definition.spec.versions.find((one) =>
      one.name === before.name
    );
    const place = `${name} ${before.name}`;
    if (version === undefined) {
      if (isInUse(before, earlier)) {
        found.push(`${place}: the version was removed`);
      }
      continue;
    }
    for (const what of versionChanges(version, before)) {
      found.push(`${place}: ${what}`);
    }
    for (
      const { path, what, isLoss } of schemaChanges(
        schemaOf(version),
        schemaOf(before),
      )
    ) {
      // What is not served is read from the storage, and no longer validated.
      if (version.served === false && !isLoss) continue;
      found.push(`${place} ${path === "" ? "the object" : path}: ${what}`);
    }
  }
  return found;
}

/** Schema of a version. */
export function schemaOf(version: Version): OpenApiSchema {
  return version.schema?.openAPIV3Schema ?? {};
}

/** Whether clients use a version, or objects are stored in it. */
function isInUse(
  { name, served, storage }: Version,
  { status }: CrdManifest & {
    readonly status?: { readonly storedVersions?: readonly string[] };
  },
): boolean {
  return served !== false || storage === true ||
    status?.storedVersions?.includes(name) === true;
}

function* versionChanges(version: Version, before: Version): Generator<string> {
  if (before.served !== false && version.served === false) {
    yield "the version is no longer served";
  }
  if (version.served === false) return;
  for (const { jsonPath } of before.selectableFields ?? []) {
    if (!version.selectableFields?.some((one) => one.jsonPath === jsonPath)) {
      yield `field selectors can no longer name ${jsonPath}`;
    }
  }
  for (const part of ["status", "scale"] as const) {
    if (before.subresources?.[part] && !version.subresources?.[part]) {
      yield `the subresource ${part} was removed`;
    }
  }
}

/**
 * Changes of a schema that refuse or lose values of an older one.
 *
 * @param path Path of the value.
 */
export function* schemaChanges(
  schema: OpenApiSchema,
  older: OpenApiSchema,
  path = "",
): Generator<SchemaChange, void, undefined> {
  for (const what of valueChanges(schema, older)) yield { path, what };
  if (keepsUnknown(older) && !keepsUnknown(schema)) {
    const what = "fields without a schema are no longer kept";
    yield { path, what, isLoss: true };
  }
  const { properties = {} } = schema;
  const { properties: before = {} } = older;
  const isOpen = schema[PRESERVES] === true ||
    Boolean(schema.additionalProperties);
  for (const [name, field] of Object.entries(properties)) {
    if (isNewlyRequired(name, schema, older)) {
      const at = joined(path, name);
      yield { path: at, what: "it is required now", isRequired: true };
    }
    const other = fieldOf(before, name);
    if (other !== undefined) {
      yield* schemaChanges(field, other, joined(path, name));
    }
  }
  for (const name of Object.keys(before)) {
    if (fieldOf(properties, name) === undefined && !isOpen) {
      const what = "the field was removed";
      yield { path: joined(path, name), what, isLoss: true };
    }
  }
  if (schema.items !== undefined && older.items !== undefined) {
    yield* schemaChanges(schema.items, older.items, `${path}[]`);
  }
  const { additionalProperties: values } = schema;
  // Any value was allowed under "true".
  const others = older.additionalProperties === true
    ? {}
    : older.additionalProperties;
  if (typeof values === "object" && typeof others === "object") {
    yield* schemaChanges(values, others, `${path}.*`);
  }
}

/** Whether older objects may lack a field that is required and has no default. */
function isNewlyRequired(
  name: string,
  { required, properties }: OpenApiSchema,
  older: OpenApiSchema,
): boolean {
  if (!required?.includes(name)) return false;
  if (fieldOf(properties, name)?.default !== undefined) return false;
  const before = fieldOf(older.properties, name);
  return before === undefined ||
    !(older.required?.includes(name) || before.default !== undefined);
}

/** Changes of the keywords of one value. */
function* valueChanges(
  schema: OpenApiSchema,
  older: OpenApiSchema,
): Generator<string> {
  if (typeOf(schema) !== typeOf(older) && !widens(schema, older)) {
    yield turned("type", typeOf(older), typeOf(schema));
  }
  if (older.nullable === true && schema.nullable !== true) {
    yield "null is no longer allowed";
  }
  if (schema.enum !== undefined) {
    const gone = older.enum?.filter((value) =>
      !schema.enum?.some((one) => jsonEquals(one, value))
    );
    if (gone === undefined) yield `only ${textOf(schema.enum)} are allowed now`;
    else if (gone.length > 0) yield `${textOf(gone)} is no longer allowed`;
  }
  const former = rulesOf(older);
  // The older values are known: they may satisfy a keyword that is new.
  const fit = (keyword: string) =>
    older.enum?.every((value) => satisfies(value, keyword, schema)) === true;
  for (const [keywords, sign] of [[LOWER, 1], [UPPER, -1]] as const) {
    for (const keyword of keywords) {
      if (fit(keyword)) continue;
      const now = schema[keyword];
      const before = older[keyword];
      if (
        typeof now !== "number" ||
        (sign === 1 && now === 0 && keyword !== "minimum")
      ) {
        continue;
      }
      const isSame = keyword === "minLength" && now === 1 &&
        holdsForOlder("self != ''", schema, older, former);
      const narrower = typeof before !== "number" || sign * (now - before) > 0;
      if (narrower && !isSame) yield turned(keyword, before, now);
    }
  }
  for (const keyword of ["exclusiveMinimum", "exclusiveMaximum"]) {
    if (schema[keyword] === true && older[keyword] !== true) {
      yield `${keyword} is new`;
    }
  }
  if (schema["uniqueItems"] === true && older["uniqueItems"] !== true) {
    yield "equal items are no longer allowed";
  }
  const step = schema["multipleOf"];
  if (typeof step === "number" && !isMultiple(older["multipleOf"], step)) {
    yield turned("multipleOf", older["multipleOf"], step);
  }
  for (const keyword of ["pattern", "format"] as const) {
    const now = schema[keyword];
    if (now === undefined || jsonEquals(now, older[keyword])) continue;
    if (fit(keyword)) continue;
    if (keyword === "format" && !isFormatNarrower(schema, older)) continue;
    yield turned(keyword, older[keyword], now);
  }
  if (
    older.default !== undefined && !jsonEquals(schema.default, older.default)
  ) {
    yield turned("default", older.default, schema.default);
  }
  yield* listChanges(schema, older);
  for (const keyword of COMBINED) {
    const now = schema[keyword];
    if (
      now !== undefined && !jsonEquals(now, older[keyword]) &&
      !combinedHoldsForOlder(keyword, schema, older)
    ) {
      yield `${keyword} is ${older[keyword] === undefined ? "new" : "another"}`;
    }
  }
  for (const rule of rulesOf(schema)) {
    const isNew = !former.includes(rule);
    if (isNew && !holdsForOlder(rule, schema, older, former)) {
      yield `the rule ${
        JSON.stringify(rule)
      } is new, and may refuse stored objects`;
    }
  }
}

/** Whether a text satisfies a keyword of a schema; false where that is not known. */
function satisfies(
  value: unknown,
  keyword: string,
  schema: OpenApiSchema,
): boolean {
  if (typeof value !== "string") return false;
  const limit = schema[keyword];
  const length = Array.from(value).length;
  switch (keyword) {
    case "minLength":
      return length >= Number(limit ?? 0);
    case "maxLength":
      return length <= Number(limit ?? Infinity);
    case "pattern":
      try {
        return new RegExp(String(limit), "u").test(value);
      } catch {
        return false; // It is a pattern of Go alone.
      }
    default:
      return false;
  }
}

/** Whether the server refuses values by a format that another one allowed. */
function isFormatNarrower(
  schema: OpenApiSchema,
  older: OpenApiSchema,
): boolean {
  const now = formatOf(schema);
  // Each integer is one of 64 bits, and each number a double.
  return !["", "int64", "double", "password"].includes(now) &&
    now.replaceAll("-", "") !== formatOf(older).replaceAll("-", "");
}

/** A list whose items must differ now, in whole or in other fields. */
function* listChanges(
  schema: OpenApiSchema,
  older: OpenApiSchema,
): Generator<string> {
  const now = schema["x-kubernetes-list-type"] ?? "atomic";
  const before = older["x-kubernetes-list-type"] ?? "atomic";
  const keys = schema["x-kubernetes-list-map-keys"];
  const formerKeys = older["x-kubernetes-list-map-keys"];
  if (now !== before && now !== "atomic") {
    yield turned("x-kubernetes-list-type", before, now);
  } else if (now === "map" && !jsonEquals(keys, formerKeys)) {
    yield turned("x-kubernetes-list-map-keys", formerKeys, keys);
  }
}

/** Rules for each value of a schema, without those for its changes. */
function rulesOf(schema: OpenApiSchema): readonly string[] {
  const rules = schema["x-kubernetes-validations"];
  return Array.isArray(rules)
    ? rules.map((one: { readonly rule?: unknown }) => String(one?.rule).trim())
      .filter((rule) => !/\boldSelf\b/.test(rule))
    : [];
}

function typeOf(schema: OpenApiSchema): string {
  return schema[INT_OR_STRING] === true
    ? "integer or string"
    : schema.type ?? "any";
}

/** Whether each value of an older type is one of the new type. */
function widens(schema: OpenApiSchema, older: OpenApiSchema): boolean {
  const now = typeOf(schema);
  const before = typeOf(older);
  return now === "any" || (now === "number" && before === "integer") ||
    (now === "integer or string" && ["integer", "string"].includes(before));
}

function keepsUnknown(schema: OpenApiSchema): boolean {
  return schema[PRESERVES] === true || Boolean(schema.additionalProperties);
}

function isMultiple(before: unknown, step: number): boolean {
  return typeof before === "number" && before % step === 0;
}

/** What a keyword was and is. */
function turned(what: string, before: unknown, now: unknown): string {
  if (before === undefined) return `${what} ${shown(now)} is new`;
  return now === undefined
    ? `${what} ${shown(before)} was removed`
    : `${what} was ${shown(before)}, is ${shown(now)}`;
}

/** Longest value in a sentence, in characters. */
const SHOWN = 200;

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function textOf(values: readonly unknown[]): string {
  return shown(values.map((value) => JSON.stringify(value)).join(", "));
}

function joined(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
