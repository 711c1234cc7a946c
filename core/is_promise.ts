/**
 * Whether a value must be waited for. Any thenable counts: users may hand out
 * promises of another making.
 *
 * @param value What may be a promise.
 */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}
