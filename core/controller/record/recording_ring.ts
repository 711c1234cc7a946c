import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { Buffer } from "node:buffer";
import {
  COMMIT,
  encodeHead,
  FRAME_BYTES,
  FRAME_HEAD_BYTES,
  FrameComposer,
  type FramePart,
  mostBytes,
  readHead,
} from "../../cache/snapshot/snapshot_format.ts";
import type { ByteRange } from "../../json/byte_range.ts";
import { type Clock, loadModule, type Timer } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { Counter, Metrics } from "../../metrics.ts";
import {
  GAP,
  PART_STEP,
  type PartIdentity,
  RECORDING,
  RUN,
} from "./recording_format.ts";
import type { RecordSettings } from "./record_options.ts";

/** Number of parts of a file. */
const PARTS = 8;
/** Time after which what was recorded is written, in milliseconds. */
const FLUSH_MS = 1_000;
/** Time and size of a part for a sink. */
const SINK_MS = 60_000;
const SINK_BYTES = 4 * 1024 * 1024;
/** Bytes that may wait to be written; runs beyond it are left out. */
const MAX_WAITING = 8 * 1024 * 1024;
/** Bytes of the head of a part and of a frame, at most. */
const MAX_HEAD_BYTES = 1024;
/** Bytes of records that a sink gets at once, at most. */
const MAX_SINK_FRAME = 2 * MAX_WAITING;
/** Pause after a failure, in milliseconds. */
const FAILURE_PAUSE_MS = 60_000;
const FILE_MODE = 0o600;

export interface RecordingRingDeps {
  readonly settings: RecordSettings;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Called when a part begins, which is to be understood without others. */
  readonly onPart: () => void;
}

/**
 * Ring of what was recorded, in a file of bounded size or for a sink. It is written
 * beside the runs, and a failure never reaches them: it is logged once and counted.
 */
export class RecordingRing {
  readonly #deps: RecordingRingDeps;
  readonly #writer: string = randomUUID();
  readonly #failed: Counter;
  readonly #dropped: Counter;
  #composer: FrameComposer = new FrameComposer();
  #spare: FrameComposer | undefined;
  /** Bytes that are being written. */
  #writing = 0;
  #gap = 0;
  #file: FileHandle | undefined;
  #part = -1;
  #partSince = 0;
  #digest: Buffer = Buffer.alloc(0);
  /** Position of the next frame, and the end of the part. */
  #position = 0;
  #end = 0;
  #isBegun = false;
  #pausedUntil = -Infinity;
  #hasFailed = false;
  #timer: Timer | undefined;
  #turn: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(deps: RecordingRingDeps) {
    const { metrics } = this.#deps = deps;
    this.#failed = metrics.counter({
      name: "coracle_record_errors_total",
      help: "Failed writes of the recording of runs.",
    });
    this.#dropped = metrics.counter({
      name: "coracle_record_dropped_runs_total",
      help:
        "Runs that are missing in the recording, which was not written fast enough.",
    });
  }

  /**
   * Adds a record; it is written soon, unless a part has no room for it.
   *
   * @param withoutSecrets Function that returns what is added in its place;
   * undefined if no part has anything secret.
   */
  add(
    type: number,
    parts: readonly FramePart[],
    withoutSecrets?: (
      record: ByteRange,
    ) => readonly FramePart[] | undefined,
  ): void {
    if (this.#isClosed) return;
    const { clock, settings: { sink } } = this.#deps;
    if (this.#composer.length + mostBytes(parts) > this.#maxFrame) {
      if (type === RUN) this.#miss();
      // Later runs may refer to what is left out here.
      this.#isBegun = false;
      void this.flush();
      return;
    }
    const position = this.#composer.addParts(type, parts);
    const others = withoutSecrets?.(this.#composer.recordAt(position));
    if (others !== undefined) {
      this.#composer.cut(position);
      this.add(type, others);
      return;
    }
    const limit = sink === undefined ? FRAME_BYTES : SINK_BYTES;
    if (this.#composer.length >= limit) void this.flush();
    else {
      this.#timer ??= clock.setTimer(() => {
        this.#timer = undefined;
        void this.flush();
      }, sink === undefined ? FLUSH_MS : SINK_MS);
    }
  }

  /** Whether a run may be added now; otherwise it is counted as missing. */
  hasRoom(): boolean {
    const waiting = this.#composer.length + this.#writing;
    const mayWrite = this.#deps.clock.now() >= this.#pausedUntil;
    if (mayWrite && !this.#isClosed && waiting < MAX_WAITING) {
      if (this.#gap > 0) {
        const runs = this.#gap;
        this.#gap = 0;
        this.add(GAP, [JSON.stringify({ runs })]);
      }
      if (!this.#isBegun) {
        this.#isBegun = true;
        this.#deps.onPart();
      }
      return true;
    }
    this.#miss();
    return false;
  }

  #miss(): void {
    this.#gap++;
    this.#dropped.add(1);
  }

  /** Writes what is waiting. */
  flush(): Promise<void> {
    // A virtual clock waits for it, as for a module.
    const done = loadModule(this.#turn.then(() => this.#flush()));
    this.#turn = done.catch(() => {});
    return this.#turn;
  }

  /** Writes the rest, and ends the recording. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.flush();
    this.#isClosed = true;
    await this.#file?.close().catch(() => {});
    this.#file = undefined;
  }

  async #flush(): Promise<void> {
    const composer = this.#composer;
    if (composer.length === 0) return;
    this.#composer = this.#spare ?? new FrameComposer();
    this.#spare = undefined;
    this.#writing = composer.length;
    try {
      await (this.#deps.settings.sink === undefined
        ? this.#writeFile(composer)
        : this.#callSink(composer, this.#deps.settings.sink));
      if (this.#hasFailed) this.#deps.log.info("Runs are recorded again");
      this.#hasFailed = false;
      this.#spare = composer;
    } catch (error) {
      await this.#fail(error);
    } finally {
      this.#writing = 0;
    }
  }

  /** A part of its own for each call. */
  async #callSink(
    composer: FrameComposer,
    sink: NonNullable<RecordSettings["sink"]>,
  ): Promise<void> {
    this.#isBegun = false;
    const head = this.#head();
    const frame = await composer.encode(head.digest, COMMIT);
    await sink(Buffer.concat([head.bytes, frame.bytes]));
  }

  async #writeFile(composer: FrameComposer): Promise<void> {
    const { clock, settings } = this.#deps;
    const file = this.#file ??= await this.#open(settings.path as string);
    const isOld = clock.now() - this.#partSince > settings.last / (PARTS - 1);
    const room = composer.length + FRAME_HEAD_BYTES;
    if (this.#end === 0 || isOld || this.#position + room > this.#end) {
      await this.#beginPart(file);
    }
    const { bytes, digest } = await composer.encode(this.#digest, COMMIT);
    await writeAt(file, bytes, this.#position);
    this.#position += bytes.length;
    this.#digest = digest;
  }

  #head(): ReturnType<typeof encodeHead> {
    const identity: PartIdentity = {
      recording: RECORDING,
      part: ++this.#part,
      writer: this.#writer,
      last: this.#deps.settings.last,
    };
    return encodeHead(JSON.stringify(identity));
  }

  async #beginPart(file: FileHandle): Promise<void> {
    const length = this.#partBytes;
    // The process before or after this one may have begun parts, too.
    for (;;) {
      const place = (this.#part + 1) % PARTS * length;
      const { part = -1 } = await partAt(file, place) ?? {};
      if (part <= this.#part) break;
      this.#part = part;
    }
    const { bytes, digest } = this.#head();
    const start = this.#part % PARTS * length;
    await writeAt(file, bytes, start);
    this.#position = start + bytes.length;
    this.#end = start + length;
    this.#digest = digest;
    this.#partSince = this.#deps.clock.now();
    // What is added from now on needs no part before it.
    this.#isBegun = false;
  }

  /** Bytes of records that have room in a part, or are given to a sink at once. */
  get #maxFrame(): number {
    return this.#deps.settings.sink === undefined
      ? this.#partBytes - MAX_HEAD_BYTES
      : MAX_SINK_FRAME;
  }

  get #partBytes(): number {
    const length = this.#deps.settings.size / PARTS;
    return Math.floor(length / PART_STEP) * PART_STEP;
  }

  /** Opens the file, and goes on after the parts that it has. */
  async #open(path: string): Promise<FileHandle> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, "r+", FILE_MODE).catch((error: unknown) => {
      if ((error as { code?: string }).code !== "ENOENT") throw error;
      return open(path, "wx+", FILE_MODE);
    });
    try {
      const { size, mode } = await file.stat();
      // Others could read what is added to a file that was theirs, or copied.
      if ((mode & 0o077) !== 0) await file.chmod(FILE_MODE);
      let last = -1;
      let isOurs = size === 0;
      for (let at = 0; at < size; at += PART_STEP) {
        const found = await partAt(file, at);
        if (found === undefined) continue;
        isOurs = true;
        // Another size has placed its parts elsewhere.
        const isPlaced = at === found.part % PARTS * this.#partBytes;
        if (isPlaced) last = Math.max(last, found.part);
      }
      if (!isOurs) {
        throw new Error(
          "Cannot use the file: it is one of something else, which is kept",
        );
      }
      if (last < 0 || size > PARTS * this.#partBytes) {
        await file.truncate(0);
        last = -1;
      }
      this.#part = last;
      this.#end = 0;
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #fail(error: unknown): Promise<void> {
    const { clock, log, settings } = this.#deps;
    this.#failed.add(1);
    this.#pausedUntil = clock.now() + FAILURE_PAUSE_MS;
    this.#isBegun = false;
    this.#end = 0;
    this.#composer = new FrameComposer();
    await this.#file?.close().catch(() => {});
    this.#file = undefined;
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    log.warn("Cannot record runs, which is tried again later", {
      ...settings.path !== undefined && { path: settings.path },
      error,
    });
  }
}

async function writeAt(
  file: FileHandle,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await file.write(
      bytes,
      written,
      bytes.length - written,
      position + written,
    );
    written += bytesWritten;
  }
}

/** Identity of the part at a position; undefined if none begins there. */
async function partAt(
  file: FileHandle,
  position: number,
): Promise<PartIdentity | undefined> {
  let identity = "";
  try {
    await readHead(async (at, length) => {
      const { buffer, bytesRead } = await file.read(
        Buffer.alloc(length),
        0,
        length,
        position + at,
      );
      return buffer.subarray(0, bytesRead);
    }, (text) => {
      identity = text;
      return true;
    });
    const part = JSON.parse(identity) as Partial<PartIdentity>;
    return Number.isSafeInteger(part.part) && part.recording !== undefined
      ? part as PartIdentity
      : undefined;
  } catch {
    return undefined;
  }
}
