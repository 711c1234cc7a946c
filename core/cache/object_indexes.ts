import type { KubernetesObject } from "../api/object.ts";
import type { ObjectHeader } from "../json/object_header.ts";
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

interface Index<T extends KubernetesObject> {
  readonly definition: IndexDefinition<T>;
  readonly postings: Postings;
}

/** Told when an index function throws. */
export type OnIndexError = (index: string, error: unknown) => void;

/** The indexes of a store, kept in step with it. */
export class ObjectIndexes<T extends KubernetesObject> {
  readonly #indexes: Map<string, Index<T>> = new Map();
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
    for (const { postings } of this.#indexes.values()) {
      bytes += postings.allocatedBytes;
    }
    return bytes;
  }

  /**
   * Adds an empty index.
   *
   * @throws {RangeError} If there is one of that name.
   */
  add(name: string, definition: IndexDefinition<T>): void {
    if (this.#indexes.has(name)) {
      throw new RangeError(
        `Cannot add an index: its name must be new: received "${name}"`,
      );
    }
    this.#indexes.set(name, { definition, postings: new Postings() });
  }

  delete(name: string): void {
    this.#indexes.delete(name);
  }

  /**
   * Brings one index, or all of them, in step with a slot.
   *
   * @param object Decodes the object, if a function wants it.
   * @param only The index that is new.
   */
  update(
    slot: number,
    parts: {
      readonly header: ObjectHeader;
      readonly object: () => T;
      readonly only?: string | undefined;
    },
  ): void {
    for (const [name, { definition, postings }] of this.#indexes) {
      if (parts.only !== undefined && parts.only !== name) continue;
      let values: readonly string[] = [];
      try {
        values = "byFunction" in definition
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
    for (const { postings } of this.#indexes.values()) postings.remove(slot);
  }

  /** Empties all indexes. */
  clear(): void {
    for (const [name, { definition }] of this.#indexes) {
      this.#indexes.set(name, { definition, postings: new Postings() });
    }
  }

  /** @throws {RangeError} If there is no such index. */
  postings(name: string): Postings {
    const index = this.#indexes.get(name);
    if (index === undefined) {
      throw new RangeError(
        `Cannot read an index: there is none of that name: received "${name}"`,
      );
    }
    return index.postings;
  }
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
