import { abortable, linkedSignal } from "./signals.ts";

/** A timer that {@linkcode Clock.setTimer} created. */
export interface Timer {
  /** Cancels the timer; has no effect once it has fired or was cancelled. */
  cancel(): void;
}

/**
 * A source of time: the current time and timers.
 *
 * It is the only source of time in the library, so that tests can replace it and
 * run hours in milliseconds. Durations are measured with {@linkcode Clock.now},
 * which never jumps; {@linkcode Clock.wallTime} is only used for timestamps that
 * are written into objects.
 */
export interface Clock {
  /** Time in milliseconds since an arbitrary moment; never goes backwards. */
  now(): number;
  /** Time in milliseconds since the Unix epoch, by the calendar of the machine. */
  wallTime(): number;
  /**
   * Calls a function once after a delay.
   *
   * @param callback The function; it must not throw.
   * @param delay Milliseconds; zero or less means as soon as possible, and
   * delays beyond the platform's limit of about 24.8 days are allowed.
   */
  setTimer(callback: () => void, delay: number): Timer;
}

/** Longest delay that `setTimeout` accepts; a longer one fires immediately. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * The clock of the machine.
 *
 * @example Measure a duration
 * ```ts
 * import { systemClock } from "@coracle/operator/core";
 *
 * const start = systemClock.now();
 * const elapsed = systemClock.now() - start;
 * if (elapsed < 0) throw new Error("Unexpected clock");
 * ```
 */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  setTimer(callback, delay) {
    if (delay > MAX_TIMEOUT_MS) {
      let timer = systemClock.setTimer(() => {
        timer = systemClock.setTimer(callback, delay - MAX_TIMEOUT_MS);
      }, MAX_TIMEOUT_MS);
      return { cancel: () => timer.cancel() };
    }
    const handle = setTimeout(callback, Math.max(delay, 0));
    return { cancel: () => clearTimeout(handle) };
  },
};

/**
 * Waits for a duration.
 *
 * @throws The signal's reason, as soon as it aborts.
 */
export function sleep(
  delay: number,
  options: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const { clock, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = clock.setTimer(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, delay);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** Options of {@linkcode deadline}. */
export interface DeadlineOptions {
  /** Clock that measures the limit. */
  readonly clock: Clock;
  /** Signal that ends the wait before the limit. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Function that makes the error for work that exceeds the limit. Defaults to an
   * `Error` that names the limit.
   */
  readonly onTimeout?: (() => unknown) | undefined;
  /**
   * Whether late work is awaited until it has ended by itself, for work that must
   * not overlap with later work. The work must obey its signal.
   *
   * @default {false}
   */
  readonly awaitsEnd?: boolean | undefined;
}

/**
 * Waits for work, but no longer than a limit. Work that is given as a function
 * receives a signal that aborts at the limit; its outcome is ignored after
 * that.
 *
 * @throws The error of `onTimeout` at the limit, or the signal's reason as soon
 * as it aborts.
 */
export async function deadline<V>(
  work: Promise<V> | ((signal: AbortSignal) => Promise<V> | V),
  limit: number,
  { clock, signal, onTimeout, awaitsEnd }: DeadlineOptions,
): Promise<V> {
  const expiry = new AbortController();
  const link = signal && linkedSignal(expiry.signal, signal);
  const ended = link?.signal ?? expiry.signal;
  const timer = clock.setTimer(() =>
    expiry.abort(
      onTimeout?.() ??
        new Error(`Cannot wait any longer: it took more than ${limit} ms`),
    ), limit);
  try {
    if (typeof work !== "function") return await abortable(work, ended);
    ended.throwIfAborted();
    const result = Promise.resolve(work(ended));
    return await (awaitsEnd ? result : abortable(result, ended));
  } finally {
    timer.cancel();
    link?.unlink();
  }
}

const { setImmediate } = globalThis as {
  setImmediate?: (callback: () => void) => unknown;
};

/**
 * Waits for one turn of the event loop: all microtasks run, and I/O that is
 * ready is handled. Runtimes without `setImmediate` use a message channel.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (setImmediate !== undefined) {
      setImmediate(resolve);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/** Imports, and other work, that take time which no virtual clock measures. */
const loading = new Set<Promise<unknown>>();

/**
 * Imports a module on first use. Virtual clocks wait until it is loaded, as an
 * import reads files and takes an unknown number of turns of the event loop.
 */
export function loadModule<T>(module: Promise<T>): Promise<T> {
  return outsideWork(module);
}

/**
 * Waits for work outside of this process that takes real time, such as reading
 * files or running a program. Virtual clocks wait until it is done.
 */
export async function outsideWork<T>(work: Promise<T>): Promise<T> {
  loading.add(work);
  try {
    return await work;
  } finally {
    loading.delete(work);
  }
}

/** Waits until no module is being imported; undefined if there is nothing to wait for. */
export function modulesLoaded(): Promise<unknown> | undefined {
  return loading.size === 0 ? undefined : Promise.allSettled(loading);
}
