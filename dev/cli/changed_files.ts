import { type FSWatcher, watch } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Names of files that an operator may import. */
const CODE = /\.([cm]?[jt]sx?|json)$/;
/** Maximum number of folders of a tree that are watched. */
const MAX_FOLDERS = 200;
/** Time without a change after which a save is complete, in milliseconds. */
const QUIET_MS = 30;

/** A folder with the state of its files of code. */
interface WatchedFolder {
  /** Watcher of the folder; undefined while it does not exist. */
  watcher: FSWatcher | undefined;
  /** Identity of the folder that is watched: one that replaces it has another. */
  identity: string | undefined;
  /** Identity, size and time of the files, by their paths. */
  files: ReadonlyMap<string, string>;
}

/**
 * Watches files of code. It watches folders, since an editor may replace a file by
 * another one of the same name, and packages in `node_modules` are left out.
 */
export class CodeWatcher {
  readonly #folders: Map<string, WatchedFolder> = new Map();
  readonly #changed: (files: readonly string[]) => void;
  readonly #failed: (error: Error) => void;
  readonly #open: (path: string, touched: () => void) => FSWatcher;
  /** Folders in which something has changed. */
  readonly #touched: Set<string> = new Set();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /**
   * Creates a watcher that watches nothing yet.
   *
   * @param changed Called with the files that were written or added by a save.
   * @param failed Called with the error of a folder that the system does not watch.
   * @param open Opens the watcher of a folder.
   */
  constructor(
    changed: (files: readonly string[]) => void,
    failed: (error: Error) => void = () => {},
    open: (path: string, touched: () => void) => FSWatcher = watch,
  ) {
    this.#changed = changed;
    this.#failed = failed;
    this.#open = open;
  }

  /** Watches a folder and the folders in it. */
  async addTree(folder: string): Promise<void> {
    const folders = [await realpath(folder)];
    for (const path of folders) {
      if (this.#folders.size >= MAX_FOLDERS) return;
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
    for (const { watcher } of this.#folders.values()) watcher?.close();
    this.#folders.clear();
  }

  async #add(path: string): Promise<void> {
    if (this.#isClosed || this.#folders.get(path)?.watcher !== undefined) {
      return;
    }
    const folder: WatchedFolder = {
      watcher: undefined,
      identity: undefined,
      files: new Map(),
    };
    this.#folders.set(path, folder);
    await this.#follow(path, folder);
    folder.files = await filesOf(path);
  }

  /** Watches a folder that is new or was replaced; returns whether it was. */
  async #follow(path: string, folder: WatchedFolder): Promise<boolean> {
    const found = await stat(path).catch(() => undefined);
    const identity = found && `${found.ino} ${found.birthtimeMs}`;
    if (this.#isClosed || identity === folder.identity) return false;
    folder.watcher?.close();
    folder.watcher = undefined;
    folder.identity = identity;
    if (identity === undefined) return false;
    try {
      const watcher = this.#open(path, () => this.#touch(path));
      // A folder that is deleted is no longer of interest.
      watcher.on("error", () => {
        watcher.close();
        folder.watcher = folder.identity = undefined;
      });
      folder.watcher = watcher;
    } catch (error) {
      this.#failed(error as Error);
    }
    return true;
  }

  #touch(path: string): void {
    if (this.#isClosed) return;
    this.#touched.add(path);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#compare(), QUIET_MS);
  }

  async #compare(): Promise<void> {
    const changed: string[] = [];
    const touched = new Set(this.#touched);
    this.#touched.clear();
    for (const path of touched) {
      const folder = this.#folders.get(path);
      if (folder === undefined) continue;
      await this.#follow(path, folder);
      // A folder in it may be deleted and made again, as by a change of branches.
      for (const [inner, one] of this.#folders) {
        const isInner = dirname(inner) === path && inner !== path;
        if (isInner && await this.#follow(inner, one)) touched.add(inner);
      }
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
