/** Reference to the object of a step or a perturbation. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** Change of an object by another writer: a JSON merge patch, or a deletion. */
export interface ObjectChange {
  readonly patch?: object | undefined;
  readonly delete?: true | undefined;
}

/**
 * Fault in a simulation, as plain JSON. Writes and events are identified by
 * their number in the trace of an undisturbed run, which a disturbed run equals
 * up to that point.
 */
export type Perturbation =
  /** Kills the operator at a write, and restarts it after `downMs`. */
  | {
    readonly do: "crash";
    readonly write: number;
    readonly place: "before" | "unanswered" | "after";
    /**
     * Downtime, in milliseconds.
     *
     * @default {0}
     */
    readonly downMs?: number | undefined;
  }
  /**
   * Lists and watches, of `resource` if it is given, answer with an earlier
   * revision, as from an API server that lags behind. With `write` the operator is
   * killed after that write first. Ends after `forMs`, or before the next write if
   * all resources lag.
   */
  | {
    readonly do: "stale";
    readonly write?: number | undefined;
    readonly revision: number;
    readonly resource?: string | undefined;
    readonly forMs: number;
  }
  /**
   * Events of a resource are not delivered: from `from` to before `to`. The watch
   * expires a minute later.
   */
  | {
    readonly do: "withhold";
    readonly resource: string;
    readonly group?: string | undefined;
    readonly from: number;
    readonly to: number;
  }
  /** Event `event` waits until event `after` is delivered, or for 30 seconds. */
  | { readonly do: "delay"; readonly event: number; readonly after: number }
  /**
   * First states of watches end late, after the changes of that time. With
   * `breaks` the first of them that has a deletion does not end but breaks, and is
   * read again from an API server that has not seen the deletion.
   */
  | {
    readonly do: "linger";
    readonly forMs: number;
    /**
     * Whether one of them breaks.
     *
     * @default {false}
     */
    readonly breaks?: boolean | undefined;
  }
  /** The watch breaks before an event. */
  | { readonly do: "cut"; readonly event: number }
  /** The watch ends with 410 instead of an event. */
  | { readonly do: "expire"; readonly event: number }
  /** A write, and its repetitions up to `times`, are answered with 409. */
  | {
    readonly do: "conflict";
    readonly write: number;
    /**
     * Number of attempts that the perturbation affects.
     *
     * @default {1}
     */
    readonly times?: number | undefined;
  }
  /**
   * A write, and its repetitions up to `times`, are refused: by admission, quota
   * or missing rights.
   */
  | {
    readonly do: "refuse";
    readonly write: number;
    readonly code: 403 | 422 | 500 | 503;
    /**
     * Number of attempts that the perturbation affects.
     *
     * @default {1}
     */
    readonly times?: number | undefined;
  }
  /** From a write on, every request is answered with 429 for a while. */
  | { readonly do: "throttle"; readonly write: number; readonly forMs: number }
  /** A write is committed, but its connection breaks before the answer. */
  | { readonly do: "lose"; readonly write: number }
  /**
   * Before a write the process is suspended for two minutes; its Leases expire,
   * and another replica takes them for a minute.
   */
  | { readonly do: "depose"; readonly write: number }
  /** Starts a second instance of the operator before a write. */
  | { readonly do: "twins"; readonly write: number }
  /** Change or deletion by another writer before a write or after a step. */
  | ObjectChange & {
    readonly do: "edit";
    readonly write?: number | undefined;
    readonly step?: number | undefined;
    readonly target: ObjectReference;
  }
  /** The wall clock jumps before a write. */
  | { readonly do: "clock"; readonly write: number; readonly jumpMs: number }
  /** Simulated containers become ready late, intermittently, or never. */
  | { readonly do: "dependents"; readonly mode: "late" | "flap" | "never" };
