import { readFile, rm } from "node:fs/promises";

/** Runs its arguments and writes the times of their processes to a file. */
const SCRIPT = '"$@"; code=$?; times >"$0"; exit $code';

/**
 * A command that, beside what it did before, writes the processor time of its
 * process, and of all others that it waited for, to a file.
 */
export function timed(
  command: readonly string[],
  file: string,
): readonly string[] {
  return ["sh", "-c", SCRIPT, file, ...command];
}

/**
 * Seconds of processors that {@linkcode timed} wrote to a file, which is removed;
 * 0 if the command was killed.
 */
export async function takeSeconds(file: string): Promise<number> {
  const text = await readFile(file, "utf8").catch(() => "");
  await rm(file, { force: true });
  // The second line is that of the children: minutes and seconds, user and system.
  const times = [...(text.split("\n")[1] ?? "").matchAll(/(\d+)m([\d.]+)s/g)];
  return times.reduce((sum, [, m, s]) => sum + Number(m) * 60 + Number(s), 0);
}
