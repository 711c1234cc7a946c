/**
 * `coracle plan`: runs an operator on a copy of a cluster in memory, on a virtual
 * clock, and tells what it did there.
 *
 * @module
 */
import {
  type OperatorSource,
  operatorSource,
} from "../check/operator_source.ts";
import { reportOf } from "./make_report.ts";
import type { PlanReport } from "./plan_report.ts";
import {
  type AnyVersion,
  runOperator,
  type RunSettings,
} from "./planned_run.ts";
import { NEVER_READ } from "./read_cluster.ts";
import type { Snapshot } from "./snapshot.ts";

/** Most times that a cluster is read again, for what an operator asks for. */
const MAX_READS = 4;

/** Reads the kinds that a plan needs. */
export type ReadKinds = (
  kinds: readonly AnyVersion[],
  source: OperatorSource,
) => Promise<Snapshot>;

/** Options of {@linkcode planOperator}. */
export interface PlanSettings extends RunSettings {
  /** File of the operator. */
  readonly file: string;
  /** File of an older version, whose changes are left out. */
  readonly from?: string | undefined;
  /** Export that is the operator. */
  readonly export?: string | undefined;
  readonly read: ReadKinds;
  /** Called as the work goes on, with what is done. */
  readonly onProgress?: ((text: string) => void) | undefined;
}

/** Kinds whose objects the simulated controllers make for others. */
const MADE_FOR: Readonly<Record<string, readonly AnyVersion[]>> = {
  "apps/Deployment": [
    { group: "apps", kind: "ReplicaSet" },
    { group: "", kind: "Pod" },
  ],
  "apps/ReplicaSet": [{ group: "", kind: "Pod" }],
  "apps/StatefulSet": [
    { group: "apps", kind: "ControllerRevision" },
    { group: "", kind: "Pod" },
  ],
  "apps/DaemonSet": [
    { group: "apps", kind: "ControllerRevision" },
    { group: "", kind: "Pod" },
  ],
  "batch/CronJob": [
    { group: "batch", kind: "Job" },
    { group: "", kind: "Pod" },
  ],
  "batch/Job": [{ group: "", kind: "Pod" }],
};

/** Kinds by which an operator registers its webhooks. */
const REGISTRATIONS: readonly AnyVersion[] = ["Mutating", "Validating"].map((
  type,
) => ({
  group: "admissionregistration.k8s.io",
  kind: `${type}WebhookConfiguration`,
}));

/** Kinds that an operator names, and what the cluster makes for them. */
export function kindsOf(
  { operators, admits }: OperatorSource,
): readonly AnyVersion[] {
  const kinds = new Map<string, AnyVersion>();
  const add = ({ group, kind }: AnyVersion) => {
    const id = `${group}/${kind}`;
    if (kinds.has(id)) return;
    kinds.set(id, { group, kind });
    for (const made of MADE_FOR[id] ?? []) add(made);
  };
  for (const { controllers = [] } of operators) {
    for (const { kind, secondaryKinds, readOnlyKinds } of controllers) {
      for (const one of [kind, ...secondaryKinds, ...readOnlyKinds]) add(one);
    }
  }
  // Otherwise its first run would ask for them, and it would run again.
  if (admits) REGISTRATIONS.forEach(add);
  return [...kinds.values()];
}

/**
 * Plans what an operator would do to a cluster.
 *
 * @throws {TypeError} If the file creates no operator.
 */
export async function planOperator(
  settings: PlanSettings,
): Promise<PlanReport> {
  const { from, onProgress } = settings;
  const options = { from, export: settings.export };
  const source = await operatorSource(settings.file, options);
  const older = from === undefined
    ? undefined
    : await operatorSource(from, { export: settings.export });
  let kinds = [...kindsOf(source), ...older ? kindsOf(older) : []];
  for (let reads = 1;; reads++) {
    const snapshot = await settings.read(kinds, source);
    const known = snapshot.resources;
    onProgress?.("the operator runs");
    const run = await runOperator(source, false, snapshot, settings);
    const old = older && await runOperator(source, true, snapshot, settings);
    const asked = [run, old].flatMap((one) => [...one?.record.resources ?? []])
      .filter((resource) =>
        !known.has(resource) && !NEVER_READ.has(resource) &&
        !isUnread(resource, snapshot)
      )
      .flatMap((resource) => run.kinds.get(resource) ?? []);
    const further = asked.filter(({ group, kind }) =>
      !kinds.some((one) => one.group === group && one.kind === kind)
    );
    if (further.length === 0 || reads === MAX_READS) {
      const report = withUnknown(reportOf(run, { source, snapshot }), asked);
      if (old === undefined) return report;
      return without(report, reportOf(old, { source, snapshot }));
    }
    onProgress?.(
      `the operator asks for ${
        [...new Set(further.map(({ kind }) => kind))].join(", ")
      } as well`,
    );
    kinds = [...kinds, ...further];
  }
}

/** Adds a note of kinds that the operator asks for and that were not read. */
function withUnknown(
  report: PlanReport,
  asked: readonly AnyVersion[],
): PlanReport {
  if (asked.length === 0) return report;
  const names = new Set(asked.map(({ kind }) => kind));
  const note = `The operator asks for ${
    [...names].join(", ")
  }: such objects were not read, and do not exist for it.`;
  return { ...report, notes: [...report.notes, note] };
}

function isUnread(resource: string, { info }: Snapshot): boolean {
  const [group = "", plural = ""] = resource.split("/");
  const name = group === "" ? plural : `${plural}.${group}`;
  return info.unread.some((one) => one.resource === name);
}

/** Leaves out what an older version would do as well. */
function without(report: PlanReport, old: PlanReport): PlanReport {
  const known = new Set(old.changes.map(changeText));
  const now = new Set(report.changes.map(changeText));
  const newOf = <T>(
    list: readonly T[],
    others: readonly T[],
    of: (one: T) => string,
  ) => {
    const seen = new Set(others.map(of));
    return list.filter((one) => !seen.has(of(one)));
  };
  return {
    ...report,
    changes: report.changes.filter((one) => !known.has(changeText(one))),
    dropped: old.changes.filter((one) => !now.has(changeText(one))),
    loops: newOf(report.loops, old.loops, ({ object }) => object),
    fights: newOf(
      report.fights,
      old.fights,
      ({ object, manager, fields }) => `${object} ${manager} ${fields}`,
    ),
    failures: newOf(report.failures, old.failures, ({ error }) => error),
    fetches: newOf(report.fetches, old.fetches, ({ request }) => request),
    events: newOf(
      report.events,
      old.events,
      ({ object, reason, message }) => `${object} ${reason} ${message}`,
    ),
    missingRights: newOf(
      report.missingRights,
      old.missingRights,
      (one) => JSON.stringify(one),
    ),
  };
}

const TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

function changeText(change: PlanReport["changes"][number]): string {
  return JSON.stringify(change).replace(TIME, "<time>");
}
