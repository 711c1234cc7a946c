/**
 * Order in which plans run, so that a budget finds most.
 *
 * @module
 */
import { PLAN_KINDS } from "./derive_plans.ts";
import type { Plan } from "./plan.ts";

/** Kind of a plan, such as `crash`; `none` without disturbance. */
export function kindOf({ perturbations }: Plan): string {
  return perturbations[0]?.do ?? "none";
}

/**
 * Sorts plans so that those about something else than the plans before them come
 * first: they find most.
 */
export function newestFirst(
  plans: readonly Plan[],
  abouts: ReadonlyMap<Plan, string>,
): readonly Plan[] {
  const counts = new Map<string, number>();
  const ranked = plans.map((plan) => {
    const about = abouts.get(plan) ?? "";
    const rank = counts.get(about) ?? 0;
    counts.set(about, rank + 1);
    return { plan, rank };
  });
  return ranked.sort((a, b) => a.rank - b.rank).map(({ plan }) => plan);
}

/** Plans of a kind in a turn; those of these kinds find most in the corpus. */
const TURNS: Readonly<Record<string, number>> = {
  crash: 4,
  stale: 2,
  conflict: 2,
  lost: 2,
  call: 2,
  down: 2,
  refuse: 2,
};

/**
 * Interleaves the plans of all kinds, so that a budget covers each kind: first one
 * of each, then more of those that find most.
 */
export function inTurns(plans: readonly Plan[]): readonly Plan[] {
  const order = Object.keys(PLAN_KINDS);
  const groups = Map.groupBy(plans, kindOf);
  const ranked = [...groups].sort(([a], [b]) =>
    order.indexOf(a) - order.indexOf(b)
  );
  const turns = ranked.map(([kind, group]) => {
    const size = TURNS[kind] ?? 1;
    const [first, ...rest] = group;
    return [
      [first!],
      ...Array.from(
        { length: Math.ceil(rest.length / size) },
        (_, at) => rest.slice(at * size, (at + 1) * size),
      ),
    ];
  });
  const longest = Math.max(0, ...turns.map(({ length }) => length));
  return Array.from(
    { length: longest },
    (_, at) => turns.flatMap((turn) => turn[at] ?? []),
  ).flat();
}
