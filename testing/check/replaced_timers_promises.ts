/**
 * What an operator in a world imports as `node:timers/promises`: the timers of the
 * world.
 *
 * @module
 */
import { setImmediate } from "node:timers/promises";

export { setImmediate };

interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Waits for a delay on the clock of the world. */
export function setTimeout<T = void>(
  delay?: number,
  value?: T,
  { signal }: WaitOptions = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = () =>
      reject(
        Object.assign(
          new DOMException("The operation was aborted", "AbortError"),
          {
            cause: signal?.reason,
          },
        ),
      );
    if (signal?.aborted) return fail();
    const onAbort = () => {
      globalThis.clearTimeout(timer);
      fail();
    };
    const timer = globalThis.setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value as T);
    }, delay);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Yields a value again and again, with a delay on the clock of the world. */
export async function* setInterval<T = void>(
  delay?: number,
  value?: T,
  options: WaitOptions = {},
): AsyncGenerator<T, void> {
  for (;;) yield await setTimeout(delay, value, options);
}

/** Waits and yields, as the scheduler of the platform does. */
export const scheduler = {
  wait: (delay: number, options?: WaitOptions): Promise<void> =>
    setTimeout(delay, undefined, options),
  yield: (): Promise<void> => setImmediate(),
};
const all: Readonly<Record<string, unknown>> = {
  setTimeout,
  setInterval,
  setImmediate,
  scheduler,
};
export default all;
