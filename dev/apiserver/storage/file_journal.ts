import { Buffer } from "node:buffer";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { resolve } from "node:path";
import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject, loadModule } from "@coracle/operator/internal";
import type { Change } from "./history.ts";
import type { Journal, Store } from "./store.ts";
import { readJson } from "../exact_json.ts";

/** Line of the journal file: an object or a deletion. */
interface Line {
  readonly revision: number;
  readonly group: string;
  readonly plural: string;
  readonly object?: UntypedObject;
  readonly deleted?: string;
}

/** Last state of one object in a journal file. */
export interface JournalObject {
  readonly group: string;
  readonly plural: string;
  readonly revision: number;
  readonly object: UntypedObject;
}

/** Contents of a journal file. */
export interface JournalContent extends ServerContent {
  readonly objects: readonly JournalObject[];
}

/** Objects with which a server starts. */
export interface ServerContent {
  readonly revision: number;
  /** The objects; each is changed when it is loaded. */
  readonly objects: Iterable<JournalObject>;
  /**
   * Whether the objects are at rest in a cluster whose other objects are unknown:
   * controllers act on changes only, and owners that are not there may exist.
   * CustomResourceDefinitions come first then.
   */
  readonly isPart?: boolean | undefined;
  /**
   * Waits until controllers of workloads may go on after a change. By default they
   * do at once, so that clients rarely see what is between their changes.
   */
  readonly turn?: (() => Promise<void> | undefined) | undefined;
}

/**
 * File size, as a multiple of the size of its objects, from which the file is
 * rewritten.
 */
const REWRITE_FACTOR = 4;
/** Minimum file size, in bytes, for rewriting a file that is in use. */
const MIN_REWRITE_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/** Options of a {@linkcode FileJournal}, for tests. */
export interface FileJournalOptions {
  /** Minimum file size, in bytes, for rewriting; 64 MiB by default. */
  readonly minRewriteBytes?: number;
  /** Function that writes to a file; `writeSync` by default. */
  readonly write?: typeof writeSync;
  /** Function that renames a file; `renameSync` by default. */
  readonly rename?: typeof renameSync;
}

/** Error of a file that is closed, and was not replaced. */
class NotReplaced extends Error {}

/**
 * Journal in a file, one JSON line per change, written before the change is
 * acknowledged. A killed process has lost nothing that it acknowledged; an
 * incomplete last line is ignored.
 */
export class FileJournal implements Journal {
  readonly #path: string;
  readonly #store: Store;
  readonly #minRewriteBytes: number;
  readonly #writeSync: typeof writeSync;
  readonly #renameSync: typeof renameSync;
  #file: number;
  #bytes = 0;
  #rewriteAt = 0;
  #isClosed = false;

  /**
   * Writes the current objects of a store into the file and appends every later
   * change.
   *
   * @throws {Error} If the file cannot be written.
   */
  constructor(path: string, store: Store, options: FileJournalOptions = {}) {
    this.#path = path;
    this.#store = store;
    this.#minRewriteBytes = options.minRewriteBytes ?? MIN_REWRITE_BYTES;
    this.#writeSync = options.write ?? writeSync;
    this.#renameSync = options.rename ?? renameSync;
    this.#file = this.#rewrite();
  }

  append({ type, revision, object }: Change): void {
    // Another file may have the descriptor of the closed one.
    if (this.#isClosed) {
      throw new Error("Cannot store a change: the server was stopped");
    }
    // The store has all earlier changes now, but not this one.
    if (this.#bytes > this.#rewriteAt) this.#tryRewrite();
    const { group, plural } = object.definition.storedAs ?? object.definition;
    const head = JSON.stringify({ revision, group, plural });
    const rest = type === "DELETED"
      ? Buffer.from(`,"deleted":${JSON.stringify(object.key)}}\n`)
      : Buffer.concat([
        Buffer.from(',"object":'),
        object.bytes,
        Buffer.from("}\n"),
      ]);
    // Overwrites the part of a line that could not be written whole.
    const line = Buffer.concat([Buffer.from(head.slice(0, -1)), rest]);
    this.#bytes += this.#write(this.#file, line, this.#bytes);
  }

  /** Writes a line at a position; returns its length. */
  #write(file: number, line: Uint8Array, position: number): number {
    for (let offset = 0; offset < line.length;) {
      offset += this.#writeSync(
        file,
        line,
        offset,
        line.length - offset,
        position + offset,
      );
    }
    return line.length;
  }

  /** Rewrites the file, or continues with the old one if this fails. */
  #tryRewrite(): void {
    try {
      this.#file = this.#rewrite(() => closeSync(this.#file));
    } catch (error) {
      if (error instanceof NotReplaced) this.#file = openSync(this.#path, "r+");
      this.#rewriteAt = this.#bytes + this.#minRewriteBytes;
    }
  }

  /**
   * Replaces the file by a new one with only the current objects.
   *
   * @param closePrevious Closes the file that is replaced: Windows replaces no file
   * that is open.
   * @throws {NotReplaced} If the previous file is closed, and stays.
   */
  #rewrite(closePrevious?: () => void): number {
    const temporary = `${this.#path}.new`;
    const file = openSync(temporary, "w", 0o600);
    let size = 0;
    try {
      const { revision } = this.#store;
      const first = Buffer.from(`${JSON.stringify({ revision })}\n`);
      size += this.#write(file, first, size);
      for (const { resource, values } of snapshot(this.#store)) {
        for (const { revision, bytes } of values) {
          const head = JSON.stringify({ revision, ...resource });
          const line = Buffer.concat([
            Buffer.from(`${head.slice(0, -1)},"object":`),
            bytes,
            Buffer.from("}\n"),
          ]);
          size += this.#write(file, line, size);
        }
      }
      fsyncSync(file);
      this.#replace(temporary, closePrevious);
    } catch (error) {
      closeSync(file);
      rmSync(temporary, { force: true });
      throw error;
    }
    this.#bytes = size;
    this.#rewriteAt = Math.max(size * REWRITE_FACTOR, this.#minRewriteBytes);
    return file;
  }

  #replace(temporary: string, closePrevious?: () => void): void {
    closePrevious?.();
    try {
      this.#renameSync(temporary, this.#path);
    } catch (error) {
      throw closePrevious === undefined
        ? error
        : new NotReplaced("Cannot replace the journal", { cause: error });
    }
  }

  /** Closes the file; later changes are refused. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#file);
  }
}

function* snapshot(store: Store) {
  for (const collection of store.collections()) {
    const { group, plural } = collection.resource;
    yield { resource: { group, plural }, values: collection.values() };
  }
}

/** Open locks, kept here because garbage collection would unlock their files. */
const LOCKS: Set<object> = new Set();

/**
 * Locks a journal file for one server by a lock of the operating system on an
 * empty file beside it. The end of the process releases the lock, which is
 * effective between containers that share a folder. It is taken by SQLite,
 * which every runtime includes. The empty file remains: after its removal, two
 * servers could lock two files of the same name.
 *
 * @returns Function that unlocks the file.
 * @throws {Error} If another server uses the file, or it cannot be locked.
 */
export async function lockJournal(path: string): Promise<() => void> {
  const { DatabaseSync } = await loadModule(import("node:sqlite"));
  const lock = `${resolve(path)}.lock`;
  let database: InstanceType<typeof DatabaseSync> | undefined;
  try {
    database = new DatabaseSync(lock);
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    const { message } = error as Error;
    const why = message === "database is locked"
      ? `another server uses it and has locked ${lock}`
      : `${lock} cannot be locked: ${message}`;
    throw new Error(`Cannot use ${path}: ${why}`, { cause: error });
  }
  const held = database;
  LOCKS.add(held);
  return () => {
    if (LOCKS.delete(held)) held.close();
  };
}

/**
 * Reads a journal file; returns undefined if it does not exist or is empty. An
 * incomplete last line is ignored.
 *
 * @throws {SyntaxError} If no server wrote the file, or another line is
 * malformed.
 * @throws {Error} If the file cannot be read.
 */
export function readJournal(path: string): JournalContent | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readBytes(path);
  if (bytes.length === 0) return undefined;
  const objects = new Map<string, JournalObject>();
  let revision = 0;
  let number = 0;
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end < 0 && number > 0) break;
    number++;
    const text = end < 0 ? "" : bytes.toString("utf8", start, end);
    const line = parseLine(text, path, number);
    start = end + 1;
    revision = Math.max(revision, line.revision);
    const { group, plural, object, deleted } = line;
    const id = (key: string) => `${group}/${plural}/${key}`;
    if (deleted !== undefined) objects.delete(id(deleted));
    else if (object !== undefined) {
      const { namespace, name } = object.metadata;
      const key = namespace ? `${namespace}/${name}` : name;
      objects.set(id(key), { group, plural, revision: line.revision, object });
    }
  }
  return { revision, objects: [...objects.values()] };
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(
      `Cannot read the data of a server: ${path} must be a file that this process may read: received ${
        (error as Error).message
      }`,
      { cause: error },
    );
  }
}

function parseLine(text: string, path: string, number: number): Line {
  let line: unknown;
  try {
    line = readJson(text);
  } catch {
    // Reported below; the text may be that of a file with secrets.
  }
  if (number === 1 ? isHead(line) : isLine(line)) return line as Line;
  throw new SyntaxError(
    `Cannot read ${path}: line ${number} must be ${
      number === 1
        ? 'the JSON {"revision": NUMBER} of a data file of coracle'
        : "the JSON of a change"
    }`,
  );
}

function isHead(line: unknown): boolean {
  return isJsonObject(line) && Number.isSafeInteger(line.revision) &&
    Number(line.revision) > 0;
}

function isLine(line: unknown): boolean {
  if (!isHead(line)) return false;
  const { group, plural, deleted, object } = line as Record<string, unknown>;
  if (typeof group !== "string" || typeof plural !== "string") return false;
  if (deleted !== undefined) return typeof deleted === "string";
  return isJsonObject(object) && isJsonObject(object.metadata) &&
    typeof object.metadata.name === "string";
}
