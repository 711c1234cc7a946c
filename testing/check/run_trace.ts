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
  /** Number of the write, from 1, by which perturbations refer to it. */
  readonly number: number;
  /** Verb: `create`, `update`, `patch`, `apply`, `delete`. */
  readonly verb: string;
  readonly subresource: string;
  /** Number of the operator's simulated process, from 1. */
  readonly incarnation: number;
  /** HTTP status of the answer; 0 without an answer. */
  readonly code: number;
  readonly reason: string;
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
  readonly incarnation: number;
  readonly revision: number;
  readonly step: number;
  readonly at: number;
}

/** Note about an incident in a run, such as a start or a kill. */
export interface TracedNote {
  readonly type: "note";
  /** Kind of the note: `kill`, `start`, `step`, `disturbance`, `refused`, `rejection`, `external`, `change`. */
  readonly what: string;
  readonly text: string;
  /** Body of a request outside the cluster. */
  readonly body?: string | undefined;
  readonly step: number;
  readonly at: number;
}

export type TraceEntry = TracedWrite | TracedEvent | TracedNote;
