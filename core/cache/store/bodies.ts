import { Buffer } from "node:buffer";
import { apiVersionOf, type Kind } from "../../api/kind.ts";
import { asBuffer, type ByteRange } from "../../json/byte_range.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import { Pruner } from "../../json/prune.ts";
import { discardPage } from "./page_codec.ts";

const COMMA = 0x2c;
const FIRST_SCRATCH_BYTES = 16 * 1024;
/** More than this is not held for later once a longer object has passed. */
const KEPT_SCRATCH_BYTES = 1024 * 1024;

/** A body that is written where there is room for it. */
export interface UnwrittenBody {
  /** How many bytes it will have. */
  readonly length: number;
  /** Writes it from a position on. */
  writeTo(target: Uint8Array, start: number): void;
}

/**
 * Brings objects into the form in which they are kept: without the pruned paths,
 * and with `apiVersion` and `kind`, which items of a list lack.
 *
 * It is itself the body of the object that it has taken last, so that no object
 * is made for it.
 */
export class BodyWriter implements UnwrittenBody {
  length = 0;

  readonly #pruner: Pruner | undefined;
  /** `{"apiVersion":…,"kind":…`: the start of an object that lacks them. */
  readonly #starts: Readonly<Record<string, Buffer>>;
  /** What was taken, and what has to stand before it. */
  #object: ByteRange = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  #start: Buffer | undefined;
  #scratch: Buffer = Buffer.alloc(0);

  /** @throws {SyntaxError} If a path to prune is malformed. */
  constructor(kind: Kind, prune: readonly string[]) {
    this.#pruner = prune.length === 0 ? undefined : new Pruner(prune);
    const apiVersion = apiVersionOf(kind);
    const start = (object: object) =>
      Buffer.from(JSON.stringify(object).slice(0, -1));
    this.#starts = {
      both: start({ apiVersion, kind: kind.kind }),
      apiVersion: start({ apiVersion }),
      kind: start({ kind: kind.kind }),
    };
  }

  /**
   * Takes an object.
   *
   * @returns Its body, to be written before the next call and while the bytes of
   * the header are as they are.
   * @throws {SyntaxError} If the object is not well-formed where a pruned path
   * leads.
   */
  take(header: ObjectHeader): UnwrittenBody {
    const kept = this.#pruner?.measure(header) ?? header.end - header.start;
    this.#object = header;
    this.#start = this.#missingStart(header);
    this.length = kept + (this.#start?.length ?? 0);
    return this;
  }

  writeTo(target: Uint8Array, start: number): void {
    const { bytes, start: from, end } = this.#object;
    const missing = this.#start;
    const at = start + (missing?.length ?? 0);
    if (this.#pruner === undefined) {
      asBuffer(bytes).copy(target, at, from, end);
    } else this.#pruner.copy(this.#object, target, at);
    if (missing !== undefined) {
      missing.copy(target, start);
      target[at] = COMMA; // where the object's own brace was
    }
  }

  /**
   * The body of an object, valid until the next call.
   *
   * @throws {SyntaxError} As `take` does.
   */
  write(header: ObjectHeader): ByteRange {
    const { length } = this.take(header);
    const bytes = this.#room(length);
    this.writeTo(bytes, 0);
    return { bytes, start: 0, end: length };
  }

  /**
   * Makes reads of pruned paths of a decoded object fail loudly.
   *
   * @returns The parts of the object that do.
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
 * A body copied to where the next one is copied: the state that a change
 * replaces. One that was compressed is opened when it is read, which most are
 * not.
 */
export class BodyCopy implements ByteRange {
  #memory: Buffer = Buffer.alloc(0);
  #open: ((packed: Uint8Array) => ByteRange) | undefined;
  /** What was copied, which is the body if nothing has to open it. */
  readonly #copied = { bytes: this.#memory, start: 0, end: 0 };
  #body: ByteRange | undefined;

  /** The array in which the body lies. */
  get bytes(): Uint8Array {
    return this.#opened().bytes;
  }

  /** Where the body starts. */
  get start(): number {
    return this.#opened().start;
  }

  /** Where the body ends. */
  get end(): number {
    return this.#opened().end;
  }

  /**
   * Copies bytes.
   *
   * @param open Gives the body that they are packed in, in a page of its own,
   * whose memory is given back with the next copy; by default they are it.
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
