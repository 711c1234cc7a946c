import { asBuffer } from "./byte_range.ts";
import {
  INCOMPLETE,
  STATE_BYTES,
  structureProgram,
  WINDOW_BYTES,
  WINDOW_START,
} from "./structure_program.ts";

/**
 * Finds where a JSON object or array ends, by its strings and the number of
 * its brackets alone: what lies between is not looked at.
 */
export interface StructureEngine {
  /** Whoever loaded last: loads anew if that was another one. */
  owner: unknown;
  /** Makes ready to skip values within these bytes, which must not change. */
  load(bytes: Uint8Array, from: number, to: number): void;
  /**
   * Finds the end of a value within the loaded bytes.
   *
   * @param from Where its opening bracket is.
   * @returns The position after the bracket that closes it, or
   * {@linkcode INCOMPLETE}.
   */
  skip(from: number): number;
  /** Begins with a value whose bytes come in parts. */
  reset(): void;
  /** Reads the next part, as {@linkcode StructureEngine.skip} does.
   * What was loaded is lost. */
  resume(bytes: Uint8Array, from: number, to: number): number;
  /**
   * How far the last incomplete {@linkcode StructureEngine.resume} has read:
   * there the next one goes on, when the bytes behind are known.
   */
  readonly position: number;
  /** What must be known to read on later, while others use the engine. */
  save(): Uint8Array;
  /** Goes back to what {@linkcode StructureEngine.save} gave. */
  restore(saved: Uint8Array): void;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** The braces have it, the brackets do not, and else they are the same. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Reads byte by byte: where WebAssembly is not allowed. */
export class ScalarEngine implements StructureEngine {
  owner: unknown;
  position = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #to = 0;
  /** How many brackets are open, of both sorts. */
  #depth = 0;
  #inString = false;
  #escaped = false;

  load(bytes: Uint8Array, _from: number, to: number): void {
    this.#bytes = bytes;
    this.#to = to;
  }

  skip(from: number): number {
    this.reset();
    return this.#read(this.#bytes, from, this.#to);
  }

  reset(): void {
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
  }

  resume(bytes: Uint8Array, from: number, to: number): number {
    this.owner = undefined;
    return this.#read(bytes, from, to);
  }

  #read(bytes: Uint8Array, from: number, to: number): number {
    for (let i = from; i < to; i++) {
      const byte = bytes[i] as number;
      const bracket = byte | BRACE_BIT;
      if (byte === QUOTE && !this.#escaped) this.#inString = !this.#inString;
      else if (!this.#inString && bracket === OPEN_BRACE) this.#depth++;
      else if (!this.#inString && bracket === CLOSE_BRACE) {
        if (--this.#depth === 0) return i + 1;
      }
      this.#escaped = byte === BACKSLASH && !this.#escaped;
    }
    this.position = to;
    return INCOMPLETE;
  }

  save(): Uint8Array {
    const { buffer } = Int32Array.of(
      this.#depth,
      Number(this.#inString),
      Number(this.#escaped),
    );
    return new Uint8Array(buffer);
  }

  restore(saved: Uint8Array): void {
    const cells = new Int32Array(saved.slice().buffer);
    const [depth = 0, inString, escaped] = cells;
    this.#depth = depth;
    this.#inString = inString === 1;
    this.#escaped = escaped === 1;
  }
}

const BLOCK = 64;
const SPACE = 0x20;

/** What the module exports. */
interface StructureExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  skip(position: number, length: number): number;
}

/** Reads 64 bytes a step, by SIMD instructions of WebAssembly. */
export class WasmEngine implements StructureEngine {
  owner: unknown;
  position = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  /** What is in the window: `#bytes[#from, #loaded)`; wanted is more, to #to. */
  #from = 0;
  #loaded = 0;
  #to = 0;
  readonly #skip: StructureExports["skip"];
  readonly #memory: Uint8Array;
  readonly #cells: Int32Array;

  private constructor(exports: StructureExports) {
    this.#skip = exports.skip;
    this.#memory = new Uint8Array(exports.memory.buffer);
    this.#cells = new Int32Array(exports.memory.buffer, 0, STATE_BYTES / 4);
  }

  /** The engine, or undefined where the runtime has no WebAssembly SIMD. */
  static create(): WasmEngine | undefined {
    try {
      const module = new WebAssembly.Module(structureProgram());
      const { exports } = new WebAssembly.Instance(module);
      return new WasmEngine(exports as unknown as StructureExports);
    } catch {
      return undefined;
    }
  }

  reset(): void {
    const cells = this.#cells;
    cells[0] =
      cells[1] =
      cells[2] =
      cells[3] =
        0;
  }

  load(bytes: Uint8Array, from: number, to: number): void {
    this.#bytes = bytes;
    this.#from = from;
    this.#to = to;
    this.#loaded = from + this.#copy(bytes, from, to);
  }

  skip(from: number): number {
    if (from < this.#from || from >= this.#loaded) {
      this.load(this.#bytes, from, this.#to);
    }
    this.reset();
    const base = this.#from;
    // Unless the text ends in the window, only whole blocks of it count.
    const limit = this.#loaded === this.#to
      ? this.#to
      : this.#loaded - (this.#loaded - from) % BLOCK;
    const end = this.#skip(from - base, limit - base);
    if (end !== INCOMPLETE) return base + end;
    if (limit === this.#to) return INCOMPLETE;
    this.#loaded = 0;
    return this.#read(this.#bytes, limit, this.#to);
  }

  resume(bytes: Uint8Array, from: number, to: number): number {
    this.owner = undefined;
    const lastBlock = to - (to - from) % BLOCK;
    const end = this.#read(bytes, from, lastBlock);
    if (end !== INCOMPLETE) return end;
    // The end may be in the last, incomplete block. If it is not, the state is
    // left as it was, and the block is read again when it is complete.
    this.position = lastBlock;
    const before = this.save();
    const last = this.#read(bytes, lastBlock, to);
    if (last === INCOMPLETE) this.restore(before);
    return last;
  }

  #read(bytes: Uint8Array, from: number, to: number): number {
    for (let position = from; position < to;) {
      const length = this.#copy(bytes, position, to);
      const end = this.#skip(0, length);
      if (end !== INCOMPLETE) return position + end;
      position += length;
    }
    return INCOMPLETE;
  }

  /** Fills the window; gives how many bytes of the text are in it. */
  #copy(bytes: Uint8Array, from: number, to: number): number {
    const length = Math.min(to - from, WINDOW_BYTES);
    asBuffer(bytes).copy(this.#memory, WINDOW_START, from, from + length);
    const padding = WINDOW_START + length;
    this.#memory.fill(SPACE, padding, padding + BLOCK);
    return length;
  }

  save(): Uint8Array {
    return this.#memory.slice(0, STATE_BYTES);
  }

  restore(saved: Uint8Array): void {
    this.#memory.set(saved);
  }
}

let shared: StructureEngine | undefined;

/**
 * The engine that all scanners share, made when it is first needed: by
 * WebAssembly's SIMD instructions, or byte by byte where there are none.
 */
export function sharedEngine(): StructureEngine {
  return shared ??= WasmEngine.create() ?? new ScalarEngine();
}
