import { keyText, type ObjectKey } from "../api/object_key.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import {
  type AddOptions,
  Priority,
  type QueueItem,
  type SchedulingQueueOptions,
} from "../queue/scheduling_queue.ts";
import type { SourceEvent } from "./event_source.ts";

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

/** Add of a cause without details; created once for all events of a type. */
function addOf(type: RunCause["type"], priority: Priority): AddOptions {
  return Object.freeze({ cause: Object.freeze({ type, events: 1 }), priority });
}

/** Add by the watch event of a new primary. */
export const ADDED: AddOptions = addOf("added", Priority.live);
/** Add by the watch event of a changed primary. */
const MODIFIED: AddOptions = addOf("modified", Priority.live);
/** Add by the watch event of a deleted primary. */
export const DELETED: AddOptions = addOf("deleted", Priority.live);
/** Add of an existing primary, also after a change of replicas. */
export const INITIAL: AddOptions = addOf("initial", Priority.resync);
/** Add by a change that a relist has found. */
const RELISTED: AddOptions = addOf("modified", Priority.resync);
/** Add of a run that the program has requested. */
export const REQUESTED: AddOptions = addOf("requested", Priority.live);
/** Adds of the queue itself. */
export const QUEUE_CAUSES: SchedulingQueueOptions["causes"] = {
  first: INITIAL,
  retry: addOf("retry", Priority.timer),
  reschedule: addOf("reschedule", Priority.timer),
  interval: addOf("interval", Priority.timer),
};

/** Add by a watch event of an existing primary. */
export function byWatch(
  { initial, type, relist }: Pick<CacheEvent, "initial" | "type" | "relist">,
): AddOptions {
  if (initial) return INITIAL;
  if (type === "added") return ADDED;
  return relist ? RELISTED : MODIFIED;
}

/** Add by an event of a source. */
export function bySource(source: string, event: SourceEvent): AddOptions {
  // A secondary that a watch finds at its start is no change.
  if (event.initial) return INITIAL;
  const { kind, object } = event;
  const cause: RunCause = { type: "source", source, kind, object, events: 1 };
  return { cause, priority: Priority.live };
}

/** Cause of the run of a key that was taken from the queue. */
export function queuedCause({ add, events }: QueueItem): RunCause {
  const cause = add.cause as RunCause;
  return events === 1 ? cause : { ...cause, events };
}
