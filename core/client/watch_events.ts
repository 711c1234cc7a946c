import type { KubernetesObject } from "../api/object.ts";
import { LineSplitter } from "../json/line_splitter.ts";
import type { ApiRequest } from "./request.ts";
import { quote, statusError } from "./response.ts";
import type { HttpResponse } from "./transport/transport.ts";

/**
 * Decodes the stream of a watch. Leaving the loop ends the watch.
 *
 * @throws {ApiError} If the server sends an ERROR event; with `isGone`, if the
 * resource version is too old.
 * @throws {SyntaxError} If a line is not an event, or the stream ends within one.
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
  if (!lines.finish()) return;
  const rest = lines.bytes.subarray(lines.start, lines.end);
  yield parseEvent<T>(request, decoder.decode(rest));
}

function parseEvent<T extends KubernetesObject>(
  request: ApiRequest,
  line: string,
): WatchEvent<T> {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    // Reported below.
  }
  if (
    typeof event !== "object" || event === null || !("type" in event) ||
    !("object" in event)
  ) {
    throw new SyntaxError(
      `Cannot ${request.action}: each line must be an event: received ${
        quote(line, request.path)
      }`,
    );
  }
  if (event.type === "ERROR") {
    const { action, path } = request;
    throw statusError(action, event.object, { path });
  }
  return event as WatchEvent<T>;
}

/**
 * Event of a watch: a change of an object, or a bookmark, which reports progress
 * and is sent only with the option `bookmarks`.
 */
export type WatchEvent<T extends KubernetesObject = KubernetesObject> =
  | {
    /** Type of the change. */
    readonly type: "ADDED" | "MODIFIED" | "DELETED";
    /** State after the change or, if deleted, the last state. */
    readonly object: T;
  }
  | {
    /** A mark of progress: no object has changed. */
    readonly type: "BOOKMARK";
    /** Object with the resource version that the watch has reached. */
    readonly object: {
      readonly metadata: {
        readonly resourceVersion: string;
        readonly annotations?: Readonly<Record<string, string>> | undefined;
      };
    };
  };
