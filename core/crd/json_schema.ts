import { isJsonObject } from "../patch/json_value.ts";
import type { StandardSchema } from "./standard_schema.ts";
import { errorMessage } from "../error_text.ts";

/** A JSON Schema of any dialect, as a schema library returns it. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/**
 * Keyword for types that a library supports but JSON Schema cannot express; its
 * value is the name of the type in the library, such as `date`.
 */
export const UNREPRESENTABLE = "x-unrepresentable";

/** Keyword for schemas with checks in code, such as those of `refine`. */
export const CHECKED_IN_CODE = "x-checked-in-code";

const NO_TRANSFORMATION =
  "the server stores values as they are written and runs no transformation, so give the schema of the written value alone, and convert in the reconciler";

/** Advice for zod types without a JSON form, by the name of the type. */
export const INSTEAD: Readonly<Record<string, string>> = {
  bigint: "JSON has no bigint, so write z.int(), or z.string() for more digits",
  custom:
    'a type of TypeScript alone has no schema, so give one by .meta(), such as .meta(schemaOf("PodTemplateSpec")) for types of @coracle/operator/kinds',
  date:
    "JSON has no dates, so write z.iso.datetime(), whose values are the texts that are stored",
  function: "JSON has no functions",
  map: "JSON has no maps, so write z.record()",
  nan: "JSON has no NaN",
  pipe: NO_TRANSFORMATION,
  promise: "JSON has no promises",
  set:
    'JSON has no sets, so write z.array().meta({ "x-kubernetes-list-type": "set" })',
  symbol: "JSON has no symbols",
  transform: NO_TRANSFORMATION,
  undefined: "JSON has no undefined, so write .optional() on the field",
  void: "JSON has no undefined, so write .optional() on the field",
};

/** Keywords of `.meta()` that give a type to a schema without one. */
const TYPED_REGEXP =
  /^(?:type|const|enum|anyOf|oneOf|allOf|properties|x-kubernetes-.*)$/;

/** Checks of zod that are code: `refine`, changes such as `trim`, and `z.property()`. */
const CODE: ReadonlySet<string> = new Set(["custom", "overwrite", "property"]);

/** Definition of a schema of zod, or of one of its checks. */
interface ZodCheck {
  readonly check?: string;
  readonly pattern?: unknown;
  readonly format?: string;
  readonly hostname?: unknown;
  readonly protocol?: unknown;
}

/** Whether zod checks a format in code, as JSON Schema has no keyword for it. */
function isFormatInCode({ format, hostname, protocol }: ZodCheck): boolean {
  return format === "jwt" ||
    (format === "url" && (hostname ?? protocol) !== undefined);
}

/** Schema of zod, with the schema of the names of a record. */
interface ZodSchema {
  readonly _zod: {
    readonly def: ZodCheck & {
      readonly type: string;
      readonly keyType?: ZodSchema;
      readonly checks?: readonly {
        readonly _zod: { readonly def: ZodCheck };
      }[];
    };
    readonly values?: ReadonlySet<unknown>;
  };
}

/** Flags of a regular expression that change what it matches, and that Go has too. */
const FLAGS = /[ims]/g;

/** Keeps the flags of the patterns of a text, which zod leaves out. */
function keepFlags(
  patterns: readonly unknown[],
  jsonSchema: Record<string, unknown>,
): void {
  const { allOf } = jsonSchema;
  const all = [jsonSchema, ...Array.isArray(allOf) ? allOf : []];
  for (const pattern of patterns) {
    if (!(pattern instanceof RegExp)) continue;
    const { source, flags } = pattern;
    const kept = flags.match(FLAGS)?.join("");
    if (kept === undefined) continue;
    for (const one of all) {
      if (one.pattern === source) one.pattern = `(?${kept}:${source})`;
    }
  }
}

/**
 * Options of zod that mark types without a JSON form instead of throwing,
 * because the error of zod does not contain the path. A record of known names is
 * an object with these fields.
 */
const ZOD_OPTIONS: Record<string, unknown> = {
  unrepresentable: "any",
  override: ({ zodSchema, jsonSchema }: {
    readonly zodSchema: ZodSchema;
    readonly jsonSchema: Record<string, unknown>;
  }) => {
    const { type, keyType, checks: given = [] } = zodSchema._zod.def;
    const checks = given.map(({ _zod: { def } }) => def);
    const all = [zodSchema._zod.def, ...checks];
    keepFlags(all.map(({ pattern }) => pattern), jsonSchema);
    const isCode = checks.some(({ check = "" }) => CODE.has(check));
    if (isCode || all.some(isFormatInCode)) jsonSchema[CHECKED_IN_CODE] = true;
    const typed = type === "custom" &&
      Object.keys(jsonSchema).some((key) => TYPED_REGEXP.test(key));
    if (type in INSTEAD && !typed) jsonSchema[UNREPRESENTABLE] = type;
    const names = keyType?._zod.values;
    if (names === undefined || type !== "record") return;
    const { additionalProperties: value } = jsonSchema;
    jsonSchema.properties = Object.fromEntries(
      Array.from(names, (name) => [name, value]),
    );
    jsonSchema.additionalProperties = false;
  },
};

/**
 * Checks that a value is a Standard Schema that can be converted to JSON Schema.
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
        errorMessage(error)
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
    if (!isJsonObject(node) || !Object.hasOwn(node, key)) return undefined;
    node = node[key];
  }
  return isJsonObject(node) ? node : undefined;
}
