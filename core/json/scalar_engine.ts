import {
  INCOMPLETE,
  MISMATCHED,
  type StructureEngine,
} from "./structure_engine.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `{` and `[` differ in this bit alone, and so do `}` and `]`. */
const BRACE_BIT = 0x20;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Reads byte by byte: where WebAssembly is not allowed. */
export class ScalarEngine implements StructureEngine {
  owner: unknown;
  position = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #to = 0;
  /** Open brackets of both sorts, and of those the braces. */
  #depth = 0;
  #braceDepth = 0;
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
    this.#braceDepth = 0;
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
      else if (!this.#inString && bracket === OPEN_BRACE) this.#nest(byte, 1);
      else if (!this.#inString && bracket === CLOSE_BRACE) {
        this.#nest(byte, -1);
        if (this.#depth === 0) {
          return this.#braceDepth === 0 ? i + 1 : MISMATCHED;
        }
      }
      this.#escaped = byte === BACKSLASH && !this.#escaped;
    }
    this.position = to;
    return INCOMPLETE;
  }

  #nest(byte: number, step: number): void {
    this.#depth += step;
    if ((byte & BRACE_BIT) !== 0) this.#braceDepth += step;
  }

  save(): Uint8Array {
    const { buffer } = Int32Array.of(
      this.#depth,
      this.#braceDepth,
      Number(this.#inString),
      Number(this.#escaped),
    );
    return new Uint8Array(buffer);
  }

  restore(saved: Uint8Array): void {
    const cells = new Int32Array(saved.slice().buffer);
    const [depth = 0, braceDepth = 0, inString, escaped] = cells;
    this.#depth = depth;
    this.#braceDepth = braceDepth;
    this.#inString = inString === 1;
    this.#escaped = escaped === 1;
  }
}
