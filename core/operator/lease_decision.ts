/** State of a Lease, as it was read or written. */
export interface LeaseRecord {
  /** Identity of the holder; empty after a release. */
  readonly holder: string;
  /** Time that the Lease is valid after its last renewal, in milliseconds. */
  readonly duration: number;
  /** Version of the Lease, which changes with every write. */
  readonly resourceVersion: string;
}

/** State of a Lease with the time of its first observation. */
export interface ObservedLease<R = LeaseRecord> {
  /** State of the Lease. */
  readonly record: R;
  /** Time of the first observation, by the clock of the observer. */
  readonly seenAt: number;
}

/** Durations of an election, in milliseconds. */
export interface LeaseTimes {
  /** Time after the last renewal at which other replicas may take the Lease. */
  readonly leaseDuration: number;
  /** Time in which the leader must renew before it stops leading. */
  readonly renewDeadline: number;
  /** Time between two attempts to acquire or renew. */
  readonly retryPeriod: number;
}

/**
 * Observes a Lease: an unchanged record keeps the time of its first observation.
 *
 * Timestamps in the Lease are not compared, because the clocks of its holders
 * may differ; what counts is how long the Lease has not changed.
 */
export function observe<R extends Pick<LeaseRecord, "resourceVersion">>(
  before: ObservedLease<R> | undefined,
  record: R,
  now: number,
): ObservedLease<R> {
  if (before?.record.resourceVersion === record.resourceVersion) return before;
  return { record, seenAt: now };
}

/**
 * Decides the next action of a candidate: to take over a Lease that is released
 * or expired, or to wait while another candidate holds it.
 */
export function decideLease(
  { record: { holder, duration }, seenAt }: ObservedLease,
  identity: string,
  now: number,
): "renew" | "takeOver" | "wait" {
  if (holder === identity) return "renew";
  return holder === "" || seenAt + duration <= now ? "takeOver" : "wait";
}

/** Safety margin before a takeover, as a share of the lease duration. */
const MARGIN = 0.1;

/**
 * Time until which a leader may act without another renewal, if the last one
 * was sent at the given time. Others take over no earlier than one lease
 * duration after they have observed the renewal, which is later than it was
 * sent.
 */
export function heldUntil(renewedAt: number, times: LeaseTimes): number {
  return renewedAt + times.leaseDuration * (1 - MARGIN);
}

/**
 * Deadline of the next renewal of a leader: the renew deadline, or the time
 * until which it may act, whichever is earlier.
 */
export function renewBy(renewedAt: number, times: LeaseTimes): number {
  return Math.min(renewedAt + times.renewDeadline, heldUntil(renewedAt, times));
}

/**
 * Time at which a leader whose renewals fail gives up.
 *
 * This is the deadline of its renewal. An attempt that could only start late,
 * because the process was busy or suspended, gets one retry period, provided
 * that the Lease cannot have been taken over.
 *
 * @param attempt The start of this attempt and of the previous one.
 */
export function giveUpAt(
  renewedAt: number,
  attempt: { readonly at: number; readonly previousAt: number },
  times: LeaseTimes,
): number {
  const { retryPeriod } = times;
  const deadline = renewBy(renewedAt, times);
  if (attempt.at - attempt.previousAt <= 2 * retryPeriod) return deadline;
  return Math.min(
    Math.max(deadline, attempt.at + retryPeriod),
    heldUntil(renewedAt, times),
  );
}
