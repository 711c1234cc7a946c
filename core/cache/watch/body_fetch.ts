import { ApiError } from "../../api/api_error.ts";
import { isResolved, type Kind } from "../../api/kind.ts";
import { readBody } from "../../client/response.ts";
import { wholeRange } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import { MetadataReducer } from "./metadata_reducer.ts";
import { MAX_LISTED_BYTES } from "./receive.ts";
import type { FetchObject } from "../store/object_store.ts";
import type { ReflectorClient } from "./reflector_parts.ts";
import { objectRequest } from "./watch_requests.ts";

/** What {@linkcode bodyFetch} works with. */
export interface BodyFetchParts {
  readonly client: ReflectorClient;
  readonly kind: Kind;
  /** Whether the metadata is wanted, and no more. */
  readonly metadataOnly: boolean;
  /** Ends all fetches, by rejecting them with its reason. */
  readonly signal: AbortSignal;
}

/** Fetches from the server the objects of which a cache has the keys alone. */
export function bodyFetch(parts: BodyFetchParts): FetchObject {
  const { client, kind, metadataOnly, signal } = parts;
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

/** A server that cannot send the metadata alone sends everything. */
function metadataOf(object: Uint8Array, kind: Kind): Uint8Array {
  const header = new EventScanner().scanObject(wholeRange(object));
  const { bytes, start, end } = new MetadataReducer(kind).reduce(header);
  return bytes.subarray(start, end);
}
