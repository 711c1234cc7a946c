/**
 * Objects that could not be converted, as they stand in lists and watches.
 *
 * @module
 */
import type { UntypedObject } from "../api/object.ts";
import { isJsonObject } from "../patch/json_value.ts";

/**
 * Annotation of an object that could not be converted, with its content and the
 * reason. Its spec is empty.
 */
export const FAILED_ANNOTATION = "conversion.coracle.dev/failed";

/** Content of {@linkcode FAILED_ANNOTATION}. */
export interface Failed {
  readonly version: string;
  readonly reason: string;
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** Whether an object stands for one that could not be converted. */
function isUnconverted(
  { spec, metadata }:
    & { readonly spec?: unknown }
    & Pick<
      UntypedObject,
      "metadata"
    >,
): boolean {
  return metadata.annotations?.[FAILED_ANNOTATION] !== undefined &&
    isPlaceholder({ spec });
}

/** Reason why an object could not be converted; undefined if it was. */
export function failureOf(
  object: { readonly spec?: unknown } & Pick<UntypedObject, "metadata">,
): string | undefined {
  if (!isUnconverted(object)) return undefined;
  const text = object.metadata.annotations?.[FAILED_ANNOTATION];
  return parsed(text, isFailed)?.reason ?? "its content is not known";
}

/**
 * Version in which an object was written that could not be converted; undefined
 * for other objects.
 */
export function storedVersionOf(object: UntypedObject): string | undefined {
  if (!isUnconverted(object)) return undefined;
  const text = object.metadata.annotations?.[FAILED_ANNOTATION];
  return parsed(text, isFailed)?.version;
}

/** Whether an object has the spec of one that could not be converted. */
export function isPlaceholder({ spec }: { readonly spec?: unknown }): boolean {
  return isJsonObject(spec) && Object.keys(spec).length === 0;
}

/** Content of an annotation; undefined if it is absent or not of our form. */
export function parsed<T>(
  text: string | undefined,
  check: (value: unknown) => value is T,
): T | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the content of {@linkcode FAILED_ANNOTATION} has our form. */
export function isFailed(value: unknown): value is Failed {
  return isJsonObject(value) && typeof value.version === "string" &&
    typeof value.reason === "string" && isJsonObject(value.spec);
}
