/**
 * A part of a byte array, `bytes[start, end)`: how a line, an item of a list or
 * an object is passed on without a copy.
 *
 * A range is only as long-lived as the array beneath it: those that a splitter
 * or scanner gives are valid until its next step. Who keeps one copies it.
 */
export interface ByteRange {
  /** The bytes that it is a part of. */
  readonly bytes: Uint8Array;
  /** Where it begins. */
  readonly start: number;
  /** Where it ends: the first byte behind it. */
  readonly end: number;
}

/**
 * The whole of an array as a range; a text is encoded first.
 *
 * @example Scan a text
 * ```ts
 * import { EventScanner, wholeRange } from "@coracle/operator/core";
 *
 * const scanner = new EventScanner();
 * scanner.scanObject(wholeRange('{"metadata":{"name":"web"}}'));
 * if (scanner.header.name !== "web") throw new Error("Unexpected name");
 * ```
 */
export function wholeRange(source: Uint8Array | string): ByteRange {
  const bytes = typeof source === "string"
    ? new TextEncoder().encode(source)
    : source;
  return { bytes, start: 0, end: bytes.length };
}
