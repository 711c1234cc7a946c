import {
  isJsonObject,
  type JsonObject,
} from "../../../core/patch/json_value.ts";

/** Keywords of which null is a value. */
const VALUES: ReadonlySet<string> = new Set(["default", "enum", "example"]);

/** Keywords that hold schemas by name. */
const MAPS: readonly string[] = [
  "properties",
  "patternProperties",
  "definitions",
  "dependencies",
];

/** Keywords that hold lists of schemas. */
const LISTS: readonly string[] = ["allOf", "anyOf", "oneOf"];

/** Keywords that hold a schema. */
const SCHEMAS: readonly string[] = ["items", "additionalProperties", "not"];

/**
 * Reads null in a schema as Go's types do, in place: a keyword that is not
 * there, or, among schemas, one that says nothing.
 */
export function dropSchemaNulls(schema: JsonObject): void {
  for (const [keyword, value] of Object.entries(schema)) {
    if (value === null && !VALUES.has(keyword)) delete schema[keyword];
  }
  for (const keyword of [...MAPS, ...LISTS]) {
    const inner = schema[keyword];
    if (typeof inner !== "object" || inner === null) continue;
    const schemas = inner as Record<string, unknown>;
    for (const name of Object.keys(schemas)) {
      schemas[name] ??= {};
      dropIn(schemas[name]);
    }
  }
  for (const keyword of SCHEMAS) dropIn(schema[keyword]);
}

function dropIn(value: unknown): void {
  if (isJsonObject(value)) dropSchemaNulls(value);
}
