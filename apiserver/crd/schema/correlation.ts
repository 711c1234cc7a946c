import type { OpenApiSchema } from "../../../core/patch/schema.ts";
import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
} from "../../../core/patch/json_value.ts";
import { canonicalText, ownField } from "./json_tree.ts";

/**
 * A value of a new object beside the value that stood in the same place of the
 * old one. What did not change is not held against an update (ratcheting), and
 * transition rules compare the two.
 *
 * Fields of maps correspond by name, items of a list of type `map` by their
 * keys; items of other lists correspond to nothing.
 */
export class Correlation {
  readonly value: unknown;
  readonly old: unknown;
  readonly #schema: OpenApiSchema;
  #oldItems: ReadonlyMap<string, unknown> | undefined;
  #unchanged: boolean | undefined;

  /**
   * @param value The new value.
   * @param old The old one; never undefined.
   * @param schema The schema of both.
   */
  constructor(value: unknown, old: unknown, schema: OpenApiSchema) {
    this.value = value;
    this.old = old;
    this.#schema = schema;
  }

  /** Whether new and old are the same. */
  get unchanged(): boolean {
    return this.#unchanged ??= jsonEquals(this.value, this.old);
  }

  /** The values of a field; undefined if one of them is missing. */
  key(name: string): Correlation | undefined {
    if (!isJsonObject(this.value) || !isJsonObject(this.old)) return undefined;
    if (!Object.hasOwn(this.value, name) || !Object.hasOwn(this.old, name)) {
      return undefined;
    }
    const schema = fieldSchema(this.#schema, name);
    return schema &&
      new Correlation(this.value[name], this.old[name], schema);
  }

  /** The values of an item; undefined if the old list has none like it. */
  index(index: number): Correlation | undefined {
    const { items } = this.#schema;
    const keys = this.#schema["x-kubernetes-list-map-keys"];
    if (
      this.#schema["x-kubernetes-list-type"] !== "map" || keys === undefined ||
      items === undefined || !Array.isArray(this.value) ||
      !Array.isArray(this.old)
    ) return undefined;
    const item: unknown = this.value[index];
    if (!isJsonObject(item)) return undefined;
    this.#oldItems ??= new Map(
      this.old.filter(isJsonObject).map((old) => [itemKey(old, keys), old]),
    );
    const old = this.#oldItems.get(itemKey(item, keys));
    return old === undefined ? undefined : new Correlation(item, old, items);
  }
}

/** The schema of a field, named or not. */
export function fieldSchema(
  schema: OpenApiSchema,
  name: string,
): OpenApiSchema | undefined {
  const { properties, additionalProperties } = schema;
  if (properties !== undefined && Object.hasOwn(properties, name)) {
    return properties[name];
  }
  return typeof additionalProperties === "object"
    ? additionalProperties
    : undefined;
}

/** What tells an item of a list of type `map` from the others. */
export function itemKey(item: JsonObject, keys: readonly string[]): string {
  return canonicalText(keys.map((key) => ownField(item, key) ?? null));
}
