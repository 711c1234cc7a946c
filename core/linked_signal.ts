/** A signal that fires with any of several others. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Lets go of the others; the signal does not fire any more. */
  unlink(): void;
}

/**
 * Makes a signal that fires with the first of several others.
 *
 * Unlike `AbortSignal.any`, the others hold it until it is unlinked: a signal
 * that is only waited for cannot be collected before it fires.
 *
 * @param signals The others; those that are undefined are left out.
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
