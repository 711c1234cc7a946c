import { rename } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** Codes with which Windows refuses to replace a file that a process has open. */
const BUSY_CODES: ReadonlySet<string | undefined> = new Set([
  "EACCES",
  "EBUSY",
  "EPERM",
]);
/** Pauses between attempts, in milliseconds. */
const PAUSES_MS: readonly number[] = [10, 20, 40, 80, 160];

/**
 * Renames a file to a name that may exist. Virus scanners and indexers of Windows
 * open new files for a moment, so refusals are tried again for 310 ms.
 *
 * @throws {Error} If the last attempt fails, or any for another reason.
 */
export async function replaceFile(
  from: string,
  to: string,
  { move = rename, pause = sleep }: {
    readonly move?: (from: string, to: string) => Promise<void>;
    readonly pause?: (milliseconds: number) => Promise<unknown>;
  } = {},
): Promise<void> {
  for (const milliseconds of PAUSES_MS) {
    try {
      return await move(from, to);
    } catch (error) {
      if (!BUSY_CODES.has((error as { code?: string }).code)) throw error;
      await pause(milliseconds);
    }
  }
  await move(from, to);
}
