import type { SnapshotInfo, UnreadResource } from "./snapshot.ts";

/** Field that an operator would change. */
export interface PlannedField {
  /** Path of the field, such as `.spec.containers[web].image`. */
  readonly path: string;
  /** Value before; absent if there was none, and hidden in Secrets. */
  readonly before?: unknown;
  /** Value after; absent if there would be none, and hidden in Secrets. */
  readonly after?: unknown;
  /** Managers that own the field and would lose it. */
  readonly takenFrom?: readonly string[];
}

/** What would happen to an object. */
export type PlannedAction = "create" | "change" | "replace" | "delete";

/** Object that an operator would change. */
export interface PlannedChange {
  readonly action: PlannedAction;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Who would do it and how, such as `apply by webpage` or `prune by webpage`. */
  readonly cause: string;
  /** Owner of the object, such as `WebPage default/a`. */
  readonly owner?: string | undefined;
  /** Changed fields; those of a new object are its own. */
  readonly fields: readonly PlannedField[];
  /** What holds the deletion back, such as finalizers. */
  readonly note?: string | undefined;
}

/** Object that would never come to rest. */
export interface PlannedLoop {
  readonly object: string;
  /** Number of writes in the simulated time. */
  readonly writes: number;
  /** Median time between two writes, in milliseconds. */
  readonly period: number;
  /** Number of states that alternate; undefined if each is new. */
  readonly states?: number | undefined;
  /** Fields that each write changes; empty if the writes change nothing. */
  readonly fields: readonly string[];
}

/** Fields that an operator and another manager would set in turn. */
export interface PlannedFight {
  readonly object: string;
  /** Manager that loses the fields. If it sets them back, so does the operator. */
  readonly manager: string;
  readonly fields: readonly string[];
  /** Time until the operator sets them again, in milliseconds. */
  readonly answer: number;
}

/** Runs that would fail for one reason. */
export interface PlannedFailure {
  readonly error: string;
  readonly count: number;
  /** First objects whose runs fail. */
  readonly objects: readonly string[];
}

/** Request outside of the cluster. */
export interface PlannedFetch {
  /** Method and URL without its query. */
  readonly request: string;
  readonly count: number;
  /** Whether it was sent; otherwise it was held back, and failed. */
  readonly sent: boolean;
}

/** Event that the operator would record. */
export interface PlannedEvent {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  /** Object that it is about. */
  readonly object: string;
  readonly count: number;
}

/** Access that the operator uses, and its manifests do not grant. */
export interface MissingRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
}

/** What controllers of the cluster would do in answer, as simulated. */
export interface SimulatedAnswer {
  readonly kind: string;
  readonly created: number;
  readonly changed: number;
  readonly deleted: number;
}

/** What an operator would do to a cluster. */
export interface PlanReport {
  /** What was read of the cluster. */
  readonly cluster: SnapshotInfo & {
    /** Number of objects that were read. */
    readonly objects: number;
  };
  /** How long the operator was run. */
  readonly simulated: {
    /** Virtual time in milliseconds. */
    readonly duration: number;
    /** Whether the operator came to rest. */
    readonly quiet: boolean;
  };
  readonly changes: readonly PlannedChange[];
  /** What an older version would do and this one would not, with `from`. */
  readonly dropped?: readonly PlannedChange[] | undefined;
  readonly loops: readonly PlannedLoop[];
  readonly fights: readonly PlannedFight[];
  readonly failures: readonly PlannedFailure[];
  readonly fetches: readonly PlannedFetch[];
  readonly events: readonly PlannedEvent[];
  readonly missingRights: readonly MissingRight[];
  readonly answers: readonly SimulatedAnswer[];
  readonly unread: readonly UnreadResource[];
  /** What a reader of the plan has to know. */
  readonly notes: readonly string[];
}

/** Kinds of findings, as `--fail-on` names them. */
export const FINDINGS = {
  create: "objects are created",
  change: "objects are changed",
  replace: "objects are deleted and created again",
  delete: "objects are deleted",
  takeover: "fields are taken from other managers",
  loop: "objects never come to rest",
  fight: "fields are taken again and again, if their managers set them back",
  failure: "runs fail, or the operator ends",
  fetch: "requests leave the cluster",
  rights: "rights are missing",
} as const;

export type Finding = keyof typeof FINDINGS;

/** Findings of a plan. */
export function findingsOf(report: PlanReport): ReadonlySet<Finding> {
  const found = new Set<Finding>();
  for (const { action, fields } of report.changes) {
    found.add(action);
    if (fields.some(({ takenFrom }) => takenFrom !== undefined)) {
      found.add("takeover");
    }
  }
  const lists = {
    loop: report.loops,
    fight: report.fights,
    failure: report.failures,
    fetch: report.fetches,
    rights: report.missingRights,
  };
  for (const [finding, list] of Object.entries(lists)) {
    if (list.length > 0) found.add(finding as Finding);
  }
  return found;
}
