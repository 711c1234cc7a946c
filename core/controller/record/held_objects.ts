import {
  FrameComposer,
  type FramePart,
} from "../../cache/snapshot/snapshot_format.ts";
import type { ByteRange } from "../../json/byte_range.ts";

/** Unused bytes that the memory may have. */
const MAX_UNUSED = 256 * 1024;

/**
 * Objects that runs have read and that are not written yet: a run may read Secrets
 * later. They are in one memory, as each is there for a short time only.
 */
export class HeldObjects {
  #memory: FrameComposer = new FrameComposer();
  /** Positions in the memory, by number. */
  readonly #positions: Map<number, number> = new Map();
  #used = 0;

  add(number: number, json: FramePart): void {
    const before = this.#memory.length;
    this.#positions.set(number, this.#memory.addParts(0, [number, json]));
    this.#used += this.#memory.length - before;
    if (this.#memory.length > 2 * this.#used + MAX_UNUSED) this.#compact();
  }

  has(number: number): boolean {
    return this.#positions.has(number);
  }

  /** Removes an object; returns its record until the next one is added. */
  take(number: number): ByteRange | undefined {
    const position = this.#positions.get(number);
    if (position === undefined) return undefined;
    this.#positions.delete(number);
    const record = this.#memory.recordAt(position);
    this.#used -= record.end - position;
    if (this.#positions.size === 0) this.#clear();
    return record;
  }

  /** Removes all; the memory of much is given back. */
  #clear(): void {
    if (this.#memory.length > MAX_UNUSED) this.#memory = new FrameComposer();
    else this.#memory.cut(0);
  }

  #compact(): void {
    const memory = new FrameComposer();
    for (const [number, position] of this.#positions) {
      const { bytes, start, end } = this.#memory.recordAt(position);
      const record = bytes.subarray(start, end);
      this.#positions.set(number, memory.addParts(0, [record]));
    }
    this.#memory = memory;
  }
}
