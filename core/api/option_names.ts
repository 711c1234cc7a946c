/**
 * Refuses options that do not exist, so that a misspelt one is not silently
 * without effect.
 *
 * @param options What the user gave.
 * @param known The names that exist.
 * @param subject What the options are for, such as `"an operator"`.
 * @throws {TypeError} If a name is unknown, with the nearest known one; or if
 * the options are no object.
 *
 * @example
 * ```ts
 * import { checkOptionNames } from "@coracle/operator/core";
 *
 * try {
 *   checkOptionNames({ retries: 3 }, ["retry", "timeout"], "a controller");
 *   throw new Error("Unexpected success");
 * } catch (error) {
 *   if (!String(error).includes('mean "retry"')) throw error;
 * }
 * ```
 */
export function checkOptionNames(
  options: object,
  known: readonly string[],
  subject: string,
): void {
  if (
    typeof options !== "object" || options === null || Array.isArray(options)
  ) {
    throw new TypeError(
      `Cannot read the options of ${subject}: they must be an object: received ${
        options === null
          ? "null"
          : Array.isArray(options)
          ? "an array"
          : typeof options
      }`,
    );
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const nearest = nearestName(name, known);
    throw new TypeError(
      `Cannot read the options of ${subject}: there is no option "${name}"${
        nearest === undefined
          ? `, only ${known.join(", ")}`
          : `: did you mean "${nearest}"?`
      }: received ${Object.keys(options).join(", ")}`,
    );
  }
}

/** The name that was probably meant; undefined if none is near. */
export function nearestName(
  name: string,
  known: readonly string[],
): string | undefined {
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(name.length / 2)) + 1;
  for (const candidate of known) {
    const distance = editDistance(
      name.toLowerCase(),
      candidate.toLowerCase(),
    );
    if (distance < least) [nearest, least] = [candidate, distance];
  }
  return nearest;
}

/** How many letters must be put in, taken out or replaced (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(
        Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1),
      );
    }
    row = next;
  }
  return row[b.length] as number;
}
