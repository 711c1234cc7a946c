import type { KubernetesObject } from "../api/object.ts";
import type { Run, RunResult } from "./run.ts";
import type { RunPlan } from "./run_state.ts";

/** Told of what happens to runs, for metrics, logs and records. */
export interface RunObserver<P extends KubernetesObject> {
  started?(run: Run<P>): void;
  /** @param plan What follows; undefined if the run was about something past. */
  ended?(run: Run<P>, result: RunResult, plan: RunPlan | undefined): void;
  /** A primary is gone, and so is everything that was remembered of it. */
  forgotten?(key: string): void;
}
