import { open } from "node:fs/promises";

/** Size of the first read, in bytes; it doubles. */
const FIRST_READ_BYTES = 1 << 16;

/**
 * Reads a file up to a size. Pipes and devices are read as well: their size is
 * known only at their end.
 *
 * @returns Content; undefined if the file is larger, of which no more is read.
 * @throws {Error} If the file cannot be read.
 */
export async function readLimited(
  path: string,
  limit: number,
): Promise<string | undefined> {
  const file = await open(path);
  try {
    let buffer = new Uint8Array(Math.min(FIRST_READ_BYTES, limit + 1));
    let length = 0;
    for (;;) {
      const room = buffer.length - length;
      const { bytesRead } = await file.read(buffer, length, room, null);
      if (bytesRead === 0) break;
      length += bytesRead;
      if (length > limit) return undefined;
      if (length === buffer.length) {
        const larger = new Uint8Array(Math.min(2 * length, limit + 1));
        larger.set(buffer);
        buffer = larger;
      }
    }
    return new TextDecoder().decode(buffer.subarray(0, length));
  } finally {
    await file.close();
  }
}

/** Code of the error of a file operation, for messages without its path. */
export function fileFault(error: unknown): string {
  return error instanceof Error && "code" in error
    ? String(error.code)
    : String(error);
}
