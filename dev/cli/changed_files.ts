import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { RUNTIME } from "./runtime.ts";

/** Names of files that an operator may import. */
const CODE = /\.([cm]?[jt]sx?|json)$/;
/** Maximum number of folders that are watched. */
const MAX_FOLDERS = 200;

/**
 * Whether `--watch` of this runtime loses a file that is replaced. Node and Bun
 * on Linux watch the inode: after an editor has saved a file by renaming a new
 * one to its name, as vim does, later changes are not seen; Bun also misses the
 * replacement.
 */
export function losesReplacedFiles(
  platform: string = process.platform,
  runtime: string = RUNTIME,
): boolean {
  return platform === "linux" && runtime !== "deno";
}

/**
 * Waits until a file of code in a folder is replaced by a file of the same
 * name.
 *
 * @param folder Folder with the code; packages installed in it are left out.
 * @param signal Signal that ends the wait.
 * @returns Whether a file was replaced; false if the signal was aborted.
 */
export async function fileReplaced(
  folder: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const watchers: FSWatcher[] = [];
  const compare = async (inodes: ReadonlyMap<string, number>) => {
    for (const [file, known] of inodes) {
      const found = await inodeOf(file);
      if (found !== undefined && found !== known) resolve(true);
    }
  };
  const folders = [folder];
  try {
    for (const path of folders) {
      const inodes = new Map<string, number>();
      // Bun names the file that was renamed, and not the one that it replaced.
      const watcher = watch(path, () => void compare(inodes));
      watchers.push(watcher);
      // A folder that is deleted is no longer of interest.
      watcher.on("error", () => watcher.close());
      for (const entry of await readdir(path, { withFileTypes: true })) {
        const { name } = entry;
        const file = join(path, name);
        if (entry.isDirectory()) {
          const isOwn = name !== "node_modules" && !name.startsWith(".");
          if (isOwn && folders.length < MAX_FOLDERS) folders.push(file);
        } else if (CODE.test(name)) {
          const inode = await inodeOf(file);
          if (inode !== undefined) inodes.set(file, inode);
        }
      }
    }
    signal.addEventListener("abort", () => resolve(false), { once: true });
    if (signal.aborted) return false;
    return await promise;
  } finally {
    for (const watcher of watchers) watcher.close();
  }
}

async function inodeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.ino;
}
