import { hashNext } from "./key_table.ts";

/** Maximum number of remembered parts: a power of two. */
const MAX_REMEMBERED = 1024;

/** Approximate memory of V8 for an object or array, a member and a string. */
const OBJECT_BYTES = 32;
const MEMBER_BYTES = 8;
const TEXT_BYTES = 16;

type Part = Record<string, unknown> | unknown[];

/**
 * Deduplicator of decoded objects: freezes objects with all their parts, and
 * replaces parts by equal ones with the same order of keys. Labels, containers,
 * tolerations and most other parts are the same in all Pods of a workload, which
 * halves the memory of each Pod.
 *
 * It works from the inside out, so that two parts are equal if their members are
 * identical. A part is remembered when its hash comes twice in succession: to hold
 * the parts that only one object has would keep objects from dying young.
 */
export class PartSharing {
  #remembered: (Part | undefined)[] = [];
  /** Hashes that came last; undefined before the first object. */
  #seen: Int32Array | undefined;
  /** Hash and own size of the part that was processed last. */
  #hash = 0;
  #ownBytes = 0;
  #bytes = 0;

  /** Approximate memory of the last object without its shared parts, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Freezes a JSON value, and returns it or an equal one.
   *
   * @param unique Parts that must not be replaced: they have properties that JSON
   * does not express.
   */
  share<V>(value: V, unique?: ReadonlySet<unknown>): V {
    this.#bytes = 0;
    return isPart(value) ? this.#share(value, unique) as V : value;
  }

  clear(): void {
    this.#remembered = [];
  }

  #share(part: Part, unique: ReadonlySet<unknown> | undefined): Part {
    if (Array.isArray(part)) this.#shareElements(part, unique);
    else this.#shareMembers(part, unique);
    const hash = hashNext(this.#hash ^ (this.#hash >>> 15), 0);
    this.#hash = hash;
    if (unique === undefined || !unique.has(part)) {
      const at = (hash >>> 8) & (MAX_REMEMBERED - 1);
      const known = this.#remembered[at];
      if (known !== undefined && isSame(known, part)) return known;
      const seen = this.#seen ??= new Int32Array(MAX_REMEMBERED);
      if (seen[at] === hash) this.#remembered[at] = part;
      seen[at] = hash;
    }
    this.#bytes += this.#ownBytes;
    return Object.freeze(part) as Part;
  }

  #shareMembers(
    object: Record<string, unknown>,
    unique: ReadonlySet<unknown> | undefined,
  ): void {
    let hash = 1;
    let bytes = OBJECT_BYTES;
    // A JSON value has own members only.
    for (const key in object) {
      const member = object[key];
      if (isPart(member)) {
        const shared = this.#share(member, unique);
        if (shared !== member) object[key] = shared;
        hash = hashNext(hash, this.#hash);
      } else {
        hash = hashNext(hash, valueHash(member));
        if (typeof member === "string") bytes += TEXT_BYTES + member.length;
      }
      hash = hashNext(hash, key.length);
      bytes += MEMBER_BYTES;
    }
    this.#hash = hash;
    this.#ownBytes = bytes;
  }

  #shareElements(
    array: unknown[],
    unique: ReadonlySet<unknown> | undefined,
  ): void {
    let hash = 2;
    let bytes = OBJECT_BYTES;
    for (let i = 0; i < array.length; i++) {
      const element = array[i];
      if (isPart(element)) {
        const shared = this.#share(element, unique);
        if (shared !== element) array[i] = shared;
        hash = hashNext(hash, this.#hash);
      } else {
        hash = hashNext(hash, valueHash(element));
        if (typeof element === "string") bytes += TEXT_BYTES + element.length;
      }
      bytes += MEMBER_BYTES;
    }
    this.#hash = hash;
    this.#ownBytes = bytes;
  }
}

function isPart(value: unknown): value is Part {
  return typeof value === "object" && value !== null;
}

function valueHash(value: unknown): number {
  if (typeof value === "string") return textHash(value);
  return typeof value === "number" ? value | 0 : value === true ? 3 : 5;
}

/** Hash of a few characters of a text: a collision only costs a comparison. */
function textHash(text: string): number {
  const { length } = text;
  if (length === 0) return 0;
  let hash = hashNext(length, text.charCodeAt(length >> 1));
  hash = hashNext(hash, text.charCodeAt(0));
  return hashNext(hash, text.charCodeAt(length - 1));
}

/** Whether two parts have identical members, in the same order. */
function isSame(a: Part, b: Part): boolean {
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length &&
      a.every((element, i) => Object.is(element, b[i]));
  }
  if (Array.isArray(b)) return false;
  const keys = Object.keys(a);
  let i = 0;
  for (const key in b) {
    if (keys[i++] !== key || !Object.is(a[key], b[key])) return false;
  }
  return i === keys.length;
}
