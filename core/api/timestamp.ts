/**
 * A moment as Kubernetes' `metav1.Time` writes it: UTC, to the second.
 *
 * @param milliseconds Since the Unix epoch; parts of a second are cut off.
 * @throws {RangeError} If there is no such date.
 *
 * @example The moment of an event
 * ```ts
 * import { timestamp } from "@coracle/operator/core";
 *
 * if (timestamp(1_500) !== "1970-01-01T00:00:01Z") throw new Error("Unexpected");
 * ```
 */
export function timestamp(milliseconds: number): string {
  return `${toIso(milliseconds).slice(0, 19)}Z`;
}

/**
 * A moment as Kubernetes' `metav1.MicroTime` writes it: UTC, with six digits of
 * a second.
 *
 * @param milliseconds Since the Unix epoch.
 * @throws {RangeError} If there is no such date.
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
