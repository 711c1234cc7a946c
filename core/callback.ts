/**
 * Callbacks of users that must not wait: what they return is used at once.
 *
 * @module
 */

/**
 * Whether a value must be awaited. Any thenable counts: users may return
 * promises of other libraries.
 */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}

/**
 * Result of a callback that must not wait. A promise in its place would count as
 * true, and its rejection would end the process.
 *
 * @param callback Name of the callback, for the error.
 * @throws {TypeError} If the result is a promise; its rejection is caught.
 */
export function immediate<T>(result: T, callback: string): T {
  if (!isPromise(result)) return result;
  result.then(undefined, () => {}); // The error below is what helps.
  throw new TypeError(
    `Cannot use the result of ${callback}: the function must not be async, since its result is used at once`,
  );
}

/**
 * Calls a logger, metric, tracer or listener of the user and ignores its errors,
 * also those of a promise: they must not end the observed work.
 *
 * @param onError Function that counts or logs the errors; by default what is
 * missing in the logs, metrics or traces shows the failure.
 */
export function attempt(
  call: () => unknown,
  onError: (error: unknown) => void = () => {},
): void {
  try {
    const result = call();
    if (isPromise(result)) result.then(undefined, onError);
  } catch (error) {
    onError(error);
  }
}

/**
 * Random numbers of the user from 0 to below 1. Where the function throws or
 * returns anything else, which would end a wait or a watch, `Math.random` is used
 * instead.
 *
 * @param onFault Handler of the first such error.
 */
export function guardedRandom(
  random: () => number,
  onFault: (error: unknown) => void,
): () => number {
  let isReported = false;
  return () => {
    try {
      const value = immediate(random(), "random()");
      if (value >= 0 && value < 1) return value;
      throw new RangeError(
        `Cannot use the result of random(): it must be a number from 0 to below 1: received ${value}`,
      );
    } catch (error) {
      if (!isReported) onFault(error);
      isReported = true;
      return Math.random();
    }
  };
}
