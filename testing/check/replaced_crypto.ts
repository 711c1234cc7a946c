/**
 * What an operator in a world imports as `node:crypto`: random values are those of
 * the world.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import * as platform from "node:crypto";

export * from "node:crypto";

/** UUID of the world. */
export const randomUUID = (): string => globalThis.crypto.randomUUID();

/** Random bytes of the world. */
export function randomBytes(
  size: number,
  callback?: (error: null, bytes: Buffer) => void,
): Buffer | undefined {
  const bytes = Buffer.alloc(size);
  globalThis.crypto.getRandomValues(bytes);
  if (callback === undefined) return bytes;
  queueMicrotask(() => callback(null, bytes));
  return undefined;
}

/** Random integer of the world, from a minimum to below a maximum. */
export function randomInt(minimum: number, maximum?: number): number {
  const [from, to] = maximum === undefined ? [0, minimum] : [minimum, maximum];
  return from + Math.floor(Math.random() * (to - from));
}

const all: Readonly<Record<string, unknown>> = {
  ...platform,
  randomUUID,
  randomBytes,
  randomInt,
};
export default all;
