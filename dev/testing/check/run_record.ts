import type { StatusCause } from "@coracle/operator/core";
import type { JsonObject } from "@coracle/operator/internal";

export interface TracedObject {
  /** Kind of the object, such as `ConfigMap`. */
  readonly kind: string;
  /** Plural name of the resource. */
  readonly resource: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Write of the operator, or an attempt that did not reach the server. */
export interface TracedWrite extends TracedObject {
  readonly type: "write";
  /** Number of the write, from 1; perturbations refer to it. */
  readonly number: number;
  /** Verb: `create`, `update`, `patch`, `apply`, `delete`. */
  readonly verb: string;
  readonly subresource: string;
  /** HTTP status of the answer; 0 without an answer. */
  readonly code: number;
  readonly reason: string;
  /** Fields that are wrong if the answer is that the object is invalid. */
  readonly causes?: readonly StatusCause[] | undefined;
  /** Effect on the object; `nothing` if it was not changed. */
  readonly effect: "created" | "changed" | "deleted" | "nothing";
  /** Body of the request. */
  readonly body?: unknown;
  /** Whether a perturbation determined the answer. */
  readonly disturbed: boolean;
  /** Step of the workload, from 0. */
  readonly step: number;
  /** Virtual time since the start, in milliseconds. */
  readonly at: number;
}

/** Watch event that was delivered to the operator. */
export interface TracedEvent extends TracedObject {
  readonly type: "event";
  /** Number of the delivery, from 1. */
  readonly number: number;
  readonly event: "ADDED" | "MODIFIED" | "DELETED";
  readonly revision: number;
  readonly step: number;
  readonly at: number;
}

/** Note about an incident in a run, such as a start or a kill. */
export interface TracedNote {
  readonly type: "note";
  /** Kind of the note: `kill`, `exit`, `start`, `step`, `disturbance`, `refused`, `rejection`, `failed`, `external`, `change`. */
  readonly what: string;
  readonly text: string;
  /** Body of a request outside the cluster. */
  readonly body?: string | undefined;
  /** Number of a request outside the cluster, from 1. */
  readonly call?: number | undefined;
  readonly step: number;
  readonly at: number;
}

export type TraceEntry = TracedWrite | TracedEvent | TracedNote;

/** Refusal of a write by the server. */
export interface Refusal {
  /** HTTP status of the answer. */
  readonly code: number;
  /** Fields that are wrong, and why; empty if the answer does not say. */
  readonly causes: readonly StatusCause[];
}

/** State of the cluster after a step of the workload. */
export interface SettledStep {
  readonly text: string;
  /** Answer of the server if it has refused what the user did. */
  readonly refused?: Refusal | undefined;
  /** Whether the cluster became quiet within the limit. */
  readonly quiet: boolean;
  readonly objects: readonly JsonObject[];
  /** Revision of the cluster. */
  readonly revision: number;
  /** Number of the last write of the operator so far. */
  readonly writes: number;
}

/** Start of a new process while the operator is at rest, until it rests again. */
export interface Restart {
  /** Objects before and after it. */
  readonly before: readonly JsonObject[];
  readonly after: readonly JsonObject[];
  readonly writes: readonly TracedWrite[];
}

/** Record of a run of a scenario, for the oracles; plain data. */
export interface RunRecord {
  readonly steps: readonly SettledStep[];
  readonly trace: readonly TraceEntry[];
  /**
   * Key of the state at rest after each step, from the step on from which nothing is
   * disturbed any more; empty before, and where the operator is not at rest.
   */
  readonly resting: readonly string[];
  /** Keys of the objects that existed before the workload. */
  readonly before: readonly string[];
  /** Writes in the idle time after the last step. */
  readonly idle: {
    /** Duration of the idle time in milliseconds. */
    readonly duration: number;
    readonly writes: number;
    /** Reads of the first hour, such as `get Secret`, each with its number. */
    readonly reads?: Readonly<Record<string, number>> | undefined;
  };
  /** What a new process of the operator does after the idle time, if one starts. */
  readonly restart?: Restart | undefined;
  /** Violations of custom invariants. */
  readonly violations: readonly {
    readonly oracle: string;
    readonly text: string;
    readonly step: number;
  }[];
  /** Whether the operator has requested Endpoints or EndpointSlices. */
  readonly readsEndpoints: boolean;
  /** Requests outside the cluster that were not answered, each once. */
  readonly unanswered: readonly string[];
  /** Whether the run went on from the middle of another one. */
  readonly isPart: boolean;
  /** CPU time of the run in milliseconds. */
  readonly cpu: number;
}

/** Maximum number of writes in a step of an undisturbed run. */
export const MAX_WRITES = 300;

/** Whether the operator has come to rest after each step. */
export function isAtRest({ steps }: Pick<RunRecord, "steps">): boolean {
  return steps.every(({ quiet }) => quiet);
}

/** Whether the server has refused something that the user did in a step. */
export function isRefused(steps: readonly SettledStep[]): boolean {
  return steps.some(({ refused }) => refused !== undefined);
}

/** Writes of a run, in order. */
export function writesOf(
  { trace }: Pick<RunRecord, "trace">,
): readonly TracedWrite[] {
  return trace.filter((entry): entry is TracedWrite => entry.type === "write");
}

/** Delivered events of a run, in order. */
export function eventsOf(
  { trace }: Pick<RunRecord, "trace">,
): readonly TracedEvent[] {
  return trace.filter((entry): entry is TracedEvent => entry.type === "event");
}

/** Notes of a kind in the trace of a run, in order. */
export function notesOf(
  { trace }: Pick<RunRecord, "trace">,
  what: string,
): readonly TracedNote[] {
  return trace.filter((entry): entry is TracedNote =>
    entry.type === "note" && entry.what === what
  );
}

/** Formats a write, such as `delete Service default/a`. */
export function writeText(
  { verb, kind, namespace, name, subresource }: Pick<
    TracedWrite,
    "verb" | "kind" | "namespace" | "name" | "subresource"
  >,
): string {
  const at = namespace === "" ? name : `${namespace}/${name}`;
  return `${verb} ${kind} ${at}${subresource === "" ? "" : `/${subresource}`}`;
}
