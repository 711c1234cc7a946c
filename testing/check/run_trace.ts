export interface TracedObject {
  /** Kind of the object, such as `ConfigMap`. */
  readonly kind: string;
  /** Plural of its resource. */
  readonly resource: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Write of the operator that reached the server, or an attempt of it. */
export interface TracedWrite extends TracedObject {
  readonly type: "write";
  /** Number of the write, from 1; the address of perturbations. */
  readonly number: number;
  /** Verb: `create`, `update`, `patch`, `apply`, `delete`. */
  readonly verb: string;
  readonly subresource: string;
  /** Incarnation of the operator, from 1. */
  readonly incarnation: number;
  /** Status code of the answer; 0 without one. */
  readonly code: number;
  readonly reason: string;
  /** Effect on the object: nothing if it stayed the same. */
  readonly effect: "created" | "changed" | "deleted" | "nothing";
  /** Body that was sent. */
  readonly body?: unknown;
  /** Whether a perturbation made the answer. */
  readonly disturbed: boolean;
  /** Step of the workload, from 0. */
  readonly step: number;
  /** Virtual milliseconds since the start. */
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

/** Other things that happened. */
export interface TracedNote {
  readonly type: "note";
  /** Kind of the note: `kill`, `start`, `step`, `disturbance`, `refused`, `rejection`, `external`, `change`. */
  readonly what: string;
  readonly text: string;
  readonly step: number;
  readonly at: number;
}

export type TraceEntry = TracedWrite | TracedEvent | TracedNote;
