/** Interval of the ticks, in milliseconds. */
const TICK_MS = 20;

/** Time by which the event loop of a process was late. */
export interface Lag {
  /** Time at which the tick was due, in milliseconds since the Unix epoch. */
  readonly due: number;
  /** Time at which it came. */
  readonly came: number;
}

/**
 * Calls back with each tick of the event loop that came late by more than its
 * interval: the process was busy, or others had the processor.
 *
 * @returns Function that ends it.
 */
export function followLag(late: (lag: Lag) => void): () => void {
  let due = Date.now() + TICK_MS;
  const timer = setInterval(() => {
    const came = Date.now();
    if (came - due > TICK_MS) late({ due, came });
    due = came + TICK_MS;
  }, TICK_MS);
  return () => clearInterval(timer);
}

/** Part of a time in which an event loop was late, from 0 to 1. */
export function latePart(
  lags: readonly Lag[],
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const late = lags.reduce(
    (sum, { due, came }) =>
      sum + Math.max(Math.min(came, to) - Math.max(due, from), 0),
    0,
  );
  return late / Math.max(to - from, 1);
}
