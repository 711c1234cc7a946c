import { keyText, type ObjectKey } from "../api/object_key.ts";

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
