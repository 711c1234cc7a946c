import type { OpenApiSchema } from "@coracle/operator/internal";
import { childPath, keyPath } from "../../validation/field_path.ts";

/** Field in a schema, found by its path. */
export interface SchemaField {
  /** Path in the form of causes, without a leading dot. */
  readonly path: string;
  readonly schema: OpenApiSchema;
}

const TOKEN_REGEXP = /'(?:\\.|[^'\\])*'|[.[\]]|[^.[\]]+/g;

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "'": "'",
  "\\": "\\",
};

/**
 * Resolves a path such as `.spec.map['a key']` in a schema.
 *
 * @returns Field, or the violation with the server's message.
 */
export function followSchemaPath(
  text: string,
  schema: OpenApiSchema,
  { brackets = true }: { readonly brackets?: boolean } = {},
): SchemaField | string {
  const tokens = text.match(TOKEN_REGEXP) ?? [];
  let field: SchemaField = { path: "", schema };
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index];
    let name: string | undefined;
    if (token === ".") {
      name = tokens[++index];
      if (name === undefined) return "unexpected end of JSON path";
    } else if (token === "[") {
      if (!brackets) return "array notation is not allowed";
      const quoted = tokens[++index];
      if (quoted === undefined) return "unexpected end of JSON path";
      if (!/^'.*'$/s.test(quoted)) {
        return `expected single quoted string but got ${quoted}`;
      }
      name = quoted.slice(1, -1).replace(
        /\\(.)/g,
        (_, escape: string) => ESCAPES[escape] ?? "",
      );
      const end = tokens[++index];
      if (end === undefined) return "unexpected end of JSON path";
      if (end !== "]") return `expected ] but got ${end}`;
    } else return `expected [ or . but got: ${token}`;
    const next = step(field, name);
    if (next === undefined) return "does not refer to a valid field";
    field = next;
  }
  return field;
}

function step(
  { path, schema }: SchemaField,
  name: string,
): SchemaField | undefined {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined) {
    const property = Object.hasOwn(properties, name)
      ? properties[name]
      : undefined;
    return property && { path: childPath(path, name), schema: property };
  }
  return typeof additionalProperties === "object"
    ? { path: keyPath(path, name), schema: additionalProperties }
    : undefined;
}
