/**
 * Reads a watch in a worker thread and transfers every chunk.
 *
 * @module
 */
import { parentPort, workerData } from "node:worker_threads";
import { podChunks, type PodStreamAddress } from "./pod_chunks.ts";

for await (const chunk of podChunks(workerData as PodStreamAddress)) {
  // Copied into its own memory, which can be transferred without another copy.
  const own = new Uint8Array(chunk);
  parentPort?.postMessage(own, [own.buffer]);
}
