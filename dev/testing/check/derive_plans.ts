/**
 * Derivation of plans from the trace of a reference run: faults at each write
 * and at each event, without those that cannot matter.
 *
 * @module
 */
import { createHash } from "node:crypto";
import {
  isJsonObject,
  type JsonObject,
  jsonPointer,
  stateAnnotation,
} from "@coracle/operator/internal";
import { CALL_FAULTS, WEBHOOK_FAULTS } from "./perturbations.ts";
import type { Perturbation, Plan } from "./plan.ts";
import {
  eventsOf,
  notesOf,
  type RunRecord,
  type TracedEvent,
  type TracedWrite,
  writesOf,
} from "./run_record.ts";
import { isLeftOut, metadataOf, stateKey } from "./state.ts";
import { appliedKeys, type Scenario } from "./workload.ts";

/** Kinds of plans, in the order in which they are run, with their descriptions. */
export const PLAN_KINDS = {
  crash: "the operator is killed at a write",
  stale: "a restarted operator sees an older state for a while",
  missed: "an event is missed that the next one cancels",
  order: "an event comes after the next one of another kind",
  conflict: "an update conflicts, twice",
  lost: "the answer of a write is lost",
  call: "a request outside of the cluster is disturbed",
  down: "the operator is killed at a write, and is down during the next step",
  leader: "leadership is lost at a write",
  webhook: "the operator's webhooks are away, late or not trusted for a minute",
  delete: "someone deletes an owned object",
  edit: "someone changes an owned field",
  annotate: "someone annotates and labels an owned object",
  cascade: "an object is deleted after its parts",
  refuse: "a write is refused three times",
  late: "pods become ready late",
  flap: "pods become ready, unready and ready again",
  cut: "a watch is cut before an event",
  expire: "a watch expires before an event",
  throttle: "the server answers 429 for an hour",
  clock: "the clock jumps",
  upgrade: "the operator replaces an older one",
} as const;

export type PlanKind = keyof typeof PLAN_KINDS;

/** Perturbation, and the situation in which an equal one needs no plan. */
type Candidate = readonly [Perturbation, situation?: string];

/** Plans of a scenario. */
export interface DerivedPlans {
  readonly plans: readonly Plan[];
  /**
   * What each plan is about, without names, such as a crash after the creation
   * of a ConfigMap: plans about the same find mostly the same.
   */
  readonly abouts: readonly string[];
  /** Number of plans that were left out because they cannot matter. */
  readonly pruned: number;
}

/** An event is delayed by at most this many deliveries. */
const ORDER_WINDOW = 3;
/** Maximum number of fields of an object that another writer changes. */
const MAX_FIELDS = 8;
/** Time for which a restarted operator sees an older state, in milliseconds. */
const STALE_MS = 60_000;
/** Time for which webhooks are away, in milliseconds. */
const WEBHOOK_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Kinds whose pods the cluster simulates. */
const WORKLOADS = /^(Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|Pod)$/;

/**
 * Derives the plans of a scenario.
 *
 * @param scenario The scenario.
 * @param run Its reference run.
 * @param options.seen Signatures of the situations in other scenarios; those of
 * this scenario are added.
 */
export function derivePlans(
  scenario: Scenario,
  run: RunRecord,
  { seen = new Set(), upgrades = false, elects = false, admits = false }: {
    readonly seen?: Set<string>;
    /** Whether there is an older build. */
    readonly upgrades?: boolean;
    /** Whether the operator elects a leader. */
    readonly elects?: boolean;
    /** Whether the operator has webhooks. */
    readonly admits?: boolean;
  } = {},
): DerivedPlans {
  const found: Perturbation[] = [];
  let pruned = 0;
  const add = (perturbation: Perturbation, situation?: string) => {
    if (situation !== undefined) {
      const signature = `${perturbation.do} ${situation}`;
      if (seen.has(signature)) {
        pruned++;
        return;
      }
      seen.add(signature);
    }
    found.push(perturbation);
  };
  const writes = writesOf(run).filter(({ disturbed }) => !disturbed);
  const events = eventsOf(run);
  const situations = situationsOf(writes);
  writes.forEach((write, at) => {
    const { number, step } = write;
    const before = writes[at - 1];
    // A write that changed nothing leaves the state as the one before it.
    if (write.effect === "nothing" || step < scenario.known) {
      pruned += 3;
      return;
    }
    const situation = situations[at]!;
    // Killed before a write is killed after the one before it, unless something
    // else happened in between.
    const follows = before !== undefined && before.step === step &&
      before.effect !== "nothing" &&
      !isBetween(run, before, write);
    for (const place of ["before", "unanswered", "after"]) {
      if (place === "before" && follows) pruned++;
      else add({ do: "crash", write: number, place }, `${situation} ${place}`);
    }
    if (write.verb !== "delete" && write.effect !== "created") {
      add({ do: "conflict", write: number, times: 2 }, situation);
    }
    if (write.effect !== "changed" || write.verb !== "apply") {
      add({ do: "lost", write: number }, situation);
    }
    add({ do: "refuse", write: number, times: 3 }, situation);
    const [own, next] = scenario.steps.slice(step, step + 2);
    // An object that is going away cannot be created again until then.
    const isGoing = own !== undefined && "delete" in own;
    if (next !== undefined && own?.settle !== false && !isGoing) {
      const follows = `${situation} before ${JSON.stringify(next)}`;
      add({ do: "down", write: number, step }, follows);
    }
    if (elects) add({ do: "leader", write: number }, situation);
    for (const how of admits ? WEBHOOK_FAULTS : []) {
      add(
        { do: "webhook", write: number, how, ms: WEBHOOK_MS },
        situation + how,
      );
    }
    if (before === undefined || before.step !== step) {
      add({ do: "throttle", write: number, ms: HOUR_MS }, situation);
      for (const ms of [25 * HOUR_MS, -HOUR_MS]) {
        add({ do: "clock", write: number, ms }, `${situation} ${ms}`);
      }
    }
  });
  const others = [
    ...callPlans(scenario, run),
    ...stalePlans(scenario, run, writes),
    ...laggingPlans(scenario, run),
    ...missedPlans(scenario, events),
    ...orderPlans(scenario, events),
    ...cutPlans(scenario, events),
    ...foreignPlans(scenario, run, writes),
    ...cascadePlans(scenario, run),
  ];
  for (const [one, situation] of others) add(one, situation);
  if (writes.some(({ kind }) => WORKLOADS.test(kind))) {
    const situation = writes.filter(({ kind }) => WORKLOADS.test(kind))
      .map(signatureOf).join();
    add({ do: "late" }, situation);
    add({ do: "flap" }, situation);
  }
  if (upgrades && scenario.steps.length > 1) add({ do: "upgrade", step: 0 });
  return {
    plans: found.map((one) => ({
      scenario: scenario.name,
      perturbations: [one],
    })),
    abouts: found.map((one) => aboutOf(one, writes, events)),
    pruned,
  };
}

/** What a perturbation is about, without names. */
function aboutOf(
  one: Perturbation,
  writes: readonly TracedWrite[],
  events: readonly TracedEvent[],
): string {
  const { do: what, place = "", how = "", kind = "", field = "" } = one;
  const write = writes.find(({ number }) => number === one["write"]);
  const event = events.find(({ number }) => number === one["event"]);
  const at = write !== undefined
    ? signatureOf(write)
    : event !== undefined
    ? `${event.event} ${event.resource}`
    : "";
  return [what, place, how, kind, field, at].join(" ");
}

/** Signature of a write: its verb, kind and effect, without names. */
function signatureOf(write: TracedWrite): string {
  const { verb, kind, subresource, effect } = write;
  return `${verb} ${kind}/${subresource} ${effect}`;
}

/**
 * Situation of each write: a digest of it and of the earlier writes of its step,
 * whose texts would be long where a step has hundreds of writes.
 */
function situationsOf(writes: readonly TracedWrite[]): readonly string[] {
  let before = "";
  return writes.map((write, at) => {
    if (writes[at - 1]?.step !== write.step) before = "";
    const { namespace, name, body = null } = write;
    const text = [before, signatureOf(write), namespace, name, body];
    before = createHash("sha256").update(JSON.stringify(text)).digest("base64");
    return before;
  });
}

function isBetween(
  { trace }: RunRecord,
  first: TracedWrite,
  second: TracedWrite,
): boolean {
  const [from, to] = [trace.indexOf(first), trace.indexOf(second)];
  return trace.slice(from + 1, to).some((entry) =>
    entry.type === "event" && entry.uid !== first.uid ||
    entry.type === "note" && entry.what === "external"
  ) || second.at - first.at > 1_000;
}

/** Disturbances of requests outside of the cluster that were answered. */
function* callPlans(
  scenario: Scenario,
  run: RunRecord,
): Generator<Candidate> {
  for (const { call, text, step } of notesOf(run, "external")) {
    if (call === undefined || step < scenario.known) continue;
    const isRead = /^(GET|HEAD|OPTIONS) /.test(text);
    for (const how of isRead ? ["refused", "slow"] : Object.keys(CALL_FAULTS)) {
      yield [{ do: "call", call, how }, `${text} ${how}`];
    }
  }
}

/**
 * Restarts at the end of a step after which the operator sees the state at the
 * end of an earlier step for a while.
 */
function* stalePlans(
  scenario: Scenario,
  { steps }: RunRecord,
  writes: readonly TracedWrite[],
): Generator<Candidate> {
  for (const [step, { writes: write }] of steps.entries()) {
    if (step < scenario.known || scenario.steps[step]?.settle === false) {
      continue;
    }
    for (const [past, older] of steps.slice(0, step).entries()) {
      // Without a write since then the older state leads to the same decisions.
      const since = writes.some((write) =>
        write.step > past && write.step <= step && write.effect !== "nothing"
      );
      if (!since) continue;
      yield [{ do: "stale", write, revision: older.revision, ms: STALE_MS }];
    }
  }
}

/**
 * Restarts at the end of a step that creates an object, after which the
 * operator does not see the new objects of its kind for a while; and restarts
 * after which it does not see its own writes to one kind.
 */
function* laggingPlans(
  scenario: Scenario,
  run: RunRecord,
): Generator<Candidate> {
  for (const [at, { writes: write, objects }] of run.steps.entries()) {
    const [step, older] = [scenario.steps[at], run.steps[at - 1]];
    const isGone = step !== undefined && "delete" in step;
    if (at >= scenario.known && step?.settle !== false && !isGone) {
      yield* laggingParts(scenario, run, at);
    }
    if (step === undefined || older === undefined || !("apply" in step)) {
      continue;
    }
    if (at < scenario.known || step.settle === false || write === 0) continue;
    const { kind } = step.apply;
    const count = (all: readonly JsonObject[]) =>
      all.filter((object) => object["kind"] === kind).length;
    // Without another object of the kind there is no run that can be misled.
    if (count(older.objects) === 0 || count(objects) <= count(older.objects)) {
      continue;
    }
    const shown = eventsOf(run).find((event) => event.kind === kind);
    if (shown === undefined) continue;
    const { resource } = shown;
    const { revision } = older;
    yield [{ do: "stale", write, revision, ms: STALE_MS, resource }];
  }
}

/** Restarts at the end of a step after which one kind of parts lags behind it. */
function* laggingParts(
  scenario: Scenario,
  run: RunRecord,
  at: number,
): Generator<Candidate> {
  const byUser = new Set(appliedKeys(scenario).map((key) => key.split(" ")[0]));
  const own = new Set(
    writesOf(run).filter(({ step, effect, kind, subresource }) =>
      step === at && effect !== "nothing" && subresource === "" &&
      !byUser.has(kind)
    ).map(({ uid }) => uid),
  );
  const shown = eventsOf(run).filter(({ step, uid }) =>
    step === at && own.has(uid)
  );
  const write = run.steps[at]?.writes ?? 0;
  const kinds = Map.groupBy(
    shown,
    ({ group, resource }) => `${resource}.${group}`,
  );
  for (const [kind, [first, ...others]] of kinds) {
    const { resource, revision } = first!;
    const content = [first!, ...others].map(({ event, namespace, name }) =>
      `${event} ${namespace}/${name}`
    );
    const stale = { write, revision: revision - 1, ms: STALE_MS, resource };
    yield [{ do: "stale", ...stale }, `${kind} without ${content}`];
  }
}

/**
 * Missed events that the next event of the same object cancels, before the
 * operator can come to rest: a relist shows only the last state, too.
 */
function* missedPlans(
  scenario: Scenario,
  events: readonly TracedEvent[],
): Generator<Candidate> {
  for (const [at, event] of events.entries()) {
    if (event.step < scenario.known || event.event === "MODIFIED") continue;
    const { resource, group, revision: from } = event;
    const next = events.slice(at + 1).find((other) =>
      other.resource === resource && other.group === group &&
      other.namespace === event.namespace && other.name === event.name &&
      other.event !== "MODIFIED"
    );
    if (next === undefined || next.event === event.event) continue;
    const between = scenario.steps.slice(event.step, next.step);
    if (between.some(({ settle }) => settle !== false)) continue;
    yield [{ do: "missed", resource, group, from, to: from + 1 }];
  }
}

/** Events that are delivered after a later event of another kind. */
function* orderPlans(
  scenario: Scenario,
  events: readonly TracedEvent[],
): Generator<Candidate> {
  for (const [at, event] of events.entries()) {
    if (event.step < scenario.known) continue;
    for (const other of events.slice(at + 1, at + 1 + ORDER_WINDOW)) {
      if (other.step !== event.step) break;
      if (other.resource === event.resource && other.group === event.group) {
        continue;
      }
      yield [
        { do: "order", event: event.number, after: other.number },
        `${deliveryOf(event, events)} after ${deliveryOf(other, events)}`,
      ];
    }
  }
}

function* cutPlans(
  scenario: Scenario,
  events: readonly TracedEvent[],
): Generator<Candidate> {
  for (const event of events) {
    if (event.step < scenario.known) continue;
    const situation = deliveryOf(event, events);
    yield [{ do: "cut", event: event.number }, situation];
    yield [{ do: "expire", event: event.number }, situation];
  }
}

/** Text of a delivery, with the number of earlier equal ones in its step. */
function deliveryOf(
  event: TracedEvent,
  events: readonly TracedEvent[],
): string {
  const { resource, event: type, name, step } = event;
  const before = events.filter((other) =>
    other.step === step && other.number < event.number &&
    other.resource === resource && other.name === name && other.event === type
  );
  return `${type} ${resource} ${name} ${before.length}`;
}

/** Deletions and changes of owned objects by another writer, after a step. */
function* foreignPlans(
  scenario: Scenario,
  { steps, before }: RunRecord,
  writes: readonly TracedWrite[],
): Generator<Candidate> {
  const given = new Set(before);
  const byUser = new Set(appliedKeys(scenario));
  for (const [step, { objects }] of steps.entries()) {
    if (step < scenario.known || scenario.steps[step]?.settle === false) {
      continue;
    }
    for (const object of objects) {
      const key = stateKey(object);
      const { uid, name, namespace, deletionTimestamp } = metadataOf(object);
      if (given.has(key) || byUser.has(key) || isLeftOut(object)) continue;
      if (deletionTimestamp !== undefined) continue;
      const own = writes.filter((write) =>
        write.uid === uid && write.subresource === "" && write.step <= step
      );
      if (!own.some(({ effect }) => effect === "created")) continue;
      const address = {
        step,
        apiVersion: String(object["apiVersion"]),
        kind: String(object["kind"]),
        ...(namespace === undefined ? {} : { namespace: String(namespace) }),
        name: String(name),
      };
      const content = contentOf(object);
      // A part of a changed object may be made in another way than the first.
      const isChanged = objects.some((one) =>
        byUser.has(stateKey(one)) && Number(metadataOf(one)["generation"]) > 1
      );
      // A job writes the state of its schedule again only with its next run.
      if (!keepsSchedule(object)) {
        yield [{ do: "delete", ...address }, `${key} ${content} ${isChanged}`];
      }
      // What others add goes when the operator sees it, or with its next change.
      const next = writes.find((write) =>
        write.uid === uid && write.subresource === "" && write.step > step &&
        write.effect === "changed"
      );
      const later = next === undefined
        ? ""
        : `${signatureOf(next)} ${JSON.stringify(next.body ?? null)}`;
      yield [{ do: "annotate", ...address }, `${key} ${later}`];
      const fields = ownFields(own).filter((path) =>
        valueAt(object, path) !== undefined
      );
      for (const path of fields.slice(0, MAX_FIELDS)) {
        const pointer = jsonPointer(path).slice(1);
        yield [
          { do: "edit", ...address, field: pointer },
          `${key} ${pointer} ${content}`,
        ];
      }
    }
  }
}

/** Whether a job keeps the time of its last run in an object. */
function keepsSchedule(object: JsonObject): boolean {
  const { annotations } = metadataOf(object);
  const prefix = stateAnnotation("");
  return Object.keys(annotations ?? {}).some((name) => name.startsWith(prefix));
}

/** Deletions of objects that have parts, after which the parts go first. */
function* cascadePlans(
  scenario: Scenario,
  { steps }: RunRecord,
): Generator<Candidate> {
  for (const [step, one] of scenario.steps.entries()) {
    if (!("delete" in one) || step < scenario.known) continue;
    const objects = steps[step - 1]?.objects ?? [];
    const target = objects.find((object) =>
      stateKey(object) === stateKey(one.delete)
    );
    const { uid } = metadataOf(target ?? {});
    const parts = objects.filter((object) => {
      const { ownerReferences } = metadataOf(object);
      return uid !== undefined && Array.isArray(ownerReferences) &&
        ownerReferences.some((owner) => owner.uid === uid);
    });
    if (parts.length === 0) continue;
    const content = parts.map((part) => `${stateKey(part)} ${contentOf(part)}`);
    yield [{ do: "cascade", step }, content.join()];
  }
}

function contentOf(object: JsonObject): string {
  const { metadata: _, status: __, ...content } = object;
  return JSON.stringify(content);
}

/** Paths of the fields that an operator has written. */
function ownFields(
  writes: readonly TracedWrite[],
): readonly (readonly string[])[] {
  const paths = new Map<string, readonly string[]>();
  const walk = (value: unknown, path: readonly string[]) => {
    if (isJsonObject(value)) {
      for (const [name, inner] of Object.entries(value)) {
        walk(inner, [...path, name]);
      }
    } else if (value !== null && !Array.isArray(value)) {
      paths.set(path.join("/"), path);
    }
  };
  for (const { body } of writes) {
    if (!isJsonObject(body)) continue;
    const { apiVersion: _, kind: __, metadata, status: ___, ...content } = body;
    walk(content, []);
    const labels = isJsonObject(metadata) ? metadata["labels"] : undefined;
    walk(labels ?? {}, ["metadata", "labels"]);
  }
  return [...paths.values()];
}

/** Value at a path of fields. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    found = isJsonObject(found) ? found[name] : undefined;
  }
  return found;
}
