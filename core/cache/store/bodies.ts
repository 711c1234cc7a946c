import { Buffer } from "node:buffer";
import { apiVersionOf, type Kind } from "../../api/kind.ts";
import {
  asBuffer,
  type ByteRange,
  NO_BYTES,
  wholeRange,
} from "../../json/byte_range.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { Pruner } from "../../json/prune.ts";
import { discardPage } from "./page_codec.ts";

const COMMA = 0x2c;
const FIRST_SCRATCH_BYTES = 16 * 1024;
/** Maximum size of the scratch memory that is kept after a larger object. */
const KEPT_SCRATCH_BYTES = 1024 * 1024;

/**
 * Writer of bodies: the stored form of objects, without the pruned paths, and with
 * `apiVersion` and `kind`, which items of a list lack.
 *
 * The writer itself is the body of the object that was taken last, so that no
 * object is allocated for it.
 */
export class BodyWriter {
  /** Length of the body that was taken last, in bytes. */
  length = 0;

  readonly #pruner: Pruner | undefined;
  /** Beginnings of bodies, by the missing fields: `{"apiVersion":…,"kind":…`. */
  readonly #starts: Readonly<Record<string, Buffer>>;
  /** Object that was taken last, and the beginning that it lacks. */
  #object: ByteRange = { bytes: NO_BYTES, start: 0, end: 0 };
  #start: Buffer | undefined;
  #scratch: Buffer = NO_BYTES;

  /** @throws {SyntaxError} If a path to prune is malformed. */
  constructor(kind: Kind, prune: readonly string[]) {
    this.#pruner = prune.length === 0 ? undefined : new Pruner(prune);
    const apiVersion = apiVersionOf(kind);
    // Not of the pool of Buffers, which a few bytes would keep.
    const start = (object: object) =>
      asBuffer(wholeRange(JSON.stringify(object).slice(0, -1)).bytes);
    this.#starts = {
      both: start({ apiVersion, kind: kind.kind }),
      apiVersion: start({ apiVersion }),
      kind: start({ kind: kind.kind }),
    };
  }

  /**
   * Prepares the body of an object.
   *
   * @returns Body, to be written before the next call and before the bytes of the
   * header change.
   * @throws {SyntaxError} If the object is not well-formed where a pruned path
   * leads.
   */
  take(header: ObjectHeader): this {
    const kept = this.#pruner?.measure(header) ?? header.end - header.start;
    this.#object = header;
    this.#start = this.#missingStart(header);
    this.length = kept + (this.#start?.length ?? 0);
    return this;
  }

  /** Writes the body that was taken last into an array. */
  writeTo(target: Uint8Array, start: number): void {
    const { bytes, start: from, end } = this.#object;
    const missing = this.#start;
    const at = start + (missing?.length ?? 0);
    if (this.#pruner === undefined) {
      asBuffer(bytes).copy(target, at, from, end);
    } else this.#pruner.copy(this.#object, target, at);
    if (missing !== undefined) {
      missing.copy(target, start);
      target[at] = COMMA; // in place of the object's own brace
    }
  }

  /**
   * Body of an object, valid until the next call.
   *
   * @throws {SyntaxError} If the object is not well-formed where a pruned path
   * leads.
   */
  write(header: ObjectHeader): ByteRange {
    const { length } = this.take(header);
    const bytes = this.#room(length);
    this.writeTo(bytes, 0);
    return { bytes, start: 0, end: length };
  }

  /**
   * Makes reads of pruned paths of a decoded object throw an error.
   *
   * @returns Parts of the object with such paths.
   */
  guard(object: object): ReadonlySet<unknown> | undefined {
    return this.#pruner?.guard(object);
  }

  #missingStart(header: ObjectHeader): Buffer | undefined {
    const { apiVersion, kind, both } = this.#starts;
    if (header.has("apiVersion")) return header.has("kind") ? undefined : kind;
    return header.has("kind") ? apiVersion : both;
  }

  #room(length: number): Buffer {
    const kept = this.#scratch.length;
    if (kept < length || (kept > KEPT_SCRATCH_BYTES && length < kept / 4)) {
      this.#scratch = Buffer.alloc(
        Math.max(FIRST_SCRATCH_BYTES, Math.ceil(length * 1.25)),
      );
    }
    return this.#scratch;
  }
}

/**
 * Copy of the body that a change replaces; the next copy reuses its memory. A
 * compressed body is decompressed only when it is read, which is rare.
 */
export class BodyCopy implements ByteRange {
  #memory: Buffer = NO_BYTES;
  #open: ((packed: Uint8Array) => ByteRange) | undefined;
  /** Copied bytes: the body itself, or its compressed page. */
  readonly #copied = { bytes: this.#memory, start: 0, end: 0 };
  #body: ByteRange | undefined;

  get bytes(): Uint8Array {
    return this.#opened().bytes;
  }

  get start(): number {
    return this.#opened().start;
  }

  get end(): number {
    return this.#opened().end;
  }

  /**
   * Copies a body.
   *
   * @param range Body, or the compressed page that contains it.
   * @param open Function that decompresses the page and returns the body in memory
   * of its own, which the next copy frees. If absent, the range is the body.
   */
  keep(
    { bytes, start, end }: ByteRange,
    open?: (packed: Uint8Array) => ByteRange,
  ): void {
    const length = end - start;
    if (this.#memory.length < length) this.#memory = Buffer.alloc(length * 2);
    asBuffer(bytes).copy(this.#memory, 0, start, end);
    this.#copied.bytes = this.#memory;
    this.#copied.end = length;
    this.#open = open;
    if (this.#body !== undefined) discardPage(this.#body.bytes);
    this.#body = undefined;
  }

  #opened(): ByteRange {
    if (this.#open === undefined) return this.#copied;
    const { bytes, end } = this.#copied;
    this.#body ??= this.#open(bytes.subarray(0, end));
    return this.#body;
  }
}
