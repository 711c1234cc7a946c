import type { StatusCause } from "@coracle/operator/core";

/** Request of an operator, in the order of handling by the server. */
export interface RequestEntry {
  readonly type: "request";
  /** Virtual time, in milliseconds since the start of the simulation. */
  at: number;
  /** Number of the request among those of the operator. */
  n: number;
  /**
   * Number of the write among those of the operator; undefined for reads, dry
   * runs, reviews, Leases and Events.
   */
  write?: number | undefined;
  readonly incarnation: number;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  name: string;
  /** Path and query of the request. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly dryRun: boolean;
  /** HTTP status; 0 if the server did not handle the request. */
  code: number;
  reason?: string | undefined;
  /** Fields that are wrong, with status 422. */
  causes?: readonly StatusCause[] | undefined;
  /** Whether the request changed an object. */
  changed: boolean;
  /** resourceVersion, generation and uid of the object in the answer. */
  revision?: number | undefined;
  generation?: number | undefined;
  uid?: string | undefined;
  /** Whether the operator received the answer. */
  answered: boolean;
  /** Name of the perturbation that determined the outcome. */
  fault?: string | undefined;
}

/** Watch event of an operator, in the order of delivery. */
export interface EventEntry {
  readonly type: "event";
  readonly at: number;
  /** Number of the event; undefined for bookmarks, Leases and Events. */
  readonly n?: number | undefined;
  readonly incarnation: number;
  readonly watch: number;
  readonly event: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly revision: number;
  /** Name of the perturbation that replaced or dropped the event. */
  fault?: string | undefined;
}

/** Where a simulation writes its trace. */
export interface TraceSink {
  /** Adds an entry, which the simulation completes before it adds the next request. */
  push(entry: TraceEntry): unknown;
}

/** Entry in the trace of a simulation. */
export type TraceEntry =
  | RequestEntry
  | EventEntry
  /** Change by someone other than the operator. */
  | {
    readonly type: "actor";
    readonly at: number;
    readonly who: "user" | "cluster" | "check";
    readonly change: string;
    readonly group: string;
    readonly resource: string;
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly revision: number;
  }
  | {
    readonly type: "start" | "kill" | "exit";
    readonly at: number;
    readonly incarnation: number;
    readonly why: string;
  }
  | {
    readonly type: "log";
    readonly at: number;
    readonly incarnation: number;
    readonly level: string;
    readonly message: string;
    /** Log fields as JSON; their texts may differ between runtimes. */
    readonly fields: string;
  }
  | {
    readonly type: "rejection";
    readonly at: number;
    readonly message: string;
  }
  | {
    readonly type: "external";
    readonly at: number;
    readonly incarnation: number;
    readonly method: string;
    readonly url: string;
    readonly body?: string | undefined;
    readonly status: number;
    /** Number of the request outside of the cluster, from 1. */
    readonly n: number;
    /** Perturbation of the request. */
    readonly fault?: string | undefined;
  };
