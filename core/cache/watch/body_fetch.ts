import { ApiError } from "../../api/api_error.ts";
import { isResolved, type Kind } from "../../api/kind.ts";
import { readBody } from "../../client/response.ts";
import { wholeRange } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import { MetadataReducer } from "./metadata_reducer.ts";
import { MAX_LISTED_BYTES } from "./receive.ts";
import type { FetchObject } from "../store/object_store.ts";
import { type InformerClient, objectRequest } from "./watch_requests.ts";

export interface BodyFetchDeps {
  readonly client: InformerClient;
  readonly kind: Kind;
  readonly metadataOnly: boolean;
  /** Signal that ends all fetches; they reject with its reason. */
  readonly signal: AbortSignal;
}

/** Creates a function that fetches objects whose body a bounded cache evicted. */
export function bodyFetch(deps: BodyFetchDeps): FetchObject {
  const { client, kind, metadataOnly, signal } = deps;
  return async (key) => {
    signal.throwIfAborted();
    const resolved = isResolved(kind) ? kind : await client.resolve(kind);
    const request = objectRequest({ kind: resolved, metadataOnly }, key);
    try {
      const response = await client.request({ ...request, signal });
      const bytes = await readBody(response, MAX_LISTED_BYTES);
      return metadataOnly ? metadataOf(bytes, kind) : bytes;
    } catch (error) {
      if (ApiError.is(error) && error.isNotFound) return undefined;
      throw error;
    }
  };
}

/**
 * Metadata in a response; some servers send the whole object when asked for it.
 */
function metadataOf(object: Uint8Array, kind: Kind): Uint8Array {
  const header = new EventScanner().scanObject(wholeRange(object));
  const { bytes, start, end } = new MetadataReducer(kind).reduce(header);
  return bytes.subarray(start, end);
}
