import { Buffer } from "node:buffer";
import {
  chmod,
  copyFile,
  type FileHandle,
  open,
  rm,
  stat,
  truncate,
} from "node:fs/promises";
import { replaceFile } from "./replace_file.ts";
import {
  encodeHead,
  findFrames,
  type FrameComposer,
  type ReadAt,
  readHead,
  SNAPSHOT_FORMAT,
  SnapshotRefusal,
  type WholeFrames,
} from "./snapshot_format.ts";

const FILE_MODE = 0o600;

/** Part of a file that has whole groups of frames. */
export interface FoundSnapshot extends Omit<WholeFrames, "frames"> {
  readonly inode: number;
}

function readerOf(file: FileHandle): ReadAt {
  return async (position, length, memory) => {
    const buffer = memory !== undefined && length <= memory.length
      ? memory
      : Buffer.alloc(length);
    let read = 0;
    while (read < length) {
      const { bytesRead } = await file.read(
        buffer,
        read,
        length - read,
        position + read,
      );
      if (bytesRead === 0) break;
      read += bytesRead;
    }
    return buffer.subarray(0, read);
  };
}

/**
 * Opens a snapshot and finds its whole groups of frames.
 *
 * @param use Reads the frames while the file is open.
 * @returns Undefined if there is no file.
 * @throws {SnapshotRefusal} If it cannot be used.
 */
export async function readSnapshot<R>(
  path: string,
  identity: string,
  use: (readAt: ReadAt, found: WholeFrames) => Promise<R>,
): Promise<(FoundSnapshot & { readonly result: R }) | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw new SnapshotRefusal("unreadable", String(error), { cause: error });
  }
  try {
    const { ino: inode } = await file.stat();
    const readAt = readerOf(file);
    const found = await findFrames(
      readAt,
      await readHead(readAt, (text) => text === identity, SNAPSHOT_FORMAT),
    );
    if (found.frames.length === 0) {
      throw new SnapshotRefusal("empty", "no group of frames is whole");
    }
    const result = await use(readAt, found);
    const { end, digest, isTorn } = found;
    return { inode, end, digest, isTorn, result };
  } catch (error) {
    if (error instanceof SnapshotRefusal) throw error;
    throw new SnapshotRefusal("unreadable", String(error), { cause: error });
  } finally {
    await file.close();
  }
}

/** Error of a file that another process has replaced. */
export class ReplacedError extends Error {}

/**
 * File of a snapshot that this process has made, or taken over as a copy. Frames
 * are appended. Another process that takes over the file replaces it, so that no
 * two processes write to one.
 */
export class SnapshotFile {
  readonly #path: string;
  /** Path while it is new, and not in its place. */
  #newPath: string | undefined;
  #inode: number;
  #size: number;
  #digest: Buffer;
  #handle: FileHandle | undefined;

  private constructor(
    path: string,
    parts: {
      readonly newPath?: string;
      readonly inode: number;
      readonly size: number;
      readonly digest: Buffer;
      readonly handle?: FileHandle;
    },
  ) {
    this.#path = path;
    this.#newPath = parts.newPath;
    this.#inode = parts.inode;
    this.#size = parts.size;
    this.#digest = parts.digest;
    this.#handle = parts.handle;
  }

  /** Creates a file beside the present one; see {@linkcode SnapshotFile.settle}. */
  static async create(path: string, identity: string): Promise<SnapshotFile> {
    const newPath = `${path}.new`;
    await rm(newPath, { force: true });
    const handle = await open(newPath, "wx", FILE_MODE);
    try {
      const { bytes, digest } = encodeHead(identity, SNAPSHOT_FORMAT);
      const { ino: inode } = await handle.stat();
      const file = new SnapshotFile(path, {
        ...{ newPath, inode, size: 0, digest, handle },
      });
      await file.#append(bytes);
      return file;
    } catch (error) {
      await handle.close().catch(() => {});
      throw error;
    }
  }

  /**
   * Takes over a file that was read: a copy of its whole groups replaces it.
   *
   * @returns Undefined if another process has replaced it since.
   */
  static async takeOver(
    path: string,
    { inode, end, digest }: FoundSnapshot,
  ): Promise<SnapshotFile | undefined> {
    const newPath = `${path}.new`;
    const present = await stat(path).catch(() => undefined);
    if (present?.ino !== inode) return undefined;
    await rm(newPath, { force: true });
    await copyFile(path, newPath);
    await chmod(newPath, FILE_MODE);
    await truncate(newPath, end);
    const copy = await stat(newPath);
    if (copy.size !== end) return undefined;
    await replaceFile(newPath, path);
    return new SnapshotFile(path, { inode: copy.ino, size: end, digest });
  }

  get size(): number {
    return this.#size;
  }

  /** Whether the file is new, and not in its place so far. */
  get isNew(): boolean {
    return this.#newPath !== undefined;
  }

  /**
   * Opens the file for frames.
   *
   * @throws {ReplacedError} If it is no longer the file of this process.
   */
  async open(): Promise<void> {
    if (this.#handle !== undefined) return;
    let handle: FileHandle;
    try {
      handle = await open(this.#path, "r+");
    } catch (error) {
      if ((error as { code?: string }).code !== "ENOENT") throw error;
      throw new ReplacedError("the file was removed");
    }
    this.#handle = handle;
    const { ino, size } = await handle.stat();
    if (ino === this.#inode && size === this.#size) return;
    throw new ReplacedError("another process has taken over the file");
  }

  /** Appends the frame of a composer. */
  async write(composer: FrameComposer, flags: number): Promise<void> {
    const { bytes, digest } = await composer.encode(this.#digest, flags);
    await this.#append(bytes);
    this.#digest = digest;
  }

  /** Puts a new file in its place, once its first group is whole. */
  async settle(): Promise<void> {
    if (this.#newPath === undefined) return;
    // Otherwise the name could outlive the content after a power failure.
    await this.#handle?.sync();
    // Windows may refuse to rename a file that is open.
    await this.close();
    await replaceFile(this.#newPath, this.#path);
    this.#newPath = undefined;
  }

  /** Closes the file until the next {@linkcode SnapshotFile.open}. */
  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  /** Closes the file for good; one that is not in its place is removed. */
  async discard(): Promise<void> {
    await this.close().catch(() => {});
    if (this.#newPath === undefined) return;
    await rm(this.#newPath, { force: true }).catch(() => {});
  }

  async #append(bytes: Uint8Array): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const { bytesWritten } = await (this.#handle as FileHandle).write(
        bytes,
        written,
        bytes.length - written,
        this.#size + written,
      );
      written += bytesWritten;
    }
    this.#size += bytes.length;
  }
}
