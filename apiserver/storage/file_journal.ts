import { Buffer } from "node:buffer";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import type { UntypedObject } from "../../core/api/object.ts";
import type { Change } from "./history.ts";
import type { Journal, Store } from "./store.ts";

/** Line of the file: an object or a deletion. */
interface Line {
  readonly revision: number;
  readonly group: string;
  readonly plural: string;
  readonly object?: UntypedObject;
  readonly deleted?: string;
}

/** Last state of one object in a file. */
export interface JournalObject {
  readonly group: string;
  readonly plural: string;
  readonly revision: number;
  readonly object: UntypedObject;
}

/** Contents of a journal file. */
export interface JournalContent {
  readonly revision: number;
  readonly objects: readonly JournalObject[];
}

/**
 * File size, as a multiple of its objects' size, from which the file is
 * rewritten.
 */
const REWRITE_FACTOR = 4;
/** Minimum file size, in bytes, for rewriting a file that is in use. */
const MIN_REWRITE_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Journal in a file, one JSON line per change, written before the change is
 * acknowledged. A killed process has lost nothing that it acknowledged; an
 * incomplete last line is ignored.
 */
export class FileJournal implements Journal {
  readonly #path: string;
  readonly #store: Store;
  #file: number;
  #bytes = 0;
  #rewriteAt = MIN_REWRITE_BYTES;

  /**
   * Writes the current objects of a store into the file and appends every later
   * change.
   *
   * @throws {Error} If the file cannot be written.
   */
  constructor(path: string, store: Store) {
    this.#path = path;
    this.#store = store;
    this.#file = this.#rewrite();
  }

  append({ type, revision, object }: Change): void {
    const { group, plural } = object.definition.storedAs ?? object.definition;
    const head = JSON.stringify({ revision, group, plural });
    const rest = type === "DELETED"
      ? Buffer.from(`,"deleted":${JSON.stringify(object.key)}}\n`)
      : Buffer.concat([
        Buffer.from(',"object":'),
        object.bytes,
        Buffer.from("}\n"),
      ]);
    this.#write(Buffer.concat([Buffer.from(head.slice(0, -1)), rest]));
    if (this.#bytes > this.#rewriteAt) {
      closeSync(this.#file);
      this.#file = this.#rewrite();
    }
  }

  #write(line: Uint8Array): void {
    for (let offset = 0; offset < line.length;) {
      offset += writeSync(this.#file, line, offset);
    }
    this.#bytes += line.length;
  }

  /** Replaces the file by one with the current objects only. */
  #rewrite(): number {
    const temporary = `${this.#path}.new`;
    const file = openSync(temporary, "w", 0o600);
    let size = 0;
    const write = (line: Uint8Array) => {
      for (let offset = 0; offset < line.length;) {
        offset += writeSync(file, line, offset);
      }
      size += line.length;
    };
    const { revision } = this.#store;
    write(Buffer.from(`${JSON.stringify({ revision })}\n`));
    for (const { resource, values } of snapshot(this.#store)) {
      for (const object of values) {
        const head = JSON.stringify({ revision: object.revision, ...resource });
        write(Buffer.concat([
          Buffer.from(`${head.slice(0, -1)},"object":`),
          object.bytes,
          Buffer.from("}\n"),
        ]));
      }
    }
    fsyncSync(file);
    renameSync(temporary, this.#path);
    this.#bytes = size;
    this.#rewriteAt = Math.max(size * REWRITE_FACTOR, MIN_REWRITE_BYTES);
    return file;
  }

  /** Closes the file. */
  close(): void {
    closeSync(this.#file);
  }
}

function* snapshot(store: Store) {
  for (const collection of store.collections()) {
    const { group, plural } = collection.resource;
    yield { resource: { group, plural }, values: collection.values() };
  }
}

/**
 * Reads a journal file; undefined if it does not exist. An incomplete last line
 * is ignored.
 *
 * @throws {SyntaxError} If another line is not JSON.
 * @throws {Error} If the file cannot be read.
 */
export function readJournal(path: string): JournalContent | undefined {
  if (!existsSync(path)) return undefined;
  const bytes = readBytes(path);
  const objects = new Map<string, JournalObject>();
  let revision = 0;
  let number = 0;
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, start);
    if (end < 0) break;
    number++;
    const line = parseLine(bytes.toString("utf8", start, end), path, number);
    start = end + 1;
    revision = Math.max(revision, line.revision);
    const { group, plural, object, deleted } = line;
    const id = (key: string) => `${group}/${plural}/${key}`;
    if (deleted !== undefined) objects.delete(id(deleted));
    else if (object !== undefined) {
      const { namespace, name } = object.metadata;
      const key = namespace ? `${namespace}/${name}` : name;
      objects.set(id(key), {
        group,
        plural,
        revision: line.revision,
        object,
      });
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
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(
      `Cannot read ${path}: line ${number} must be JSON: received ${
        text.slice(0, 40)
      }`,
    );
  }
}
