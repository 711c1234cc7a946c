import { apiVersionOf, type Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { lastAnswer } from "../../client/response.ts";
import { wholeRange } from "../../json/byte_range.ts";
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
  #buffer: Uint8Array = new Uint8Array(0);

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

/**
 * Scanner of responses to writes. It returns their header in the form in which a
 * cache keeps objects: with the metadata only, or whole. The client has scanned the
 * last answer already.
 */
export class ResponseScanner<T extends KubernetesObject> {
  readonly #reducedKind: Kind | undefined;
  /** Unused scanners: a write may end during a call for another one. */
  readonly #free: { scanner: EventScanner; reducer?: MetadataReducer }[] = [];

  constructor(kind: Kind<T>, metadataOnly: boolean) {
    this.#reducedKind = metadataOnly ? kind : undefined;
  }

  /**
   * Calls a function with the header of a response, valid during the call.
   *
   * @param response The stored object, or its JSON.
   * @throws {SyntaxError} If the response is not a Kubernetes object.
   */
  scan<R>(response: T | Uint8Array, use: (header: ObjectHeader) => R): R {
    const kind = this.#reducedKind;
    const parts = this.#free.pop() ?? {
      scanner: new EventScanner(),
      ...(kind !== undefined && { reducer: new MetadataReducer(kind) }),
    };
    try {
      const header = response === lastAnswer.bytes
        ? lastAnswer
        : parts.scanner.scanObject(
          wholeRange(
            response instanceof Uint8Array
              ? response
              : JSON.stringify(response),
          ),
        );
      return use(parts.reducer?.reduce(header) ?? header);
    } finally {
      this.#free.push(parts);
    }
  }
}
