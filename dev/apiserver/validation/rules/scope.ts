import type { FieldPath } from "../field_path.ts";

/** Item of a list, or entry of a map, that rules visit. */
export interface WalkedItem {
  /** List or map that contains the item, as named by the rules. */
  readonly list: string;
  /** Index of the item, or key of the entry. */
  readonly key: string | number;
  /** Values seen so far in this iteration, by the place in the rules. */
  readonly seen: Map<unknown, Set<unknown>>;
}

/** Value to which a rule applies, with its path, the enclosing struct and variables. */
export class Scope {
  /** Struct, or item of a list, to which the rule applies. */
  readonly value: unknown;
  /** Scope of the enclosing struct; undefined for the struct of the rule. */
  readonly outer: Scope | undefined;
  readonly #place: FieldPath | string;
  readonly #item: WalkedItem | undefined;
  #variables: Map<string, unknown> | undefined;
  #seen: Map<unknown, Set<unknown>> | undefined;
  #path: FieldPath | undefined;

  /**
   * Creates the scope of a value.
   *
   * @param place Path of the value: below that of the outer scope if there is one.
   */
  constructor(
    value: unknown,
    place: FieldPath | string,
    outer?: Scope,
    item?: WalkedItem,
  ) {
    this.value = value;
    this.outer = outer;
    this.#place = place;
    this.#item = item;
  }

  /** Path of the value, with the list of violations. */
  get path(): FieldPath {
    if (this.#path) return this.#path;
    const place = this.#place;
    return this.#path = typeof place === "string"
      ? (this.outer as Scope).path.child(place)
      : place;
  }

  /** Value of a variable of this scope or an outer one. */
  variable(name: string): unknown {
    const item = this.#item;
    if (item) {
      if (name === "$list") return item.list;
      if (name === "$index" || name === "$key") return item.key;
    }
    return this.#variables?.has(name)
      ? this.#variables.get(name)
      : this.outer?.variable(name);
  }

  /** Sets a variable of this scope. */
  set(name: string, value: unknown): this {
    (this.#variables ??= new Map()).set(name, value);
    return this;
  }

  /** Adds a value to a set of the visited list; returns whether the set already contained it. */
  seen(place: unknown, value: unknown): boolean {
    if (!this.#item && this.outer) return this.outer.seen(place, value);
    const sets = this.#item?.seen ?? (this.#seen ??= new Map());
    let values = sets.get(place);
    if (values === undefined) sets.set(place, values = new Set());
    if (values.has(value)) return true;
    values.add(value);
    return false;
  }
}
