import type { UntypedObject } from "@coracle/operator/client";
import {
  fieldDifferences,
  pathText,
} from "../../../dev/testing/plan/field_changes.ts";
import { MAX_VALUE } from "../../../dev/testing/plan/make_report.ts";
import type { PlanReport } from "../../../dev/testing/plan/plan_report.ts";
import type { Snapshot } from "../../../dev/testing/plan/snapshot.ts";
import { until, type UntilOptions } from "../../support/until.ts";

/** Fields of an object that changed, with their values afterwards. */
type Happened = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Kinds that controllers of a cluster keep, or that record work. */
const OTHERS = new Set([
  "ControllerRevision",
  "Endpoints",
  "EndpointSlice",
  "Event",
  "Lease",
  "Pod",
  "ReplicaSet",
]);
const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
/** Parts that a cluster makes up in the names of Pods of a Deployment. */
const POD = /(?<=[a-z0-9]-)[a-z0-9]{7,10}-[a-z0-9]{5}(?=")/g;
const TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

/** Changes of a plan in the form of {@linkcode happenedBetween}. */
export function planned({ changes }: PlanReport): Happened {
  return Object.fromEntries(
    changes.map(({ action, kind, namespace, name, fields }) => [
      `${action} ${kind} ${namespace ?? ""}/${name}`,
      Object.fromEntries(
        action === "create"
          ? []
          : fields.map(({ path, after }) => [path, plain(after)]),
      ),
    ]).sort(byName),
  );
}

/** What differs between two snapshots of a cluster. */
export function happenedBetween(before: Snapshot, after: Snapshot): Happened {
  const [old, now] = [before, after].map(objectsOf) as [Objects, Objects];
  const found: [string, Readonly<Record<string, unknown>>][] = [];
  for (const key of new Set([...old.keys(), ...now.keys()])) {
    const [was, is] = [old.get(key), now.get(key)];
    const { kind, metadata } = (is ?? was)!;
    if (OTHERS.has(String(kind))) continue;
    const text = `${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
    if (was === undefined) found.push([`create ${text}`, {}]);
    else if (is === undefined) found.push([`delete ${text}`, {}]);
    else {
      const isSecret = kind === "Secret";
      const fields = fieldDifferences(was, is).filter(({ path }) =>
        !BUILT_IN.test(is.apiVersion ?? "") || !isOfController(pathText(path))
      ).map(({ path, after }) => [
        pathText(path),
        isSecret && path[0] === "data" && after !== undefined
          ? "(hidden)"
          : plain(shown(after)),
      ]);
      const action = was.metadata.uid === is.metadata.uid
        ? "change"
        : "replace";
      if (fields.length > 0) {
        found.push([`${action} ${text}`, Object.fromEntries(fields)]);
      }
    }
  }
  return Object.fromEntries(found.sort(byName));
}

/** Versions of the kinds that a cluster has by itself. */
const BUILT_IN =
  /^(?:v1|(?:apps|autoscaling|batch|policy|[\w.]+\.k8s\.io)\/.*)$/;

/** Whether the controllers of a cluster write a field of its own kinds. */
function isOfController(path: string): boolean {
  return path.startsWith(".status") ||
    path.includes("deployment.kubernetes.io/revision") ||
    path === ".metadata.annotations";
}

type Objects = ReadonlyMap<string, UntypedObject>;

function objectsOf(snapshot: Snapshot): Objects {
  const definitions = Array.from(
    snapshot.definitions,
    ([name, object]) => [`definition ${name}`, object] as const,
  );
  const objects = Array.from(
    snapshot.objects(),
    ({ group, plural, object }) => {
      const { namespace = "", name } = object.metadata;
      return [`${group}/${plural} ${namespace}/${name}`, object] as const;
    },
  );
  return new Map([...definitions, ...objects]);
}

/** Value as a plan shows it: a long one is cut. */
function shown(value: unknown): unknown {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : value;
}

function plain(value: unknown): unknown {
  if (value === undefined) return "(none)";
  return JSON.parse(
    JSON.stringify(value).replace(UID, "<uid>").replace(TIME, "<time>")
      .replace(POD, "<pod>"),
  );
}

function byName(a: readonly unknown[], b: readonly unknown[]): number {
  return String(a[0]) < String(b[0]) ? -1 : 1;
}

/** Operator that a test runs for real. */
interface Runs {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Runs an operator on a cluster until what it does is done. */
export async function runUntil(
  operator: Runs,
  done: () => Promise<boolean>,
  limits?: UntilOptions,
): Promise<void> {
  await operator.start();
  try {
    await until("the operator is done", done, limits);
  } finally {
    await operator.stop();
  }
}
