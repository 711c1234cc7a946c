import type { ServerPoint } from "../../apiserver/instance.ts";
import type { RequestEntry, TraceEntry } from "./trace.ts";
import type { StoredObjects } from "./world_objects.ts";
import type { Surroundings } from "./world_transport.ts";

/**
 * Moment of a simulation from which others go on without what led to it: before the
 * first start of the operator, where it is at rest, or at a write at which it is
 * killed. Nothing of its process is left: a new one starts.
 */
export interface WorldPoint {
  readonly server: ServerPoint;
  /** Virtual time. */
  readonly now: number;
  readonly counters: Surroundings["counters"];
  readonly objects: StoredObjects;
  /** Number of the last simulated process. */
  readonly incarnation: number;
  /** Trace of the simulation; its first entries are those until the moment. */
  readonly trace: readonly TraceEntry[];
  readonly length: number;
  /** Write of the operator at which it is killed, and its place in the trace. */
  readonly write?: { readonly entry: RequestEntry; readonly at: number };
}

/** Moments of a simulation from which others can go on. */
export class WorldPoints {
  readonly #writes: Map<string, WorldPoint> = new Map();
  readonly #rests: Map<number, WorldPoint> = new Map();
  start: WorldPoint | undefined;

  /** Adds a moment right before or after a write. */
  add(place: "before" | "after", point: WorldPoint): void {
    this.#writes.set(`${point.write?.entry.write} ${place}`, point);
  }

  /** Adds the moment of rest after a step, where a new process starts. */
  addRest(step: number, point: WorldPoint | undefined): void {
    if (point !== undefined) this.#rests.set(step, point);
  }

  /** Leaves out a moment of rest at which a new process does not stay at rest. */
  dropRest(point: WorldPoint): void {
    for (const [step, one] of this.#rests) {
      if (one === point) this.#rests.delete(step);
    }
  }

  /**
   * Moment at which the operator is killed at a write; undefined if nothing can go on
   * from there.
   */
  at(
    write: number,
    place: "before" | "unanswered" | "after",
  ): WorldPoint | undefined {
    const moment = place === "before" ? "before" : "after";
    return known(this.#writes.get(`${write} ${moment}`));
  }

  /** Moment of rest after a step; undefined if nothing can go on from there. */
  restAfter(step: number): WorldPoint | undefined {
    return known(this.#rests.get(step));
  }
}

function known(point: WorldPoint | undefined): WorldPoint | undefined {
  return point?.server.store.knows(point.server.revision) ? point : undefined;
}
