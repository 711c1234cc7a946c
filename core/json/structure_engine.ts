import { Buffer } from "node:buffer";
import { asBuffer } from "./byte_range.ts";
import { STRUCTURE_PROGRAM } from "./structure_program.ts";

/** Result of a search that did not reach the end of the value. */
export const INCOMPLETE = -1;

/** Layout of the memory: three cells of state, then the window of text. */
const STATE_BYTES = 12;
const WINDOW_START = 64;
/** Size of the window in whole blocks; one more block is read, but not used. */
const WINDOW_BYTES: number = 64 * 1024 - 2 * 64;

/** Program that finds the end of a JSON value in a window: a part of its text. */
export interface SearchProgram {
  /** Memory: nesting depth, whether in a string, whether escaped; the window. */
  readonly memory: { readonly buffer: ArrayBuffer };
  /** Continues the search, as `structure_program.wat` describes it. */
  skip(position: number, length: number): number;
}

/**
 * Search program with SIMD instructions of WebAssembly; undefined if unsupported.
 * Without them, processing a watch event takes more than twice the time.
 */
export function simdProgram(): SearchProgram | undefined {
  try {
    const bytes = Buffer.from(STRUCTURE_PROGRAM, "base64");
    const module = new WebAssembly.Module(bytes);
    const { exports } = new WebAssembly.Instance(module);
    return exports as unknown as SearchProgram;
  } catch {
    return undefined;
  }
}

const BLOCK = 64;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bit in which braces differ from brackets. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Byte-by-byte search program, for runtimes without WebAssembly SIMD. */
export function scalarProgram(): SearchProgram {
  const buffer = new ArrayBuffer(WINDOW_START + WINDOW_BYTES + BLOCK);
  const state = new Int32Array(buffer, 0, STATE_BYTES / 4);
  const bytes = new Uint8Array(buffer, WINDOW_START);
  return {
    memory: { buffer },
    skip(position, length) {
      let [depth = 0, inString = 0, escaped = 0] = state;
      for (let i = position; i < length; i++) {
        const byte = bytes[i] as number;
        const bracket = byte | BRACE_BIT;
        if (byte === QUOTE && escaped === 0) inString ^= 1;
        else if (inString === 0 && bracket === OPEN_BRACE) depth++;
        else if (inString === 0 && bracket === CLOSE_BRACE) {
          if (--depth === 0) return i + 1;
        }
        escaped = byte === BACKSLASH && escaped === 0 ? 1 : 0;
      }
      state.set([depth, inString, escaped]);
      return INCOMPLETE;
    },
  };
}

/**
 * Engine that finds the end of a JSON object or array by its strings and brackets
 * alone, without checking the content between them.
 */
export class StructureEngine {
  /** Identity of the loaded bytes; a caller with other bytes must load them. */
  owner: unknown;
  /**
   * Position up to which the last incomplete {@linkcode StructureEngine.resume}
   * has read, and from which the next one continues.
   */
  position = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  /** Bounds of the window, `#bytes[#from, #loaded)`, and the end of all bytes. */
  #from = 0;
  #loaded = 0;
  #to = 0;
  readonly #skip: SearchProgram["skip"];
  readonly #memory: Uint8Array;
  readonly #state: Int32Array;

  constructor(program: SearchProgram) {
    const { buffer } = program.memory;
    this.#skip = program.skip;
    this.#memory = new Uint8Array(buffer);
    this.#state = new Int32Array(buffer, 0, STATE_BYTES / 4);
  }

  /** Loads the bytes that contain the next values, which must not change. */
  load(bytes: Uint8Array, from: number, to: number): void {
    this.#bytes = bytes;
    this.#from = from;
    this.#to = to;
    this.#loaded = from + this.#copy(bytes, from, to);
  }

  /**
   * Finds the end of a value within the loaded bytes.
   *
   * @param from Position of its opening bracket.
   * @returns Position after its closing bracket, or {@linkcode INCOMPLETE}.
   */
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

  /** Starts a value that is received in parts. */
  reset(): void {
    this.#state[0] = this.#state[1] = this.#state[2] = 0;
  }

  /**
   * Reads the next part of a value, as {@linkcode StructureEngine.skip} does. The
   * bytes must be loaded again afterwards.
   */
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

  /** State of an incomplete value, to continue after other uses of the engine. */
  save(): Uint8Array {
    return this.#memory.slice(0, STATE_BYTES);
  }

  /** Restores a state that {@linkcode StructureEngine.save} returned. */
  restore(saved: Uint8Array): void {
    this.#memory.set(saved);
  }
}

let shared: StructureEngine | undefined;

/** Engine that all scanners share, created on first use. */
export function sharedEngine(): StructureEngine {
  return shared ??= new StructureEngine(simdProgram() ?? scalarProgram());
}
