/**
 * Limits how many tasks run at the same time; tasks start in the order in which
 * they are given.
 */
export function concurrencyLimit(
  limit: number,
): <T>(task: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    // A finished task hands its slot over, so `running` only grows here when a
    // slot is free.
    if (running < limit) running++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
