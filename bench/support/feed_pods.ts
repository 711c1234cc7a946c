/**
 * Writes the watch events of as many Pods as asked for to its output, so that
 * the process that measures does not make them itself: `feed_pods.ts COUNT`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import process from "node:process";
import { PodFactory } from "./pods.ts";

const PER_WRITE = 32;

const count = Number(process.argv[2]);
const pods = new PodFactory();
const lineFeed = Buffer.from("\n");
for (let first = 0; first < count; first += PER_WRITE) {
  const parts: Buffer[] = [];
  for (let i = first; i < Math.min(first + PER_WRITE, count); i++) {
    parts.push(pods.event("ADDED", i), lineFeed);
  }
  if (!process.stdout.write(Buffer.concat(parts))) {
    await once(process.stdout, "drain");
  }
}
