import { milliseconds } from "../../core/api/duration.ts";
import type {
  PhasedDefinition,
  PhasedRun,
  SpecOf,
} from "./phased_definition.ts";
import {
  type PhasedObject,
  type RolloutStatus,
  sameChoice,
} from "./rollout.ts";

/**
 * Whether what runs has failed to become stable in time, and the last stable spec
 * can be restored without loss.
 *
 * @param definition What is known of the subject.
 * @param state The run, where the rollout is, and the present.
 */
export async function isRollbackDue<P extends PhasedObject>(
  definition: Pick<PhasedDefinition<P, never>, "rollback" | "parked">,
  { run, rollout, now }: {
    readonly run: PhasedRun<P>;
    readonly rollout: RolloutStatus<SpecOf<P>>;
    readonly now: number;
  },
): Promise<boolean> {
  const { rollback, parked } = definition;
  // The switches are those of the present spec, not of what was deployed.
  const options = typeof rollback === "function"
    ? rollback(run.object.spec)
    : rollback;
  const { phase, target, stable, since = 0, running } = rollout;
  if (
    options === undefined || phase !== "Deployed" || !running ||
    target === undefined || stable === undefined ||
    sameChoice(stable, target) || parked?.(stable.spec)
  ) return false;
  const { after = "5m", accepts, safe } = options;
  return now - since > milliseconds(after, "rollback.after") &&
    (accepts?.(stable.spec, target.spec) ?? true) &&
    (await safe?.(run) ?? true);
}
