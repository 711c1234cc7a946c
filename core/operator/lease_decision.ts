/** What a Lease says about its holder. */
export interface LeaseRecord {
  /** Who holds it; empty when it was released. */
  readonly holder: string;
  /** How long it is held since it was last renewed, in milliseconds. */
  readonly duration: number;
  /** Changes whenever the Lease does. */
  readonly resourceVersion: string;
}

/** A record and when it was first seen, by the clock of who saw it. */
export interface ObservedLease {
  readonly record: LeaseRecord;
  readonly seenAt: number;
}

/** The durations of an election, in milliseconds. */
export interface LeaseTimes {
  /** How long a leader that says nothing more is still taken for one. */
  readonly leaseDuration: number;
  /** How long a leader tries to renew before it gives up. */
  readonly renewDeadline: number;
  /** How long everybody pauses between attempts. */
  readonly retryPeriod: number;
}

/** How the holder of a Lease ends. */
export interface ReleaseOptions {
  /**
   * Whether it gives its Lease back, so that others take over at once. Nothing
   * that depends on the Lease may run any more then; otherwise the others wait
   * until it expires.
   *
   * @default {true}
   */
  readonly release?: boolean | undefined;
}

/**
 * Takes a look at the Lease into account: what did not change keeps its time.
 * Times of the Lease itself are not compared, since the clocks of its holders
 * need not agree; what counts is how long it has not changed.
 */
export function observe(
  before: ObservedLease | undefined,
  record: LeaseRecord | undefined,
  now: number,
): ObservedLease | undefined {
  if (record === undefined) return undefined;
  if (before?.record.resourceVersion === record.resourceVersion) return before;
  return { record, seenAt: now };
}

/** What to do about a Lease. */
export type LeaseAction =
  | { readonly type: "create" }
  /** It is ours, or free, or its holder has been silent for too long. */
  | { readonly type: "take"; readonly transition: boolean }
  /** Somebody else holds it, at least until then. */
  | { readonly type: "wait"; readonly until: number };

/** Decides what a candidate does about a Lease that it has seen. */
export function decideLease(
  observed: ObservedLease | undefined,
  identity: string,
  now: number,
): LeaseAction {
  if (observed === undefined) return { type: "create" };
  const { record, seenAt } = observed;
  if (record.holder === identity) return { type: "take", transition: false };
  const until = seenAt + record.duration;
  if (record.holder === "" || until <= now) {
    return { type: "take", transition: true };
  }
  return { type: "wait", until };
}

/** How much sooner than others may a leader stops trusting its own Lease. */
const MARGIN = 0.1;

/**
 * Until when a leader may act on the Lease alone, without another renewal. Others
 * take over no sooner than a lease duration after they saw the renewal, which is
 * later than it was sent.
 *
 * @param renewedAt When the last renewal that succeeded was sent.
 */
export function heldUntil(renewedAt: number, times: LeaseTimes): number {
  return renewedAt + times.leaseDuration * (1 - MARGIN);
}

/**
 * By when a leader must have renewed: the renew deadline, or before it may not
 * act any more, whatever is sooner.
 *
 * @param renewedAt When the last renewal that succeeded was sent.
 */
export function renewBy(renewedAt: number, times: LeaseTimes): number {
  return Math.min(
    renewedAt + times.renewDeadline,
    heldUntil(renewedAt, times),
  );
}

/**
 * When a leader whose renewals fail gives up.
 *
 * That is when it must have renewed; but an attempt that could only begin late, since
 * the process was busy or stopped, is given a retry period, as long as the Lease
 * cannot have been taken over.
 *
 * @param renewedAt When the last renewal that succeeded was sent.
 * @param attempt When the present attempt and the one before it began.
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
