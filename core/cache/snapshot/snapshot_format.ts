/**
 * Format of the snapshot of a watch, and of recordings: a log of frames.
 *
 * ```text
 * file:  head, frame …
 * head:  "CORACLE\n", format (u32), length of the identity (u32), identity (JSON),
 *        digest (32 bytes)
 * frame: codec (u8), flags (u8), 0 (u16), length (u32), length before compression
 *        (u32), digest (32 bytes), records, compressed as the codec says
 * record: type (u8), length (u32), bytes
 * ```
 *
 * Numbers are little-endian. Each digest is the SHA-256 of the one before it and
 * of what follows it in the frame, so that frames can neither be changed, left
 * out nor exchanged. Frames form groups; the last one of a group has the flag
 * `COMMIT` and the version of the watch. Groups without it do not count: they were
 * being written when the process ended.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import * as zlib from "node:zlib";
import type { ByteRange } from "../../json/byte_range.ts";
import { MAX_LISTED_BYTES } from "../watch/receive.ts";

/** Number of the format of logs of frames; files of another one are refused. */
const LOG_FORMAT = 1;
/** Number of the format of snapshots. */
export const SNAPSHOT_FORMAT = 4;
/** Flag of a frame that ends a group. */
export const COMMIT = 1;
/** Size from which on a frame is written. */
export const FRAME_BYTES: number = 512 * 1024;
/** Size of the memory into which nearly every frame fits. */
const READ_BYTES: number = 2 * FRAME_BYTES;

const MAGIC = Buffer.from("CORACLE\n");
const MAX_IDENTITY_BYTES = 64 * 1024;
const HEAD_BYTES = MAGIC.length + 8;
const RECORD_HEAD_BYTES = 5;
const DIGEST_BYTES = 32;
const PREFIX_BYTES = 12;
/** Bytes of a frame before its records. */
export const FRAME_HEAD_BYTES: number = PREFIX_BYTES + DIGEST_BYTES;
/** A frame has one object of any size, or less than the limit before its last. */
const MAX_FRAME_BYTES = FRAME_BYTES + MAX_LISTED_BYTES + 4 * 1024 * 1024;
/** Smaller frames are not worth compressing. */
const MIN_COMPRESSED_BYTES = 512;
/**
 * Frames up to this size are compressed in less time than another thread takes to
 * begin with them.
 */
const MAX_SYNC_BYTES = 64 * 1024;

/** Types of records; the first frame has the basis, the others their facts first. */
export const DELETE = 2;
/** Version up to which the group has all changes. */
export const VERSION = 3;
/** Keys that were not idle, by controller, as JSON; see {@linkcode Pending}. */
export const PENDING = 4;
/** Compressed page of objects; see `page_record.ts`. */
export const PAGE = 5;
/** Dictionary of the pages of the file. */
export const BASIS = 6;
/** What the pages of the frame have in common, as JSON. */
export const FACTS = 7;

/**
 * Keys of the objects that waited for a run, by the name of their controller; true
 * if there were too many to name.
 */
export type Pending = Readonly<Record<string, readonly string[] | true>>;

interface Codec {
  compress(bytes: Uint8Array): Promise<Uint8Array>;
  compressSync(bytes: Uint8Array): Uint8Array;
  decompress(bytes: Uint8Array, length: number): Promise<Uint8Array>;
}

const deflate = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(
  zlib.deflateRaw,
);
const inflate = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(
  zlib.inflateRaw,
);
const DEFLATE: Codec = {
  compress: (bytes) => deflate(bytes, { level: 1 }),
  compressSync: (bytes) => zlib.deflateRawSync(bytes, { level: 1 }),
  decompress: (bytes, length) => inflate(bytes, { maxOutputLength: length }),
};

/** Codec with zstd; undefined on runtimes without it. */
const ZSTD: Codec | undefined = typeof zlib.zstdCompress !== "function"
  ? undefined
  : {
    compress: (bytes) =>
      promisify<Uint8Array, zlib.ZstdOptions, Buffer>(zlib.zstdCompress)(
        bytes,
        zstdLevel(),
      ),
    compressSync: (bytes) => zlib.zstdCompressSync(bytes, zstdLevel()),
    decompress: (bytes, length) =>
      promisify<Uint8Array, zlib.ZstdOptions, Buffer>(zlib.zstdDecompress)(
        bytes,
        { maxOutputLength: length },
      ),
  };

function zstdLevel(): zlib.ZstdOptions {
  return { params: { [zlib.constants.ZSTD_c_compressionLevel]: 1 } };
}

/** Codecs by their number in a frame; the first one does not compress. */
const CODECS: readonly (Codec | undefined)[] = [undefined, DEFLATE, ZSTD];
const BEST = ZSTD === undefined ? 1 : 2;

/** Reason for which a snapshot is not used; the value of the metric's label. */
export type RefusalReason =
  | "damaged"
  | "empty"
  | "format"
  | "identity"
  | "unreadable";

/** Refusal of a snapshot, so that the objects are listed. */
export class SnapshotRefusal extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SnapshotRefusal";
    this.reason = reason;
  }
}

function digestOf(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** Head of a file, and its digest, from which the frames go on. */
export function encodeHead(
  identity: string,
  format: number = LOG_FORMAT,
): { readonly bytes: Buffer; readonly digest: Buffer } {
  const text = Buffer.from(identity);
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32LE(format, 0);
  numbers.writeUInt32LE(text.length, 4);
  const digest = digestOf(MAGIC, numbers, text);
  return { bytes: Buffer.concat([MAGIC, numbers, text, digest]), digest };
}

/**
 * Reads so many bytes from a position; fewer at the end of the file. If they fit
 * into the memory, they are read into it.
 */
export type ReadAt = (
  position: number,
  length: number,
  memory?: Buffer,
) => Promise<Buffer>;

/**
 * Checks the head of a file.
 *
 * @param accepts Whether an identity is the wanted one.
 * @returns Position of the first frame, and the digest before it.
 * @throws {SnapshotRefusal} If it is not the head of a snapshot of this watch.
 */
export async function readHead(
  readAt: ReadAt,
  accepts: (identity: string) => boolean,
  wanted: number = LOG_FORMAT,
): Promise<{ readonly position: number; readonly digest: Buffer }> {
  const head = await readAt(0, HEAD_BYTES);
  if (
    head.length < HEAD_BYTES || !head.subarray(0, MAGIC.length).equals(MAGIC)
  ) throw new SnapshotRefusal("damaged", "its head is not that of a snapshot");
  const format = head.readUInt32LE(MAGIC.length);
  if (format !== wanted) {
    throw new SnapshotRefusal(
      "format",
      `its format must be ${wanted}: received ${format}`,
    );
  }
  const length = head.readUInt32LE(MAGIC.length + 4);
  const isBounded = length <= MAX_IDENTITY_BYTES;
  const rest = isBounded
    ? await readAt(HEAD_BYTES, length + DIGEST_BYTES)
    : Buffer.alloc(0);
  const text = rest.subarray(0, length);
  const digest = rest.subarray(length);
  if (!isBounded || !digestOf(head, text).equals(digest)) {
    throw new SnapshotRefusal("damaged", "its head is damaged");
  }
  if (!accepts(text.toString())) {
    throw new SnapshotRefusal("identity", "it is of another watch or cluster");
  }
  return { position: HEAD_BYTES + rest.length, digest };
}

/** Memory for frames of at most so many bytes, unless they are rare. */
export function readMemory(length: number): Buffer {
  return Buffer.allocUnsafeSlow(Math.min(length, READ_BYTES));
}

/** Place of a frame in a file. */
export interface FramePlace {
  /** Position of its records. */
  readonly position: number;
  readonly length: number;
  readonly rawLength: number;
  readonly codec: number;
}

/** Frames of a file up to its last whole group. */
export interface WholeFrames {
  readonly frames: readonly FramePlace[];
  /** Position after the last frame of them. */
  readonly end: number;
  readonly digest: Buffer;
  /** Whether something follows that is no whole group. */
  readonly isTorn: boolean;
}

/** Finds the whole groups of frames, by their digests. */
export async function findFrames(
  readAt: ReadAt,
  start: { readonly position: number; readonly digest: Buffer },
): Promise<WholeFrames> {
  const frames: FramePlace[] = [];
  let { position, digest } = start;
  let whole = { count: 0, end: position, digest };
  let memory: Buffer = Buffer.alloc(0);
  for (;;) {
    const head = await readAt(position, FRAME_HEAD_BYTES);
    if (head.length < FRAME_HEAD_BYTES) break;
    const codec = head.readUInt8(0);
    const flags = head.readUInt8(1);
    const length = head.readUInt32LE(4);
    const rawLength = head.readUInt32LE(8);
    if (length > MAX_FRAME_BYTES || rawLength > MAX_FRAME_BYTES) break;
    const prefix = head.subarray(0, PREFIX_BYTES);
    const stated = head.subarray(PREFIX_BYTES);
    if (memory.length < Math.min(length, READ_BYTES)) {
      memory = readMemory(2 * length);
    }
    const payload = await readAt(position + FRAME_HEAD_BYTES, length, memory);
    if (
      payload.length < length ||
      !digestOf(digest, prefix, payload).equals(stated)
    ) break;
    digest = Buffer.from(stated);
    frames.push({
      position: position + FRAME_HEAD_BYTES,
      length,
      rawLength,
      codec,
    });
    position += FRAME_HEAD_BYTES + length;
    if ((flags & COMMIT) !== 0) {
      whole = { count: frames.length, end: position, digest };
    }
  }
  const isTorn = (await readAt(whole.end, 1)).length > 0;
  return { ...whole, frames: frames.slice(0, whole.count), isTorn };
}

/**
 * Records of a frame, in the memory if they fit into it.
 *
 * @throws {SnapshotRefusal} If this runtime cannot decompress them.
 */
export async function readRecords(
  readAt: ReadAt,
  { position, length, rawLength, codec }: FramePlace,
  memory?: Buffer,
): Promise<Uint8Array> {
  const bytes = await readAt(position, length, memory);
  if (codec === 0) return bytes;
  const decompress = CODECS[codec]?.decompress;
  if (decompress === undefined) {
    throw new SnapshotRefusal(
      "format",
      "this runtime cannot decompress it: another one has written it",
    );
  }
  const raw = await decompress(bytes, rawLength);
  if (raw.length === rawLength) return raw;
  throw new SnapshotRefusal("damaged", "a frame has another length");
}

/** Record within the bytes of a frame. */
export interface FrameRecord extends ByteRange {
  readonly type: number;
}

/**
 * Places of the records of a frame.
 *
 * @throws {SnapshotRefusal} If they do not fill it.
 */
export function recordsOf(raw: Uint8Array): FrameRecord[] {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const records: FrameRecord[] = [];
  for (let at = 0; at < bytes.length;) {
    const start = at + RECORD_HEAD_BYTES;
    if (start > bytes.length) break;
    const end = start + bytes.readUInt32LE(at + 1);
    if (end > bytes.length) break;
    records.push({ type: bytes[at] as number, bytes, start, end });
    at = end;
  }
  const filled = records.at(-1)?.end ?? 0;
  if (filled === bytes.length) return records;
  throw new SnapshotRefusal("damaged", "the records of a frame do not fill it");
}

/** Part of a record. */
export type FramePart = Uint8Array | number | string;

/** Number of bytes that the parts of a record have at most. */
export function mostBytes(parts: readonly FramePart[]): number {
  let most = 0;
  for (const part of parts) {
    most += typeof part === "string"
      ? 3 * part.length
      : typeof part === "number"
      ? 4
      : part.length;
  }
  return most;
}

/** Composer of the records of one frame. */
export class FrameComposer {
  /** Whether its records are compressed already, so that the frame is not. */
  isPacked = false;
  #bytes: Buffer = Buffer.alloc(64 * 1024);
  #length = 0;

  /** Bytes of the records so far. */
  get length(): number {
    return this.#length;
  }

  /** Whether the frame should be written. */
  get isFull(): boolean {
    return this.#length >= FRAME_BYTES;
  }

  add(type: number, { bytes, start, end }: ByteRange): void {
    const length = end - start;
    let at = this.#room(RECORD_HEAD_BYTES + length);
    at = this.#bytes.writeUInt8(type, at);
    at = this.#bytes.writeUInt32LE(length, at);
    this.#bytes.set(bytes.subarray(start, end), at);
  }

  /**
   * Adds a record of several parts: bytes, texts, which are encoded in place, and
   * numbers of 32 bits.
   *
   * @returns Position of the record.
   */
  addParts(type: number, parts: readonly FramePart[]): number {
    const start = this.#room(RECORD_HEAD_BYTES + mostBytes(parts));
    let at = start + RECORD_HEAD_BYTES;
    for (const part of parts) {
      if (typeof part === "string") at += this.#bytes.write(part, at);
      else if (typeof part === "number") {
        at = this.#bytes.writeUInt32LE(part, at);
      } else {
        this.#bytes.set(part, at);
        at += part.length;
      }
    }
    this.#bytes.writeUInt8(type, start);
    this.#bytes.writeUInt32LE(at - start - RECORD_HEAD_BYTES, start + 1);
    this.#length = at;
    return start;
  }

  /** Content of the record at a position, until something is added. */
  recordAt(position: number): ByteRange {
    const start = position + RECORD_HEAD_BYTES;
    const end = start + this.#bytes.readUInt32LE(position + 1);
    return { bytes: this.#bytes, start, end };
  }

  /** Removes the records from a position on. */
  cut(position: number): void {
    this.#length = position;
  }

  addText(type: number, text: string): void {
    const bytes = Buffer.from(text);
    this.add(type, { bytes, start: 0, end: bytes.length });
  }

  /**
   * Ends the frame: compresses it, a large one beside the event loop, and begins the
   * next one when it is encoded.
   */
  async encode(
    digest: Buffer,
    flags: number,
  ): Promise<{ readonly bytes: Buffer; readonly digest: Buffer }> {
    const raw = this.#bytes.subarray(0, this.#length);
    const packs = raw.length >= MIN_COMPRESSED_BYTES && !this.isPacked;
    const codec = CODECS[BEST] as Codec;
    const payload = !packs
      ? raw
      : raw.length <= MAX_SYNC_BYTES
      ? codec.compressSync(raw)
      : await codec.compress(raw);
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt8(packs ? BEST : 0, 0);
    prefix.writeUInt8(flags, 1);
    prefix.writeUInt32LE(payload.length, 4);
    prefix.writeUInt32LE(raw.length, 8);
    const next = digestOf(digest, prefix, payload);
    const bytes = Buffer.concat([prefix, next, payload]);
    this.#length = 0;
    return { bytes, digest: next };
  }

  #room(length: number): number {
    const start = this.#length;
    this.#length += length;
    if (this.#length > this.#bytes.length) {
      const grown = Buffer.alloc(
        Math.max(2 * this.#bytes.length, this.#length),
      );
      this.#bytes.copy(grown, 0, 0, start);
      this.#bytes = grown;
    }
    return start;
  }
}
