/**
 * Waits for a promise no longer than a signal allows; what comes later is
 * dropped.
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
