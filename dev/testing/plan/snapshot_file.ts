/**
 * Snapshots in files: compressed lines of JSON, written and read as streams.
 *
 * @module
 */
import { createReadStream, createWriteStream } from "node:fs";
import { rename, rm, stat } from "node:fs/promises";
import { once } from "node:events";
import { finished } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject } from "@coracle/operator/internal";
import { readJson, writeJson } from "../../apiserver/exact_json.ts";
import {
  Snapshot,
  type SnapshotInfo,
  type SnapshotResource,
  type SnapshotSink,
} from "./snapshot.ts";

const FORMAT = 1;
/** Objects that are staged together when a file is read. */
const BATCH = 500;
/** Maximum size of a line, and of an object, in characters. */
const MAX_LINE = 64 * 1024 * 1024;

/** Writer of a snapshot file, which replaces the file when it is complete. */
export class SnapshotFile implements SnapshotSink {
  readonly #path: string;
  readonly #draft: string;
  readonly #limit: number;
  readonly #gzip = createGzip();
  readonly #file: ReturnType<typeof createWriteStream>;
  readonly #written: Promise<void>;
  #resource = "";

  /**
   * Opens a file that only its owner may read.
   *
   * @param limit Maximum size of the file in bytes.
   */
  constructor(path: string, limit: number) {
    this.#path = path;
    this.#limit = limit;
    this.#draft = `${path}.${crypto.randomUUID().slice(0, 8)}`;
    this.#file = createWriteStream(this.#draft, { mode: 0o600, flags: "wx" });
    this.#written = finished(this.#file);
    this.#written.catch(() => {}); // Reported by what writes next.
    this.#gzip.pipe(this.#file);
    this.#line({ coracle: "snapshot", format: FORMAT });
  }

  /** Size of the file so far in bytes. */
  get bytes(): number {
    return this.#file.bytesWritten;
  }

  async add(
    { group, version, plural, kind, scope }: Omit<SnapshotResource, "objects">,
    items: readonly UntypedObject[],
  ): Promise<void> {
    const resource = writeJson({ group, version, plural, kind, scope });
    if (resource !== this.#resource) {
      this.#line({ resource: { group, plural } });
    }
    this.#resource = resource;
    let isReady = true;
    for (const item of items) {
      isReady = this.#gzip.write(`${writeJson(item)}\n`);
    }
    if (this.#file.errored) throw notWritten(this.#path, this.#file.errored);
    this.#checkSize();
    if (!isReady) {
      await Promise.race([once(this.#gzip, "drain"), this.#written]);
    }
  }

  #checkSize(): void {
    if (this.bytes <= this.#limit) return;
    throw new RangeError(
      `Cannot write ${this.#path}: it would be larger than the limit of ${this.#limit} bytes: read fewer kinds or namespaces, or raise --limit`,
    );
  }

  #line(line: object): boolean {
    return this.#gzip.write(`${writeJson(line)}\n`);
  }

  /** Completes the file. */
  async end(info: SnapshotInfo): Promise<void> {
    this.#line({ end: info });
    this.#gzip.end();
    try {
      await this.#written;
    } catch (error) {
      throw notWritten(this.#path, error);
    }
    this.#checkSize();
    try {
      await rename(this.#draft, this.#path);
    } catch (error) {
      throw notWritten(this.#path, error);
    }
  }

  /** Removes what was written. */
  async abandon(): Promise<void> {
    this.#gzip.destroy();
    this.#file.destroy();
    await this.#written.catch(() => {});
    await rm(this.#draft, { force: true });
  }
}

function notWritten(path: string, error: unknown): Error {
  return new Error(
    `Cannot write ${path}: its folder must exist and be writable: ${
      (error as Error).message
    }`,
    { cause: error },
  );
}

/**
 * Reads the snapshot of a file.
 *
 * @throws {Error} If the file cannot be read.
 * @throws {SyntaxError} If it is not a complete snapshot.
 */
export async function readSnapshot(path: string): Promise<Snapshot> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) {
    throw new Error(
      `Cannot read ${path}: it must be a file of coracle snapshot: received ${
        found === undefined ? "no such file" : "something else"
      }`,
    );
  }
  const snapshot = new Snapshot();
  const gunzip = createGunzip();
  const file = createReadStream(path);
  file.on("error", (error) => gunzip.destroy(error));
  file.pipe(gunzip);
  let failure: unknown;
  let number = 0;
  let resource: Pick<SnapshotResource, "group" | "plural"> | undefined;
  let items: UntypedObject[] = [];
  let info: SnapshotInfo | undefined;
  const stage = () => {
    if (resource !== undefined) snapshot.add(resource, items);
    items = [];
  };
  const take = (text: string) => {
    number++;
    const line = lineOf(text);
    if (line === undefined || info !== undefined) throw malformed(path, number);
    if (number === 1) {
      if (line["coracle"] === "snapshot" && line["format"] === FORMAT) return;
      throw malformed(path, number);
    }
    if (isResource(line["resource"])) {
      stage();
      resource = line["resource"];
    } else if (isInfo(line["end"])) {
      stage();
      info = line["end"];
    } else if (resource !== undefined && isObject(line)) {
      items.push(line);
      if (items.length >= BATCH) stage();
    } else throw malformed(path, number);
  };
  try {
    for await (const text of linesOf(gunzip)) take(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw error;
    failure = error;
  } finally {
    file.destroy();
  }
  if (info !== undefined && failure === undefined) return snapshot.end(info);
  throw new SyntaxError(
    number === 0
      ? `Cannot read ${path}: it must be a file of coracle snapshot`
      : `Cannot read ${path}: it was cut after line ${number}`,
    { cause: failure },
  );
}

/** Lines of a stream; one that is too long is given as far as it was read. */
async function* linesOf(
  stream: AsyncIterable<Uint8Array>,
): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const text = decoder.decode(chunk, { stream: true });
    if (text.includes("\n")) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    } else rest += text;
    if (rest.length > MAX_LINE) yield rest;
  }
  if (rest !== "") yield rest;
}

function lineOf(text: string): Readonly<Record<string, unknown>> | undefined {
  if (text.length > MAX_LINE) return undefined;
  try {
    const line = readJson(text);
    return isJsonObject(line) ? line : undefined;
  } catch {
    return undefined;
  }
}

function malformed(path: string, number: number): SyntaxError {
  return new SyntaxError(
    `Cannot read ${path}: line ${number} is not that of a snapshot of this version of coracle`,
  );
}

function isResource(
  value: unknown,
): value is Pick<SnapshotResource, "group" | "plural"> {
  return isJsonObject(value) && typeof value["group"] === "string" &&
    typeof value["plural"] === "string";
}

function isInfo(value: unknown): value is SnapshotInfo {
  return isJsonObject(value) && typeof value["at"] === "number" &&
    typeof value["server"] === "string" && Array.isArray(value["unread"]) &&
    Array.isArray(value["resources"]) && value["resources"].every(isResource);
}

function isObject(value: unknown): value is UntypedObject {
  return isJsonObject(value) && isJsonObject(value["metadata"]) &&
    typeof value["metadata"]["name"] === "string";
}
