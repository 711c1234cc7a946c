/** Edit distance: number of letters to add, remove, change or swap. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1] ? 0 : 1;
      let least = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + same,
      );
      const swapped = a[row - 1] === b[column - 2] &&
        a[row - 2] === b[column - 1];
      if (swapped) least = Math.min(least, (beforeLast[column - 2] ?? 0) + 1);
      current.push(least);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? a.length;
}

/**
 * Suggestion for a misspelt name, for the end of an error message:
 * ` (did you mean "apiserver"?)`, or empty if no name is close.
 */
export function suggestion(word: string, names: readonly string[]): string {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const name of names) {
    const steps = name.startsWith(word) && word.length > 1
      ? 1
      : distance(word, name);
    if (steps < least) {
      best = name;
      least = steps;
    }
  }
  return best === undefined ? "" : ` (did you mean "${best}"?)`;
}
