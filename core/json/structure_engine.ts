import { asBuffer } from "./byte_range.ts";
import {
  INCOMPLETE,
  STATE_BYTES,
  structureProgram,
  WINDOW_BYTES,
  WINDOW_START,
} from "./structure_program.ts";

/**
 * Engine that finds the end of a JSON object or array by its strings and brackets
 * alone, without checking the content between them.
 */
export interface StructureEngine {
  /** Identity of the loaded bytes: a caller with other bytes must load again. */
  owner: unknown;
  /** Loads the bytes that contain the next values, which must not change. */
  load(bytes: Uint8Array, from: number, to: number): void;
  /**
   * Finds the end of a value within the loaded bytes.
   *
   * @param from Position of its opening bracket.
   * @returns Position after its closing bracket, or {@linkcode INCOMPLETE}.
   */
  skip(from: number): number;
  /** Starts a value that is received in parts. */
  reset(): void;
  /**
   * Reads the next part of a value, as {@linkcode StructureEngine.skip} does. The
   * bytes must be loaded again afterwards.
   */
  resume(bytes: Uint8Array, from: number, to: number): number;
  /**
   * Position up to which the last incomplete {@linkcode StructureEngine.resume}
   * has read, and from which the next one continues.
   */
  readonly position: number;
  /** State of an incomplete value, to continue after other uses of the engine. */
  save(): Uint8Array;
  /** Restores a state of {@linkcode StructureEngine.save}. */
  restore(saved: Uint8Array): void;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bit in which braces differ from brackets. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Engine that reads byte by byte, for runtimes without WebAssembly SIMD. */
export class ScalarEngine implements StructureEngine {
  owner: unknown;
  position = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #to = 0;
  /** Number of open brackets and braces. */
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

/** Exports of the WebAssembly module. */
interface StructureExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  skip(position: number, length: number): number;
}

/**
 * Engine that reads 64 bytes per step by SIMD instructions of WebAssembly. Without
 * it, the path of a watch event takes more than twice the time.
 */
export class WasmEngine implements StructureEngine {
  owner: unknown;
  position = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  /** Bytes in the window: `#bytes[#from, #loaded)`, of those up to `#to`. */
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

  /** Creates the engine; undefined if the runtime has no WebAssembly SIMD. */
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
    // Unless the text ends in the window, only its whole blocks are read.
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
    // restored, and the block is read again when it is complete.
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

  /** Fills the window; returns the number of bytes of the text in it. */
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
 * Engine that all scanners share, created on first use: with WebAssembly SIMD, or
 * byte by byte if the runtime has none.
 */
export function sharedEngine(): StructureEngine {
  return shared ??= WasmEngine.create() ?? new ScalarEngine();
}
