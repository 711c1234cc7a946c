import { randomBytes } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";
import { type FlagValues, UsageError } from "./command.ts";

/**
 * Value of `--port`; zero, the default, selects any free port.
 *
 * @throws {UsageError} If it is not a port number.
 */
export function portOf(flags: FlagValues): number {
  const text = textOf(flags, "port") ?? "0";
  if (/^\d+$/.test(text) && Number(text) < 65_536) return Number(text);
  throw new UsageError(
    `Cannot use --port: it must be a number from 0 to 65535: received "${text}"`,
  );
}

/** Value of a flag; undefined if it is absent. */
export function textOf(flags: FlagValues, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" ? value : undefined;
}

/**
 * Writes a file that only its owner may read, atomically: readers never see a
 * partial file.
 */
export async function writeSecretFile(
  file: string,
  text: string,
): Promise<void> {
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw new Error(
      `Cannot write ${file}: its folder must exist and be writable: ${
        (error as Error).message
      }`,
      { cause: error },
    );
  }
}

/** File with the addresses of the operators of `coracle dev`, for a kubeconfig. */
export function linkFileOf(kubeconfig: string): string {
  return `${kubeconfig}.link`;
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
