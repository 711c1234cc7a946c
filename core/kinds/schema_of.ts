import { nearestName, typeText } from "../api/options.ts";
import { type TypeName, typeSchemas } from "./type_schemas.ts";

/** Schema whose inner schemas may be types or names of types. */
interface TypeSchema {
  readonly properties?: Readonly<Record<string, string | TypeSchema>>;
  readonly items?: string | TypeSchema;
  readonly additionalProperties?: string | TypeSchema;
}

/**
 * Returns the JSON Schema of a type of this module, for fields of that type in
 * kinds of your own. The server validates such fields, and drops unknown ones.
 *
 * The schema is structural, so that a CustomResourceDefinition may contain it: it
 * has no references and no descriptions. Metadata has the fields that people
 * write. Quantities may be numbers, as in manifests, and are stored as written.
 * A type that contains itself keeps unknown fields where it does.
 *
 * @param name The name of the type, such as `PodTemplateSpec`.
 * @throws {RangeError} If there is no such type.
 *
 * @example A kind with a template of pods
 * ```ts
 * import { defineKind } from "@coracle/operator/crd";
 * import { type PodTemplateSpec, schemaOf } from "@coracle/operator/kinds";
 * import { z } from "zod";
 *
 * const Worker = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Worker",
 *   spec: z.object({
 *     template: z.custom<PodTemplateSpec>().meta(schemaOf("PodTemplateSpec")),
 *   }),
 * });
 * ```
 */
export function schemaOf(name: TypeName): Record<string, unknown> {
  const schemas = JSON.parse(typeSchemas()) as Record<
    string,
    string | TypeSchema
  >;
  if (!Object.hasOwn(schemas, name)) {
    const nearest = nearestName(String(name), Object.keys(schemas));
    throw new RangeError(
      `Cannot find the schema of a type: @coracle/operator/kinds has no such type${
        nearest === undefined ? "" : `, did you mean "${nearest}"?`
      }: received ${
        typeof name === "string" ? JSON.stringify(name) : typeText(name)
      }`,
    );
  }
  return resolve(name, schemas, []);
}

/** Replaces types and their names in a schema by what they stand for. */
function resolve(
  schema: string | TypeSchema,
  schemas: Readonly<Record<string, string | TypeSchema>>,
  within: readonly string[],
): Record<string, unknown> {
  if (typeof schema === "string") {
    const named = schemas[schema];
    if (named === undefined) return { type: schema };
    return within.includes(schema)
      ? { "x-kubernetes-preserve-unknown-fields": true }
      : resolve(named, schemas, [...within, schema]);
  }
  const { properties, items, additionalProperties, ...rest } = schema;
  const draft: Record<string, unknown> = rest;
  if (properties !== undefined) {
    draft.properties = Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [
        name,
        resolve(field, schemas, within),
      ]),
    );
  }
  if (additionalProperties !== undefined) {
    draft.additionalProperties = resolve(additionalProperties, schemas, within);
  }
  if (items !== undefined) draft.items = resolve(items, schemas, within);
  return draft;
}
