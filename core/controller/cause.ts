import { keyText, type ObjectKey } from "../api/object_key.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import {
  type AddOptions,
  Priority,
  type QueueItem,
} from "../queue/scheduling_queue.ts";
import type { SourceEvent } from "./event_source.ts";

/** Types of causes; the queue stores their index in this list. */
const CAUSE_TYPES = [
  "added",
  "modified",
  "deleted",
  "initial",
  "source",
  "retry",
  "reschedule",
  "interval",
  "requested",
] as const satisfies readonly RunCause["type"][];

/**
 * Cause of a run.
 *
 * After several events, it is the cause of the event with the highest priority,
 * and among equal priorities of the first.
 */
export interface RunCause {
  /**
   * Type of the cause.
   *
   * - `"added"`, `"modified"`, `"deleted"`: an event of the primary.
   * - `"initial"`: the primary or a secondary existed when the controller started
   *   to watch it, became the leader, or got another namespace or shard.
   * - `"source"`: an event source, for example after a change of a secondary.
   * - `"retry"`: the previous run failed.
   * - `"reschedule"`: an earlier run asked for it with `rescheduleAfter`.
   * - `"interval"`: there was no other run during the `maxInterval`.
   * - `"requested"`: the program called `trigger` of the controller, or a write
   *   had the option `trigger`.
   */
  readonly type:
    | "added"
    | "modified"
    | "deleted"
    | "initial"
    | "source"
    | "retry"
    | "reschedule"
    | "interval"
    | "requested";
  /** Name of the event source that triggered the run. */
  readonly source?: string | undefined;
  /** Kind of the secondary whose change triggered the run. */
  readonly kind?: string | undefined;
  /** Key of the secondary whose change triggered the run. */
  readonly object?: ObjectKey | undefined;
  /** Number of events that led to this run. */
  readonly events: number;
}

/** Text of a cause for logs: `source pods: Pod default/web (3 events)`. */
export function causeText(cause: RunCause): string {
  let text: string = cause.type;
  if (cause.source !== undefined) text += ` ${cause.source}`;
  if (cause.object !== undefined) {
    text += `: ${cause.kind ? `${cause.kind} ` : ""}${keyText(cause.object)}`;
  }
  return cause.events > 1 ? `${text} (${cause.events} events)` : text;
}

/** Queue options for a cause; created once per cause, since events are many. */
function addOptions(type: RunCause["type"], priority: Priority): AddOptions {
  return Object.freeze({ cause: CAUSE_TYPES.indexOf(type), priority });
}

/** Queue options for the watch event of a new primary. */
export const ADDED: AddOptions = addOptions("added", Priority.live);
/** Queue options for the watch event of a changed primary. */
const MODIFIED: AddOptions = addOptions("modified", Priority.live);
/** Queue options for the watch event of a deleted primary. */
export const DELETED: AddOptions = addOptions("deleted", Priority.live);
/** Queue options for an existing primary, also after a change of replicas. */
export const INITIAL: AddOptions = addOptions("initial", Priority.resync);
/** Queue options for a change that a relist has found. */
const RELISTED: AddOptions = addOptions("modified", Priority.resync);
/** Queue options for a run that the program has requested. */
export const REQUESTED: AddOptions = addOptions("requested", Priority.live);
/** Queue options for the retry of a failed run. */
export const RETRY: AddOptions = addOptions("retry", Priority.timer);
/** Queue options for a run after `rescheduleAfter`. */
export const RESCHEDULE: AddOptions = addOptions("reschedule", Priority.timer);
/** Queue options for a run at the end of the `maxInterval`. */
export const INTERVAL: AddOptions = addOptions("interval", Priority.timer);

/** Queue options for a watch event of an existing primary. */
export function byWatch(
  { initial, type, relist }: Pick<CacheEvent, "initial" | "type" | "relist">,
): AddOptions {
  if (initial) return INITIAL;
  if (type === "added") return ADDED;
  return relist ? RELISTED : MODIFIED;
}

/** Queue options for an event of a source. */
export function bySource(source: string, event: SourceEvent): AddOptions {
  // A secondary that a watch finds at its start is no change.
  if (event.initial) return INITIAL;
  return {
    cause: CAUSE_TYPES.indexOf("source"),
    priority: Priority.live,
    detail: { source, event },
  };
}

/** Cause of the run that follows a single queue entry. */
export function addedCause({ cause, detail }: AddOptions): RunCause {
  return runCause(cause ?? 0, detail, 1);
}

/** Cause of the run of a key that was taken from the queue. */
export function queuedCause({ cause, detail, events }: QueueItem): RunCause {
  return runCause(cause, detail, events);
}

/** Causes of one event without details, which their runs share. */
const PLAIN = CAUSE_TYPES.map((type) => Object.freeze({ type, events: 1 }));

function runCause(index: number, detail: unknown, events: number): RunCause {
  const plain = PLAIN[index] as RunCause;
  const { type } = plain;
  if (detail === undefined) return events === 1 ? plain : { type, events };
  const { source, event } = detail as { source: string; event: SourceEvent };
  return { type, source, kind: event.kind, object: event.object, events };
}
