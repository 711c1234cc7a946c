/**
 * Waits for a promise in real time and fails with what it waited for: a limit for
 * a stuck test, long enough for a busy machine.
 *
 * @param what Description of the promise, for the error.
 * @param limit Milliseconds of real time.
 */
export async function inTime<T>(
  what: string,
  promise: Promise<T>,
  limit = 30_000,
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`Not within ${limit} ms: ${what}`)),
      limit,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
