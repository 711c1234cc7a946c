/** The value goes on behind the bytes given. */
export const INCOMPLETE = -1;
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
