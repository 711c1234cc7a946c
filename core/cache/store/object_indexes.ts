import { immediate } from "../../callback.ts";
import { checkOptions, type OptionRule } from "../../api/options.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { Postings } from "./postings.ts";

/**
 * Definition of an index. Indexes by label, annotation and owner UID read the
 * stored bytes; a function requires decoding each object that is put.
 */
export type IndexDefinition<T extends KubernetesObject> =
  | { readonly byLabel: string }
  | { readonly byAnnotation: string }
  | { readonly byOwner: true }
  | { readonly byFunction: (object: T) => readonly string[] };

const DEFINITION_RULES: Readonly<Record<string, OptionRule>> = {
  byLabel: "name?",
  byAnnotation: "name?",
  byOwner: "boolean?",
  byFunction: "function?",
};

/**
 * Validates the definition of an index.
 *
 * @throws {TypeError | RangeError} If it does not set exactly one of the four
 * sources of values.
 */
export function checkIndex(
  name: string,
  definition: IndexDefinition<never>,
): void {
  checkOptions(definition, DEFINITION_RULES, `the index "${name}"`);
  const ways = Object.values(definition).filter((value) => !isUnset(value));
  if (ways.length === 1) return;
  throw new TypeError(
    `Cannot add the index "${name}": it must have one of ${
      Object.keys(DEFINITION_RULES).join(", ")
    }: received ${Object.keys(definition).join(", ") || "none"}`,
  );
}

/** Index, which may have several names. */
interface Index<T extends KubernetesObject> {
  /** Name under which the index was first added, for errors. */
  readonly name: string;
  readonly definition: IndexDefinition<T>;
  /** Definition as JSON; undefined for a function, whose values are not saved. */
  readonly text: string | undefined;
  postings: Postings;
}

const NONE: readonly never[] = Object.freeze([]);

export type OnIndexError = (index: string, error: unknown) => void;

/**
 * User-defined indexes of a store, updated with each change. Indexes with equal
 * definitions share one set of posting lists.
 */
export class ObjectIndexes<T extends KubernetesObject> {
  readonly #named: Map<string, Index<T>> = new Map();
  /** Indexes with distinct definitions. */
  readonly #indexes: Set<Index<T>> = new Set();
  readonly #onError: OnIndexError;

  constructor(onError: OnIndexError) {
    this.#onError = onError;
  }

  get isEmpty(): boolean {
    return this.#indexes.size === 0;
  }

  get allocatedBytes(): number {
    let bytes = 0;
    for (const { postings } of this.#indexes) bytes += postings.allocatedBytes;
    return bytes;
  }

  /**
   * Adds an index with a new name.
   *
   * @returns Whether the index is empty and must be filled: false if an index with
   * an equal definition exists.
   */
  add(name: string, definition: IndexDefinition<T>): boolean {
    for (const index of this.#indexes) {
      if (!isEqual(index.definition, definition)) continue;
      this.#named.set(name, index);
      return false;
    }
    const text = "byFunction" in definition
      ? undefined
      : JSON.stringify(definition);
    const index = { name, definition, text, postings: new Postings() };
    this.#indexes.add(index);
    this.#named.set(name, index);
    return true;
  }

  delete(name: string): void {
    const index = this.#named.get(name);
    this.#named.delete(name);
    const isUsed = [...this.#named.values()].includes(index as Index<T>);
    if (index !== undefined && !isUsed) this.#indexes.delete(index);
  }

  /**
   * Updates the values of a slot in one index or all of them.
   *
   * @param parts Header of the object; `object` decodes the object for index
   * functions; `only` is the name of the only index to update.
   */
  update(
    slot: number,
    parts: {
      readonly header: ObjectHeader;
      readonly object: () => T;
      readonly only?: string | undefined;
    },
  ): void {
    for (const { name, definition, postings } of this.#indexes) {
      if (parts.only !== undefined && parts.only !== name) continue;
      try {
        const values = "byFunction" in definition
          ? immediate(definition.byFunction(parts.object()), "byFunction")
          : valuesOf(definition, parts.header);
        postings.set(slot, values);
      } catch (error) {
        postings.remove(slot);
        this.#onError(name, error);
      }
    }
  }

  remove(slot: number): void {
    for (const { postings } of this.#indexes) postings.remove(slot);
  }

  /** Removes the values of all objects. */
  clear(): void {
    for (const index of this.#indexes) index.postings = new Postings();
  }

  /** Definitions of the indexes that read stored bytes, as JSON. */
  get saved(): string[] {
    const texts: string[] = [];
    for (const { text } of this.#indexes) {
      if (text !== undefined) texts.push(text);
    }
    return texts;
  }

  /**
   * Values of a slot in the indexes with these definitions, as JSON; undefined for one
   * that was removed.
   */
  savedValues(
    slot: number,
    definitions: readonly string[],
  ): (readonly string[] | undefined)[] {
    return definitions.map((wanted) => {
      for (const { text, postings } of this.#indexes) {
        if (text === wanted) return postings.values(slot);
      }
      return undefined;
    });
  }

  /**
   * Sets the values of a slot as they were saved.
   *
   * @param definitions Definitions of the indexes that had them, as JSON.
   * @param values Values in those; undefined where they were not saved.
   * @returns Names of the indexes whose values were not saved.
   */
  adopt(
    slot: number,
    definitions: readonly string[],
    values: readonly (readonly string[] | undefined)[],
  ): readonly string[] {
    let missing: string[] | undefined;
    for (const { name, text, postings } of this.#indexes) {
      const known = text === undefined
        ? undefined
        : values[definitions.indexOf(text)];
      if (known === undefined) (missing ??= []).push(name);
      else postings.set(slot, known);
    }
    return missing ?? NONE;
  }

  /** Posting lists of an index that was added. */
  postings(name: string): Postings {
    return (this.#named.get(name) as Index<T>).postings;
  }
}

/** Whether two index definitions, each with one member that is set, are equal. */
function isEqual(one: object, other: object): boolean {
  const members = new Map(Object.entries(other));
  return Object.entries(one).every(([way, value]) =>
    isUnset(value) || members.get(way) === value
  );
}

function isUnset(value: unknown): boolean {
  return value === undefined || value === false;
}

function valuesOf(
  definition: Exclude<IndexDefinition<never>, { readonly byFunction: unknown }>,
  header: ObjectHeader,
): readonly string[] {
  if ("byOwner" in definition) {
    return header.ownerReferences.map(({ uid }) => uid);
  }
  const value = "byLabel" in definition
    ? header.label(definition.byLabel)
    : header.annotation(definition.byAnnotation);
  return typeof value === "string" ? [value] : [];
}
