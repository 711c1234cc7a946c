import type { ByteRange } from "./byte_range.ts";
import { JsonCursor, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./json_cursor.ts";
import { asBuffer } from "./json_text.ts";
import {
  FIELD_INDEX,
  NO_CUT,
  NO_MEMBER,
  ObjectHeader,
} from "./object_header.ts";
import { guardNode } from "./prune_guards.ts";
import { type KeepRule, type PruneNode, pruneTree } from "./prune_tree.ts";

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
