import type { KubernetesObject } from "../../api/object.ts";
import { type Run, type RunResult, wasCutShort } from "./run.ts";
import type { RunObserver } from "./run_observers.ts";

/**
 * Record of which objects have had a run, for an operator that runs each once and
 * then ends.
 */
export class FirstRuns<P extends KubernetesObject> implements RunObserver<P> {
  /** Errors of the last runs by key; undefined for a success. */
  readonly errors: Map<string, unknown> = new Map();

  /** Notes the end of a run; one that was aborted does not count. */
  ended(run: Run<P>, { end, error }: RunResult): void {
    if (wasCutShort(run, end)) return;
    const failed = end.type === "failed"
      ? error ?? new Error(`Cannot run ${run.key}: it has thrown ${error}`)
      : undefined;
    this.errors.set(run.key, failed);
  }

  /** Keys without a run. */
  missing(keys: Iterable<string>): readonly string[] {
    return [...keys].filter((key) => !this.errors.has(key));
  }
}
