/**
 * Runs that go on from a moment of the undisturbed run of their scenario, so that
 * what both have in common is played once.
 *
 * @module
 */
import type { WorldPlan } from "./plan.ts";
import { eventsOf, notesOf, type RunRecord, writesOf } from "./run_record.ts";
import type { WorldPoint, WorldPoints } from "./world_point.ts";

/** Undisturbed run from whose moments others go on. */
export interface Recording {
  readonly run: RunRecord;
  readonly points: WorldPoints;
  /** Positions in the trace at which the steps begin. */
  readonly bounds: readonly number[];
  /** Virtual times at which the steps begin, in milliseconds. */
  readonly begins: readonly number[];
}

/** Where a run goes on. */
export interface Resumption extends Recording {
  readonly point: WorldPoint;
  /** First step whose end the run plays. */
  readonly first: number;
  /** Number of steps whose beginning the run does not play. */
  readonly begun: number;
  /** Whether a new process of the operator has to come to rest first. */
  readonly isAtRest: boolean;
}

/** The first start of the operator, from which any run can go on. */
export function firstStart(recording: Recording): Resumption | undefined {
  const { start: point } = recording.points;
  return point && { ...recording, point, first: 0, begun: 0, isAtRest: false };
}

/**
 * Moment from which the run of a plan goes on: at which it kills the operator, or at
 * rest before the step that it disturbs. Requests outside of the cluster cannot be
 * taken back, so that those runs begin with the first start.
 */
export function resumption(
  recording: Recording,
  plan: WorldPlan,
): Resumption | undefined {
  const { run, points } = recording;
  const { perturbations, foreign, cascades } = plan;
  const [one] = [...perturbations, ...foreign, ...cascades];
  const isAlone = perturbations.length + foreign.length + cascades.size === 1 &&
    plan.jumps.length === 0 && plan.waits.size === 0 &&
    plan.upgradeAfter === undefined && plan.choices === undefined;
  const whole = firstStart(recording);
  if (one === undefined || !isAlone || notesOf(run, "external").length > 0) {
    return whole;
  }
  /** Goes on at rest: `first` is the first step that the run ends, if not begins. */
  const atRest = (first: number, begun: number) => {
    const point = points.restAfter(begun - 1);
    const isAtRest = true;
    return point ? { ...recording, point, first, begun, isAtRest } : whole;
  };
  if (typeof one === "number") return atRest(one, one);
  if (!("do" in one)) return atRest(one.step, one.step + 1);
  const at = "write" in one
    ? writesOf(run).find(({ number }) => number === one.write)
    : "event" in one
    ? eventsOf(run).find(({ number }) => number === one.event)
    : undefined;
  if (at === undefined) return whole;
  const { number, step: first } = at;
  if (one.do === "crash" || one.do === "stale") {
    const place = one.do === "crash" ? one.place : "after";
    const point = points.at(number, place);
    const [begun, isAtRest] = [first + 1, false];
    return point ? { ...recording, point, first, begun, isAtRest } : whole;
  }
  return atRest(first, first);
}
