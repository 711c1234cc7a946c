import type { PodSpec } from "@coracle/operator/kinds";
import type { PodHooks } from "../../apiserver/pods/pod_hooks.ts";
import type { Perturbations } from "./perturbations.ts";
import type { WorldClock } from "./world_clock.ts";

const MINUTE_MS = 60_000;
/** Number of readiness changes of a flapping container; the last is ready. */
const FLAPS = 7;
/** Time until a late or flapping container is first ready, in milliseconds. */
const READY_MS = { late: 10 * MINUTE_MS, flap: 3 * MINUTE_MS };

/** Creates the hooks with which simulated pods become ready late, or now and then. */
export function podHooks(
  perturbations: Perturbations,
  clock: WorldClock,
): PodHooks | undefined {
  const mode = perturbations.dependents;
  if (mode === undefined) return undefined;
  const view = clock.view();
  return {
    run({ pod, ready }) {
      ready(false);
      let isReady = false;
      let turns = 0;
      const { restartPolicy } = pod["spec"] as PodSpec;
      const ended = Promise.withResolvers<number>();
      const turn = () => {
        isReady = !isReady;
        ready(isReady);
        if (mode === "flap" && ++turns < FLAPS) view.setTimer(turn, MINUTE_MS);
        // That of a Job ends by itself, as without a hook.
        else if (restartPolicy !== "Always") ended.resolve(0);
      };
      if (mode !== "never") {
        view.setTimer(turn, READY_MS[mode]);
        perturbations.lasts(clock.now() + READY_MS[mode] + FLAPS * MINUTE_MS);
      }
      return ended.promise;
    },
  };
}
