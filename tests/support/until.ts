/** Options of {@linkcode until}. */
export interface UntilOptions {
  /**
   * Milliseconds of real time after which it gives up.
   *
   * @default {10_000}
   */
  readonly within?: number | undefined;
  /**
   * Milliseconds between two looks.
   *
   * @default {20}
   */
  readonly every?: number | undefined;
}

/**
 * Waits until something that happens elsewhere, in another process or behind a
 * socket, has happened.
 *
 * @param what What is waited for, for the error.
 * @param condition Asked again and again; anything but undefined, null and
 * false ends the wait. What it throws ends the wait too.
 * @returns What the condition gave.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const { within = 10_000, every = 20 } = options;
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
