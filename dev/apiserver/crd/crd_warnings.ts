import type { UntypedObject } from "@coracle/operator/client";
import {
  type CrdObject,
  isJsonObject,
  type OpenApiSchema,
} from "@coracle/operator/internal";
import { goQuote } from "../validation/go_value.ts";
import { formatOf } from "./schema/scalar_checks.ts";

/** Warnings for the formats of a CRD that the server ignores, unless the live CRD has them. */
export function formatWarnings(
  object: UntypedObject,
  live?: UntypedObject,
): string[] {
  const known = new Set(live === undefined ? [] : unknownFormats(live));
  return unknownFormats(object).filter((format) => !known.has(format))
    .map((format) => `unrecognized format ${goQuote(format)}`);
}

function unknownFormats(object: UntypedObject): string[] {
  const { spec } = object as unknown as CrdObject;
  return spec.versions.flatMap(({ schema }) =>
    formatsIn(schema?.openAPIV3Schema)
  );
}

function formatsIn(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(formatsIn);
  if (!isJsonObject(schema)) return [];
  const { format, items, allOf, anyOf, oneOf, not, properties } =
    schema as OpenApiSchema;
  const own = typeof format === "string" && format !== "" &&
      formatOf(schema as OpenApiSchema) === ""
    ? [format]
    : [];
  return [
    own,
    ...[items, allOf, anyOf, oneOf, not].map(formatsIn),
    isJsonObject(properties) ? formatsIn(Object.values(properties)) : [],
    formatsIn(schema.additionalProperties),
  ].flat();
}
