import { readFile, rm, writeFile } from "node:fs/promises";
import process from "node:process";

/** Milliseconds between two attempts to take a lock. */
const TRY_EVERY = 25;

/**
 * Waits until no other process holds a lock, and takes it. The lock of an ended
 * process counts as free.
 *
 * @param file Where the lock is.
 * @returns Lets go.
 */
export async function takeFileLock(file: string): Promise<() => Promise<void>> {
  const mine = String(process.pid);
  for (;;) {
    try {
      await writeFile(file, mine, { flag: "wx" });
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") throw error;
    }
    const holder = await readFile(file, "utf8").catch(() => "");
    if (holder !== "" && !isAlive(Number(holder))) {
      await rm(file, { force: true });
    } else await new Promise((resolve) => setTimeout(resolve, TRY_EVERY));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
