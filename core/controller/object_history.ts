import type { RunAbortedError } from "./run/run.ts";
import type { RecordedRun } from "./run/run_observers.ts";

/** Recent runs and current state of an object, as `coracle why` shows them. */
export interface ObjectHistory {
  /** Name of the controller. */
  readonly controller: string;
  /** Key of the object, as `namespace/name` or `name`. */
  readonly object: string;
  /** Whether the cache has the object, so that runs can read it. */
  readonly known: boolean;
  /** Whether a run of the object is in progress. */
  readonly running: boolean;
  /** Time since that run began, in milliseconds; undefined without a run. */
  readonly runningFor?: number | undefined;
  /** Abort of the run in progress; undefined if absent. */
  readonly aborted?:
    | {
      /** Cause of the abort. */
      readonly because: RunAbortedError["abortCause"];
      /** Time since the abort, in milliseconds. */
      readonly ago: number;
    }
    | undefined;
  /** Number of the next or last retry; 0 if there is no retry. */
  readonly attempt: number;
  /** Whether all retries are used up. */
  readonly exhausted: boolean;
  /** Time of the next run of the schedule of a job, as an RFC 3339 timestamp. */
  readonly scheduled?: string | undefined;
  /** Recent runs, the latest last. */
  readonly runs: readonly RecordedRun[];
}
