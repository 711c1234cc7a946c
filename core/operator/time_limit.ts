import type { Clock } from "../clock.ts";
import { linkedSignal } from "../linked_signal.ts";

/** How long something may take. */
export interface TimeLimit {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly limit: number;
  /** Ends it sooner. */
  readonly signal?: AbortSignal | undefined;
}

/** Does something with a signal that fires when it has taken too long. */
export async function withTimeLimit<R>(
  { clock, limit, signal }: TimeLimit,
  work: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const late = new AbortController();
  const timer = clock.setTimer(() => late.abort(), limit);
  const link = linkedSignal(late.signal, signal);
  try {
    return await work(link.signal);
  } finally {
    timer.cancel();
    link.unlink();
  }
}
