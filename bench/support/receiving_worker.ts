/**
 * Reads a watch in a thread of its own and hands every chunk over.
 *
 * @module
 */
import { parentPort, workerData } from "node:worker_threads";
import { podChunks, type PodStreamAddress } from "./pod_chunks.ts";

for await (const chunk of podChunks(workerData as PodStreamAddress)) {
  // Memory of its own, so that it can be handed over and is not copied again.
  const own = new Uint8Array(chunk);
  parentPort?.postMessage(own, [own.buffer]);
}
