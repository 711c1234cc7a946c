import type { OwnerReference, UntypedObject } from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import type { PolicyRule } from "@coracle/operator/kinds";
import {
  compareTexts,
  HIDDEN,
  isJsonObject,
  isSecretPath,
} from "@coracle/operator/internal";
import { writeJson } from "../../apiserver/exact_json.ts";
import type { OperatorSource } from "../check/operator_source.ts";
import { operatorAccess } from "../operator_access.ts";
import { rbacManifests } from "../rbac.ts";
import {
  type FieldDifference,
  fieldDifferences,
  losersOf,
  pathText,
} from "./field_changes.ts";
import type { PlannedRun } from "./planned_run.ts";
import type { TouchedObject } from "./plan_record.ts";
import type {
  MissingRight,
  PlannedAction,
  PlannedChange,
  PlannedEvent,
  PlannedFailure,
  PlannedField,
  PlannedLoop,
  PlanReport,
  SimulatedAnswer,
} from "./plan_report.ts";
import { emptyNote, mixedNote, type Snapshot } from "./snapshot.ts";

/** Writes of an object from which on it may be in a loop. */
const LOOP_WRITES = 5;
/** Time from the end in which a loop or a failure still shows, in milliseconds. */
const END_MS = 12 * 60_000;
/** Longest text of a value, in characters. */
export const MAX_VALUE = 2_000;
const CRD_PLURAL = "customresourcedefinitions";

/** Makes the report of a run. */
export function reportOf(
  run: PlannedRun,
  { source, snapshot }: {
    readonly source: OperatorSource;
    readonly snapshot: Snapshot;
  },
): PlanReport {
  const { record, duration, quiet, secrets } = run;
  const gone = goneOwners(record.touched.values());
  const changes: PlannedChange[] = [];
  const answers = new Map<
    string,
    { -readonly [K in keyof SimulatedAnswer]: SimulatedAnswer[K] }
  >();
  const loops: PlannedLoop[] = [];
  for (const touched of record.touched.values()) {
    const { definition } = touched.last;
    const isDefinition = definition.plural === CRD_PLURAL &&
      touched.write === undefined;
    if (isDefinition) continue;
    const change = changeOf(touched, { gone, managers: record.managers });
    if (change !== undefined) changes.push(hidden(change, run));
    else if (touched.write === undefined) addAnswer(answers, touched);
    const loop = loopOf(touched, duration);
    if (loop !== undefined) loops.push(loop);
  }
  for (const { before, after } of run.served) {
    const { apiVersion = "", kind = "", metadata } = after;
    const { namespace, name } = metadata;
    changes.push(hidden({
      action: "change",
      apiVersion,
      kind,
      ...namespace !== undefined && { namespace },
      name,
      cause: `the definition of ${kind}`,
      fields: fieldDifferences(before, after).map((one) =>
        fieldOf(one, { old: before, now: after, managers: record.managers })
      ),
    }, run));
  }
  changes.sort((a, b) => compareTexts(textOf(a), textOf(b)));
  const { info } = snapshot;
  return {
    cluster: {
      ...info,
      objects: info.resources.reduce((sum, { objects }) => sum + objects, 0),
    },
    simulated: { duration, quiet: quiet && loops.length === 0 },
    changes,
    loops,
    fights: run.fights,
    failures: failuresOf(run),
    fetches: run.fetches.map(({ request, ...one }) => ({
      request: secrets.hide(request),
      ...one,
    })),
    events: eventsOf(run),
    missingRights: missingRights(run, source),
    answers: [...answers.values()],
    unread: info.unread,
    notes: notesOf(run, source, snapshot),
  };
}

/** UIDs of the objects that are gone or going, with whether an owner is. */
function goneOwners(all: Iterable<TouchedObject>): ReadonlySet<string> {
  const gone = new Set<string>();
  for (const { before, after } of all) {
    if (before === undefined) continue;
    const isGone = after === undefined || after.uid !== before.uid ||
      after.terminating;
    if (isGone) gone.add(before.uid);
  }
  return gone;
}

/** What would happen to an object; undefined if the operator has no part in it. */
function changeOf(
  touched: TouchedObject,
  { gone, managers }: {
    readonly gone: ReadonlySet<string>;
    /** Field managers of the operator. */
    readonly managers: ReadonlySet<string>;
  },
): PlannedChange | undefined {
  const { before, after, last, write, others } = touched;
  const isGone = before !== undefined &&
    (after === undefined || after.terminating && !before.terminating);
  // What a controller deletes by itself is its answer.
  if (write === undefined && !(isGone && haveGone(last.owners, gone))) {
    return undefined;
  }
  if (before === undefined && after === undefined) return undefined;
  const { definition, namespace, name } = last;
  const object = (after ?? last).parse();
  const owner = controllerOf(last.owners);
  const base = {
    apiVersion: object.apiVersion ?? "",
    kind: object.kind ?? definition.kind,
    ...namespace !== "" && { namespace },
    name,
    ...owner !== undefined &&
      { owner: ownerText(owner, namespace) },
  };
  if (isGone) {
    const { finalizers = [] } = object.metadata;
    return {
      ...base,
      action: "delete",
      cause: deletionCause(touched, gone),
      fields: [],
      ...after !== undefined && {
        note: finalizers.length > 0
          ? `its finalizers hold it back: ${finalizers.join(", ")}`
          : "it was not gone at the end of the time",
      },
    };
  }
  const cause = write === undefined ? "" : `${write.verb} by ${write.manager}`;
  if (before === undefined) {
    return {
      ...base,
      action: "create",
      cause,
      fields: fieldsOfNew(object, others),
    };
  }
  const old = before.parse();
  const isNew = before.uid !== last.uid;
  const fields = fieldDifferences(old, object).filter(({ path }) =>
    isNew || !others?.has(pathText(path))
  );
  if (fields.length === 0 && !isNew) return undefined;
  const action: PlannedAction = isNew ? "replace" : "change";
  return {
    ...base,
    action,
    cause,
    fields: fields.map((one) => fieldOf(one, { old, now: object, managers })),
  };
}

function fieldOf(
  difference: FieldDifference,
  objects: Parameters<typeof losersOf>[1],
): PlannedField {
  const { path, before, after } = difference;
  const lost = losersOf(difference, objects);
  return {
    path: pathText(path),
    ...before !== undefined && { before },
    ...after !== undefined && { after },
    ...lost.length > 0 && { takenFrom: lost },
  };
}

/** Fields of a new object, as those of a change, without those of others. */
function fieldsOfNew(
  { apiVersion, kind, metadata, ...rest }: UntypedObject,
  others: ReadonlySet<string> = new Set(),
): readonly PlannedField[] {
  const { name, namespace, ownerReferences: _, ...chosen } = metadata;
  const emptied = (fields: object) =>
    Object.fromEntries(
      Object.entries(fields).filter(([, value]) => isJsonObject(value))
        .map(([field]) => [field, {}]),
    );
  const named = { apiVersion, kind };
  const before = {
    ...named,
    ...emptied(rest),
    metadata: { name, namespace, ...emptied(chosen) },
  };
  const after = { ...named, ...rest, metadata: { ...chosen, name, namespace } };
  return fieldDifferences(before as UntypedObject, after).map((
    { path, after },
  ) => ({ path: pathText(path), after })).filter(({ path }) =>
    !others.has(path)
  );
}

function controllerOf(
  owners: readonly OwnerReference[] | undefined,
): OwnerReference | undefined {
  return owners?.find(({ controller }) => controller) ?? owners?.[0];
}

function ownerText({ kind, name }: OwnerReference, namespace: string): string {
  return `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`;
}

/** Whether an object has owners and all of them are gone. */
function haveGone(
  owners: readonly OwnerReference[] = [],
  gone: ReadonlySet<string>,
): boolean {
  return owners.length > 0 && owners.every(({ uid }) => gone.has(uid));
}

/** Why an object would be deleted. */
function deletionCause(
  { deletedBy, write, before, last }: TouchedObject,
  gone: ReadonlySet<string>,
): string {
  const owners = last.owners ?? [];
  const ownersGo = haveGone(owners, gone);
  if (write === undefined || deletedBy === "cluster" && ownersGo) {
    return ownersGo ? "garbage collection: its owner goes" : "the cluster";
  }
  const { verb, manager } = write;
  if (!verb.startsWith("delete")) {
    return before?.terminating
      ? `cleanup: ${manager} removes its finalizer`
      : `${verb} by ${manager}`;
  }
  const owner = controllerOf(owners);
  if (owner === undefined) return "the operator";
  return ownersGo
    ? "cleanup: its owner goes"
    : "prune: the operator no longer wants it";
}

function addAnswer(
  answers: Map<
    string,
    { -readonly [K in keyof SimulatedAnswer]: SimulatedAnswer[K] }
  >,
  { before, after, last }: TouchedObject,
): void {
  if (before === undefined && after === undefined) return;
  const { kind } = last.definition;
  const answer = answers.get(kind) ??
    { kind, created: 0, changed: 0, deleted: 0 };
  if (before === undefined) answer.created++;
  else if (after === undefined) answer.deleted++;
  else answer.changed++;
  answers.set(kind, answer);
}

/** Loop of an object that the operator still writes at the end. */
function loopOf(
  { changes, times, states, fields, idle, idleTimes, last }: TouchedObject,
  duration: number,
): PlannedLoop | undefined {
  const since = Math.max(duration - END_MS, duration / 2);
  const isChanging = changes >= LOOP_WRITES && times.at(-1)! >= since;
  const isIdle = idle >= LOOP_WRITES && idleTimes.at(-1)! >= since;
  if (!isChanging && !isIdle) return undefined;
  const gaps = (isChanging ? times : idleTimes).map((time, index, all) =>
    time - (all[index - 1] ?? time)
  ).slice(1).sort((a, b) => a - b);
  const period = gaps[Math.floor(gaps.length / 2)] ?? 0;
  const alternating = new Set(states).size;
  const { definition: { kind }, namespace, name } = last;
  return {
    object: `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`,
    writes: isChanging ? changes : idle,
    period,
    ...isChanging && alternating <= states.length / 2 &&
      { states: alternating },
    fields: isChanging ? fields : [],
  };
}

function failuresOf(
  { record, duration, secrets }: PlannedRun,
): readonly PlannedFailure[] {
  const since = duration - END_MS;
  const failures = Array.from(record.failures).filter(([, one]) =>
    one.isFinal || one.last >= since
  ).map(([error, { count, objects }]) => ({
    error: secrets.hide(error),
    count,
    objects: [...objects],
  }));
  const ends = record.ends.map((why) => ({
    error: secrets.hide(`the operator ends: ${why}`),
    count: 1,
    objects: [],
  }));
  return [...ends.slice(0, 1), ...failures];
}

function eventsOf({ record, secrets }: PlannedRun): readonly PlannedEvent[] {
  const found = new Map<string, PlannedEvent>();
  for (const stored of record.events.values()) {
    const event = stored.parse() as UntypedObject & {
      readonly type?: string;
      readonly reason?: string;
      readonly message?: string;
      readonly note?: string;
      readonly count?: number;
      readonly source?: { readonly component?: string };
      readonly involvedObject?: ReferenceLike;
      readonly regarding?: ReferenceLike;
    };
    const about = event.involvedObject ?? event.regarding ?? {};
    const at = about.namespace ? `${about.namespace}/` : "";
    const one = {
      type: event.type ?? "Normal",
      reason: event.reason ?? "",
      message: secrets.hide(event.message ?? event.note ?? ""),
      object: `${about.kind} ${at}${about.name}`,
    };
    const key = JSON.stringify(one);
    const count = (found.get(key)?.count ?? 0) + (event.count ?? 1);
    found.set(key, { ...one, count });
  }
  return [...found.values()];
}

interface ReferenceLike {
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Access that the operator used, and that its manifests would not grant. */
function missingRights(
  { record, kinds }: PlannedRun,
  { operators }: OperatorSource,
): readonly MissingRight[] {
  const namespace = "operator";
  const access = operators.flatMap((operator) => {
    const { controllers, settings } = operator as OperatorHandle;
    return controllers === undefined || settings === undefined
      ? []
      : operatorAccess({ controllers, settings }, { namespace });
  });
  const plurals = new Map(
    Array.from(kinds, ([key, { group, kind }]) => [
      `${group}/${kind}`,
      key.slice(group.length + 1),
    ]),
  );
  const rules: readonly PolicyRule[] = rbacManifests({
    name: "operator",
    namespace,
    access: access.flatMap((one) => {
      const { group, version, kind } = one.kind;
      const plural = plurals.get(`${group}/${kind}`);
      return plural === undefined ? [] : [{
        ...one,
        kind: { group, version, kind, plural, scope: "Namespaced" as const },
        namespaces: "all" as const,
      }];
    }),
  }).flatMap(({ rules = [] }) => rules);
  return [...record.access].sort().flatMap((text) => {
    const [, verb = "", group = "", resource = ""] =
      /^(\S+) ([^/]*)\/(.+)$/.exec(text) ?? [];
    if (PUBLIC.has(group) || resource === "leases") return [];
    const isGranted = rules.some((rule) =>
      rule.apiGroups?.includes(group) && rule.resources?.includes(resource) &&
      rule.verbs.includes(verb)
    );
    return isGranted ? [] : [{ verb, group, resource }];
  });
}

/** Groups whose requests need no rights. */
const PUBLIC: ReadonlySet<string> = new Set([
  "authorization.k8s.io",
  "authentication.k8s.io",
]);

function notesOf(
  run: PlannedRun,
  { kindOf: _, ...source }: OperatorSource,
  { info, definitions }: Snapshot,
): readonly string[] {
  const unserved = Array.from(definitions)
    .filter(([, definition]) => !isEstablished(definition))
    .map(([name]) => name);
  const { undefinedKinds, otherDefinitions, record } = run;
  const installs = source.operators.some(({ controllers = [] }) =>
    controllers.some(({ settings }) => settings.install)
  );
  const list = (names: readonly string[]) => names.join(", ");
  return [
    undefinedKinds.length > 0 && !installs &&
    `The cluster does not define ${
      list(undefinedKinds)
    }: apply the definition first; the plan supposes it.`,
    undefinedKinds.length > 0 && installs &&
    `The cluster does not define ${
      list(undefinedKinds)
    }: the operator installs the definition, which the plan supposes and does not list.`,
    otherDefinitions.length > 0 && !installs &&
    `The cluster's definition of ${
      list(otherDefinitions)
    } differs from the operator's: the plan keeps that of the cluster.`,
    unserved.length > 0 &&
    `The cluster has definitions that it does not serve, as they are not established: ${
      list(unserved)
    }.`,
    info.hidesSecrets &&
    "The values of Secrets are digests: what the operator makes of them differs from the real thing.",
    info.selector !== undefined &&
    `Only the objects with ${info.selector} were read of the operator's own kinds.`,
    record.refused.size > 0 &&
    `The server refused: ${
      list(
        Array.from(
          record.refused,
          ([text, count]) => `${text}${count > 1 ? ` (${count}×)` : ""}`,
        ).slice(0, 5),
      )
    }.`,
    emptyNote(info, source.primaries),
    mixedNote(info),
  ].filter((note) => note !== false && note !== undefined);
}

/** Whether a server serves the kind of a definition. */
function isEstablished(definition: UntypedObject): boolean {
  const { conditions } = Object(definition["status"]) as {
    readonly conditions?: unknown;
  };
  return Array.isArray(conditions) &&
    conditions.some((one) =>
      isJsonObject(one) && one["type"] === "Established" &&
      one["status"] === "True"
    );
}

/** Change without secret values, and with values of a bounded size. */
function hidden(change: PlannedChange, { secrets }: PlannedRun): PlannedChange {
  const isSecret = change.kind === "Secret" && change.apiVersion === "v1";
  const show = (value: unknown, path: string) => {
    if (value === undefined) return undefined;
    const text = writeJson(value);
    const safe = secrets.hideJson(text, stepsOf(path));
    if (safe.length > MAX_VALUE) return `${safe.slice(0, MAX_VALUE)}…`;
    return safe === text ? value : JSON.parse(safe);
  };
  return {
    ...change,
    fields: change.fields.map(({ before, after, ...field }) => {
      const isHidden = isSecret && isSecretPath(stepsOf(field.path));
      const mask = (value: unknown) =>
        value === undefined
          ? undefined
          : isHidden
          ? HIDDEN
          : show(value, field.path);
      return {
        ...field,
        ...before !== undefined && { before: mask(before) },
        ...after !== undefined && { after: mask(after) },
      };
    }),
  };
}

/** First steps of a path as text. */
function stepsOf(path: string): readonly string[] {
  const steps = path.match(/\.[\w-]+|\[[^\]]*\]/g) ?? [];
  return steps.map((step) =>
    step.startsWith(".")
      ? step.slice(1)
      : step.slice(1, -1).replace(/^"|"$/g, "")
  );
}

function textOf({ kind, namespace = "", name }: PlannedChange): string {
  return `${kind} ${namespace}/${name}`;
}
