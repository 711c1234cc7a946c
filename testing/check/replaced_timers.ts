/**
 * What an operator in a world imports as `node:timers`: the timers of the world.
 *
 * @module
 */
import { clearImmediate, setImmediate } from "node:timers";
import * as promises from "./replaced_timers_promises.ts";

const timer = (name: "setTimeout" | "setInterval") =>
// deno-lint-ignore no-explicit-any -- as the timers of the platform
(...values: any[]): unknown =>
  (globalThis[name] as (...values: unknown[]) => unknown)(...values);

/** `setTimeout` of the world. */
export const setTimeout: (...values: unknown[]) => unknown = timer(
  "setTimeout",
);
/** `setInterval` of the world. */
export const setInterval: (...values: unknown[]) => unknown = timer(
  "setInterval",
);
/** `clearTimeout` of the world. */
export const clearTimeout = (handle?: number): void =>
  globalThis.clearTimeout(handle);
/** `clearInterval` of the world. */
export const clearInterval = (handle?: number): void =>
  globalThis.clearInterval(handle);
const all: Readonly<Record<string, unknown>> = {
  setTimeout,
  setInterval,
  setImmediate,
  clearTimeout,
  clearInterval,
  clearImmediate,
  promises,
};
export { clearImmediate, promises, setImmediate };
export default all;
