import { checkOption, checkOptions } from "../../core/api/option_rules.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import type { Notifier } from "./notifier.ts";
import { isOutcome } from "./outcome.ts";
import { errorText, type StepsEnd } from "./pass_step.ts";
import {
  REQUEST_NAME_RULES,
  type RequestNames,
  requestsOf,
} from "./requests.ts";
import type { Conditioned } from "./status_lint.ts";

/** A pass whose steps have ended, before its conditions are summed up. */
export interface PassReport<P extends Conditioned> extends StepsEnd {
  /** The object; what is changed of it is written with the rest. */
  readonly object: P;
  /** The object as the pass was given it. */
  readonly before: P;
  /** The run that the pass is. */
  readonly ctx: Context<P>;
}

/**
 * Looks at the end of a pass, and may change its object. What it throws is
 * logged: it cannot fail the pass.
 */
export type ResultProcessor<P extends Conditioned> = (
  report: PassReport<P>,
) => MaybePromise<void>;

/**
 * Remembers in the status which request the pass has answered: the tokens of the
 * annotations, verbatim, also blank ones. Where there is no annotation the
 * fields stay as they are.
 *
 * @param names How the annotations are called.
 * @throws {TypeError | RangeError} If an option is unknown or no name.
 */
export function recordRequests<P extends Conditioned>(
  names: RequestNames = {},
): ResultProcessor<P> {
  checkOptions(names, REQUEST_NAME_RULES, "recordRequests()");
  return ({ object }) => {
    const { handled } = requestsOf(object, {}, names);
    if (Object.keys(handled).length === 0) return;
    object.status = Object.assign(object.status ?? {}, handled);
  };
}

/**
 * Tells people how a pass ended, as its `Stalled`, `Waiting` or `Failed` wants
 * it told: in the log, as a Kubernetes Event, and to a notifier. What was thrown
 * under no name is left to the framework, which logs it.
 *
 * @param notifier Where warnings go besides, and normal events that want to.
 * @throws {TypeError} If the notifier is no object.
 */
export function tellOutcome<P extends Conditioned>(
  notifier?: Notifier,
): ResultProcessor<P> {
  checkOption(notifier, "object?", {
    name: "notifier",
    subject: "tellOutcome()",
  });
  return ({ object, ctx, error }) => {
    if (!isOutcome(error)) return;
    const { reason, telling: { event, log, notify } } = error;
    const message = errorText(error);
    if (log) {
      const level = event === "Warning" ? "error" : "info";
      ctx.log[level]("The pass has ended early", { reason, message });
    }
    if (event === "None") return;
    const warns = event === "Warning";
    ctx.events[warns ? "warning" : "normal"](reason, message);
    if (warns || notify) {
      const severity = warns ? "error" : "info";
      notifier?.notify(object, { severity, reason, message });
    }
  };
}
