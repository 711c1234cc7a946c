/** Says how long a key must wait before it may run. */
export interface Limiter {
  /**
   * Called when a key is about to be taken.
   *
   * @param key The key.
   * @param now The time of the queue's clock.
   * @returns Zero to let it run, which counts; otherwise how many milliseconds
   * it must wait, which does not.
   */
  admit(key: string, now: number): number;
}
