import { Buffer } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import {
  decodeEntry,
  DISCOVERY,
  findFrames,
  GAP,
  NO_BODY,
  OBJECT,
  type PartIdentity,
  readHead,
  readRecords,
  type RecordedStep,
  RECORDING,
  recordsOf,
  RUN,
  type RunRecord,
  SnapshotRefusal,
  unpackRun,
} from "@coracle/operator/internal";

/** Maximum size of a recording, in bytes. */
const MAX_BYTES = 1024 * 1024 * 1024;
const MAGIC = Buffer.from("CORACLE\n");

/** Body of a request or answer by the step that it belongs to. */
export type Bodies = ReadonlyMap<RecordedStep, Buffer>;

/** Run of a recording. */
export interface KeptRun extends RunRecord {
  readonly bodies: Bodies;
  /** Process that has written it. */
  readonly writer: string;
}

/** Runs of one process of an operator. */
export interface RecordedProcess {
  readonly writer: string;
  /** Runs in the order of their starts. */
  readonly runs: readonly KeptRun[];
  /** Answers of the discovery, by path. */
  readonly discovery: ReadonlyMap<string, Buffer>;
  /** JSON of an object that was read; undefined if it is not in the recording. */
  object(number: number): Buffer | undefined;
}

/** What a recording has. */
export interface Recording {
  readonly processes: readonly RecordedProcess[];
  /** Number of runs that it lacks: they were not written fast enough. */
  readonly missing: number;
  /** Number of runs that it has in part, as their beginning was overwritten. */
  readonly incomplete: number;
  /** Number of parts that are damaged. */
  readonly damaged: number;
}

interface Process {
  readonly runs: KeptRun[];
  readonly discovery: Map<string, Buffer>;
  readonly objects: Map<number, Buffer>;
}

/**
 * Reads a recording, or parts of one that follow one another.
 *
 * @throws {Error} If the file cannot be read.
 * @throws {SyntaxError} If it is no recording, a damaged or a newer one.
 */
export async function readRecording(path: string): Promise<Recording> {
  const found = await stat(path).catch(() => undefined);
  if (!found?.isFile()) {
    throw new Error(
      `Cannot read ${path}: it must be a recording of runs: received ${
        found === undefined ? "no such file" : "something else"
      }`,
    );
  }
  if (found.size > MAX_BYTES) {
    throw new RangeError(
      `Cannot read ${path}: it must have at most ${MAX_BYTES} bytes: received ${found.size}`,
    );
  }
  const bytes = await readFile(path);
  const processes = new Map<string, Process>();
  let missing = 0;
  let damaged = 0;
  let last = 0;
  let refusal: Error | undefined;
  for (let at = bytes.indexOf(MAGIC); at >= 0;) {
    let end = at + MAGIC.length;
    try {
      const part = await readPart(path, bytes.subarray(at));
      const process = processes.get(part.identity.writer) ??
        { runs: [], discovery: new Map(), objects: new Map() };
      processes.set(part.identity.writer, process);
      for (const frame of part.frames) {
        missing += takeFrame(frame, process, part.identity.writer);
      }
      last = Math.max(last, part.identity.last);
      end = at + part.end;
    } catch (error) {
      if (error instanceof ForeignPart) throw error.cause;
      damaged++;
      refusal ??= error as Error;
    }
    at = bytes.indexOf(MAGIC, end);
  }
  for (const { runs } of processes.values()) {
    runs.sort((a, b) => a.n - b.n);
  }
  const newest = [...processes.values()].reduce(
    (time, { runs }) => Math.max(time, endOf(latestOf(runs))),
    -Infinity,
  );
  let incomplete = 0;
  const kept = [...processes].map(([writer, { runs, discovery, objects }]) => {
    const recent = recentOf(runs, newest, last);
    const whole = recent.filter((run) => isWhole(run, objects));
    incomplete += recent.length - whole.length;
    return {
      writer,
      runs: whole,
      discovery,
      object: (number: number) => objects.get(number),
    };
  }).filter(({ runs }) => runs.length > 0)
    .sort((a, b) => a.runs[0]!.at - b.runs[0]!.at);
  if (kept.length > 0) return { processes: kept, missing, incomplete, damaged };
  throw new SyntaxError(
    `Cannot read ${path}: ${
      refusal !== undefined
        ? "it is damaged, or was cut: no part of it is whole"
        : processes.size > 0
        ? "no run in it has ended, or can be repeated"
        : "it is no recording of runs"
    }`,
    { cause: refusal },
  );
}

/** Error of a part that this version cannot understand. */
class ForeignPart extends Error {
  override readonly cause: SyntaxError;

  constructor(cause: SyntaxError) {
    super(cause.message);
    this.cause = cause;
  }
}

async function readPart(path: string, bytes: Buffer): Promise<{
  readonly identity: PartIdentity;
  readonly frames: readonly Uint8Array[];
  readonly end: number;
}> {
  const readAt = (position: number, length: number) =>
    Promise.resolve(bytes.subarray(position, position + length));
  let text = "";
  const head = await readHead(readAt, (identity) => {
    text = identity;
    return true;
  }).catch((error: unknown) => {
    const isNewer = error instanceof SnapshotRefusal &&
      error.reason === "format";
    throw isNewer ? newer(path, error.message) : error;
  });
  const identity = identityOf(text);
  if (identity === undefined) {
    throw new ForeignPart(
      new SyntaxError(
        `Cannot read ${path}: it is the snapshot of a cache, and no recording of runs`,
      ),
    );
  }
  if (identity.recording > RECORDING) {
    throw newer(
      path,
      `its format must be ${RECORDING}: received ${identity.recording}`,
    );
  }
  const { frames, end } = await findFrames(readAt, head);
  const raw: Uint8Array[] = [];
  for (const frame of frames) {
    raw.push(
      await readRecords(readAt, frame).catch((error: unknown) => {
        const isOther = error instanceof SnapshotRefusal &&
          error.reason === "format";
        throw isOther
          ? new ForeignPart(
            new SyntaxError(`Cannot read ${path}: ${error.message}`),
          )
          : error;
      }),
    );
  }
  if (raw.length === 0) {
    throw new Error("Cannot read a part: no frame is whole");
  }
  return { identity, frames: raw, end };
}

function newer(path: string, why: string): ForeignPart {
  return new ForeignPart(
    new SyntaxError(
      `Cannot read ${path}: another version of Coracle has written it: ${why}`,
    ),
  );
}

function identityOf(text: string): PartIdentity | undefined {
  try {
    const value = JSON.parse(text) as Partial<PartIdentity>;
    return typeof value.recording === "number" &&
        typeof value.writer === "string" && typeof value.last === "number"
      ? value as PartIdentity
      : undefined;
  } catch {
    return undefined;
  }
}

/** Takes the records of a frame; returns the number of runs that are missing. */
function takeFrame(
  raw: Uint8Array,
  { runs, discovery, objects }: Process,
  writer: string,
): number {
  let missing = 0;
  for (const { type, bytes, start, end } of recordsOf(raw)) {
    const record = Buffer.from(
      bytes.buffer,
      bytes.byteOffset + start,
      end - start,
    );
    if (type === OBJECT) {
      objects.set(record.readUInt32LE(0), record.subarray(4));
    } else if (type === GAP) missing += JSON.parse(record.toString()).runs;
    else if (type === RUN || type === DISCOVERY) {
      const decoded = decodeEntry(record);
      if (decoded === undefined) continue;
      if (type === RUN) {
        const run = unpackRun(decoded.entry);
        const bodies = bodiesOf(run.steps, decoded.bodies);
        runs.push({ ...run, bodies, writer });
      } else {
        const { steps } = decoded.entry as Pick<RunRecord, "steps">;
        takeDiscovery(steps, bodiesOf(steps, decoded.bodies), discovery);
      }
    }
  }
  return missing;
}

function bodiesOf(
  steps: readonly RecordedStep[],
  bytes: Buffer,
): ReadonlyMap<RecordedStep, Buffer> {
  const bodies = new Map<RecordedStep, Buffer>();
  let at = 0;
  for (const step of steps) {
    const { body = NO_BODY } = step.request ?? step.answer ?? {};
    if (body < 0) continue;
    bodies.set(step, bytes.subarray(at, at += body));
  }
  return bodies;
}

function takeDiscovery(
  steps: readonly RecordedStep[],
  bodies: Bodies,
  discovery: Map<string, Buffer>,
): void {
  const paths = new Map(steps.map(({ n, request }) => [n, request?.path]));
  for (const step of steps) {
    const path = step.to === undefined ? undefined : paths.get(step.to);
    const body = bodies.get(step);
    if (path === undefined || body === undefined) continue;
    if (step.answer?.status === 200) discovery.set(path, body);
  }
}

/** Run that ended last. */
function latestOf(runs: readonly KeptRun[]): KeptRun | undefined {
  return runs.reduce<KeptRun | undefined>(
    (latest, run) =>
      latest === undefined || run.end.n > latest.end.n ? run : latest,
    undefined,
  );
}

/** Time of the end of a run. */
function endOf(run: KeptRun | undefined): number {
  return run === undefined ? -Infinity : run.at + run.end.t;
}

/**
 * Runs that ended within the time that a recording goes back. Their numbers order
 * them, as a clock that is set back gives later runs earlier times.
 */
function recentOf(
  runs: readonly KeptRun[],
  newest: number,
  last: number,
): readonly KeptRun[] {
  const recent = new Set<KeptRun>();
  let age = 0;
  let later = newest;
  for (const run of runs.toSorted((a, b) => b.end.n - a.end.n)) {
    const end = endOf(run);
    age += Math.max(0, later - end);
    later = end;
    if (age <= last) recent.add(run);
  }
  return runs.filter((run) => recent.has(run));
}

/** Whether all objects that a run has read are in the recording. */
function isWhole(
  { primary, reads }: RunRecord,
  objects: ReadonlyMap<number, Buffer>,
): boolean {
  const numbers = reads.flatMap(([, answer]) =>
    answer !== null && typeof answer === "object" && !Array.isArray(answer)
      ? []
      : answer as number | null | readonly (number | null)[]
  );
  return [primary, ...numbers].every((number) =>
    number === undefined || number === null || objects.has(number)
  );
}
