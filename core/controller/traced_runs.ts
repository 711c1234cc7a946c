import { kindText, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { inSpan, spanFailed, type Tracer } from "../tracing.ts";
import { causeText } from "./cause.ts";
import type { Run, RunResult } from "./run.ts";

/** What a run is traced with. */
export interface TracedRunsOptions<P extends KubernetesObject> {
  readonly tracer: Tracer;
  readonly controller: string;
  readonly kind: ResolvedKind<P>;
}

/**
 * Puts each run into a span of its own, within which its phases and requests
 * have theirs.
 *
 * @param dispatch Does one run.
 */
export function tracedRuns<P extends KubernetesObject>(
  dispatch: (run: Run<P>) => RunResult | Promise<RunResult>,
  { tracer, controller, kind }: TracedRunsOptions<P>,
): (run: Run<P>) => Promise<RunResult> {
  return async (run) =>
    await inSpan<RunResult>(tracer, `run ${controller}`, {
      attributes: {
        "coracle.controller": controller,
        "coracle.kind": kindText(kind),
        "coracle.object": run.key,
        "coracle.cause": causeText(run.cause),
        "coracle.attempt": run.retry.attempt,
        "coracle.waited_ms": run.waited,
      },
      onResult(span, { end, error }) {
        if (run.step !== undefined) span.setAttribute("coracle.step", run.step);
        if (run.aborted !== undefined) {
          span.setAttribute("coracle.aborted", run.aborted);
        }
        if (end.type === "failed") spanFailed(span, error);
      },
      work(span) {
        run.span = span;
        return dispatch(run);
      },
    });
}
