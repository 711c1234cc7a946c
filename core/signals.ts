/**
 * Abort signals: signals that join several others, and waits that a signal ends.
 *
 * @module
 */

/** A signal that aborts with the first of several others. */
export interface LinkedSignal {
  /** The joined signal. */
  readonly signal: AbortSignal;
  /**
   * Removes the listeners from its sources; the signal never aborts afterwards.
   */
  unlink(): void;
}

/**
 * Joins signals: the result aborts with the first of them, for its reason.
 *
 * It takes the place of `AbortSignal.any`, which is not safe for a signal that is
 * only waited for: its sources hold the joined signal weakly, so that it can be
 * collected as garbage before it aborts, and a wait for it never ends. Here the
 * sources hold it strongly until {@linkcode LinkedSignal.unlink} is called, which
 * must happen as soon as the signal is no longer needed: signals of an operator
 * live as long as its process.
 *
 * @param signals The signals to join; undefined ones are left out.
 */
export function linkedSignal(
  ...signals: readonly (AbortSignal | undefined)[]
): LinkedSignal {
  const controller = new AbortController();
  const links = signals.filter((signal) => signal !== undefined).map(
    (signal) => {
      const abort = () => controller.abort(signal.reason);
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
      return () => signal.removeEventListener("abort", abort);
    },
  );
  return {
    signal: controller.signal,
    unlink() {
      for (const remove of links) remove();
    },
  };
}

/**
 * Waits for a promise until a signal aborts. The outcome of the promise is
 * ignored after that.
 *
 * @throws The signal's reason, as soon as it aborts.
 */
export function abortable<V>(
  promise: Promise<V>,
  signal: AbortSignal,
): Promise<V> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() =>
      signal.removeEventListener("abort", onAbort)
    );
  });
}
