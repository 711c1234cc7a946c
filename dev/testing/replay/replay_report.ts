import type { RequestField } from "./compare_requests.ts";

/** First difference between a recorded run and its repetition. */
export interface RunDifference {
  readonly controller: string;
  /** Key of the primary. */
  readonly object: string;
  /** Start of the run, as an RFC 3339 timestamp. */
  readonly at: string;
  /** Cause of the run, such as `modified`. */
  readonly cause: string;
  /** Number of the retry; 0 for a run that was not one. */
  readonly attempt: number;
  /** What differs, such as `request 2 of 3 has another body`. */
  readonly what: string;
  /** Request, read or end as recorded; absent if there was none. */
  readonly recorded?: string | undefined;
  /** Request, read or end as repeated; absent if none exists. */
  readonly repeated?: string | undefined;
  /** Fields in which the bodies differ. */
  readonly fields?: readonly RequestField[] | undefined;
  /** What a reader has to know. */
  readonly note?: string | undefined;
}

/** Result of the repetition of a recording. */
export interface ReplayReport {
  /** Number of runs that were repeated. */
  readonly runs: number;
  /** Number of objects of these runs. */
  readonly objects: number;
  /** Number of recorded requests of these runs. */
  readonly requests: number;
  /** Number of them that were sent again and equal. */
  readonly equal: number;
  /** Start of the first and of the last run, as RFC 3339 timestamps. */
  readonly from: string;
  readonly to: string;
  /** Number of runs that differ. */
  readonly differing: number;
  /** First differences, in the order of the runs; at most 100. */
  readonly differences: readonly RunDifference[];
  /** Number of runs that cannot be repeated to their end, by reason. */
  readonly unrepeatable: Readonly<Record<string, number>>;
  /** What a reader of the result has to know. */
  readonly notes: readonly string[];
}
