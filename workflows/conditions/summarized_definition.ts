import { checkParts, type OptionRules } from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { Context } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import {
  type Conditioned,
  type ConditionedStatus,
  type NewCondition,
  READY,
  RECONCILING,
  STALLED,
} from "./condition.ts";
import {
  type ConditionSummary,
  type ReconcileSchedule,
  SUMMARY_RULES,
} from "./reconcile_result.ts";
import type { Notifier } from "./notifier.ts";
import type { KubernetesObject } from "../../core/api/object.ts";

/**
 * One step of a run.
 *
 * @returns The result of the step; undefined leaves it to the other steps, and
 * a run whose steps all return undefined is a success. `"requeue"` ends the run;
 * the next one follows at once, or, if the run before asked for it, too, after a
 * pause that doubles up to a minute. Only 50,000 objects are remembered: for one
 * that was forgotten the pause is 100 ms.
 * @throws {Stalled | Waiting | Failed} To end the run; any other error fails it
 * without a reason.
 */
export type Step<P extends Conditioned> = (
  context: StepContext<P>,
) => MaybePromise<"empty" | "requeue" | "success" | void>;

/** Context of a step: the object, the run, and the conditions to set. */
export interface StepContext<P extends Conditioned> {
  /** The object; changes to it are written at the end of the run. */
  readonly object: P;
  /** Context of the run. */
  readonly ctx: Context<P>;
  /** Signal that fires when the run must end; the same as `ctx.signal`. */
  readonly signal: AbortSignal;
  /**
   * Signal that also fires when another run of the object is due: for waits
   * that may be interrupted, such as for the health of applied objects. An
   * interrupted run does not count as failed.
   */
  readonly waitSignal: AbortSignal;
  /** Whether a user has requested this run by annotation. */
  readonly requested: boolean;
  /** Whether a user has forced this run by annotation. */
  readonly forced: boolean;
  /** Sets a condition, with the current time and the object's generation. */
  set(condition: NewCondition): void;
  /** Removes a condition. */
  remove(type: string): void;
  /**
   * Runs a function whose failure has a condition of its own: it is True with
   * the error while the function fails, and removed when it succeeds.
   *
   * @param condition Type of the condition, and its reason for errors that have
   * none.
   * @param body The function.
   * @throws {Failed} With the reason of the condition, if the function throws
   * any other error than `Stalled`, `Waiting` or `Failed`.
   */
  failing<T>(
    condition: { readonly type: string; readonly reason: string },
    body: () => MaybePromise<T>,
  ): Promise<T>;
  /**
   * Reports progress in the Reconciling condition, and writes it immediately.
   *
   * @param message Human-readable message.
   * @param options `reason` is the reason of the condition (`"Progressing"` by
   * default); `drift` says that the actual state has moved away from what was
   * Ready, so that Ready becomes Unknown (false by default).
   */
  progress(message: string, options?: {
    readonly reason?: string | undefined;
    readonly drift?: boolean | undefined;
  }): Promise<void>;
}

export type ResultProcessor<P extends Conditioned> = NonNullable<
  SummarizedDefinition<P>["processors"]
>[number];

/** Types that make Ready False while they are True, in every summary of Ready. */
const ALWAYS_ABNORMAL: readonly string[] = [STALLED, RECONCILING];

/** Definition of a {@linkcode summarized} reconciler, apart from its steps. */
export interface SummarizedDefinition<P extends Conditioned> {
  /**
   * Condition types that make Ready False, with their reason and message, when
   * they are False. The first in the list wins; those that are True do not
   * affect Ready.
   *
   * @default {[]}
   */
  readonly gates?: readonly string[] | undefined;
  /**
   * Summary conditions. By default there is one, Ready, which summarizes the
   * conditions that the steps have set; those of `failing` are abnormal and come
   * first. Every summary of Ready also includes Stalled and Reconciling.
   */
  readonly summaries?: readonly ConditionSummary[] | undefined;
  /**
   * Reason and message of Ready after a success that no other condition
   * describes.
   *
   * @default {{ reason: "Succeeded", message: "The object is in its desired state" }}
   */
  readonly succeeded?:
    | { readonly reason: string; readonly message: string }
    | undefined;
  /**
   * Schedule of an object, such as `intervalSchedule(object.spec.interval)`. An
   * error that it throws makes the object Stalled, because a user must correct
   * it.
   */
  readonly schedule: (object: P) => ReconcileSchedule;
  /**
   * Whether an object is suspended: its steps do not run, and its status is not
   * changed, except that Reconciling is removed. By default no object is.
   */
  readonly suspended?: ((object: P) => boolean) | undefined;
  /**
   * Steps that undo everything before the object is deleted. The finalizer is
   * removed when all have succeeded, and stays while one throws or requests
   * another run. Without steps there is no finalizer.
   */
  readonly cleanup?: readonly Step<P>[] | undefined;
  /**
   * Further condition types that only this reconciler writes, so that its values
   * win over those of other writers. The types of `summaries` and `gates`, those
   * that the steps set, Ready, Reconciling and Stalled are always owned.
   *
   * @default {[]}
   */
  readonly owned?: readonly string[] | undefined;
  /** Names of the annotations that users set to request runs. */
  readonly requests?: {
    /**
     * Annotation that requests a run whenever its value changes.
     *
     * @default {"reconcile.coracle.dev/requestedAt"}
     */
    readonly requestedAt?: string | undefined;
    /**
     * Annotation that makes a requested run a forced one, if it has the same value.
     *
     * @default {"reconcile.coracle.dev/forceAt"}
     */
    readonly forceAt?: string | undefined;
  } | undefined;
  /**
   * Functions that process the result of the steps before the conditions are
   * summarized; they run after the built-in ones and may change the object. An
   * error that one throws is logged and does not fail the run.
   *
   * @default {[]}
   */
  readonly processors?:
    | readonly ((
      report: {
        /** Combined result of the steps; `"empty"` if one threw. */
        readonly result: "empty" | "requeue" | "success";
        /** Error that a step threw; undefined if none did. */
        readonly error?: unknown;
        /** The object; changes to it are written with the status. */
        readonly object: P;
        /** The object before the run. */
        readonly before: P;
        /** Context of the run. */
        readonly ctx: Context<P>;
      },
    ) => MaybePromise<void>)[]
    | undefined;
  /**
   * Event and notification after a successful run, for a new revision or the end
   * of a failure. By default there are none. The status is written before: an error
   * of one of the functions is logged, and does not fail the run.
   */
  readonly notification?: {
    /**
     * Current revision or digest of the object, from its status; a change of it
     * is reported.
     */
    readonly revision: (object: P) => string | undefined;
    /**
     * Reason of the event for a new revision.
     *
     * @default {"NewArtifact"}
     */
    readonly reason?: string | undefined;
    /** Message of the event. Defaults to `Has <revision>`. */
    readonly message?: ((object: P) => string) | undefined;
    /**
     * Types of failure conditions; their removal is reported as well.
     *
     * @default {[]}
     */
    readonly failures?: readonly string[] | undefined;
  } | undefined;
  /** Receiver of notifications and failures. By default nobody is notified. */
  readonly notifier?: Notifier | undefined;
  /**
   * Clock for the times of conditions and for pauses. Defaults to that of the
   * operator.
   */
  readonly clock?: Clock | undefined;
}

/** Names of the annotations that users set to request runs. */
export type RequestNames = NonNullable<
  SummarizedDefinition<Conditioned>["requests"]
>;

/** Validation rules of a {@linkcode SummarizedDefinition}. */
export const SUMMARIZED_RULES: OptionRules<SummarizedDefinition<never>> = {
  summaries: { type: "array?", options: SUMMARY_RULES },
  gates: "strings?",
  succeeded: {
    type: "object?",
    options: { reason: "name", message: "string" },
  },
  schedule: "function",
  suspended: "function?",
  cleanup: "functions?",
  owned: "strings?",
  requests: {
    type: "object?",
    options: { requestedAt: "name?", forceAt: "name?" },
  },
  processors: "functions?",
  notification: {
    type: "object?",
    options: {
      revision: "function",
      reason: "name?",
      message: "function?",
      failures: "strings?",
    },
  },
  notifier: {
    type: "object?",
    check: (notifier, subject) =>
      checkParts(notifier, { notify: "function" }, `${subject}, notifier`),
  },
  clock: "clock?",
};

export interface TouchedConditions {
  /** Condition types set by `failing`, which are abnormal while True. */
  readonly failures: ReadonlySet<string>;
  /** Condition types that were set directly. */
  readonly set: ReadonlySet<string>;
}

/**
 * Computes the summaries of a run. A summary of Ready is always included, with
 * Reconciling and Stalled at the lowest precedence.
 */
export function readySummaries<P extends Conditioned>(
  { summaries = [] }: SummarizedDefinition<P>,
  { failures, set }: TouchedConditions,
): readonly ConditionSummary[] {
  const named = summaries.some(({ target }) => target === READY) ? summaries : [
    ...summaries,
    { target: READY, of: [...failures, ...set], abnormal: [...failures] },
  ];
  const withAlways = (types: readonly string[]) => [
    ...new Set([...types, ...ALWAYS_ABNORMAL]),
  ];
  return named.map((summary) => {
    if (summary.target !== READY) return summary;
    const { of, abnormal = [] } = summary;
    return {
      ...summary,
      abnormal: withAlways(abnormal),
      of: of && withAlways(of),
    };
  });
}

export function ownedTypes<P extends Conditioned>(
  definition: SummarizedDefinition<P>,
): readonly string[] {
  const { summaries = [], gates = [], owned = [] } = definition;
  const summarized = summaries.flatMap((
    { target, of = [], abnormal = [] },
  ) => [target, ...of, ...abnormal]);
  return [READY, ...ALWAYS_ABNORMAL, ...summarized, ...gates, ...owned];
}

/** Default name of the annotation that requests a run. */
export const REQUESTED_AT = "reconcile.coracle.dev/requestedAt";
/** Default name of the annotation that forces a run. */
const FORCE_AT = "reconcile.coracle.dev/forceAt";

/**
 * Reads the requests from the annotations of an object. A value is an opaque
 * token: one that differs from the handled one is a request, even if it is
 * blank. A forced run needs a request with the same value, and happens once;
 * its token counts as handled even if it was refused.
 *
 * @param object The object of the run.
 * @param handled The handled tokens from its status.
 * @param names The names of the annotations.
 * @returns `requested` and `forced` say whether a user has requested or forced
 * a run; `handled` are the tokens to write to the status.
 */
export function requestsOf(
  object: KubernetesObject,
  handled: Pick<
    ConditionedStatus,
    "lastHandledReconcileAt" | "lastHandledForceAt"
  > = {},
  names: RequestNames = {},
): {
  readonly requested: boolean;
  readonly forced: boolean;
  readonly handled: Pick<
    ConditionedStatus,
    "lastHandledReconcileAt" | "lastHandledForceAt"
  >;
} {
  const annotations = object.metadata.annotations ?? {};
  const requestedAt = annotations[names.requestedAt ?? REQUESTED_AT];
  const forceAt = annotations[names.forceAt ?? FORCE_AT];
  const requested = requestedAt !== undefined &&
    requestedAt !== handled.lastHandledReconcileAt;
  const next: typeof handled = { ...handled };
  if (requestedAt !== undefined) next.lastHandledReconcileAt = requestedAt;
  if (forceAt !== undefined) next.lastHandledForceAt = forceAt;
  return {
    requested,
    forced: requested && forceAt === requestedAt &&
      forceAt !== handled.lastHandledForceAt,
    handled: next,
  };
}
