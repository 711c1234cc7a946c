/** How many reads are under way at once, at most. */
const MOST_AT_ONCE = 16;

/**
 * Reads many objects, a few at a time.
 *
 * @returns Those that there are, in the order of their keys.
 */
export async function readEach<K, V>(
  keys: Iterable<K>,
  read: (key: K) => Promise<V | undefined>,
): Promise<V[]> {
  const values: (V | undefined)[] = [];
  const waiting = [...keys].entries();
  let failed = false;
  const readInTurn = async () => {
    for (const [at, key] of waiting) {
      if (failed) return;
      values[at] = await read(key);
    }
  };
  try {
    await Promise.all(Array.from({ length: MOST_AT_ONCE }, readInTurn));
  } finally {
    failed = true; // nobody waits for the others
  }
  return values.filter((value) => value !== undefined);
}
