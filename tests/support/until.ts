/** Options of {@linkcode until}. */
export interface UntilOptions {
  /**
   * Milliseconds of real time until it fails: a limit for a stuck test, not a
   * requirement, so that a busy machine does not fail it.
   *
   * @default {30_000}
   */
  readonly within?: number | undefined;
  /**
   * Milliseconds between two checks.
   *
   * @default {20}
   */
  readonly every?: number | undefined;
}

/**
 * Waits in real time for a condition, such as one of another process or behind a
 * socket.
 *
 * @param what Description of the condition, for the error.
 * @param condition Checked repeatedly; any value but undefined, null and false
 * ends the wait, and so does an error.
 * @returns Value of the condition.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const { within = 30_000, every = 20 } = options;
  const end = performance.now() + within;
  for (;;) {
    const value = await condition();
    if (value !== undefined && value !== null && value !== false) {
      return value as NonNullable<Exclude<T, false>>;
    }
    if (performance.now() > end) {
      throw new Error(`Not within ${within} ms: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}
