import {
  isJsonObject,
  jsonEquals,
  type JsonObject,
  type OpenApiSchema,
  ownValue,
} from "@coracle/operator/internal";
import { canonicalText, fieldSchema } from "./json_tree.ts";

/**
 * Value of an updated object together with the corresponding value of the old
 * object (upstream's `CorrelatedObject`). With it, invalid values that did not
 * change are accepted (ratcheting), and transition rules compare both.
 *
 * Fields correspond by name, items of lists of type `map` by their keys; items
 * of other lists correspond to nothing.
 */
export class Correlation {
  readonly value: unknown;
  readonly old: unknown;
  readonly #schema: OpenApiSchema;
  #oldItems: ReadonlyMap<string, unknown> | undefined;
  #unchanged: boolean | undefined;

  /**
   * Creates the correlation of two values of the same schema.
   *
   * @param value New value.
   * @param old Old value; never undefined.
   * @param schema Schema of both values.
   */
  constructor(value: unknown, old: unknown, schema: OpenApiSchema) {
    this.value = value;
    this.old = old;
    this.#schema = schema;
  }

  /** Whether the new and the old value are equal. */
  get unchanged(): boolean {
    return this.#unchanged ??= jsonEquals(this.value, this.old);
  }

  /** Correlation of a field; undefined if the field is missing in either value. */
  key(name: string): Correlation | undefined {
    if (!isJsonObject(this.value) || !isJsonObject(this.old)) return undefined;
    if (!Object.hasOwn(this.value, name) || !Object.hasOwn(this.old, name)) {
      return undefined;
    }
    const schema = fieldSchema(this.#schema, name);
    return schema && new Correlation(this.value[name], this.old[name], schema);
  }

  /** Correlation of an item; undefined if no item of the old list corresponds. */
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

/** Key of an item in a list of type `map`, as text. */
export function itemKey(item: JsonObject, keys: readonly string[]): string {
  return canonicalText(keys.map((key) => ownValue(item, key) ?? null));
}
