/**
 * Runs tasks at most so many at a time, in the order in which they were given.
 *
 * @example Two at a time
 * ```ts
 * import { concurrencyLimit } from "@coracle/operator/workflows";
 *
 * const limited = concurrencyLimit(2);
 * const results = await Promise.all(
 *   [1, 2, 3].map((value) => limited(() => Promise.resolve(value * 2))),
 * );
 * if (results.join() !== "2,4,6") throw new Error("Unexpected results");
 * ```
 *
 * @param limit How many; a positive integer.
 * @throws {RangeError} If the limit is none.
 */
export function concurrencyLimit(
  limit: number,
): <T>(task: () => Promise<T>) => Promise<T> {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new RangeError(
      `Cannot limit concurrency: the limit must be a positive integer: received ${limit}`,
    );
  }
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    // A finished task hands its place over, so `running` only grows here when a
    // place is free.
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
