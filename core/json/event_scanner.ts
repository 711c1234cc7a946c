import type { ByteRange } from "./byte_range.ts";
import type { ObjectHeader } from "./object_header.ts";

/** What a watch event says of its object. */
export type WatchEventType =
  | "ADDED"
  | "MODIFIED"
  | "DELETED"
  | "BOOKMARK"
  | "ERROR";

/**
 * Reads the header of a watch event, or of an object, in one pass over its
 * bytes, with any key order and white space.
 *
 * For every document that `JSON.parse` accepts, the header equals what it would
 * give. One that is not well-formed is refused.
 */
export declare class EventScanner {
  /** The header of the last object; every scan overwrites it. */
  readonly header: ObjectHeader;

  /**
   * Reads one line of a watch: `{"type": …, "object": {…}}`.
   *
   * @returns The type of the event; {@linkcode EventScanner.header} describes
   * its object: a Status for ERROR, nothing but a resourceVersion for BOOKMARK.
   * @throws {SyntaxError} If the line is not such an event.
   */
  scan(line: ByteRange): WatchEventType;

  /**
   * Reads one object, such as an item of a list or the answer to a write.
   *
   * @returns {@linkcode EventScanner.header}.
   * @throws {SyntaxError} If the range is not one JSON object with the header
   * of a Kubernetes object.
   */
  scanObject(range: ByteRange): ObjectHeader;
}
