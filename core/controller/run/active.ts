import type { KubernetesObject } from "../../api/object.ts";
import type { CacheEvent } from "../../cache/informer/cache_event.ts";
import type { SchedulingQueue } from "../../queue/scheduling_queue.ts";
import type { Run } from "./run.ts";
import { FRESH, type RunState } from "./run_state.ts";

/** Last known state of a deleted primary, kept until its deletion is reconciled. */
export type DeletedPrimary<P extends KubernetesObject> = Pick<
  CacheEvent<P>,
  "object" | "finalStateUnknown"
>;

/** What is kept of an object in the row of the queue, while it is not idle. */
export class Active<P extends KubernetesObject> {
  /** State of the object between its runs. */
  state: RunState = FRESH;
  /** Run in progress; undefined if none exists. */
  run: Run<P> | undefined;
  /** Deletions to reconcile, oldest first; several if the object was recreated. */
  deleted: DeletedPrimary<P>[] | undefined;

  /** Forgets all but the run. */
  reset(): void {
    this.state = FRESH;
    this.deleted = undefined;
  }
}

/**
 * Keys of the objects that have something left to do: they wait, run, fail, or have
 * asked for a later run.
 */
export function* busyKeys<P extends KubernetesObject>(
  queue: Pick<SchedulingQueue<Active<P>>, "busyKeys" | "values">,
): Generator<string, void, undefined> {
  yield* queue.busyKeys();
  for (const [key, { state }] of queue.values()) {
    if (state.failures > 0) yield key;
  }
}
