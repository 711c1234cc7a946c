import { Buffer } from "node:buffer";
import { createReadStream } from "node:fs";
import { outsideWork } from "../clock.ts";

/**
 * Reads a file of limited size. Pipes and devices are read as well: their size
 * is known only at their end. Virtual clocks wait until it is read.
 *
 * @returns Text of the file; undefined if it is larger than the limit.
 * @throws {Error} If the file cannot be read.
 */
export function readLimited(
  path: string,
  limit: number,
): Promise<string | undefined> {
  return outsideWork(readChunks(path, limit));
}

async function readChunks(
  path: string,
  limit: number,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of createReadStream(path)) {
    length += chunk.length;
    if (length > limit) return undefined;
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** Returns the code of a file error, for messages without its path. */
export function fileFault(error: unknown): string {
  return error instanceof Error && "code" in error
    ? String(error.code)
    : String(error);
}
