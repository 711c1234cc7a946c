import type { Status } from "../api/api_error.ts";
import type { KubernetesObject } from "../api/object.ts";
import { LineSplitter } from "../json/line_splitter.ts";
import type { ApiRequest } from "./request.ts";
import { statusError } from "./response.ts";
import type { HttpResponse } from "./transport/transport.ts";

/**
 * Decodes the stream of a watch. Leaving the loop ends the watch.
 *
 * @throws {ApiError} If the server sends an ERROR event; `isGone` means that
 * the resource version is too old.
 * @throws {SyntaxError} If a line is no event.
 */
export async function* watchEvents<T extends KubernetesObject>(
  request: ApiRequest,
  response: HttpResponse,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const lines = new LineSplitter();
  const decoder = new TextDecoder();
  for await (const chunk of response.body) {
    lines.push(chunk);
    while (lines.next()) {
      const line = lines.bytes.subarray(lines.start, lines.end);
      yield parseEvent<T>(request, decoder.decode(line));
    }
  }
}

function parseEvent<T extends KubernetesObject>(
  request: ApiRequest,
  line: string,
): WatchEvent<T> {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    // The line says itself, below, that it is no event.
  }
  if (
    typeof event !== "object" || event === null || !("type" in event) ||
    !("object" in event)
  ) {
    throw new SyntaxError(
      `Cannot ${request.action}: each line must be an event: received ${
        JSON.stringify(line.slice(0, 200))
      }`,
    );
  }
  if (event.type === "ERROR") {
    throw statusError(request.action, event.object as Partial<Status>);
  }
  return event as WatchEvent<T>;
}

/** One change of an object that a watch tells. */
export interface WatchChange<T extends KubernetesObject = KubernetesObject> {
  /** What happened to the object. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The object as it is now, or as it was last. */
  readonly object: T;
}

/** How far a watch has come; only with `bookmarks`. */
export interface WatchBookmark {
  /** Tells it from a change. */
  readonly type: "BOOKMARK";
  /** The resource version that it has come to. */
  readonly object: BookmarkObject;
}

/** What a watch tells. */
export type WatchEvent<T extends KubernetesObject = KubernetesObject> =
  | WatchChange<T>
  | WatchBookmark;

/** What a bookmark carries: a resource version, and nothing of an object. */
export interface BookmarkObject {
  /** All that is set of its metadata. */
  readonly metadata: {
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}
