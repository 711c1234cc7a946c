import type { StandardSchema } from "./standard_schema.ts";

/** JSON Schema as libraries write it: dialects mixed, nothing promised. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Marks what a library can check but JSON Schema cannot say; the value is the
 * library's word for it, such as `date`.
 */
export const UNREPRESENTABLE = "x-unrepresentable";

/** zod's words for schemas that have no JSON form. */
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
 * By default zod throws at the first date without saying where. Marked instead,
 * the place is known when the mark is met.
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
 * Refuses what is no schema.
 *
 * @throws {TypeError} If it is no Standard Schema that can write itself down.
 */
export function checkSchema(schema: StandardSchema, where: string): void {
  if (typeof schema?.["~standard"]?.jsonSchema?.input === "function") return;
  throw new TypeError(
    `Cannot read the schema of ${where}: it must be a Standard Schema with JSON Schema output, as those of zod 4.2 and later: received ${typeof schema}`,
  );
}

/**
 * Asks a schema to write down what may be written where it stands.
 *
 * @throws {TypeError} If it is no Standard Schema, or cannot write itself.
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

/** Follows `#`, `#/definitions/Name` and other pointers within a document. */
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

/** Whether a value is an object with named members. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
