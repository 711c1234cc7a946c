import { Buffer } from "node:buffer";
import {
  isStream,
  type ServerRequest,
  type ServerResponse,
  type StreamWriter,
} from "../http/exchange.ts";
import { readTarget, verbOf } from "../request/request_info.ts";
import { eventRevision, forwarded } from "./faulty_stream.ts";
import { readJson, writeJson } from "../exact_json.ts";

const encoder = new TextEncoder();

/** Function that answers a request without faults. */
export type Answer = (
  request: ServerRequest,
) => Promise<ServerResponse | undefined>;

/** List in a response. */
interface ListDocument {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly object[];
}

/**
 * Answers lists and watches like a server that has seen changes only up to a
 * revision. If the state at the revision is no longer known, the current state
 * is used.
 *
 * @param answer Function that answers without faults.
 * @param stale.revision Last revision that is seen.
 * @param stale.endings Functions that let open watches catch up.
 */
export function staleAnswer(
  answer: Answer,
  { revision, endings }: {
    readonly revision: number;
    readonly endings: Set<() => void>;
  },
): Answer {
  return async (request) => {
    const info = readTarget(request.target);
    if (info === undefined) return await answer(request);
    const withQuery = (
      changes: Readonly<Record<string, string | undefined>>,
    ) => {
      const query = new URLSearchParams(info.query);
      for (const [name, value] of Object.entries(changes)) {
        if (value === undefined) query.delete(name);
        else query.set(name, value);
      }
      const target = `${request.target.split("?", 1)[0]}?${query}`;
      return { ...request, target };
    };
    const past = {
      resourceVersion: String(revision),
      resourceVersionMatch: "Exact",
    };
    if (verbOf(request.method, info) === "list") {
      if (info.query.has("continue")) return await answer(request);
      const list = await answer(withQuery(past));
      return list?.status === 410 ? await answer(request) : list;
    }
    const known = Number(info.query.get("resourceVersion") ?? 0);
    if (known > 0 && info.query.get("sendInitialEvents") !== "true") {
      return held(await answer(request), { revision, endings, initial: [] });
    }
    const list = await answer(withQuery({
      ...past,
      watch: undefined,
      sendInitialEvents: undefined,
      allowWatchBookmarks: undefined,
      timeoutSeconds: undefined,
    }));
    if (list?.status !== 200 || isStream(list.body)) {
      return await answer(request);
    }
    const watch = await answer(withQuery({
      resourceVersion: String(revision),
      resourceVersionMatch: undefined,
      sendInitialEvents: undefined,
    }));
    const { body } = list;
    const blocks = body instanceof Uint8Array ? [body] : [...body];
    const document = readJson(
      Buffer.concat(blocks).toString(),
    ) as ListDocument;
    const initial = initialEvents(
      document,
      info.query.get("sendInitialEvents") === "true",
    );
    return held(watch, { revision, endings, initial });
  };
}

/** Initial events of a watch, from a list. */
function initialEvents(
  { kind, apiVersion, items, metadata: { resourceVersion } }: ListDocument,
  endBookmark: boolean,
): Uint8Array[] {
  const type = { kind: kind.replace(/List$/, ""), apiVersion };
  const events: object[] = items.map((item) => ({
    type: "ADDED",
    object: { ...type, ...item },
  }));
  if (endBookmark) {
    const annotations = { "k8s.io/initial-events-end": "true" };
    const metadata = { resourceVersion, annotations };
    events.push({ type: "BOOKMARK", object: { ...type, metadata } });
  }
  return events.map((event) => encoder.encode(`${writeJson(event)}\n`));
}

/** Response whose events after a revision wait for a release. */
function held(
  response: ServerResponse | undefined,
  { revision, endings, initial }: {
    readonly revision: number;
    readonly endings: Set<() => void>;
    /** Events that precede those of the watch. */
    readonly initial: readonly Uint8Array[];
  },
): ServerResponse | undefined {
  if (response === undefined || !isStream(response.body)) return response;
  const stream = response.body;
  const start = (writer: StreamWriter) => {
    for (const event of initial) writer.write(event);
    const waiting: Uint8Array[] = [];
    let isHeld = true;
    const release = () => {
      isHeld = false;
      for (const chunk of waiting.splice(0)) writer.write(chunk);
    };
    endings.add(release);
    const stop = stream.start(forwarded(writer, (chunk) => {
      if (!isHeld || eventRevision(chunk) <= revision) writer.write(chunk);
      else waiting.push(chunk);
    }));
    return () => {
      endings.delete(release);
      stop();
    };
  };
  return { ...response, body: { start } };
}
