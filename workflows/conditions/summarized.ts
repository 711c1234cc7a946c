import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { Reconciler } from "../../core/controller/reconciler.ts";
import type { RetryPolicyOptions } from "../../core/queue/retry_policy.ts";
import type { Step } from "./pass_step.ts";
import type { Conditioned } from "./status_lint.ts";
import {
  checkSummarized,
  type SummarizedDefinition,
} from "./summarized_definition.ts";
import { SummarizedPass } from "./summarized_pass.ts";

/**
 * How failed passes are best repeated by who looks at the world at intervals:
 * for ever, with pauses from 750 ms to 15 minutes. It is the rhythm of Flux'
 * controllers.
 */
export const persistentRetry: RetryPolicyOptions = Object.freeze({
  initial: "750ms",
  multiplier: 2,
  max: "15m",
  maxAttempts: Infinity,
});

/**
 * A reconciler that is a list of steps, and whose status tells the truth about
 * them: by the end of each pass Ready, Reconciling and Stalled say what it came
 * to, to people, to kubectl and to every program that reads conditions as
 * kstatus does.
 *
 * One pass
 * 1. says Reconciling, and writes that before any slow work if the generation is
 *    new, whereupon Ready is Unknown, or if somebody asks for a run;
 * 2. runs the steps, until one throws or asks for another run;
 * 3. has the processors look at how they ended;
 * 4. decides by {@linkcode finish} what that means for the conditions, for the
 *    next run and for the error;
 * 5. writes by {@linkcode SharedStatus} what has changed of the object: its
 *    conditions, its metadata and spec, its status;
 * 6. tells what is news.
 *
 * The generation that conditions and `status.observedGeneration` name is the one
 * that the pass has seen. A pass that is ended from outside, by a stop or the
 * loss of leadership, writes nothing. What an error says is written without the
 * queries of URLs, which may hold secrets.
 *
 * Give the controller {@linkcode persistentRetry}, and the annotation that asks
 * for a run as `requestAnnotations`.
 *
 * @param kind The kind of the objects; its status needs `conditions` and
 * `observedGeneration`, and `lastHandledReconcileAt` if people may ask for runs.
 * @param definition What is known beside the steps.
 * @param steps In their order.
 * @throws {TypeError | RangeError} If the kind is none, a step is no function, or
 * anything of the definition is unknown, missing or makes no sense.
 *
 * @example A certificate that is renewed
 * ```ts
 * import type { Kind } from "@coracle/operator/core";
 * import {
 *   type Conditioned,
 *   every,
 *   Stalled,
 *   summarized,
 * } from "@coracle/operator/workflows";
 *
 * interface Certificate extends Conditioned {
 *   spec: { host: string };
 * }
 * const kind: Kind<Certificate> = {
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Certificate",
 * };
 * const reconciler = summarized(
 *   kind,
 *   { cadence: () => every("1h") },
 *   [(pass) => {
 *     if (!pass.object.spec.host.includes(".")) {
 *       throw new Stalled("InvalidHost", "spec.host is no name of a host");
 *     }
 *     pass.set({ type: "Issued", status: "True", reason: "Done" });
 *   }],
 * );
 * if (reconciler.cleanup !== undefined) throw new Error("Unexpected finalizer");
 * ```
 */
export function summarized<P extends Conditioned>(
  kind: Kind<P>,
  definition: SummarizedDefinition<P>,
  steps: readonly Step<P>[],
): Reconciler<P> {
  checkKind(kind, "a summarized reconciler");
  checkSummarized(definition, steps);
  const { cleanup } = definition;
  const reconcile: Reconciler<P>["reconcile"] = (object, ctx) =>
    new SummarizedPass(kind, definition, { object, ctx }).run(steps);
  if (cleanup === undefined) return { reconcile };
  return {
    reconcile,
    cleanup: (object, ctx) =>
      new SummarizedPass(kind, definition, { object, ctx }).undo(cleanup),
  };
}
