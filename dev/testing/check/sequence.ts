/**
 * Sequence of writes and events of a run, as text and as a Mermaid diagram.
 *
 * @module
 */
import { type RunRecord, type TraceEntry, writeText } from "./run_record.ts";

/** Number of entries to show before the first disturbance. */
const BEFORE = 8;
const AFTER = 24;

/** Kinds of notes that are shown once when they repeat. */
const REPEATED = ["external", "failed"];

/** Entries to show: around the first disturbance, or the last ones. */
function shownEntries(run: RunRecord): readonly TraceEntry[] {
  const trace = withoutRepeats(run.trace);
  const first = trace.findIndex(isDisturbance);
  if (first < 0) return trace.slice(-(BEFORE + AFTER));
  return trace.slice(Math.max(first - BEFORE, 0), first + AFTER);
}

/** Entries with one for the same in a row, such as those of a poll or of retries. */
function withoutRepeats(trace: readonly TraceEntry[]): readonly TraceEntry[] {
  const kept: TraceEntry[] = [];
  let first: TraceEntry | undefined;
  for (const entry of trace) {
    if (
      first?.type === "note" && REPEATED.includes(first.what) &&
      entry.type === "note" && entry.text === first.text
    ) {
      const text = `${first.text}, again until ${seconds(entry)} s`;
      kept[kept.length - 1] = { ...first, text };
    } else kept.push(first = entry);
  }
  return kept;
}

function seconds({ at }: TraceEntry): string {
  return (at / 1000).toFixed(3);
}

function isDisturbance(entry: TraceEntry): boolean {
  return entry.type === "write" && entry.disturbed ||
    entry.type === "note" &&
      (entry.what === "kill" || entry.what === "disturbance");
}

/** Formats the writes and events of a run as lines, with their virtual time. */
export function sequenceText(run: RunRecord): string {
  return shownEntries(run).map((entry) => {
    const at = seconds(entry).padStart(10);
    return `${at} s  ${entryText(entry)}`;
  }).join("\n");
}

function entryText(entry: TraceEntry): string {
  switch (entry.type) {
    case "write":
      return `operator  #${entry.number} ${writeText(entry)} → ${
        answerText(entry)
      }`;
    case "event":
      return `event     ${entry.event} ${entry.kind} ${entry.namespace}/${entry.name} @${entry.revision}`;
    case "note":
      return entry.what === "step"
        ? `user      ${entry.text}`
        : isDisturbance(entry)
        ? `>>>       ${entry.text}`
        : `${entry.what.padEnd(9)} ${entry.text}`;
  }
}

function answerText(
  { code, reason, effect, disturbed }: Extract<TraceEntry, { type: "write" }>,
): string {
  const answer = code === 0
    ? "no answer"
    : `${code}${reason === "" ? "" : ` ${reason}`}`;
  const done = code !== 0 && code < 300 || code === 0 && effect !== "nothing"
    ? `, ${effect}`
    : "";
  return `${answer}${done}${disturbed ? "   <<< disturbed" : ""}`;
}

/** Formats the writes and events of a run as a Mermaid sequence diagram. */
export function sequenceDiagram(run: RunRecord): string {
  const lines = shownEntries(run).flatMap((entry): readonly string[] => {
    switch (entry.type) {
      case "write": {
        const text = safe(`#${entry.number} ${writeText(entry)}`);
        const answer = safe(answerText(entry));
        return entry.code === 0
          ? [`Operator-x Server: ${text} (${answer})`]
          : [`Operator->>Server: ${text}`, `Server-->>Operator: ${answer}`];
      }
      case "event":
        return [
          `Server--)Operator: ${
            safe(`${entry.event} ${entry.kind} ${entry.name}`)
          }`,
        ];
      case "note":
        return entry.what === "step"
          ? [`User->>Server: ${safe(entry.text)}`]
          : [`Note over Operator: ${safe(entry.text)}`];
    }
  });
  return [
    "sequenceDiagram",
    "  participant User",
    "  participant Operator",
    "  participant Server",
    ...lines.map((line) => `  ${line}`),
  ].join("\n");
}

/** Escapes the characters that have a meaning in Mermaid. */
function safe(text: string): string {
  return text.replace(/[;#]/g, (found) => `#${found.charCodeAt(0)};`)
    .replace(/\n/g, " ");
}
