import { checkOptions, type OptionRule } from "../../api/options.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { Postings } from "./postings.ts";

/** Computes under which values an object is found in an index. */
export type IndexFunction<T extends KubernetesObject> = (
  object: T,
) => readonly string[];

/**
 * How an index finds its values. Those by label, annotation and owner, by uid,
 * read the bytes; a function costs a parse for every put.
 */
export type IndexDefinition<T extends KubernetesObject> =
  | { readonly byLabel: string }
  | { readonly byAnnotation: string }
  | { readonly byOwner: true }
  | { readonly byFunction: IndexFunction<T> };

const DEFINITION_RULES: Readonly<Record<string, OptionRule>> = {
  byLabel: "name?",
  byAnnotation: "name?",
  byOwner: "boolean?",
  byFunction: "function?",
};

/**
 * Refuses what defines no index.
 *
 * @throws {TypeError | RangeError} If it does not say by exactly one of the four
 * ways where its values come from.
 */
export function checkIndex(
  name: string,
  definition: IndexDefinition<never>,
): void {
  checkOptions(definition, DEFINITION_RULES, `the index "${name}"`);
  const ways = Object.values(definition).filter((value) =>
    value !== undefined && value !== false
  );
  if (ways.length === 1) return;
  throw new TypeError(
    `Cannot add the index "${name}": it must have one of ${
      Object.keys(DEFINITION_RULES).join(", ")
    }: received ${Object.keys(definition).join(", ") || "none"}`,
  );
}

/** One index, which may have several names. */
interface Index<T extends KubernetesObject> {
  /** That under which it was added first, to tell of errors. */
  readonly name: string;
  readonly definition: IndexDefinition<T>;
  readonly postings: Postings;
}

/** Told when an index function throws. */
export type OnIndexError = (index: string, error: unknown) => void;

/**
 * The indexes of a store, kept in step with it. Those that are defined alike are
 * one: who else wants the same pays nothing for it.
 */
export class ObjectIndexes<T extends KubernetesObject> {
  readonly #named: Map<string, Index<T>> = new Map();
  /** Each once. */
  readonly #indexes: Set<Index<T>> = new Set();
  readonly #onError: OnIndexError;

  constructor(onError: OnIndexError) {
    this.#onError = onError;
  }

  get isEmpty(): boolean {
    return this.#indexes.size === 0;
  }

  /** The memory that is held. */
  get allocatedBytes(): number {
    let bytes = 0;
    for (const { postings } of this.#indexes) bytes += postings.allocatedBytes;
    return bytes;
  }

  /**
   * Adds an index.
   *
   * @returns Whether it is empty, and must be filled: false if there is one that
   * is defined alike.
   * @throws {RangeError} If there is one of that name.
   * @throws {TypeError} If it is none.
   */
  add(name: string, definition: IndexDefinition<T>): boolean {
    checkIndex(name, definition);
    if (this.#named.has(name)) {
      throw new RangeError(
        `Cannot add an index: its name must be new: received "${name}"`,
      );
    }
    for (const index of this.#indexes) {
      if (!isAlike(index.definition, definition)) continue;
      this.#named.set(name, index);
      return false;
    }
    const index = { name, definition, postings: new Postings() };
    this.#indexes.add(index);
    this.#named.set(name, index);
    return true;
  }

  delete(name: string): void {
    const index = this.#named.get(name);
    this.#named.delete(name);
    if (index === undefined || [...this.#named.values()].includes(index)) {
      return;
    }
    this.#indexes.delete(index);
  }

  /**
   * Brings one index, or all of them, in step with a slot.
   *
   * @param object Decodes the object, if a function wants it.
   * @param only The name of the index that is new.
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
          ? definition.byFunction(parts.object())
          : valuesOf(definition, parts.header);
        postings.set(slot, values);
      } catch (error) {
        postings.remove(slot);
        this.#onError(name, error);
      }
    }
  }

  /** Takes a slot out of all indexes. */
  remove(slot: number): void {
    for (const { postings } of this.#indexes) postings.remove(slot);
  }

  /** @throws {RangeError} If there is no such index. */
  postings(name: string): Postings {
    const index = this.#named.get(name);
    if (index === undefined) {
      throw new RangeError(
        `Cannot read an index: there is none of that name: received "${name}"`,
      );
    }
    return index.postings;
  }
}

/** Whether two definitions find the same values. */
function isAlike<T extends KubernetesObject>(
  one: IndexDefinition<T>,
  other: IndexDefinition<T>,
): boolean {
  if ("byOwner" in one) return "byOwner" in other;
  if ("byLabel" in one) {
    return "byLabel" in other && one.byLabel === other.byLabel;
  }
  if ("byAnnotation" in one) {
    return "byAnnotation" in other && one.byAnnotation === other.byAnnotation;
  }
  return "byFunction" in other && one.byFunction === other.byFunction;
}

function valuesOf(
  definition: Exclude<
    IndexDefinition<never>,
    { readonly byFunction: IndexFunction<never> }
  >,
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
