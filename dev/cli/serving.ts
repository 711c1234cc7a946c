import { randomBytes } from "node:crypto";
import {
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
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

/** Values of a flag that has a list; empty if it is absent. */
export function listOf(flags: FlagValues, name: string): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? value : [];
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
  // A device would be replaced, and removed at the end.
  await requireFile(file);
  const draft = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw notWritten(file, error);
  }
}

/** Writes a file that anybody may read. */
export async function writeOutput(file: string, text: string): Promise<void> {
  await requireOutput(file);
  try {
    await writeFile(file, text);
  } catch (error) {
    throw notWritten(file, error);
  }
}

/** Streams that the shell has opened for this process. */
const OWN_STREAM = /^\/(?:dev\/(?:fd\/|std)|proc\/self\/fd\/)/;

/**
 * Refuses a path to write that is neither a file nor a stream of this process.
 *
 * @throws {UsageError} If it is something else, such as a FIFO.
 */
export async function requireOutput(file: string): Promise<void> {
  if (!OWN_STREAM.test(file)) await requireFile(file);
}

/**
 * Refuses a path of something else than a file, such as a FIFO: to open it takes
 * until another process opens it, too.
 *
 * @throws {UsageError} If it is something else, or its folder does not exist.
 */
export async function requireFile(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) {
    await stat(dirname(file)).catch((error: unknown) => {
      throw new UsageError(notWritten(file, error).message);
    });
    return;
  }
  if (found.isFile()) return;
  throw new UsageError(
    `Cannot write ${file}: it must be a file: received ${
      found.isDirectory() ? "a folder" : found.isFIFO() ? "a FIFO" : "a device"
    }`,
  );
}

function notWritten(file: string, error: unknown): Error {
  return new Error(
    `Cannot write ${file}: its folder must exist and be writable: ${
      (error as Error).message
    }`,
    { cause: error },
  );
}

/**
 * Creates a folder with the folders above it.
 *
 * @throws {UsageError} If there is a file of that name, or no right to make it.
 */
export async function makeFolder(folder: string): Promise<void> {
  const make = async (path: string): Promise<void> => {
    try {
      await mkdir(path);
    } catch (error) {
      const code = codeOf(error);
      if (code === "EEXIST" && (await stat(path)).isDirectory()) return;
      if (code !== "ENOENT" || dirname(path) === path) throw error;
      // Node's recursive mkdir never ends below /proc.
      await make(dirname(path));
      await mkdir(path);
    }
  };
  await make(folder).catch((error: unknown) => {
    throw new UsageError(
      `Cannot write to ${folder}: it must be a folder, or one that can be made: received ${
        codeOf(error)
      }`,
    );
  });
}

function codeOf(error: unknown): string | undefined {
  return (error as { readonly code?: string }).code;
}

/**
 * Creates a folder for temporary files of this process, and removes those of
 * processes that were killed: a kubeconfig in them contains a token.
 */
export async function temporaryFolder(): Promise<string> {
  const parent = tmpdir();
  // Containers that share the folder have other processes.
  const prefix = `coracle-${hostname()}-`;
  for (const name of await readdir(parent)) {
    const [, pid] = /^(\d+)-\w+$/.exec(name.slice(prefix.length)) ?? [];
    if (!name.startsWith(prefix) || !pid || isRunning(Number(pid))) continue;
    const folder = join(parent, name);
    const found = await lstat(folder).catch(() => undefined);
    // Windows has no user IDs, and a folder for temporary files for each user.
    if (found?.uid !== (process.getuid?.() ?? 0)) continue;
    await rm(folder, { recursive: true, force: true });
  }
  return await mkdtemp(join(parent, `${prefix}${process.pid}-`));
}

/** Whether a process runs, by its id. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) !== "ESRCH";
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
