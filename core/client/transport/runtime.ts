import type { ChunkQueueOptions } from "./chunk_queue.ts";

/** JavaScript runtime. */
export type Runtime = "node" | "deno" | "bun";

/** Detects the current runtime. */
export function currentRuntime(): Runtime {
  if ("Deno" in globalThis) return "deno";
  if ("Bun" in globalThis) return "bun";
  return "node";
}

/**
 * Queue options for data of `node:tls` sockets. Deno's sockets continue reading
 * when they are paused, so the queue needs a limit there.
 */
export function socketQueueOptions(): ChunkQueueOptions {
  return currentRuntime() === "deno"
    ? { highWaterMark: Infinity, limit: 64 << 20 }
    : {};
}
