import { keyText, type ObjectKey } from "../api/object_key.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import { Priority } from "../queue/priority.ts";
import type { AddOptions } from "../queue/queue_options.ts";
import type { SchedulingQueue } from "../queue/scheduling_queue.ts";
import type { SourceEvent } from "./event_source.ts";

/**
 * Why a run happens.
 *
 * - `"added"`, `"modified"`, `"deleted"`: the watch said so of the primary.
 * - `"initial"`: the primary was there when the controller began to watch, or
 *   became visible by a change of namespaces or leadership.
 * - `"source"`: an event source triggered it, for example since a secondary
 *   changed.
 * - `"retry"`: the run before failed.
 * - `"reschedule"`: a run asked for it with `rescheduleAfter`.
 * - `"interval"`: nothing happened for the maximal interval.
 * - `"requested"`: the program called `controller.trigger`.
 */
export type CauseType =
  | "added"
  | "modified"
  | "deleted"
  | "initial"
  | "source"
  | "retry"
  | "reschedule"
  | "interval"
  | "requested";

/** Why a run happens, and what exactly was the reason. */
export interface RunCause {
  /** What kind of reason it was. */
  readonly type: CauseType;
  /** The event source that triggered the run. */
  readonly source?: string | undefined;
  /** The kind of the object whose change triggered the run. */
  readonly kind?: string | undefined;
  /** The object whose change triggered the run, where it is not the primary. */
  readonly object?: ObjectKey | undefined;
  /**
   * How many events this one run answers; the cause is that of the most urgent
   * and, among those, of the first.
   */
  readonly events: number;
}

/** A cause for people: `source pods: Pod default/web (3 events)`. */
export function causeText(cause: RunCause): string {
  let text: string = cause.type;
  if (cause.source !== undefined) text += ` ${cause.source}`;
  if (cause.object !== undefined) {
    text += `: ${cause.kind ? `${cause.kind} ` : ""}${keyText(cause.object)}`;
  }
  return cause.events > 1 ? `${text} (${cause.events} events)` : text;
}

/** The causes as the queue knows them: by their place in this list. */
const CAUSES: readonly CauseType[] = [
  "added",
  "modified",
  "deleted",
  "initial",
  "source",
  "retry",
  "reschedule",
  "interval",
  "requested",
];

/** How a cause is put into the queue; made once, since events are many. */
function adding(type: CauseType, priority: Priority): AddOptions {
  return Object.freeze({ cause: CAUSES.indexOf(type), priority });
}

/** The watch told of a new primary. */
export const ADDED: AddOptions = adding("added", Priority.live);
/** The watch told of a change. */
const MODIFIED: AddOptions = adding("modified", Priority.live);
/** The watch told of a deletion. */
export const DELETED: AddOptions = adding("deleted", Priority.live);
/** It was there already, or may have been acted upon by others. */
export const INITIAL: AddOptions = adding("initial", Priority.resync);
/** A relist found a change. */
const RELISTED: AddOptions = adding("modified", Priority.resync);
/** The program asked for it. */
export const REQUESTED: AddOptions = adding("requested", Priority.live);
/** The run before failed. */
export const RETRY: AddOptions = adding("retry", Priority.timer);
/** A run asked for it. */
export const RESCHEDULE: AddOptions = adding("reschedule", Priority.timer);
/** Nothing happened for long. */
export const INTERVAL: AddOptions = adding("interval", Priority.timer);

/** The watch told of a primary that is there. */
export function byWatch(
  { initial, type, relist }: Pick<CacheEvent, "initial" | "type" | "relist">,
): AddOptions {
  if (initial) return INITIAL;
  if (type === "added") return ADDED;
  return relist ? RELISTED : MODIFIED;
}

/** A source triggered it. */
export function bySource(source: string, event: SourceEvent): AddOptions {
  return {
    cause: CAUSES.indexOf("source"),
    priority: event.initial ? Priority.resync : Priority.live,
    detail: { source, event },
  };
}

/** Why one add was made, as a run is told it that is under way meanwhile. */
export function addedCause({ cause, detail }: AddOptions): RunCause {
  return runCause(CAUSES[cause ?? 0] as CauseType, detail, 1);
}

/** Why a slot was added, as its run is told it. Ask right after the take. */
export function queuedCause(queue: SchedulingQueue, slot: number): RunCause {
  const type = CAUSES[queue.cause(slot)] as CauseType;
  return runCause(type, queue.detail(slot), queue.events(slot));
}

/** A cause: of that of a source, which one and which object, too. */
function runCause(type: CauseType, detail: unknown, events: number): RunCause {
  if (detail === undefined) return { type, events };
  const { source, event } = detail as { source: string; event: SourceEvent };
  return { type, source, kind: event.kind, object: event.object, events };
}
