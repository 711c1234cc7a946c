/**
 * Runs of workloads in worlds of their own.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { ObjectReference } from "../../../dev/testing/check/object_reference.ts";
import type { TraceEntry } from "../../../dev/testing/check/trace.ts";
import { World } from "../../../dev/testing/check/world.ts";
import type { WorldObjects } from "../../../dev/testing/check/world_objects.ts";
import type { WorldOptions } from "../../../dev/testing/check/world_options.ts";

/** Step of a workload. */
export type WorldStep =
  & (
    | { readonly apply: UntypedObject }
    | { readonly patch: UntypedObject }
    | { readonly delete: ObjectReference }
    | { readonly advance: number }
    | { readonly quiet: { readonly within?: number; readonly still?: number } }
  )
  & {
    /**
     * Whether the world becomes quiet after the step.
     *
     * @default {true}
     */
    readonly settle?: boolean | undefined;
  };

/** Result of a run, as plain data. */
export interface WorldRun {
  readonly trace: readonly TraceEntry[];
  /** Objects at the end. */
  readonly end: WorldObjects;
  /** Objects after each step. */
  readonly after: readonly WorldObjects[];
  /** Whether the world was quiet after every step. */
  readonly quiet: boolean;
  /** Index of the first step after which it was not; undefined if none. */
  readonly busyAfter: number | undefined;
  readonly incarnations: number;
  /** How often each perturbation acted. */
  readonly hits: readonly number[];
  readonly revision: number;
  readonly virtualMs: number;
  /** Requests, deliveries and timers in all. */
  readonly actions: number;
}

/** Runs a workload in a world of its own. */
export async function runWorld(
  options: WorldOptions & { readonly steps: readonly WorldStep[] },
): Promise<WorldRun> {
  const { steps, ...others } = options;
  const world = await World.start(others);
  try {
    const after: WorldObjects[] = [];
    let busyAfter: number | undefined;
    await world.quiet();
    for (const [index, step] of steps.entries()) {
      const outcome = await takeStep(world, step);
      if (outcome === "busy") busyAfter ??= index;
      after.push(world.snapshot());
    }
    return {
      trace: world.trace,
      end: world.snapshot(),
      after,
      quiet: busyAfter === undefined,
      busyAfter,
      incarnations: world.incarnation,
      hits: world.hits,
      revision: world.revision,
      virtualMs: world.now,
      actions: world.actions,
    };
  } finally {
    await world.end();
  }
}

async function takeStep(
  world: World,
  step: WorldStep,
): Promise<"quiet" | "busy" | undefined> {
  if ("apply" in step) await world.apply(step.apply);
  else if ("patch" in step) await world.patch(step.patch);
  else if ("delete" in step) await world.delete(step.delete);
  else if ("advance" in step) await world.advance(step.advance);
  if ("quiet" in step) return await world.quiet(step.quiet);
  if ("advance" in step || step.settle === false) return undefined;
  return await world.quiet();
}
