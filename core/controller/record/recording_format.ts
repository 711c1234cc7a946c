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

/** Entry, as JSON, with the bodies that follow it, after a line feed. */
export function encodeEntry(
  json: string,
  bodies: readonly (Uint8Array | string)[],
): readonly (Uint8Array | string)[] {
  return [`${json}\n`, ...bodies];
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
