import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { Logger } from "../../logger.ts";
import { CurrentEvent, type EventSource } from "./current_event.ts";
import type { HandlerEntry, HandlerHost } from "./handler_entry.ts";
import type { HandlerSet } from "./handler_set.ts";
import type { InformerMetrics } from "./informer_metrics.ts";
import { answerScanner } from "../watch/metadata_reducer.ts";
import type { OwnWriteOutcome } from "./store_feed.ts";
import type { WatchedNamespaces } from "./watched_namespaces.ts";

/** What of an informer its handlers reach. */
export interface HandlerHostParts<T extends KubernetesObject> {
  readonly kind: Kind<T>;
  readonly metadataOnly: boolean;
  readonly watches: WatchedNamespaces<T>;
  readonly handlers: HandlerSet<T>;
  readonly source: EventSource<T>;
  readonly metrics: InformerMetrics;
  readonly log: Logger;
}

/** What the handlers of an informer ask of it, and what they tell it. */
export function handlerHost<T extends KubernetesObject>(
  parts: HandlerHostParts<T>,
): HandlerHost<T> {
  const { kind, metadataOnly, watches, source, metrics, log } = parts;
  return {
    get size() {
      return watches.size;
    },
    next: (place) => watches.next(place),
    event: (facts) => new CurrentEvent(source, facts),
    header: (key) => watches.header(key),
    decode: (header) => watches.decode(header),
    scan: answerScanner(kind, metadataOnly),
    store: (answer, writer) => store(answer, writer, parts),
    remove: (entry) => parts.handlers.delete(entry),
    onError: (entry, error) => {
      metrics.handlerError(entry.name);
      log.error("An event handler failed", {
        kind: kindText(kind),
        handler: entry.name,
        error,
      });
    },
  };
}

/** Brings the answer to an own write in and tells all but its writer. */
function store<T extends KubernetesObject>(
  answer: ObjectHeader,
  writer: HandlerEntry<T> | undefined,
  { watches, handlers, source, metrics }: HandlerHostParts<T>,
): OwnWriteOutcome | undefined {
  const outcome = watches.of(answer)?.ownWrite(answer);
  if (outcome?.event !== undefined) {
    metrics.change(outcome.event.type);
    handlers.changed(new CurrentEvent(source, outcome.event), writer);
  }
  return outcome;
}
