/** How urgent a run is, most urgent first. */
export type Priority = 0 | 1 | 2;

/** The priorities by name. */
export const Priority: {
  /** Something changed just now. */
  readonly live: 0;
  /** A retry, or a timer that somebody set. */
  readonly timer: 1;
  /** What was there at start, or was found again by a relist. */
  readonly resync: 2;
} = { live: 0, timer: 1, resync: 2 };
