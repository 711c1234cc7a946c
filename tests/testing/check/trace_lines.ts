/**
 * Lines, digests and differences of the traces of worlds.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { TraceEntry } from "../../../dev/testing/check/trace.ts";

/** Parts of an entry whose text depends on the runtime. */
const RUNTIME_TEXT = new Set(["fields", "message"]);

/** Line of the trace that is the same on every runtime. */
export function traceLine(entry: TraceEntry): string {
  return JSON.stringify(
    entry,
    (name, value) =>
      RUNTIME_TEXT.has(name) && entry.type !== "log" ||
        name === "fields"
        ? undefined
        : value,
  );
}

/** Digest of a trace: equal for equal runs on every runtime. */
export function fingerprint(trace: readonly TraceEntry[]): string {
  const digest = createHash("sha256");
  for (const entry of trace) digest.update(`${traceLine(entry)}\n`);
  return digest.digest("hex");
}

/** First entry in which two runs differ. */
export interface TraceDifference {
  /** Index in both traces. */
  readonly index: number;
  readonly a: TraceEntry | undefined;
  readonly b: TraceEntry | undefined;
  /** Sentence that names both. */
  readonly text: string;
}

/** Returns the first difference of two runs; undefined if none exists. */
export function firstDifference(
  a: { readonly trace: readonly TraceEntry[] },
  b: { readonly trace: readonly TraceEntry[] },
): TraceDifference | undefined {
  const length = Math.max(a.trace.length, b.trace.length);
  for (let index = 0; index < length; index++) {
    const [one, other] = [a.trace[index], b.trace[index]];
    if (one && other && traceLine(one) === traceLine(other)) continue;
    const text = `Entry ${index + 1} differs between two runs: ${
      nameOf(one)
    }, then ${nameOf(other)}`;
    return { index, a: one, b: other, text };
  }
  return undefined;
}

function nameOf(entry: TraceEntry | undefined): string {
  return entry === undefined ? "nothing" : traceLine(entry);
}
