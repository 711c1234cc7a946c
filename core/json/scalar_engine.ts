import { INCOMPLETE, type StructureEngine } from "./structure_engine.ts";

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
