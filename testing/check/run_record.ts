import type { JsonObject } from "../../core/patch/json_value.ts";
import type {
  TracedEvent,
  TracedNote,
  TracedWrite,
  TraceEntry,
} from "./run_trace.ts";

/** State of the cluster after a step of the workload. */
export interface SettledStep {
  readonly text: string;
  /** Whether the cluster became quiet within the limit. */
  readonly quiet: boolean;
  readonly objects: readonly JsonObject[];
  /** Revision of the cluster. */
  readonly revision: number;
  /** Numbers of the last write and the last delivery of the operator so far. */
  readonly writes: number;
  readonly events: number;
}

/** A run of a scenario, as oracles judge it; plain data. */
export interface RunRecord {
  readonly steps: readonly SettledStep[];
  readonly trace: readonly TraceEntry[];
  /** Keys of the objects that were there before the workload. */
  readonly before: readonly string[];
  /** Writes in the idle time after the last step. */
  readonly idle: {
    /** Length in milliseconds. */
    readonly duration: number;
    readonly writes: number;
    readonly changes: number;
  };
  /** Violations of own invariants, by name. */
  readonly violations: readonly {
    readonly oracle: string;
    readonly text: string;
    readonly step: number;
  }[];
  /** Requests outside of the cluster that nobody answered, each once. */
  readonly unanswered: readonly string[];
  /** CPU time of the run in milliseconds. */
  readonly cpu: number;
}

/** Writes of a step of an undisturbed run that are always too many. */
export const MAX_WRITES = 300;

/** Whether the operator has come to rest after each step. */
export function isAtRest({ steps }: Pick<RunRecord, "steps">): boolean {
  return steps.every(({ quiet }) => quiet);
}

/** Writes of a run, in order. */
export function writesOf(
  { trace }: Pick<RunRecord, "trace">,
): readonly TracedWrite[] {
  return trace.filter((entry): entry is TracedWrite => entry.type === "write");
}

/** Deliveries of a run, in order. */
export function eventsOf(
  { trace }: Pick<RunRecord, "trace">,
): readonly TracedEvent[] {
  return trace.filter((entry): entry is TracedEvent => entry.type === "event");
}

/** Notes of a kind, in order. */
export function notesOf(
  { trace }: Pick<RunRecord, "trace">,
  what: string,
): readonly TracedNote[] {
  return trace.filter((entry): entry is TracedNote =>
    entry.type === "note" && entry.what === what
  );
}

/** Write as a text, such as `delete Service default/a`. */
export function writeText(
  { verb, kind, namespace, name, subresource }: Pick<
    TracedWrite,
    "verb" | "kind" | "namespace" | "name" | "subresource"
  >,
): string {
  const at = namespace === "" ? name : `${namespace}/${name}`;
  return `${verb} ${kind} ${at}${subresource === "" ? "" : `/${subresource}`}`;
}
