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

/** A line of the file: an object, or that one is gone. */
interface Line {
  readonly revision: number;
  readonly group: string;
  readonly plural: string;
  readonly object?: UntypedObject;
  readonly deleted?: string;
}

/** The last state of one object in a file. */
export interface JournalObject {
  readonly group: string;
  readonly plural: string;
  readonly revision: number;
  readonly object: UntypedObject;
}

/** What a file told. */
export interface JournalContent {
  readonly revision: number;
  readonly objects: readonly JournalObject[];
}

/** A file this many times as long as its objects is written anew. */
const SURPLUS = 4;
/** Shorter files are never written anew while in use. */
const LEAST_SURPLUS_BYTES = 64 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Keeps every change in a file, one JSON line each, before anybody learns of
 * it. A process that is killed has lost nothing that it acknowledged; a line
 * that it could not finish is as if it had not begun.
 */
export class FileJournal implements Journal {
  readonly #path: string;
  readonly #store: Store;
  #file: number;
  #bytes = 0;
  #rewriteAt = LEAST_SURPLUS_BYTES;

  /**
   * Writes the present objects of a store into the file and keeps every change
   * from then on.
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

  /** Replaces the file by one that holds the present objects only. */
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
    this.#rewriteAt = Math.max(size * SURPLUS, LEAST_SURPLUS_BYTES);
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
 * Reads a file; undefined if there is none. A last line that was not finished
 * is left out.
 *
 * @throws {SyntaxError} If another line is no JSON.
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
