import { type FSWatcher, watch } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Names of files that an operator may import. */
const CODE = /\.([cm]?[jt]sx?|json)$/;
/** Maximum number of folders that are watched. */
const MAX_FOLDERS = 200;
/** Time without a change after which a save is complete, in milliseconds. */
const QUIET_MS = 30;

/** A folder with the state of its files of code. */
interface WatchedFolder {
  readonly watcher: FSWatcher;
  /** Identity, size and time of the files, by their paths. */
  files: ReadonlyMap<string, string>;
}

/**
 * Watches files of code. It watches folders, since an editor may replace a file by
 * another one of the same name, and packages in `node_modules` are left out.
 */
export class CodeWatcher {
  readonly #folders: Map<string, WatchedFolder | undefined> = new Map();
  readonly #changed: (files: readonly string[]) => void;
  /** Folders in which something has changed. */
  readonly #touched: Set<string> = new Set();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /**
   * Creates a watcher that watches nothing yet.
   *
   * @param changed Called with the files that were written or added by a save.
   */
  constructor(changed: (files: readonly string[]) => void) {
    this.#changed = changed;
  }

  /** Watches a folder and the folders in it. */
  async addTree(folder: string): Promise<void> {
    const folders = [await realpath(folder)];
    for (const path of folders) {
      await this.#add(path);
      const entries = await readdir(path, { withFileTypes: true })
        .catch(() => []);
      for (const entry of entries) {
        const { name } = entry;
        const isOwn = name !== "node_modules" && !name.startsWith(".");
        if (entry.isDirectory() && isOwn) folders.push(join(path, name));
      }
    }
  }

  /** Watches the folders of files. */
  async addFiles(files: readonly string[]): Promise<void> {
    for (const folder of new Set(files.map((file) => dirname(file)))) {
      if (!/[\\/]node_modules(?:[\\/]|$)/.test(folder)) await this.#add(folder);
    }
  }

  /** Ends watching. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const folder of this.#folders.values()) folder?.watcher.close();
    this.#folders.clear();
  }

  async #add(path: string): Promise<void> {
    const { size } = this.#folders;
    if (this.#isClosed || this.#folders.has(path) || size >= MAX_FOLDERS) {
      return;
    }
    this.#folders.set(path, undefined);
    try {
      const watcher = watch(path, () => this.#touch(path));
      // A folder that is deleted is no longer of interest.
      watcher.on("error", () => watcher.close());
      const folder: WatchedFolder = { watcher, files: new Map() };
      this.#folders.set(path, folder);
      folder.files = await filesOf(path);
    } catch {
      this.#folders.delete(path); // It is gone, or may not be read.
    }
  }

  #touch(path: string): void {
    if (this.#isClosed) return;
    this.#touched.add(path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#compare(), QUIET_MS);
  }

  async #compare(): Promise<void> {
    const changed: string[] = [];
    const touched = [...this.#touched];
    this.#touched.clear();
    for (const path of touched) {
      const folder = this.#folders.get(path);
      if (folder === undefined) continue;
      const { files: before } = folder;
      folder.files = await filesOf(path);
      for (const [file, state] of folder.files) {
        if (before.get(file) !== state) changed.push(file);
      }
    }
    if (changed.length > 0 && !this.#isClosed) this.#changed(changed);
  }
}

/** State of the files of code in a folder. */
async function filesOf(path: string): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(path).catch(() => []);
  const files = names.filter((name) => CODE.test(name)).map(async (name) => {
    const file = join(path, name);
    const found = await stat(file).catch(() => undefined);
    const { ino, size, mtimeMs } = found ?? {};
    return [file, found && `${ino} ${size} ${mtimeMs}`] as const;
  });
  const states = new Map<string, string>();
  for (const [file, state] of await Promise.all(files)) {
    if (state !== undefined) states.set(file, state);
  }
  return states;
}
