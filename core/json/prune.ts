import type { ByteRange } from "./byte_range.ts";
import { parseFieldPath, type PathStep } from "./field_path.ts";
import { JsonCursor, OPEN_BRACE, OPEN_BRACKET } from "./json_cursor.ts";
import { asBuffer } from "./json_text.ts";
import {
  FIELD_INDEX,
  type HeaderField,
  NO_CUT,
  NO_MEMBER,
  ObjectHeader,
} from "./object_header.ts";

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

/** All paths as a tree: what to do at one place of an object. */
interface PruneNode {
  /** The path that ends here: the value is left out. */
  path?: string | undefined;
  /** The property of objects that lack the value. */
  guard?: PropertyDescriptor | undefined;
  readonly members: Map<string, PruneNode>;
  /** For every element, and every member that is not named. */
  each?: PruneNode | undefined;
}

/**
 * Leaves declared paths out of an object while its bytes are copied, without
 * parsing it: the result equals the parsed object with these paths deleted.
 *
 * A path is written as in `metadata.managedFields`,
 * `status.conditions[*].lastProbeTime` or
 * `metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`;
 * `[*]` means every element of a list, and every member of an object.
 */
export class Pruner {
  /** The paths as they were given. */
  readonly paths: readonly string[];

  readonly #root: PruneNode = { members: new Map() };
  readonly #cursor: JsonCursor = new JsonCursor("an object to prune");
  /** Starts and ends of what is left out of the current object, in order. */
  #cuts: Int32Array = new Int32Array(32);
  #cutEnd = 0;
  /** The fields to leave out, if the scanner notes where they all are. */
  readonly #noted: readonly number[] | undefined;

  /**
   * Makes a pruner of paths.
   *
   * @param paths What to leave out.
   * @throws {SyntaxError} If a path is malformed.
   * @throws {RangeError} If a path takes what the library decides on itself,
   * such as `metadata.labels`.
   */
  constructor(paths: readonly string[]) {
    this.paths = [...paths];
    for (const path of paths) {
      const steps = parseFieldPath(path);
      checkNotNeeded(path, steps);
      let node = this.#root;
      for (const step of steps) node = childOf(node, step);
      node.path = path;
    }
    spreadEach(this.#root);
    this.#noted = notedFields(paths);
  }

  /**
   * Copies an object without the pruned paths.
   *
   * @param source One JSON object; its header, if it was scanned, since the
   * scanner has found the fields of the metadata already.
   * @param target Where to write; as long as the source at least.
   * @returns How many bytes were written, from the start of `target`.
   * @throws {SyntaxError} If the object is not well-formed where it is looked
   * into.
   */
  prune(source: ByteRange, target: Uint8Array): number {
    const bytes = asBuffer(source.bytes);
    this.#cutEnd = 0;
    if (!(source instanceof ObjectHeader) || !this.#findNoted(source)) {
      this.#cursor.reset(source);
      this.#visit(this.#root);
    }
    const cuts = this.#cuts;
    let written = 0;
    let from = source.start;
    for (let i = 0; i < this.#cutEnd; i += 2) {
      written += bytes.copy(target, written, from, cuts[i] as number);
      from = cuts[i + 1] as number;
    }
    return written + bytes.copy(target, written, from, source.end);
  }

  /**
   * Makes reads of pruned paths of a decoded object throw an error that names
   * the path. Writes, copies, spreads and `JSON.stringify` are not affected.
   *
   * @returns The parts of the object that are guarded.
   */
  guard(object: object): Set<unknown> {
    const guarded = new Set<unknown>();
    guardNode(this.#root, object, guarded);
    return guarded;
  }

  /** Finds all cuts in the notes of the scanner, if they are there. */
  #findNoted({ ranges, cutStarts }: ObjectHeader): boolean {
    if (this.#noted === undefined) return false;
    for (const index of this.#noted) {
      const from = cutStarts[index] as number;
      const end = ranges[2 * index + 1] as number;
      if (from === NO_MEMBER) continue;
      if (from === NO_CUT || end < 0) {
        this.#cutEnd = 0;
        return false;
      }
      this.#cut(from, end);
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
      if (part?.path === undefined) {
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

/** The fields that all paths name, if each is a field of the metadata. */
function notedFields(paths: readonly string[]): number[] | undefined {
  const fields = paths.map((path) => /^metadata\.(\w+)$/.exec(path)?.[1] ?? "");
  return fields.every(isMetadataField)
    ? fields.map((field) => FIELD_INDEX[field])
    : undefined;
}

function isMetadataField(field: string): field is HeaderField {
  return field === "managedFields" || field === "annotations";
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
  if (source.each !== undefined) {
    merge(target.each ??= { members: new Map() }, source.each);
  }
  for (const [key, node] of source.members) {
    merge(childOf(target, { key }), node);
  }
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

function guardNode(
  node: PruneNode,
  value: unknown,
  guarded: Set<unknown>,
): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of node.members) {
    if (member.path === undefined) {
      guardNode(member, own(value, key), guarded);
    } else if (!Array.isArray(value)) {
      // One guard for all objects: they keep sharing their shape.
      member.guard ??= makeGuard(key, member.path);
      Object.defineProperty(value, key, member.guard);
      guarded.add(value);
      guardsByObject.set(value, {
        ...guardsByObject.get(value),
        [key]: member.guard,
      });
    }
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

/** Stands for the member of a path that is left out. */
function makeGuard(key: string, path: string): PropertyDescriptor {
  return {
    configurable: true,
    enumerable: false,
    get() {
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

/** The guards of decoded objects; hardly any has one. */
const guardsByObject: WeakMap<object, Record<string, PropertyDescriptor>> =
  new WeakMap();

/**
 * Lets a copy of a decoded object throw where that throws, since the value is
 * not kept. What is copied from the copy does not.
 */
export function copyGuards(source: object, target: object): void {
  const guards = guardsByObject.get(source);
  if (guards === undefined) return;
  for (const name in guards) {
    Object.defineProperty(target, name, guards[name] as PropertyDescriptor);
  }
}
