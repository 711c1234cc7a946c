import type { ChunkQueueOptions } from "./chunk_queue.ts";

/** A JavaScript runtime that the library runs on. */
export type Runtime = "node" | "deno" | "bun";

/** Which runtime this is. */
export function currentRuntime(): Runtime {
  if ("Deno" in globalThis) return "deno";
  if ("Bun" in globalThis) return "bun";
  return "node";
}

/**
 * How much of what sockets of `node:tls` deliver may wait for its reader. Deno's
 * go on reading when they are paused, so that only a bound helps there.
 */
export function socketQueueOptions(): ChunkQueueOptions {
  return currentRuntime() === "deno"
    ? { highWaterMark: Infinity, limit: 64 << 20 }
    : {};
}
