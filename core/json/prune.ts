import { asBuffer, type ByteRange } from "./byte_range.ts";
import { parseFieldPath, type PathStep } from "./field_reader.ts";
import { JsonCursor, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json_cursor.ts";
import {
  FIELD_INDEX,
  NO_CUT,
  NO_MEMBER,
  ObjectHeader,
} from "./object_header.ts";

/**
 * Leaves declared paths out of an object while its bytes are copied, without
 * parsing it: the result equals the parsed object with these paths deleted.
 *
 * A path is written as in `metadata.managedFields`,
 * `status.conditions[*].lastProbeTime` or
 * `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`;
 * `[*]` means every element of a list, and every member of an object. At the
 * end, as in `metadata.managedFields[manager!="page","book"]`, it may be every
 * element of a list but the objects in which a field is one of some texts.
 */
export class Pruner {
  /** The paths as they were given. */
  readonly paths: readonly string[];

  readonly #root: PruneNode;
  readonly #cursor: JsonCursor = new JsonCursor("an object to prune");
  /** Starts and ends of what is left out of the current object, in order. */
  #cuts: Int32Array = new Int32Array(32);
  #cutEnd = 0;
  /** Where all paths begin, if the scanner notes that. */
  readonly #noted: readonly NotedField[] | undefined;

  /**
   * Makes a pruner of paths.
   *
   * @param paths What to leave out.
   * @throws {SyntaxError} If a path is malformed.
   * @throws {RangeError} If a path takes what the library decides on itself,
   * such as `metadata.labels`, or has a step that cannot be where it is.
   */
  constructor(paths: readonly string[]) {
    this.paths = [...paths];
    this.#root = pruneTree(paths);
    this.#noted = notedFields(this.#root);
  }

  /**
   * Copies an object without the pruned paths.
   *
   * @param source As for `measure`.
   * @param target Where to write; as long as the source at least.
   * @returns How many bytes were written, from the start of `target`.
   * @throws {SyntaxError} As `measure` does.
   */
  prune(source: ByteRange, target: Uint8Array): number {
    const length = this.measure(source);
    this.copy(source, target, 0);
    return length;
  }

  /**
   * Finds what is to be left out of an object.
   *
   * @param source One JSON object; its header, if it was scanned, since the
   * scanner has found the fields of the metadata already.
   * @returns How many bytes the rest has.
   * @throws {SyntaxError} If the object is not well-formed where it is looked
   * into.
   */
  measure(source: ByteRange): number {
    this.#cutEnd = 0;
    if (!(source instanceof ObjectHeader) || !this.#findNoted(source)) {
      this.#cursor.reset(source);
      this.#visit(this.#root);
    }
    let length = source.end - source.start;
    for (let i = 0; i < this.#cutEnd; i += 2) {
      length -= (this.#cuts[i + 1] as number) - (this.#cuts[i] as number);
    }
    return length;
  }

  /**
   * Copies the object that was measured last, without the pruned paths.
   *
   * @param source The same object.
   * @param target Where to write.
   * @param start From which position on.
   */
  copy(source: ByteRange, target: Uint8Array, start: number): void {
    const bytes = asBuffer(source.bytes);
    const cuts = this.#cuts;
    let from = source.start;
    for (let i = 0; i < this.#cutEnd; i += 2) {
      start += bytes.copy(target, start, from, cuts[i] as number);
      from = cuts[i + 1] as number;
    }
    bytes.copy(target, start, from, source.end);
  }

  /**
   * Makes reads of pruned paths of a decoded object throw an error that names
   * the path. Writes, copies, spreads and `JSON.stringify` are not affected. A
   * list of which some elements are kept can be read, but is in none of these,
   * lest a write take the others away.
   *
   * @returns The parts of the object that are guarded.
   */
  guard(object: object): Set<unknown> {
    const guarded = new Set<unknown>();
    guardNode(this.#root, object, guarded);
    return guarded;
  }

  /** Finds all cuts in the notes of the scanner, if they are there. */
  #findNoted({ bytes, ranges, cutStarts }: ObjectHeader): boolean {
    if (this.#noted === undefined) return false;
    for (const { index, node } of this.#noted) {
      const from = cutStarts[index] as number;
      const end = ranges[2 * index + 1] as number;
      if (from === NO_MEMBER) continue;
      if (from === NO_CUT || end < 0) {
        this.#cutEnd = 0;
        return false;
      }
      if (node.path === undefined) {
        const start = ranges[2 * index] as number;
        this.#cursor.reset({ bytes, start, end });
        this.#visit(node);
      } else this.#cut(from, end);
    }
    if (this.#cutEnd > 2) this.#cuts.subarray(0, this.#cutEnd).sort();
    return true;
  }

  #cut(from: number, to: number): void {
    if (this.#cutEnd === this.#cuts.length) {
      const grown = new Int32Array(2 * this.#cutEnd);
      grown.set(this.#cuts);
      this.#cuts = grown;
    }
    this.#cuts[this.#cutEnd++] = from;
    this.#cuts[this.#cutEnd++] = to;
  }

  #visit(node: PruneNode): void {
    const byte = this.#cursor.peek();
    if (byte === OPEN_BRACE) this.#visitParts(node, true);
    else if (byte === OPEN_BRACKET) this.#visitParts(node, false);
    else this.#cursor.skipStructure();
  }

  /** Looks at each member or element, and notes those to leave out. */
  #visitParts(node: PruneNode, inObject: boolean): void {
    const cursor = this.#cursor;
    let kept = false;
    let cutStart = -1; // of parts that no kept one precedes
    let before = -1;
    for (
      let more = inObject ? cursor.enterObject() : cursor.enterArray();
      more;
      more = inObject ? cursor.nextMember() : cursor.nextElement()
    ) {
      const start = inObject ? cursor.stringStart - 1 : cursor.position;
      const part = inObject ? memberOf(node, cursor) : node.each;
      const stays = inObject || node.rules === undefined ||
        node.rules.every((rule) => this.#meets(rule));
      if (stays && part?.path === undefined) {
        // With the first kept part goes the comma behind those left out.
        if (cutStart >= 0) this.#cut(cutStart, start);
        cutStart = -1;
        kept = true;
        if (part === undefined) cursor.skipStructure();
        else this.#visit(part);
      } else {
        cursor.skipStructure();
        if (kept) this.#cut(before, cursor.position);
        else if (cutStart < 0) cutStart = start;
      }
      before = cursor.position;
    }
    if (cutStart >= 0) this.#cut(cutStart, before);
  }

  /** Whether the value at the cursor, which does not move, meets a rule. */
  #meets({ field, except }: KeepRule): boolean {
    const cursor = this.#cursor;
    const start = cursor.position;
    let meets = false;
    if (cursor.peek() === OPEN_BRACE) {
      for (let more = cursor.enterObject(); more; more = cursor.nextMember()) {
        if (!cursor.stringEquals(field)) cursor.skipStructure();
        else if (cursor.peek() === QUOTE) {
          cursor.string();
          meets = except.some((text) => cursor.stringEquals(text));
        } else {
          cursor.skipStructure();
          meets = false;
        }
      }
    }
    cursor.position = start;
    return meets;
  }
}

/** A field of the metadata, and what to do there. */
interface NotedField {
  readonly index: number;
  readonly node: PruneNode;
}

/** The fields that all paths lead to, if each is noted by the scanner. */
function notedFields({ members, each }: PruneNode): NotedField[] | undefined {
  const metadata = members.get("metadata");
  if (members.size > 1 || metadata === undefined || each || metadata.each) {
    return undefined;
  }
  const fields: NotedField[] = [];
  for (const [field, node] of metadata.members) {
    if (field !== "managedFields" && field !== "annotations") return undefined;
    fields.push({ index: FIELD_INDEX[field], node });
  }
  return fields;
}

/** What to do with the member whose key the cursor has just read. */
function memberOf(node: PruneNode, cursor: JsonCursor): PruneNode | undefined {
  const { members, each } = node;
  if (members.size === 0) return each;
  for (const [key, member] of members) {
    if (cursor.stringEquals(key)) return member;
  }
  return each;
}

/** What the cache and the controllers decide on themselves. */
const NEEDED = [
  "apiVersion",
  "kind",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "metadata.resourceVersion",
  "metadata.generation",
  "metadata.deletionTimestamp",
  "metadata.finalizers",
  "metadata.labels",
  "metadata.ownerReferences",
].map((path) => ({ path, steps: parseFieldPath(path) }));

/** What an element that stays is: an object whose field is one of the texts. */
export type KeepRule = Extract<PathStep, { readonly except: unknown }>;

/** All paths as a tree: what to do at one place of an object. */
export interface PruneNode {
  /** The path that ends here: the value is left out. */
  path?: string | undefined;
  /** Of a list: an element stays only if it meets all of these. */
  rules?: readonly KeepRule[] | undefined;
  /** The property of objects that lack the value, or a part of the list. */
  guard?: PropertyDescriptor | undefined;
  readonly members: Map<string, PruneNode>;
  /** For every element, and every member that is not named. */
  each?: PruneNode | undefined;
}

/**
 * Reads paths to prune as a tree.
 *
 * @throws {SyntaxError} If a path is malformed.
 * @throws {RangeError} If a path takes what the library decides on itself, or
 * has a step that cannot be where it is.
 */
export function pruneTree(paths: readonly string[]): PruneNode {
  const root: PruneNode = { members: new Map() };
  for (const path of paths) {
    const steps = parseFieldPath(path);
    checkNotNeeded(path, steps);
    const last = steps.at(-1);
    if (last !== undefined && "except" in last) {
      checkNamed(path, steps.at(-2));
      const node = steps.slice(0, -1).reduce(childOf, root);
      node.rules = [...node.rules ?? [], last];
    } else steps.reduce(childOf, root).path = path;
  }
  spreadEach(root);
  return root;
}

function checkNotNeeded(path: string, steps: readonly PathStep[]): void {
  const taken = NEEDED.find((needed) =>
    steps.length <= needed.steps.length &&
    steps.every((step, i) => matches(step, needed.steps[i]))
  );
  if (taken !== undefined) {
    throw new RangeError(
      `Cannot prune objects: "${taken.path}" is needed by the library itself: received "${path}"`,
    );
  }
}

/** Keeps the elements of a list of lists out of it: nobody could guard them. */
function checkNamed(path: string, before: PathStep | undefined): void {
  if (before !== undefined && "key" in before) return;
  throw new RangeError(
    `Cannot prune objects: a list of which some elements stay must have a name: received ${path}`,
  );
}

function matches(step: PathStep, needed: PathStep | undefined): boolean {
  return "each" in step ||
    ("key" in step && needed !== undefined && "key" in needed &&
      step.key === needed.key);
}

function childOf(node: PruneNode, step: PathStep): PruneNode {
  if ("each" in step) return node.each ??= { members: new Map() };
  if ("index" in step) {
    throw new RangeError(
      `Cannot prune objects: elements can only be named all together, by [*]: received [${step.index}]`,
    );
  }
  if ("except" in step) {
    throw new RangeError(
      `Cannot prune objects: nothing may follow a step that lets elements stay: received [${step.field}!=…]`,
    );
  }
  let child = node.members.get(step.key);
  if (child === undefined) {
    child = { members: new Map() };
    node.members.set(step.key, child);
  }
  return child;
}

/** Lets what holds for each member hold for the named ones, too. */
function spreadEach(node: PruneNode): void {
  const { each, members } = node;
  if (each !== undefined) {
    for (const member of members.values()) merge(member, each);
    spreadEach(each);
  }
  for (const member of members.values()) spreadEach(member);
}

function merge(target: PruneNode, source: PruneNode): void {
  target.path ??= source.path;
  if (source.rules !== undefined) {
    target.rules = [...target.rules ?? [], ...source.rules];
  }
  if (source.each !== undefined) {
    merge(target.each ??= { members: new Map() }, source.each);
  }
  for (const [key, node] of source.members) {
    merge(childOf(target, { key }), node);
  }
}

/**
 * Makes reads of what was pruned throw, and those of lists that lack elements
 * give the others.
 *
 * @param node What was pruned here and below.
 * @param value The value here, decoded.
 * @param guarded Takes the parts that are guarded.
 */
export function guardNode(
  node: PruneNode,
  value: unknown,
  guarded: Set<unknown>,
): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of node.members) {
    if (member.path === undefined) {
      const part = own(value, key);
      guardNode(member, part, guarded);
      if (member.rules === undefined || !Array.isArray(part)) continue;
      keptByObject.set(value, {
        ...keptByObject.get(value),
        [key]: deepFreeze(part),
      });
    } else if (Array.isArray(value)) continue;
    // One guard for all objects: they keep sharing their shape.
    member.guard ??= makeGuard(key, member.path);
    Object.defineProperty(value, key, member.guard);
    guarded.add(value);
    guardsByObject.set(value, {
      ...guardsByObject.get(value),
      [key]: member.guard,
    });
  }
  if (node.each !== undefined) {
    for (const [key, part] of Object.entries(value)) {
      if (!node.members.has(key)) guardNode(node.each, part, guarded);
    }
  }
}

function own(object: object, key: string): unknown {
  return Object.hasOwn(object, key)
    ? (object as Record<string, unknown>)[key]
    : undefined;
}

function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}

/**
 * Stands for a member that is left out, or of which a part is: without a path it
 * can be read, but who writes the object does not write the rest away.
 */
function makeGuard(key: string, path: string | undefined): PropertyDescriptor {
  return {
    configurable: true,
    enumerable: false,
    get(this: object) {
      if (path === undefined) return keptByObject.get(this)?.[key];
      throw new Error(
        `Cannot read "${path}": the cache does not keep it: received an object without it; take the path off "prune"`,
      );
    },
    set(this: object, value: unknown) {
      const own = { value, writable: true, enumerable: true };
      Object.defineProperty(this, key, { ...own, configurable: true });
    },
  };
}

/** Lists of which some elements are kept, by the objects that have them. */
const keptByObject: WeakMap<object, Record<string, unknown>> = new WeakMap();

/** The guards of decoded objects; hardly any has one. */
const guardsByObject: WeakMap<object, Record<string, PropertyDescriptor>> =
  new WeakMap();

/**
 * Lets a copy of a decoded object throw where that throws, since the value is
 * not kept, and read what is kept of a list. What is copied from the copy does
 * not.
 */
function copyGuards(source: object, target: object): void {
  const guards = guardsByObject.get(source);
  if (guards === undefined) return;
  const kept = keptByObject.get(source);
  if (kept !== undefined) keptByObject.set(target, kept);
  for (const name in guards) {
    Object.defineProperty(target, name, guards[name] as PropertyDescriptor);
  }
}

/**
 * Deep copy of a decoded object, which may be changed. Fields that the cache does
 * not keep still throw when they are read, and may be set.
 *
 * @param value JSON value.
 */
export function mutableCopy<T>(value: T): T {
  return copy(value) as T;
}

function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  const source = value as Record<string, unknown>;
  // The engine copies an object of a known shape in one step. A name like
  // "__proto__" becomes an own field, which a later assignment then finds.
  const result = { ...source };
  // A list of the names would take as much memory as the copy itself.
  for (const name in source) {
    const part = source[name];
    if (
      typeof part === "object" && part !== null && Object.hasOwn(source, name)
    ) {
      result[name] = copy(part);
    }
  }
  copyGuards(source, result);
  return result;
}
