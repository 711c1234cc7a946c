import { loadModule } from "@coracle/operator/internal";
import type { ServerResponse } from "../http/exchange.ts";
import { contentType, type Representation } from "../request/negotiation.ts";
import type { ListOptions } from "../request/query_options.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import type { Selection } from "../request/object_selection.ts";
import { tooLargeVersion } from "./get.ts";
import { readIncludeObject } from "./transform.ts";
import { Watcher, type WatchStart } from "./watch_hub.ts";

/**
 * Minimum timeout of watches without `timeoutSeconds`, in milliseconds; the
 * maximum is twice as long.
 */
const MIN_TIMEOUT_MS = 30 * 60_000;

/**
 * Maximum unsent bytes per watch, besides the events with which it starts; a
 * slower client is disconnected.
 */
const MAX_PENDING_BYTES = 16 * 1024 * 1024;

/** Handles a watch; if it cannot start, the error is sent as an event. */
export async function watch(
  request: ResourceRequest,
  { selection, options, representation }: {
    readonly selection: Selection;
    readonly options: ListOptions;
    readonly representation: Representation;
  },
): Promise<ServerResponse> {
  const { context } = request;
  const { media } = representation;
  const protobuf = media === "protobuf"
    ? await loadModule(import("../builtin/protobuf_writer.ts"))
    : undefined;
  const { store, watches, clock, random } = context;
  const timeout = options.timeoutSeconds
    ? options.timeoutSeconds * 1000
    : MIN_TIMEOUT_MS * (1 + random.next());
  const watcher = new Watcher({
    hub: watches,
    clock,
    collection: store.collectionOf(request.definition),
    selection,
    format: {
      view: request,
      representation,
      protobuf,
      include: representation.as === "Table"
        ? readIncludeObject(request.query.get("includeObject"))
        : "Metadata",
    },
    start: startOf(options, store.revision),
    revision: () => store.revision,
    bookmarks: options.bookmarks,
    timeout,
    maxPending: MAX_PENDING_BYTES,
  });
  return {
    status: 200,
    headers: {
      "content-type": protobuf
        ? `${contentType(media)};stream=watch`
        : "application/json",
    },
    body: watcher,
  };
}

function startOf(options: ListOptions, present: number): WatchStart {
  const { resourceVersion = 0, sendInitialEvents, bookmarks } = options;
  if (sendInitialEvents === true) {
    if (resourceVersion > present) {
      const error = tooLargeVersion(resourceVersion, present);
      return { from: "error", error };
    }
    return { from: "state", endBookmark: bookmarks };
  }
  if (resourceVersion > 0) {
    return { from: "revision", revision: resourceVersion };
  }
  return sendInitialEvents === false
    ? { from: "revision", revision: present }
    : { from: "state", endBookmark: false };
}
