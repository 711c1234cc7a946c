/**
 * Format of recordings: parts, each with a head and frames as a snapshot of
 * a watch has. In a file, parts begin at multiples of 64 KiB; those of a sink follow
 * one another.
 *
 * A frame has objects, by number and as their JSON, and runs: an entry as JSON, and
 * after it the bodies of its requests and answers, as they were received.
 *
 * @module
 */
import type { Buffer } from "node:buffer";
import { shortText, textWithCause } from "../../error_text.ts";
import type { RunCause } from "../cause.ts";

/** Number of the format; a reader refuses newer ones. */
export const RECORDING = 1;
/** Positions in a file at which a part may begin. */
export const PART_STEP: number = 64 * 1024;

/** Types of records. */
export const OBJECT = 16;
export const RUN = 17;
export const DISCOVERY = 18;
export const GAP = 19;

/** Identity of a part, in its head. */
export interface PartIdentity {
  /** Number of the format. */
  readonly recording: number;
  /** Number of the part. */
  readonly part: number;
  /** Process that has written it. */
  readonly writer: string;
  /** Time that the recording goes back at most, in milliseconds. */
  readonly last: number;
}

/** Reference to what was read: the number of an object, null for none, or a list. */
export type Reference = number | null | readonly (number | null)[];

/** Error as plain data. */
export interface RecordedError {
  readonly message: string;
  readonly name?: string | undefined;
  /** Code of the runtime, such as `ECONNREFUSED`. */
  readonly code?: string | undefined;
  /** Response of the API server that it is of. */
  readonly api?: {
    readonly status: number;
    readonly reason: string;
    readonly details: object;
    readonly retryAfter?: number | undefined;
  } | undefined;
}

/** Read of a run: what it asked for, and what it got. */
export type RecordedRead = readonly [
  question: string,
  answer:
    | Reference
    | { readonly value: unknown }
    | { readonly error: RecordedError },
];

/** What a framework decided by what it remembers, such as a needless apply. */
export type RecordedDecision = readonly [name: string, value: unknown];

const LINE_FEED = 10;

/** Length of a body that is not kept. */
export const NOT_KEPT = -2;
/** Length of the body of a request without one. */
export const NO_BODY = -1;

/** Step of a run. Steps of all runs have numbers in their order. */
export interface RecordedStep {
  /** Number of the step. */
  readonly n: number;
  /** Time since the start of the run, in milliseconds. */
  readonly t: number;
  /** Request that the run sent. */
  readonly request?: {
    readonly method: string;
    readonly path: string;
    readonly type?: string | undefined;
    readonly body: number;
  } | undefined;
  /** Number of the step of the request that this one answers. */
  readonly to?: number | undefined;
  /** Answer to a request; its body has been read wholly. */
  readonly answer?: {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>> | undefined;
    readonly body: number;
  } | undefined;
  /** Failure of a request, in place of an answer. */
  readonly error?: RecordedError | undefined;
  /** Whether the request was aborted. */
  readonly isAborted?: boolean | undefined;
  /** Cause of another run, requested during this one. */
  readonly interrupted?: RunCause | undefined;
  /** Reason for which the run was aborted. */
  readonly aborted?: string | undefined;
  /** Event that the run recorded. */
  readonly event?: {
    readonly type: string;
    readonly reason: string;
    readonly message: string;
  } | undefined;
}

/** End of a run. */
export interface RecordedEnd {
  readonly n: number;
  readonly t: number;
  readonly outcome: "done" | "failed" | "aborted";
  readonly step: string;
  /** Pause before the next run that its result asks for, in milliseconds. */
  readonly delay?: number | undefined;
  readonly error?: string | undefined;
  /** What follows, and after how many milliseconds. */
  readonly next?: readonly [what: string, delay: number] | undefined;
}

/** Run as it is kept; bodies follow it. */
export interface RunRecord {
  readonly controller: string;
  readonly key: string;
  /** Number of its start among the steps of all runs. */
  readonly n: number;
  /** Start as milliseconds since the Unix epoch. */
  readonly at: number;
  readonly cause: RunCause;
  readonly attempt: number;
  readonly last: boolean;
  readonly waited: number;
  readonly deleted?: boolean | undefined;
  readonly finalStateUnknown?: boolean | undefined;
  /** Primary; undefined if the run reads it first. */
  readonly primary?: number | undefined;
  /** Whether it has read Secrets, whose values are not kept. */
  readonly secrets?: boolean | undefined;
  readonly reads: readonly RecordedRead[];
  readonly decisions: readonly RecordedDecision[];
  readonly steps: readonly RecordedStep[];
  readonly end: RecordedEnd;
}

/**
 * Run as it is in a file: without the names of members that each run has, and with
 * times in whole microseconds, which take half the time to be written.
 */
type PackedRun = readonly [
  controller: string,
  key: string,
  n: number,
  at: readonly [seconds: number, microseconds: number],
  cause: RunCause,
  retry: readonly [attempt: number, last: 0 | 1],
  waited: number,
  primary: number | null,
  reads: RunRecord["reads"],
  decisions: RunRecord["decisions"],
  steps: readonly PackedStep[],
  end: readonly [
    n: number,
    t: number,
    outcome: RecordedEnd["outcome"],
    step: string,
  ],
  rest: PackedRest | 0,
];

type PackedRest =
  & Pick<RunRecord, "deleted" | "finalStateUnknown" | "secrets">
  & Pick<RecordedEnd, "delay" | "error" | "next">;

/** Step: a request, an answer without headers, or another one. */
type PackedStep =
  | readonly [
    n: number,
    t: number,
    method: string,
    path: string,
    body: number,
    type: string | 0,
  ]
  | readonly [n: number, t: number, to: number, status: number, body: number]
  | readonly [n: number, t: number, rest: Omit<RecordedStep, "n" | "t">];

/** Names of the members of {@linkcode PackedRest}. */
const REST = [
  "deleted",
  "finalStateUnknown",
  "secrets",
  "delay",
  "error",
  "next",
] as const;

function packRun(run: RunRecord): PackedRun {
  const { controller, key, n, at, cause, attempt, last, waited, end } = run;
  const { deleted, finalStateUnknown, secrets, primary = null } = run;
  const { delay, error, next } = end;
  const seconds = Math.floor(at / 1_000);
  const all = { deleted, finalStateUnknown, secrets, delay, error, next };
  const hasRest = REST.some((name) => all[name] !== undefined);
  return [
    controller,
    key,
    n,
    [seconds, microseconds(at - 1_000 * seconds)],
    cause,
    [attempt, last ? 1 : 0],
    microseconds(waited),
    primary,
    run.reads,
    run.decisions,
    run.steps.map(packStep),
    [end.n, microseconds(end.t), end.outcome, end.step],
    hasRest ? all : 0,
  ];
}

function packStep(step: RecordedStep): PackedStep {
  const { n, request, answer, to } = step;
  const t = microseconds(step.t);
  if (request !== undefined) {
    const { method, path, body, type = 0 } = request;
    return [n, t, method, path, body, type];
  }
  if (to !== undefined && answer !== undefined && !answer.headers) {
    return [n, t, to, answer.status, answer.body];
  }
  const { n: _n, t: _t, ...rest } = step;
  return [n, t, rest];
}

/** Run of a packed one. */
export function unpackRun(packed: unknown): RunRecord {
  const [controller, key, n, at, cause, retry, waited, primary, ...more] =
    packed as PackedRun;
  const [reads, decisions, steps, end, rest] = more;
  const { delay, error, next, ...flags } = rest || {};
  return {
    ...{ controller, key, n, at: 1_000 * at[0] + at[1] / 1_000, cause },
    ...{ attempt: retry[0], last: retry[1] === 1, waited: waited / 1_000 },
    ...flags,
    ...{ primary: primary ?? undefined, reads, decisions },
    steps: steps.map(unpackStep),
    end: {
      ...{ n: end[0], t: end[1] / 1_000, outcome: end[2], step: end[3] },
      ...{ delay, error, next },
    },
  };
}

function unpackStep([n, us, ...rest]: PackedStep): RecordedStep {
  const step = { n, t: us / 1_000 };
  const [first] = rest;
  if (typeof first === "string") {
    const [method, path, body, type] = rest as [string, string, number, string];
    return {
      ...step,
      request: { method, path, ...type && { type }, body },
    };
  }
  if (typeof first === "number") {
    const [to, status, body] = rest as [number, number, number];
    return { ...step, to, answer: { status, body } };
  }
  return { ...step, ...first };
}

/** Whole microseconds of milliseconds. */
function microseconds(milliseconds: number): number {
  return Math.round(1_000 * milliseconds);
}

/** Run, with the bodies that follow it, after a line feed. */
export function encodeRun(
  run: RunRecord,
  bodies: readonly (Uint8Array | string)[],
): readonly (Uint8Array | string)[] {
  return encodeEntry(packRun(run), bodies);
}

/** Entry, with the bodies that follow it, after a line feed. */
export function encodeEntry(
  entry: unknown,
  bodies: readonly (Uint8Array | string)[],
): readonly (Uint8Array | string)[] {
  let text = `${JSON.stringify(entry)}\n`;
  let texts = 0;
  // Each text that is encoded by itself takes time.
  for (let body; typeof (body = bodies[texts]) === "string"; texts++) {
    text += body;
  }
  return [text, ...bodies.slice(texts)];
}

/**
 * Decodes an entry.
 *
 * @returns The entry, and the bytes after it; undefined if it is malformed.
 */
export function decodeEntry(
  bytes: Buffer,
): { readonly entry: unknown; readonly bodies: Buffer } | undefined {
  const end = bytes.indexOf(LINE_FEED);
  if (end < 0) return undefined;
  try {
    const entry: unknown = JSON.parse(bytes.toString("utf8", 0, end));
    return { entry, bodies: bytes.subarray(end + 1) };
  } catch {
    return undefined;
  }
}

/** Paths of discovery, which depend on no run. */
export function isDiscovery(path: string): boolean {
  return /^\/(?:api(?:\/[^/?]+)?|apis(?:\/[^/?]+){0,2})(?:\?|$)/.test(path);
}

/** Maximum length of an error, in UTF-16 code units. */
export const MAX_ERROR_LENGTH = 2_000;

/** Text of the error of a failed run. */
export function recordedErrorText(error: unknown): string {
  return shortText(textWithCause(error), MAX_ERROR_LENGTH);
}
