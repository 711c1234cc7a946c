import type { ByteRange } from "./byte_range.ts";
import { parseFieldPath, type PathStep } from "./field_path.ts";
import { JsonCursor, OPEN_BRACE, OPEN_BRACKET } from "./json_cursor.ts";
import { parseRange } from "./json_text.ts";

/**
 * Reads one field of objects that are JSON bytes, without parsing the rest.
 *
 * @example Read the node of a Pod
 * ```ts
 * import { FieldReader, wholeRange } from "@coracle/operator/core";
 *
 * const nodeName = new FieldReader("spec.nodeName");
 * const pod = wholeRange('{"spec":{"nodeName":"node-7","containers":[]}}');
 * if (nodeName.value(pod) !== "node-7") throw new Error("Unexpected node");
 * ```
 */
export class FieldReader {
  /** The path as it was given. */
  readonly path: string;
  readonly #steps: readonly PathStep[];
  readonly #cursor: JsonCursor = new JsonCursor("a field");

  /**
   * Makes a reader of one field.
   *
   * @param path Such as `spec.nodeName` or `spec.containers[0].image`.
   * @throws {SyntaxError} If it is not a path.
   * @throws {RangeError} If it has a step that names many fields, such as `[*]`.
   */
  constructor(path: string) {
    this.path = path;
    this.#steps = parseFieldPath(path);
    if (this.#steps.some((step) => "each" in step || "except" in step)) {
      throw new RangeError(
        `Cannot read a field: its path must name one field: received "${path}"`,
      );
    }
  }

  /**
   * The JSON text of the field, or undefined if the object does not have it. Of
   * a repeated key the last one counts.
   *
   * @throws {SyntaxError} If what lies before the field is not well-formed.
   */
  range(source: ByteRange): ByteRange | undefined {
    let found: ByteRange | undefined = source;
    for (const step of this.#steps) {
      if (found === undefined) break;
      found = "key" in step
        ? this.#member(found, step.key)
        : "index" in step
        ? this.#element(found, step.index)
        : undefined;
    }
    return found;
  }

  /** The value of the field, or undefined if the object does not have it. */
  value(source: ByteRange): unknown {
    const range = this.range(source);
    return range === undefined ? undefined : parseRange(range);
  }

  #member(source: ByteRange, key: string): ByteRange | undefined {
    const cursor = this.#cursor;
    const { bytes } = source;
    cursor.reset(source);
    let found: ByteRange | undefined;
    if (cursor.peek() !== OPEN_BRACE) return undefined;
    for (let more = cursor.enterObject(); more; more = cursor.nextMember()) {
      const matches = cursor.stringEquals(key);
      const start = cursor.position;
      cursor.skipStructure();
      if (matches) found = { bytes, start, end: cursor.position };
    }
    return found;
  }

  #element(source: ByteRange, index: number): ByteRange | undefined {
    const cursor = this.#cursor;
    cursor.reset(source);
    if (cursor.peek() !== OPEN_BRACKET) return undefined;
    let at = 0;
    for (let more = cursor.enterArray(); more; more = cursor.nextElement()) {
      const start = cursor.position;
      cursor.skipStructure();
      if (at === index) {
        return { bytes: source.bytes, start, end: cursor.position };
      }
      at++;
    }
    return undefined;
  }
}
