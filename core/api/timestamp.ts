/**
 * Timestamp in the format of `metav1.Time`: UTC, in whole seconds.
 *
 * @param milliseconds Milliseconds since the Unix epoch; fractions of a second are
 * cut off.
 * @throws {RangeError} If the date does not exist.
 *
 * @example Format a time
 * ```ts
 * import { timestamp } from "@coracle/operator/core";
 *
 * if (timestamp(1_500) !== "1970-01-01T00:00:01Z") throw new Error("Unexpected");
 * ```
 */
export function timestamp(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1_000);
  if (second !== lastSecond) {
    lastText = `${toIso(milliseconds).slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastText;
}

/** Last second and its text, which most timestamps reuse. */
let lastSecond: number | undefined;
let lastText = "";

/**
 * Timestamp in the format of `metav1.MicroTime`: UTC, with six digits after the
 * second. Fields of this type, such as the times of a Lease, refuse other forms.
 *
 * @param milliseconds Milliseconds since the Unix epoch; fractions of a
 * millisecond are cut off.
 * @throws {RangeError} If the date does not exist.
 *
 * @example Format a time
 * ```ts
 * import { microTimestamp } from "@coracle/operator/client";
 *
 * const text = microTimestamp(1_500);
 * if (text !== "1970-01-01T00:00:01.500000Z") throw new Error("Unexpected");
 * ```
 */
export function microTimestamp(milliseconds: number): string {
  return `${toIso(milliseconds).slice(0, 23)}000Z`;
}

function toIso(milliseconds: number): string {
  const date = new Date(milliseconds);
  if (Number.isNaN(date.getTime())) {
    throw new RangeError(
      `Cannot write a time: it must be milliseconds since 1970: received ${milliseconds}`,
    );
  }
  return date.toISOString();
}
