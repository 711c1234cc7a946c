/**
 * One run of a scenario in a simulation of its own.
 *
 * @module
 */
import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import {
  ApiError,
  milliseconds,
  type UntypedObject,
} from "@coracle/operator/client";
import {
  errorMessage,
  isJsonObject,
  type JsonObject,
  pointerSteps,
} from "@coracle/operator/internal";
import type { CheckOptions } from "../check_options.ts";
import { SHOWN } from "./calls.ts";
import { MARK } from "./mark.ts";
import type { OperatorSource } from "./operator_source.ts";
import {
  type ForeignChange,
  type Perturbation,
  RETRY_MS,
  type WorldPlan,
  worldPlan,
} from "./plan.ts";
import {
  isAtRest,
  MAX_WRITES,
  type Refusal,
  type Restart,
  type RunRecord,
  type TraceEntry,
  writesOf,
} from "./run_record.ts";
import { restingKey } from "./resting_state.ts";
import { clusterState } from "./state.ts";
import { type CheckStep, type Scenario, stepText } from "./workload.ts";
import type {
  EventEntry,
  RequestEntry,
  TraceEntry as WorldEntry,
} from "./trace.ts";
import { referenceOf } from "./object_reference.ts";
import { World } from "./world.ts";
import {
  firstStart,
  type Recording,
  type Resumption,
  resumption,
} from "./resumption.ts";
import { Explorer } from "./explorer.ts";
import { valueAt } from "./derive_plans.ts";

type Invariants = NonNullable<CheckOptions["invariants"]>;
type Invariant = NonNullable<Invariants["always"]>[string];

/** Settings of a run, apart from its plan. */
export interface RunSetup
  extends Pick<CheckOptions, "invariants" | "externals"> {
  readonly source: OperatorSource;
  readonly seed: number;
  /** Whether pods run on simulated nodes. */
  readonly simulate: boolean;
  /** Whether Services get endpoints; by default they do. */
  readonly endpoints?: boolean | undefined;
  /** Duration of the idle time at the end of the run, in milliseconds. */
  readonly idle?: number | undefined;
  /** Whether a new process of the operator starts after the idle time. */
  readonly restarts?: boolean | undefined;
  /**
   * Whether a state at rest after a step is known to lead to no finding: there the
   * run ends.
   */
  readonly isKnown?: ((step: number, state: string) => boolean) | undefined;
  /** Explorer that chooses the order of event deliveries and writes. */
  readonly explorer?: Explorer | undefined;
  /** Called with the moments of the run from which others can go on. */
  readonly recorded?: ((recording: Recording) => void) | undefined;
  /** Undisturbed run of the scenario from which the run goes on, if it can. */
  readonly from?: Recording | undefined;
}

/** Maximum virtual time until an operator is at rest, in milliseconds. */
const SETTLE_MS = 6 * 3_600_000;
/** Time without a write after which an operator is at rest, in milliseconds. */
const STILL_MS = 5 * 60_000;

/** Time of a step in which the operator is killed and stays down, in milliseconds. */
const AWAY_MS = 60_000;
const HOUR_MS = 3_600_000;

/** How often, and after what time, a user tries what the server cannot do. */
const ATTEMPTS = { most: 30, pauseMs: 60_000 };

/** Maximum number of requests, deliveries and timers in a run. */
const MAX_ACTIONS = 20_000;

/** Runs a scenario with the perturbations of a plan. */
export async function runScenario(
  scenario: Scenario,
  perturbations: readonly Perturbation[],
  setup: RunSetup,
): Promise<RunRecord> {
  const before = process.cpuUsage();
  const { from: recording, source, invariants } = setup;
  const plan = worldPlan(perturbations);
  const isWithin = source.file !== undefined && invariants === undefined;
  const from = recording && isWithin
    ? resumption(recording, plan)
    : recording && firstStart(recording);
  const isDisturbed = perturbations.length > 0;
  const given = { ...setup, isDisturbed, before };
  const run = await playScenario(scenario, plan, { ...given, from }) ??
    await playScenario(scenario, plan, {
      ...given,
      from: recording && firstStart(recording),
    });
  return run as RunRecord;
}

/**
 * Plays a scenario, from a moment of an undisturbed run if one is given.
 *
 * @returns Nothing if what was left out there matters.
 */
async function playScenario(
  scenario: Scenario,
  plan: WorldPlan,
  { from, isDisturbed, before, ...setup }: Omit<RunSetup, "from"> & {
    readonly from: Resumption | undefined;
    readonly isDisturbed: boolean;
    /** CPU time of the process before the run. */
    readonly before: NodeJS.CpuUsage;
  },
): Promise<RunRecord | undefined> {
  const violations = new Violations(setup.invariants);
  const { source, seed, simulate, endpoints, externals } = setup;
  const explorer = setup.explorer ??
    (plan.choices === undefined ? undefined : new Explorer(plan.choices));
  const made: { world?: World } = {};
  const world = await World.start({
    seed,
    simulate,
    endpoints,
    kinds: source.kinds,
    perturbations: plan.perturbations,
    maxActions: MAX_ACTIONS,
    fetch: externals,
    order: explorer,
    from: from?.point,
    keepsPoints: setup.recorded !== undefined,
    load: (start) =>
      source.load(
        start,
        plan.upgradeAfter !== undefined && start.incarnation === 1,
      ),
    ...(setup.invariants?.always && {
      onChange: () => made.world && violations.always(made.world),
    }),
  });
  made.world = world;
  // What the run does not play itself.
  const { first = 0, begun = 0 } = from ?? {};
  const steps = from?.run.steps.slice(0, first) ?? [];
  const resting = steps.map(() => "");
  const bounds = from?.bounds.slice(0, begun) ?? [];
  const begins = from?.begins.slice(0, begun) ?? [];
  let hidden: readonly [number, number] | undefined;
  let acted = 0;
  // More are reported as too many, whatever follows.
  const writes = isDisturbed ? undefined : MAX_WRITES + 1;
  try {
    if (begun === 0) await settled(world, violations, { at: 0 });
    if (from?.isAtRest) {
      const isQuiet = await world.quiet() === "quiet";
      if (!world.countOn(from.point) || !isQuiet) {
        from.points.dropRest(from.point);
        return undefined;
      }
      hidden = [from.point.length, world.trace.length];
    }
    const given = begun === 0
      ? [...clusterState(objectsOf(world)).keys()]
      : from?.run.before ?? [];
    for (const [at, step] of scenario.steps.entries()) {
      if (at < first) continue;
      violations.step = at;
      let refused = from?.run.steps[at]?.refused;
      if (at >= begun) {
        bounds.push(world.trace.length);
        begins.push(world.now);
        if (at >= scenario.known) explorer?.begin(world, at);
        for (const jump of plan.jumps) {
          if (jump.step === at) world.jump(jump.ms);
        }
        const policy = plan.cascades.has(at) ? "Foreground" : undefined;
        refused = await play(world, step, policy);
      }
      const waited = () => world.now - (begins[at] ?? 0);
      const isAway = plan.away.has(at);
      let quiet = step.settle === false ||
        await (isAway
          ? world.advance(AWAY_MS - waited()).then(() => true)
          : settled(world, violations, { at, writes }));
      const hits = hitsOf(world);
      const isActive = !isAway && hits > acted || plan.waits.has(at);
      if (quiet && isActive && step.settle !== false) {
        // A refused operator is at rest between its retries. One that was refused
        // without a rest has waited, and what is due must not depend on that.
        const rest = plan.aftermath - waited() + STILL_MS;
        await world.advance(Math.max(rest, RETRY_MS));
        quiet = await settled(world, violations, { at, writes });
      }
      acted = hits;
      for (const change of plan.foreign) {
        if (change.step !== at) continue;
        await makeChange(world, change);
        quiet = await settled(world, violations, { at, writes }) && quiet;
      }
      if (plan.upgradeAfter === at) {
        await world.kill("upgrade");
        await world.restart();
        quiet = await settled(world, violations, { at, writes }) && quiet;
      }
      if (step.settle !== false) explorer?.rest();
      const objects = objectsOf(world);
      steps.push({
        text: stepText(step),
        ...refused && { refused },
        quiet,
        objects,
        revision: world.revision,
        writes: world.writes,
      });
      if (!quiet) break;
      if (setup.recorded && step.settle !== false) {
        world.points.addRest(at, world.point());
      }
      const isKept = step.settle !== false && !isAway &&
        explorer === undefined &&
        world.isUndisturbed && isOver(plan, at);
      const state = isKept
        ? restingKey(world.trace, objects, world.incarnation)
        : "";
      resting.push(state);
      if (isKept && setup.isKnown?.(at, state)) break;
    }
    explorer?.end();
    bounds.push(world.trace.length);
    // An operator that is never at rest writes while it is idle, too.
    const idle = isAtRest({ steps }) ? setup.idle ?? 0 : 0;
    const rested = world.now;
    if (idle > 0) await world.advance(idle);
    const traced = () =>
      tracedEntries(world.trace, bounds, {
        steps: scenario.steps,
        kindOf: (group, resource) => source.kindOf(group, resource),
        hidden,
      });
    const trace = traced();
    // Another process has not done what the plan is about.
    if (from?.isAtRest && world.hits.includes(0)) return undefined;
    const restart = idle > 0 && setup.restarts
      ? await restarted(world, () => traced().slice(trace.length))
      : undefined;
    const { user, system } = process.cpuUsage(before);
    const run: RunRecord = {
      steps,
      trace,
      resting,
      before: given,
      idle: {
        duration: idle,
        writes: writesOf({ trace })
          .filter(({ step }) => step >= scenario.steps.length).length,
        reads: readsOf(world.trace, {
          from: rested,
          to: rested + Math.min(idle, HOUR_MS),
          kindOf: (group, resource) => source.kindOf(group, resource),
        }),
      },
      restart,
      violations: violations.found,
      readsEndpoints: world.trace.some((entry) =>
        entry.type === "request" &&
        /^endpoint(s|slices)$/.test(entry.resource)
      ),
      unanswered: [
        ...new Set(
          world.trace.flatMap((entry) =>
            entry.type === "external" && entry.status === 0
              ? [`${entry.method} ${entry.url}`]
              : []
          ),
        ),
      ],
      isPart: begun > 0,
      cpu: (user + system) / 1000,
    };
    setup.recorded?.({ run, points: world.points, bounds, begins });
    return run;
  } finally {
    await world.end();
  }
}

/** Whether a plan has no further part after a step of the workload. */
function isOver(
  { foreign, jumps, waits, cascades, upgradeAfter = -1 }: WorldPlan,
  at: number,
): boolean {
  const steps = [...waits, ...cascades, ...foreign.map(({ step }) => step)];
  return jumps.length === 0 && upgradeAfter <= at &&
    steps.every((step) => step <= at);
}

/** Numbers of the reads of an operator in a time, without watches. */
function readsOf(
  trace: readonly WorldEntry[],
  { from, to, kindOf }: {
    readonly from: number;
    readonly to: number;
    readonly kindOf: KindOf;
  },
): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const entry of trace) {
    if (entry.type !== "request" || !/^(get|list)$/.test(entry.verb)) continue;
    const isLease = entry.resource === "leases";
    if (entry.at < from || entry.at >= to || isLease) continue;
    const text = `${entry.verb} ${kindOf(entry.group, entry.resource)}`;
    counts[text] = (counts[text] ?? 0) + 1;
  }
  return counts;
}

/** Waits until the operator is at rest, and then checks the invariants. */
async function settled(
  world: World,
  violations: Violations,
  { at, writes }: { readonly at: number; readonly writes?: number | undefined },
): Promise<boolean> {
  const limits = { within: SETTLE_MS, still: STILL_MS, writes };
  if (await world.quiet(limits) !== "quiet") return false;
  violations.step = at;
  violations.eventually(world);
  return true;
}

/**
 * Starts a new process of an operator at rest.
 *
 * @param added Function that returns what was added to the trace.
 * @returns Nothing if it does not come to rest.
 */
async function restarted(
  world: World,
  added: () => readonly TraceEntry[],
): Promise<Restart | undefined> {
  const before = objectsOf(world);
  await world.restart();
  if (await world.quiet({ writes: MAX_WRITES }) !== "quiet") return undefined;
  return {
    before,
    after: objectsOf(world),
    writes: writesOf({ trace: added() }),
  };
}

function objectsOf(world: World): readonly JsonObject[] {
  return Object.values(world.snapshot()) as unknown as readonly JsonObject[];
}

function hitsOf({ hits }: World): number {
  return hits.reduce((sum, one) => sum + one, 0);
}

/**
 * Performs a step of the workload: again after a while where the server fails, as
 * it does while it cannot reach a webhook of the operator.
 *
 * @returns How the server has refused it; undefined if it did not.
 */
async function play(
  world: World,
  step: CheckStep,
  policy: "Foreground" | undefined,
): Promise<Refusal | undefined> {
  if ("wait" in step) {
    await world.advance(milliseconds(step.wait, "wait"));
    return undefined;
  }
  for (let attempt = 1;; attempt++) {
    try {
      if ("apply" in step) {
        await world.apply(step.apply as unknown as UntypedObject);
      } else if ("patch" in step) {
        await world.patch(step.patch as unknown as UntypedObject);
      } else await world.delete(referenceOf(step.delete), policy);
      return undefined;
    } catch (error) {
      if (!ApiError.is(error)) throw error;
      const { status: code, details, isNotFound } = error;
      if (isNotFound && "delete" in step) return undefined;
      const isOver = code < 500 || attempt === ATTEMPTS.most;
      if (isOver) return { code, causes: details.causes ?? [] };
      await world.advance(ATTEMPTS.pauseMs);
    }
  }
}

/** Deletes an owned object, or changes its metadata or a field of it. */
async function makeChange(
  world: World,
  { target, change }: ForeignChange,
): Promise<void> {
  const work = () => {
    if (change === "delete") return world.delete(target);
    if (change === "annotate") return patch({ metadata: MARK });
    const path = pointerSteps(`/${change.field}`);
    const object = objectsOf(world).find((one) =>
      isDeepStrictEqual(referenceOf(one), target)
    );
    const other = otherValue(valueAt(object, path));
    if (other === undefined) return Promise.resolve();
    return patch(
      path.reduceRight<unknown>(
        (inner, part) => ({ [part]: inner }),
        other,
      ) as JsonObject,
    );
  };
  const patch = (fields: JsonObject) => {
    const { apiVersion, kind, name, namespace } = target;
    return world.patch(
      {
        ...fields,
        apiVersion,
        kind,
        metadata: { ...fields["metadata"] as object, name, namespace },
      } as UntypedObject,
    );
  };
  await work().catch((error: unknown) => {
    if (!ApiError.is(error)) throw error;
  });
}

/** Returns another value of the same type; undefined for lists and objects. */
function otherValue(value: unknown): unknown {
  switch (typeof value) {
    case "string":
      return /^\d+$/.test(value) ? String(Number(value) + 1) : `${value}-x`;
    case "number":
      return value + 1;
    case "boolean":
      return !value;
    default:
      return undefined;
  }
}

/** Violations of custom invariants, each once. */
class Violations {
  readonly #invariants: Invariants;
  readonly #found: Map<string, RunRecord["violations"][number]> = new Map();
  step = 0;

  constructor(invariants: Invariants = {}) {
    this.#invariants = invariants;
  }

  get found(): RunRecord["violations"] {
    return [...this.#found.values()];
  }

  always(world: World): void {
    this.#check("always", this.#invariants.always, world);
  }

  eventually(world: World): void {
    this.#check("eventually", this.#invariants.eventually, world);
  }

  #check(
    when: string,
    invariants: Readonly<Record<string, Invariant>> = {},
    world: World,
  ): void {
    let objects: readonly UntypedObject[] | undefined;
    const state: Parameters<Invariant>[0] = {
      list: (kind) =>
        (objects ??= Object.values(world.snapshot())).filter((one) =>
          one.kind === kind
        ),
    };
    for (const [name, invariant] of Object.entries(invariants)) {
      const oracle = `${when}:${name}`;
      if (this.#found.has(oracle)) continue;
      let result: boolean | string | void;
      try {
        result = invariant(state);
      } catch (error) {
        result = errorMessage(error);
      }
      if (result === false || typeof result === "string") {
        const text = typeof result === "string" ? `${name}: ${result}` : name;
        this.#found.set(oracle, {
          oracle,
          text: `a custom invariant does not hold: ${text}`,
          step: this.step,
        });
      }
    }
  }
}

/** Step of the workload, and virtual time, of an entry in a trace. */
type Moment = Pick<TraceEntry, "step" | "at">;

type KindOf = (group: string, resource: string) => string;

/** Converts the trace of a simulation to the form for plans and oracles. */
function tracedEntries(
  trace: readonly WorldEntry[],
  bounds: readonly number[],
  { steps, kindOf, hidden: [from, to] = [0, 0] }: {
    readonly steps: readonly CheckStep[];
    readonly kindOf: KindOf;
    /** Entries that are left out: from the first place to before the second. */
    readonly hidden?: readonly [number, number] | undefined;
  },
): readonly TraceEntry[] {
  const found: TraceEntry[] = [];
  let step = -1;
  let current: string | undefined;
  trace.forEach((entry, index) => {
    if (index >= from && index < to) return;
    const { at } = entry;
    while (bounds[step + 1] !== undefined && bounds[step + 1]! <= index) {
      step++;
      current = steps[step] && stepText(steps[step]!);
      if (current !== undefined) {
        found.push(note("step", current, { step, at }));
      }
    }
    const traced = entry.type === "actor"
      ? foreignNote(entry, current, { step, at, kindOf })
      : tracedEntry(entry, { step, at }, kindOf);
    if (traced !== undefined) found.push(traced);
  });
  return found;
}

function note(what: string, text: string, { step, at }: Moment): TraceEntry {
  return { type: "note", what, text, step, at };
}

/** Creates a note about a change by another writer than user and cluster. */
function foreignNote(
  { who, change, group, resource, namespace, name }: Extract<
    WorldEntry,
    { type: "actor" }
  >,
  current: string | undefined,
  { kindOf, ...moment }: Moment & { readonly kindOf: KindOf },
): TraceEntry | undefined {
  const at = namespace === "" ? "" : `${namespace}/`;
  const object = `${kindOf(group, resource)} ${at}${name}`;
  const isExpected = current === undefined || current.endsWith(object);
  if (who === "cluster" || isExpected) return undefined;
  return note("disturbance", `someone else: ${change} ${object}`, moment);
}

/** Fields of the log line of a failed run. */
interface LoggedFailure {
  readonly object: string;
  readonly error: unknown;
}

function tracedEntry(
  entry: Exclude<WorldEntry, { type: "actor" }>,
  moment: Moment,
  kindOf: KindOf,
): TraceEntry | undefined {
  switch (entry.type) {
    case "request":
      return tracedRequest(entry, moment, kindOf);
    case "event":
      return tracedDelivery(entry, moment, kindOf);
    case "kill":
      return note("kill", `the operator is killed: ${entry.why}`, moment);
    case "exit":
      return note("exit", `the operator ends: ${entry.why}`, moment);
    case "start":
      return note("start", `incarnation ${entry.incarnation}`, moment);
    case "rejection":
      return note("rejection", entry.message, moment);
    case "log": {
      if (!entry.message.startsWith("Run failed")) return undefined;
      const { object, error } = JSON.parse(entry.fields) as LoggedFailure;
      const [line] = String(error).split("\n", 1);
      return note("failed", `${object}: ${line}`, moment);
    }
    case "external": {
      const { method, url, body } = entry;
      const sent = body === undefined ? "" : ` ${body.slice(0, SHOWN)}`;
      const text = `${method} ${url}${sent}`;
      const { n: call, fault } = entry;
      if (fault === "refused") {
        return note("disturbance", `refused: ${method} ${url}`, moment);
      }
      const what = "external";
      return entry.status === 0 && fault === undefined
        ? { type: "note", what, text, body, ...moment }
        : { type: "note", what, text, body, call, ...moment };
    }
    default:
      return undefined;
  }
}

/** Write of an operator; a note about a read that was forbidden. */
function tracedRequest(
  entry: RequestEntry,
  moment: Moment,
  kindOf: KindOf,
): TraceEntry | undefined {
  const { group, resource, subresource, namespace, write, fault } = entry;
  const { uid = "", reason = "", changed } = entry;
  const code = entry.answered ? entry.code : 0;
  const disturbed = fault !== undefined;
  if (write === undefined) {
    return code === 403 && !disturbed
      ? note("forbidden", `${entry.verb} ${resource}`, moment)
      : undefined;
  }
  const body = bodyOf(entry.body);
  // Server-side apply is a patch that may take fields over.
  const verb = entry.verb === "patch" && entry.path.includes("force=")
    ? "apply"
    : entry.verb;
  return {
    type: "write",
    ...moment,
    number: write,
    verb,
    kind: kindOf(group, resource),
    group,
    resource,
    subresource,
    namespace,
    name: entry.name || nameIn(body),
    uid,
    code,
    reason,
    ...entry.causes && !disturbed && { causes: entry.causes },
    effect: effectOf(verb, entry.code, changed),
    ...(body !== undefined && { body }),
    disturbed,
  };
}

/** Event that was delivered; a note about one that a fault has replaced. */
function tracedDelivery(
  { n, event, group, resource, namespace, name, uid, revision, fault }:
    EventEntry,
  moment: Moment,
  kindOf: KindOf,
): TraceEntry | undefined {
  const isChange = event === "ADDED" || event === "MODIFIED" ||
    event === "DELETED";
  if (n === undefined || !isChange) return undefined;
  const kind = kindOf(group, resource);
  if (fault !== undefined) {
    const shown = `${event} ${kind} ${name} @${revision}`;
    return note("disturbance", `${fault}: ${shown}`, moment);
  }
  const object = { kind, group, resource, namespace, name, uid };
  return { type: "event", ...moment, number: n, event, ...object, revision };
}

function bodyOf(body: unknown): unknown {
  if (typeof body !== "string") return body;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function nameIn(body: unknown): string {
  const metadata = isJsonObject(body) ? body["metadata"] : undefined;
  return isJsonObject(metadata)
    ? String(metadata["name"] ?? metadata["generateName"] ?? "")
    : "";
}

function effectOf(
  verb: string,
  code: number,
  changed: boolean,
): "created" | "changed" | "deleted" | "nothing" {
  if (!changed) return "nothing";
  if (verb.startsWith("delete")) return "deleted";
  return code === 201 || verb === "create" ? "created" : "changed";
}
