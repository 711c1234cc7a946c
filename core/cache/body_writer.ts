import { Buffer } from "node:buffer";
import { apiVersionOf, type Kind } from "../api/kind.ts";
import type { ByteRange } from "../json/byte_range.ts";
import { asBuffer } from "../json/json_text.ts";
import type { ObjectHeader } from "../json/object_header.ts";
import { Pruner } from "../json/prune.ts";

const COMMA = 0x2c;
const FIRST_SCRATCH_BYTES = 16 * 1024;
/** More than this is not held for later once a longer object has passed. */
const KEPT_SCRATCH_BYTES = 1024 * 1024;

/** Brings objects into the form in which they are kept. */
export class BodyWriter {
  readonly #pruner: Pruner | undefined;
  /** `{"apiVersion":…,"kind":…`: the start of an object that lacks them. */
  readonly #starts: Readonly<Record<string, Buffer>>;
  #scratch: Buffer = Buffer.alloc(0);
  /** What was written last. */
  readonly #body: { bytes: Buffer; readonly start: 0; end: number } = {
    bytes: this.#scratch,
    start: 0,
    end: 0,
  };

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
   * The bytes to keep of an object, valid until the next call: without the
   * pruned paths, and with `apiVersion` and `kind`, which items of a list lack.
   *
   * @throws {SyntaxError} If the object is not well-formed where a pruned path
   * leads.
   */
  write(header: ObjectHeader): ByteRange {
    const start = this.#missingStart(header);
    if (start === undefined && this.#pruner === undefined) return header;
    const from = start === undefined ? 0 : start.length;
    const scratch = this.#room(from + header.end - header.start);
    const body = from === 0 ? scratch : scratch.subarray(from);
    const length = this.#pruner === undefined
      ? asBuffer(header.bytes).copy(body, 0, header.start, header.end)
      : this.#pruner.prune(header, body);
    if (start !== undefined) {
      start.copy(scratch);
      scratch[from] = COMMA; // where the object's own brace was
    }
    this.#body.bytes = scratch;
    this.#body.end = from + length;
    return this.#body;
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
