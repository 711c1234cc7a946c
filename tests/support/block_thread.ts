/**
 * Blocks the event loop for a duration, as a computation does that gives nothing
 * else its turn, but leaves the processor to other tests.
 *
 * @param duration Milliseconds.
 */
export function blockThread(duration: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, duration);
}
