import {
  comparePathElements,
  fieldNameOf,
  type FieldPath,
  fieldPathText,
  parsePathElement,
  type PathElement,
} from "./path_element.ts";
import type { Schema } from "./schema.ts";
import { writeJson } from "../exact_json.ts";

/** Field set in the format of `fieldsV1`. */
export interface FieldsV1 {
  /** Fields below an element. */
  readonly [element: string]: FieldsV1;
}

/** Node of a field set: membership of one element and the set below it. */
export interface FieldSetNode {
  /** Whether the field itself is a member. */
  readonly member: boolean;
  /** Fields below the element, with paths relative to it. */
  readonly children: FieldSet;
}

/** Maximum nesting depth of a decoded field set. */
const MAX_DEPTH = 1_000;

/**
 * Immutable set of field paths of an object, such as the fields that a manager
 * owns (structured-merge-diff's `fieldpath.Set`). A field may be a member with or
 * without the fields below it. Operations return a new set, or an operand if that
 * equals the result.
 */
export class FieldSet {
  /** Empty set. */
  // "this", because TypeScript 7.0 compiles the class name to an undefined variable.
  static readonly empty: FieldSet = new this(new Map());

  /** Nodes by element; each is a member or has members below it. */
  readonly #nodes: ReadonlyMap<PathElement, FieldSetNode>;

  private constructor(nodes: ReadonlyMap<PathElement, FieldSetNode>) {
    this.#nodes = nodes;
  }

  /** Creates a set from paths; the empty path (the object itself) is ignored. */
  static of(paths: Iterable<FieldPath>): FieldSet {
    const builder = new FieldSetBuilder();
    for (const path of paths) builder.add(path);
    return builder.build();
  }

  /** Creates a set from nodes; nodes without members are omitted. */
  static fromNodes(
    nodes: Iterable<readonly [PathElement, FieldSetNode]>,
  ): FieldSet {
    const kept = new Map<PathElement, FieldSetNode>();
    for (const [element, node] of nodes) {
      if (node.member || !node.children.isEmpty) kept.set(element, node);
    }
    return kept.size === 0 ? FieldSet.empty : new FieldSet(kept);
  }

  /**
   * Decodes `managedFields[].fieldsV1`.
   *
   * @throws {SyntaxError} If it contains an invalid path element or is nested more
   * than 1,000 levels deep.
   */
  static fromJSON(fields: FieldsV1): FieldSet {
    return FieldSet.#read(fields, 0);
  }

  static #read(fields: FieldsV1, depth: number): FieldSet {
    if (depth > MAX_DEPTH) {
      throw new SyntaxError(
        `Cannot read a field set: it is nested more than ${MAX_DEPTH} levels deep`,
      );
    }
    const entries = Object.entries(fields);
    if (entries.length === 0) return FieldSet.empty;
    const nodes = new Map<PathElement, FieldSetNode>();
    for (const [key, value] of entries) {
      if (key === ".") continue;
      if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new SyntaxError(
          `Cannot read a field set: "${key}" must be an object: received ${
            writeJson(value)
          }`,
        );
      }
      const children = FieldSet.#read(value, depth + 1);
      const member = children.isEmpty || Object.hasOwn(value, ".");
      nodes.set(parsePathElement(key), { member, children });
    }
    return FieldSet.fromNodes(nodes);
  }

  /** Encodes the set for `managedFields[].fieldsV1`. */
  toJSON(): FieldsV1 {
    return this.#write({});
  }

  /** Adds the set to the fields of an element; returns these fields. */
  #write(fields: Record<string, FieldsV1>): FieldsV1 {
    if (this.isEmpty) return fields;
    for (const [element, { member, children }] of this.#sorted()) {
      fields[element] = children.#write(
        member && !children.isEmpty ? { ".": {} } : {},
      );
    }
    return fields;
  }

  /** Whether the set is empty. */
  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** Whether exactly the given field is a member. */
  has(path: FieldPath): boolean {
    let node: FieldSetNode | undefined;
    let nodes = this.#nodes;
    for (const element of path) {
      node = nodes.get(element);
      if (node === undefined) return false;
      nodes = node.children.#nodes;
    }
    return node?.member === true;
  }

  /** Returns the union with another set. */
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
          children: ours.children.union(theirs.children),
        },
      );
    }
    return new FieldSet(nodes);
  }

  /** Returns the intersection with another set. */
  intersection(other: FieldSet): FieldSet {
    if (other === this) return this;
    return this.#mapNodes((element, node) => {
      const theirs = other.#nodes.get(element);
      if (theirs === undefined) return undefined;
      return changed(node, {
        member: node.member && theirs.member,
        children: node.children.intersection(theirs.children),
      });
    });
  }

  /** Returns the difference; fields below a removed field remain. */
  minus(other: FieldSet): FieldSet {
    return this.#without(other, false);
  }

  /** Returns the difference without fields below members of the other set. */
  minusWhole(other: FieldSet): FieldSet {
    return this.#without(other, true);
  }

  #without(other: FieldSet, whole: boolean): FieldSet {
    if (other.isEmpty) return this;
    return this.#mapNodes((element, node) => {
      const theirs = other.#nodes.get(element);
      if (theirs === undefined) return node;
      if (theirs.member && whole) return undefined;
      return changed(node, {
        member: node.member && !theirs.member,
        children: node.children.#without(theirs.children, whole),
      });
    });
  }

  /**
   * Adds each named field of the schema that has members below it: ownership of a
   * part of a struct implies ownership of the struct.
   */
  withNamedFields(schema: Schema | undefined): FieldSet {
    return this.#mapNodes((element, node) => {
      const { member, children } = node;
      const name = fieldNameOf(element);
      const named = name === undefined
        ? undefined
        : schema?.properties.get(name);
      const child = named ??
        (name === undefined ? schema?.items : schema?.additionalProperties);
      return changed(node, {
        member: member || named !== undefined && !children.isEmpty,
        children: children.withNamedFields(child),
      });
    });
  }

  /** Iterates over the members: those of one level in order, then those below. */
  *paths(): Generator<FieldPath, void, undefined> {
    yield* this.#pathsFrom([]);
  }

  *#pathsFrom(prefix: FieldPath): Generator<FieldPath, void, undefined> {
    const sorted = this.#sorted();
    for (const [element, { member }] of sorted) {
      if (member) yield [...prefix, element];
    }
    for (const [element, { children }] of sorted) {
      if (!children.isEmpty) yield* children.#pathsFrom([...prefix, element]);
    }
  }

  /** Formats the members, one per line. */
  toString(): string {
    return [...this.paths()].map(fieldPathText).join("\n");
  }

  /** Nodes of the top level, unordered. */
  get nodes(): ReadonlyMap<PathElement, FieldSetNode> {
    return this.#nodes;
  }

  #sorted(): [PathElement, FieldSetNode][] {
    return [...this.#nodes].sort(([a], [b]) => comparePathElements(a, b));
  }

  /** Maps the nodes; `undefined` removes a node. Returns this set if no node changes. */
  #mapNodes(
    change: (
      element: PathElement,
      node: FieldSetNode,
    ) => FieldSetNode | undefined,
  ): FieldSet {
    let nodes: Map<PathElement, FieldSetNode> | undefined;
    for (const [element, node] of this.#nodes) {
      const result = change(element, node);
      if (result === node) continue;
      nodes ??= new Map(this.#nodes);
      if (result?.member || result?.children.isEmpty === false) {
        nodes.set(element, result);
      } else nodes.delete(element);
    }
    if (nodes === undefined) return this;
    return nodes.size === 0 ? FieldSet.empty : new FieldSet(nodes);
  }
}

/** Node after a change of its parts; the same node if nothing changed. */
function changed(before: FieldSetNode, after: FieldSetNode): FieldSetNode {
  return before.member === after.member && before.children === after.children
    ? before
    : after;
}

/** Element of a {@linkcode FieldSetBuilder}. */
interface BuilderNode {
  member: boolean;
  children: FieldSetBuilder | undefined;
}

/** Mutable builder of a {@linkcode FieldSet}. */
export class FieldSetBuilder {
  readonly #nodes: Map<PathElement, BuilderNode> = new Map();

  /** Adds a path; the empty path (the object itself) is ignored. */
  add(path: FieldPath): void {
    this.#addFrom(path, 0);
  }

  #addFrom(path: FieldPath, depth: number): void {
    const element = path[depth];
    if (element === undefined) return;
    if (depth + 1 === path.length) this.addElement(element);
    else this.at(element).#addFrom(path, depth + 1);
  }

  /** Adds a field of the top level. */
  addElement(element: PathElement): void {
    this.#node(element).member = true;
  }

  /** Returns the builder of the set below an element. */
  at(element: PathElement): FieldSetBuilder {
    return this.#node(element).children ??= new FieldSetBuilder();
  }

  #node(element: PathElement): BuilderNode {
    let node = this.#nodes.get(element);
    if (node === undefined) {
      node = { member: false, children: undefined };
      this.#nodes.set(element, node);
    }
    return node;
  }

  /** Builds the set of the fields added so far. */
  build(): FieldSet {
    const nodes: [PathElement, FieldSetNode][] = [];
    for (const [element, { member, children }] of this.#nodes) {
      nodes.push([element, {
        member,
        children: children?.build() ?? FieldSet.empty,
      }]);
    }
    return FieldSet.fromNodes(nodes);
  }
}
