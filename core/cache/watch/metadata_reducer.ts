import { apiVersionOf, type Kind } from "../../api/kind.ts";
import { NO_BYTES } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";

const ENCODER = new TextEncoder();
const CLOSING_BRACE = 125;

/**
 * Reducer of objects to their metadata, with the `apiVersion` and `kind` of the
 * kind: some servers send `PartialObjectMetadata`, others whole objects.
 */
export class MetadataReducer {
  readonly #scanner: EventScanner = new EventScanner();
  /** Text before the metadata: `{"apiVersion":…,"kind":…,"metadata":`. */
  readonly #head: Uint8Array;
  #buffer: Uint8Array = NO_BYTES;

  constructor(kind: Kind) {
    const names = { apiVersion: apiVersionOf(kind), kind: kind.kind };
    this.#head = ENCODER.encode(
      `${JSON.stringify(names).slice(0, -1)},"metadata":`,
    );
  }

  /** Reduces an object and returns its header, valid until the next call. */
  reduce(header: ObjectHeader): ObjectHeader {
    const metadata = header.range("metadata");
    if (metadata === undefined) return header;
    const { bytes, start, end } = metadata;
    const length = this.#head.length + end - start + 1;
    if (this.#buffer.length < length) {
      this.#buffer = new Uint8Array(length * 2);
      this.#buffer.set(this.#head);
    }
    this.#buffer.set(bytes.subarray(start, end), this.#head.length);
    this.#buffer[length - 1] = CLOSING_BRACE;
    return this.#scanner.scanObject({
      bytes: this.#buffer,
      start: 0,
      end: length,
    });
  }
}
