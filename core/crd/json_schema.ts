import type { StandardSchema } from "./standard_schema.ts";

/** A JSON Schema of any dialect, as a schema library returns it. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Keyword for types that a library supports but JSON Schema cannot express; its
 * value is the name of the type in the library, such as `date`.
 */
export const UNREPRESENTABLE = "x-unrepresentable";

/** Types of zod that have no JSON form. */
const ZOD_UNREPRESENTABLE: ReadonlySet<string> = new Set([
  "bigint",
  "custom",
  "date",
  "function",
  "map",
  "nan",
  "set",
  "symbol",
  "transform",
  "undefined",
  "void",
]);

/**
 * Options of zod that mark such types instead of throwing, because the error of
 * zod does not contain the path.
 */
const ZOD_OPTIONS: Record<string, unknown> = {
  unrepresentable: "any",
  override: (context: {
    readonly zodSchema: { readonly _zod: { readonly def: { type: string } } };
    readonly jsonSchema: Record<string, unknown>;
  }) => {
    const { type } = context.zodSchema._zod.def;
    if (ZOD_UNREPRESENTABLE.has(type) && !("type" in context.jsonSchema)) {
      context.jsonSchema[UNREPRESENTABLE] = type;
    }
  },
};

/**
 * Checks that a value is a Standard Schema that can be converted to JSON Schema.
 *
 * @param schema The value of the user.
 * @param where Its place, for errors.
 * @throws {TypeError} If it is not.
 */
export function checkSchema(schema: StandardSchema, where: string): void {
  if (typeof schema?.["~standard"]?.jsonSchema?.input === "function") return;
  throw new TypeError(
    `Cannot read the schema of ${where}: it must be a Standard Schema with JSON Schema output, as those of zod 4.2 and later: received ${typeof schema}`,
  );
}

/**
 * Converts a schema to JSON Schema, for the values that can be written.
 *
 * @param schema The schema.
 * @param where Its place, for errors.
 * @throws {TypeError} If it is not a Standard Schema, or cannot be converted.
 */
export function jsonSchemaOf(
  schema: StandardSchema,
  where: string,
): JsonSchema {
  checkSchema(schema, where);
  const standard = schema["~standard"];
  try {
    return standard.jsonSchema.input({
      target: "openapi-3.0",
      ...(standard.vendor === "zod" ? { libraryOptions: ZOD_OPTIONS } : {}),
    });
  } catch (error) {
    throw new TypeError(
      `Cannot read the schema of ${where}: ${standard.vendor} cannot write it as JSON Schema: received ${
        error instanceof Error ? error.message : String(error)
      }`,
      { cause: error },
    );
  }
}

/** Resolves a reference within a document, such as `#/definitions/Name`. */
export function followReference(
  root: JsonSchema,
  reference: string,
): JsonSchema | undefined {
  if (!reference.startsWith("#")) return undefined;
  let node: unknown = root;
  for (const part of reference.split("/").slice(1)) {
    const key = decodeURIComponent(part)
      .replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isRecord(node) || !Object.hasOwn(node, key)) return undefined;
    node = node[key];
  }
  return isRecord(node) ? node : undefined;
}

/** Whether a value is an object, and not an array or null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
