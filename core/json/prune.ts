import { asBuffer, type ByteRange } from "./byte_range.ts";
import { parseFieldPath, type PathStep } from "./field_path.ts";
import { JsonCursor, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json_cursor.ts";
import {
  FIELD_INDEX,
  NO_CUT,
  NO_MEMBER,
  ObjectHeader,
} from "./object_header.ts";

/**
 * Pruner of objects: removes field paths from an object while its bytes are
 * copied, without parsing it. The result equals the parsed object with these
 * paths deleted.
 *
 * A field path is written as in `metadata.managedFields`,
 * `status.conditions[*].lastProbeTime` or
 * `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`;
 * `[*]` selects all elements of a list and all members of an object. At the end,
 * as in `metadata.managedFields[manager!="page","book"]`, a step may select all
 * elements of a list except the objects in which a field has one of some values.
 */
export class Pruner {
  readonly #root: PruneNode;
  readonly #cursor: JsonCursor = new JsonCursor("an object to prune");
  /** Starts and ends of the pruned ranges of the current object, in order. */
  #cuts: Int32Array = new Int32Array(32);
  #cutEnd = 0;
  /** Metadata fields that all paths lead to, if the scanner finds all of them. */
  readonly #noted: readonly NotedField[] | undefined;

  /**
   * @param paths Field paths to prune.
   * @throws {SyntaxError} If a path is malformed.
   * @throws {RangeError} If a path contains a field that the library needs, such as
   * `metadata.labels`, or has a step that is not allowed there.
   */
  constructor(paths: readonly string[]) {
    this.#root = pruneTree(paths);
    this.#noted = notedFields(this.#root);
  }

  /**
   * Finds the pruned ranges of an object.
   *
   * @param source JSON of an object; if it was scanned, its header, which contains
   * the ranges of the metadata fields.
   * @returns Number of bytes without the pruned ranges.
   * @throws {SyntaxError} If the object is not well-formed where a path leads.
   */
  measure(source: ByteRange): number {
    this.#cutEnd = 0;
    if (!(source instanceof ObjectHeader) || !this.#findNoted(source)) {
      this.#cursor.reset(source);
      this.#process(this.#root);
    }
    let length = source.end - source.start;
    for (let i = 0; i < this.#cutEnd; i += 2) {
      length -= (this.#cuts[i + 1] as number) - (this.#cuts[i] as number);
    }
    return length;
  }

  /**
   * Copies the object that was measured last, without the pruned ranges.
   *
   * @param source The measured object.
   * @param target Array to write to.
   * @param start Position in the array.
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
   * Makes reads of pruned paths of a decoded object throw an error that names the
   * path. Writes, copies, spreads and `JSON.stringify` are not affected. A list
   * that keeps some of its elements can be read, but is not enumerable, so that no
   * write removes the pruned elements.
   *
   * @returns Parts of the object with guards.
   */
  guard(object: object): Set<unknown> {
    const guarded = new Set<unknown>();
    guardNode(this.#root, object, guarded);
    return guarded;
  }

  /** Finds all ranges to cut by the header; returns whether that suffices. */
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
        this.#process(node);
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

  #process(node: PruneNode): void {
    const byte = this.#cursor.peek();
    if (byte === OPEN_BRACE) this.#processParts(node, true);
    else if (byte === OPEN_BRACKET) this.#processParts(node, false);
    else this.#cursor.skipStructure();
  }

  /** Processes each member or element, and cuts the pruned ones. */
  #processParts(node: PruneNode, inObject: boolean): void {
    const cursor = this.#cursor;
    let kept = false;
    let cutStart = -1; // of pruned parts before the first kept one
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
        // The comma after the pruned parts is cut, too.
        if (cutStart >= 0) this.#cut(cutStart, start);
        cutStart = -1;
        kept = true;
        if (part === undefined) cursor.skipStructure();
        else this.#process(part);
      } else {
        cursor.skipStructure();
        if (kept) this.#cut(before, cursor.position);
        else if (cutStart < 0) cutStart = start;
      }
      before = cursor.position;
    }
    if (cutStart >= 0) this.#cut(cutStart, before);
  }

  /** Whether the value at the cursor meets a rule; the cursor does not move. */
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

/** Metadata field with its node in the tree of paths. */
interface NotedField {
  readonly index: number;
  readonly node: PruneNode;
}

/**
 * Metadata fields that all paths lead to; undefined if the scanner misses some.
 */
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

/** Node of the member whose key the cursor has just read. */
function memberOf(node: PruneNode, cursor: JsonCursor): PruneNode | undefined {
  const { members, each } = node;
  if (members.size === 0) return each;
  for (const [key, member] of members) {
    if (cursor.stringEquals(key)) return member;
  }
  return each;
}

/** Fields that the cache and the controllers need. */
const NEEDED_FIELDS = [
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

/** Rule for kept elements of a list: objects whose field has one of the values. */
export type KeepRule = Extract<PathStep, { readonly except: unknown }>;

/** Node of the tree of pruned paths: members to prune at one position. */
export interface PruneNode {
  /** Path that ends here, where the value is pruned. */
  path?: string | undefined;
  /** Rules of a list: an element is kept only if it meets all of them. */
  rules?: readonly KeepRule[] | undefined;
  /** Property of decoded objects in place of the value or the partial list. */
  guard?: PathGuard | undefined;
  readonly members: Map<string, PruneNode>;
  /** Node of all elements, and of all members without a node of their own. */
  each?: PruneNode | undefined;
}

/**
 * Parses field paths to prune into a tree.
 *
 * @throws {SyntaxError} If a path is malformed.
 * @throws {RangeError} If a path contains a field that the library needs, or has a
 * step that is not allowed there.
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
  const taken = NEEDED_FIELDS.find((needed) =>
    steps.length <= needed.steps.length &&
    steps.every((step, i) => matches(step, needed.steps[i]))
  );
  if (taken !== undefined) {
    throw new RangeError(
      `Cannot prune objects: the library needs "${taken.path}": received "${path}"`,
    );
  }
}

/**
 * Checks that a list with a prune rule is a member of an object: only members
 * can have a guard, the property that reports a read of pruned data.
 */
function checkNamed(path: string, before: PathStep | undefined): void {
  if (before !== undefined && "key" in before) return;
  throw new RangeError(
    `Cannot prune objects: a list that keeps some of its elements must be a named field: received ${path}`,
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
      `Cannot prune objects: elements can only be selected all together, by [*]: received [${step.index}]`,
    );
  }
  if ("except" in step) {
    throw new RangeError(
      `Cannot prune objects: nothing may follow a step that keeps elements: received [${step.field}!=…]`,
    );
  }
  let child = node.members.get(step.key);
  if (child === undefined) {
    child = { members: new Map() };
    node.members.set(step.key, child);
  }
  return child;
}

/**
 * Merges the wildcard node of a tree, which applies to every member of an
 * object, into the nodes of the members that are listed by name.
 */
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
 * Adds guards to a decoded value: reads of pruned members throw, and reads of
 * partial lists return the kept elements.
 *
 * @param node Node of the tree for the value.
 * @param value Decoded value.
 * @param guarded Set to which parts with guards are added.
 */
function guardNode(
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
    const { guard, alone } = member.guard ??= guardOf(key, member.path);
    Object.defineProperty(value, key, guard);
    guarded.add(value);
    const { [GUARDS]: others } = value as Guarded;
    const guards = others === undefined ? alone : { ...others, [key]: guard };
    Object.defineProperty(value, GUARDS, { value: guards, configurable: true });
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

/** Freezes a JSON value with all its parts, and returns it. */
export function deepFreeze(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) { for (const item of value) deepFreeze(item); }
  else {
    for (const name in value) {
      deepFreeze((value as Record<string, unknown>)[name]);
    }
  }
  return Object.freeze(value);
}

/** Guard of a member of a path, and the guards of an object that has no other. */
interface PathGuard {
  readonly guard: PropertyDescriptor;
  readonly alone: Record<string, PropertyDescriptor>;
}

/**
 * Guards by path. One for all objects of all kinds: they keep sharing their shapes,
 * which take more memory than some dozens of objects.
 */
const pathGuards: Map<string, PathGuard> = new Map();

function guardOf(key: string, path: string | undefined): PathGuard {
  const name = JSON.stringify([key, path]);
  let known = pathGuards.get(name);
  if (known === undefined) {
    const guard = makeGuard(key, path);
    pathGuards.set(name, known = { guard, alone: { [key]: guard } });
  }
  return known;
}

/**
 * Creates the guard of a pruned member: a property that throws when it is read.
 * Without a path it holds a list that lacks its pruned items: the list can
 * be read, but is left out when the object is written.
 */
function makeGuard(key: string, path: string | undefined): PropertyDescriptor {
  return {
    configurable: true,
    enumerable: false,
    get(this: object) {
      if (path === undefined) return keptByObject.get(this)?.[key];
      throw new Error(
        `Cannot read "${path}": the cache does not store it, as "prune" contains the path`,
      );
    },
    set(this: object, value: unknown) {
      setOwn(this, key, value);
    },
  };
}

/**
 * Lists that pruning has shortened, by the object that contains them.
 */
const keptByObject: WeakMap<object, Record<string, unknown>> = new WeakMap();

/** Hidden member with the guards of a decoded object; a WeakMap would cost more. */
const GUARDS: unique symbol = Symbol("guards");
type Guarded = { readonly [GUARDS]?: Record<string, PropertyDescriptor> };

/**
 * Copies the guards of a decoded object to a copy of it. Copies of the copy do not
 * have them.
 */
function copyGuards(source: object, target: object): void {
  const { [GUARDS]: guards } = source as Guarded;
  if (guards === undefined) return;
  const kept = keptByObject.get(source);
  if (kept !== undefined) keptByObject.set(target, kept);
  for (const name in guards) {
    Object.defineProperty(target, name, guards[name] as PropertyDescriptor);
  }
}

/**
 * Deep copy of a decoded object, which may be changed. Fields that the cache does
 * not store still throw when they are read, and may be set.
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
  const result: Record<string, unknown> = {};
  // Field by field: the engine copies objects by `...` in one step only as long as
  // few shapes pass here. In this form it needs no look-up for an own field either.
  for (const name in source) {
    if (!hasOwn.call(source, name)) continue;
    const part = source[name];
    const copied = typeof part === "object" ? copy(part) : part;
    if (name === "__proto__") setOwn(result, name, copied);
    else result[name] = copied;
  }
  copyGuards(source, result);
  return result;
}

const { hasOwnProperty: hasOwn } = Object.prototype;

/** Creates a field, also where an assignment would call a setter. */
function setOwn(object: object, name: string, value: unknown): void {
  const own = { value, writable: true, enumerable: true };
  Object.defineProperty(object, name, { ...own, configurable: true });
}

/**
 * First field that is missing because the cache prunes it, apart from managed
 * fields; undefined for a complete object.
 *
 * @param subresource If present, only the status counts.
 * @param written Replacement of the object, which may be a copy without guards.
 * @param live Object with the fields that a replacement would remove.
 */
export function prunedField(
  value: unknown,
  subresource?: string,
  written: unknown = value,
  live: unknown = value,
  path = "",
): string | undefined {
  const parts = [value, written, live];
  if (parts.some((part) => Object(part) !== part)) return undefined;
  for (
    const name of subresource ? ["status"] : Object.getOwnPropertyNames(value)
  ) {
    const [field, sent, stored] = parts.map((part) =>
      Object.getOwnPropertyDescriptor(part, name)
    );
    const at = path === "" ? name : `${path}.${name}`;
    const isLost = field?.get && stored && sent?.value === undefined;
    if (isLost && at !== "metadata.managedFields") return at;
    const { value: kept = null } = stored ?? {};
    const copy = sent?.value ?? null;
    const pruned = prunedField(field?.value, undefined, copy, kept, at);
    if (pruned !== undefined) return pruned;
  }
  return undefined;
}
