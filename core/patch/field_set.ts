import {
  compareElements,
  type FieldElement,
  fieldNameOf,
  type FieldPath,
  fieldPathText,
  parseFieldElement,
} from "./field_element.ts";
import type { Schema } from "./schema.ts";

/** A field set as `fieldsV1` writes it. */
export interface FieldsV1 {
  /** The fields below an element, by its name. */
  readonly [element: string]: FieldsV1;
}

/** What a set knows of one element: is the field itself in it, and what below. */
export interface FieldSetNode {
  /** Whether the field itself is in the set. */
  readonly member: boolean;
  /** What is in the set below it, with paths that start there. */
  readonly below: FieldSet;
}

/** The deepest nesting that is read from outside. */
const DEPTH_LIMIT = 1_000;

/**
 * A set of fields of an object, such as one manager owns. A field may be in the
 * set with or without the fields below it, and these without it. Sets are
 * never changed: every operation gives a new one, or one of its operands when
 * that is the result.
 *
 * @example What two managers share
 * ```ts
 * import { FieldSet } from "@coracle/operator/core";
 *
 * const one = FieldSet.fromJSON({ "f:spec": { "f:size": {}, "f:color": {} } });
 * const two = FieldSet.fromJSON({ "f:spec": { "f:size": {} } });
 * const shared = one.intersection(two);
 * if (shared.toString() !== ".spec.size") throw new Error("Unexpected set");
 * ```
 */
export class FieldSet {
  /** The set without a field. */
  // By "this", since TypeScript 7.0 compiles the name to a variable without value.
  static readonly empty: FieldSet = new this(new Map());

  /** No node is without effect: it is a member or something below it is. */
  readonly #nodes: ReadonlyMap<FieldElement, FieldSetNode>;

  private constructor(nodes: ReadonlyMap<FieldElement, FieldSetNode>) {
    this.#nodes = nodes;
  }

  /** The set of these fields; the empty path, the object itself, is left out. */
  static of(paths: Iterable<FieldPath>): FieldSet {
    const builder = new FieldSetBuilder();
    for (const path of paths) builder.add(path);
    return builder.build();
  }

  /** A set of the nodes that are members or have something below. */
  static fromNodes(
    nodes: Iterable<readonly [FieldElement, FieldSetNode]>,
  ): FieldSet {
    const kept = new Map<FieldElement, FieldSetNode>();
    for (const [element, node] of nodes) {
      if (node.member || !node.below.isEmpty) kept.set(element, node);
    }
    return kept.size === 0 ? FieldSet.empty : new FieldSet(kept);
  }

  /**
   * Reads what `managedFields[].fieldsV1` holds.
   *
   * @throws {SyntaxError} If it holds something that is no field element, or is
   * nested deeper than any object can be.
   */
  static fromJSON(fields: FieldsV1): FieldSet {
    return FieldSet.#read(fields, 0);
  }

  static #read(fields: FieldsV1, depth: number): FieldSet {
    if (depth > DEPTH_LIMIT) {
      throw new SyntaxError(
        `Cannot read a field set: it may be nested ${DEPTH_LIMIT} deep: received a deeper one`,
      );
    }
    const nodes = new Map<FieldElement, FieldSetNode>();
    for (const [key, value] of Object.entries(fields)) {
      if (key === ".") continue;
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new SyntaxError(
          `Cannot read a field set: "${key}" must hold an object: received ${
            JSON.stringify(value)
          }`,
        );
      }
      const below = FieldSet.#read(value, depth + 1);
      const member = below.isEmpty || Object.hasOwn(value, ".");
      nodes.set(parseFieldElement(key), { member, below });
    }
    return FieldSet.fromNodes(nodes);
  }

  /** What goes into `managedFields[].fieldsV1`. */
  toJSON(): FieldsV1 {
    const entries: [string, FieldsV1][] = this.#sorted().map(
      ([element, { member, below }]) => {
        const fields = below.toJSON();
        return [
          element,
          member && !below.isEmpty ? { ".": {}, ...fields } : fields,
        ];
      },
    );
    return Object.fromEntries(entries);
  }

  /** Whether there is no field in it. */
  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** How many fields are in it. */
  get size(): number {
    let size = 0;
    for (const { member, below } of this.#nodes.values()) {
      size += (member ? 1 : 0) + below.size;
    }
    return size;
  }

  /** Whether this very field is in it. */
  has(path: FieldPath): boolean {
    let node: FieldSetNode | undefined;
    let nodes = this.#nodes;
    for (const element of path) {
      node = nodes.get(element);
      if (node === undefined) return false;
      nodes = node.below.#nodes;
    }
    return node?.member === true;
  }

  /** The fields of either. */
  union(other: FieldSet): FieldSet {
    if (other.isEmpty || other === this) return this;
    if (this.isEmpty) return other;
    const nodes = new Map(this.#nodes);
    for (const [element, theirs] of other.#nodes) {
      const ours = nodes.get(element);
      nodes.set(
        element,
        ours === undefined ? theirs : {
          member: ours.member || theirs.member,
          below: ours.below.union(theirs.below),
        },
      );
    }
    return new FieldSet(nodes);
  }

  /** The fields of both. */
  intersection(other: FieldSet): FieldSet {
    if (other === this) return this;
    return this.#keep((element, { member, below }) => {
      const theirs = other.#nodes.get(element);
      if (theirs === undefined) return undefined;
      return {
        member: member && theirs.member,
        below: below.intersection(theirs.below),
      };
    });
  }

  /** The fields of this that are not in the other; each field counts alone. */
  minus(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    return this.#keep((element, node) => {
      const theirs = other.#nodes.get(element);
      if (theirs === undefined) return node;
      return {
        member: node.member && !theirs.member,
        below: node.below.minus(theirs.below),
      };
    });
  }

  /** The fields of this that are neither in the other nor below one of its. */
  minusWhole(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    return this.#keep((element, node) => {
      const theirs = other.#nodes.get(element);
      if (theirs === undefined) return node;
      if (theirs.member) return undefined;
      return { ...node, below: node.below.minusWhole(theirs.below) };
    });
  }

  /** Whether every field of the other is in this. */
  covers(other: FieldSet): boolean {
    for (const [element, theirs] of other.#nodes) {
      const ours = this.#nodes.get(element);
      if (ours === undefined || theirs.member && !ours.member) return false;
      if (!ours.below.covers(theirs.below)) return false;
    }
    return true;
  }

  /** Whether both hold the same fields. */
  equals(other: FieldSet): boolean {
    return this === other || this.covers(other) && other.covers(this);
  }

  /**
   * Adds each field that the schema names and that has something in the set
   * below it, as if owning a part of a struct were owning the struct.
   */
  withNamedFields(schema: Schema | undefined): FieldSet {
    return this.#keep((element, { member, below }) => {
      const name = fieldNameOf(element);
      const named = name === undefined
        ? undefined
        : schema?.properties.get(name);
      const child = named ??
        (name === undefined ? schema?.items : schema?.additionalProperties);
      return {
        member: member || named !== undefined && !below.isEmpty,
        below: below.withNamedFields(child),
      };
    });
  }

  /** The fields in it: those of a level in order, then those below them. */
  *paths(): Generator<FieldPath, void, undefined> {
    yield* this.#pathsFrom([]);
  }

  *#pathsFrom(prefix: FieldPath): Generator<FieldPath, void, undefined> {
    const sorted = this.#sorted();
    for (const [element, { member }] of sorted) {
      if (member) yield [...prefix, element];
    }
    for (const [element, { below }] of sorted) {
      if (!below.isEmpty) yield* below.#pathsFrom([...prefix, element]);
    }
  }

  /** The fields in it for people, one a line. */
  toString(): string {
    return [...this.paths()].map(fieldPathText).join("\n");
  }

  /** The elements at the top, in no particular order. */
  get nodes(): ReadonlyMap<FieldElement, FieldSetNode> {
    return this.#nodes;
  }

  #sorted(): [FieldElement, FieldSetNode][] {
    return [...this.#nodes].sort(([a], [b]) => compareElements(a, b));
  }

  /** A set of what `change` makes of each node. */
  #keep(
    change: (
      element: FieldElement,
      node: FieldSetNode,
    ) => FieldSetNode | undefined,
  ): FieldSet {
    const changed: [FieldElement, FieldSetNode][] = [];
    for (const [element, node] of this.#nodes) {
      const result = change(element, node);
      if (result !== undefined) changed.push([element, result]);
    }
    return FieldSet.fromNodes(changed);
  }
}

/** Gathers fields one by one into a {@linkcode FieldSet}. */
export class FieldSetBuilder {
  readonly #below: Map<FieldElement, FieldSetBuilder> = new Map();
  readonly #members: Set<FieldElement> = new Set();

  /** Adds one field; the empty path, the object itself, is left out. */
  add(path: FieldPath): void {
    this.#addFrom(path, 0);
  }

  #addFrom(path: FieldPath, depth: number): void {
    const element = path[depth];
    if (element === undefined) return;
    if (depth + 1 === path.length) this.#members.add(element);
    else this.at(element).#addFrom(path, depth + 1);
  }

  /** Adds one field of the top. */
  addElement(element: FieldElement): void {
    this.#members.add(element);
  }

  /** The builder of what is below one element. */
  at(element: FieldElement): FieldSetBuilder {
    let below = this.#below.get(element);
    if (below === undefined) {
      below = new FieldSetBuilder();
      this.#below.set(element, below);
    }
    return below;
  }

  /** The set of what was added so far. */
  build(): FieldSet {
    const elements = new Set([...this.#members, ...this.#below.keys()]);
    return FieldSet.fromNodes(
      [...elements].map((element) => [element, {
        member: this.#members.has(element),
        below: this.#below.get(element)?.build() ?? FieldSet.empty,
      }]),
    );
  }
}
