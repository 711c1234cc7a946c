import {
  isJsonObject,
  type JsonObject,
} from "../../../core/patch/json_value.ts";

/** Keywords for which null is a value. */
const VALUES: ReadonlySet<string> = new Set(["default", "enum", "example"]);

/** Keywords whose value maps names to schemas. */
const MAPS: readonly string[] = [
  "properties",
  "patternProperties",
  "definitions",
  "dependencies",
];

/** Keywords whose value is a list of schemas. */
const LISTS: readonly string[] = ["allOf", "anyOf", "oneOf"];

/** Keywords whose value is a schema. */
const SCHEMAS: readonly string[] = ["items", "additionalProperties", "not"];

/**
 * Removes nulls from a schema as Go decodes it, in place: a null keyword counts as
 * absent, a null schema in a map or list as empty.
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
