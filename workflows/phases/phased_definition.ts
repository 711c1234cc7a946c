import type { Duration } from "../../core/api/duration.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { Context, PrimaryEvents } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { SpecDiff } from "./change_map.ts";
import type { PhasedObject } from "./phased_status.ts";

/** Argument of every function of a phased reconciler. */
export interface PhasedRun<P extends PhasedObject> {
  /**
   * Object of the run. `observe` may store its results in further fields of the
   * status; they are written with the rest.
   */
  readonly object: P;
  /** Context of the run. */
  readonly ctx: Context<P>;
  /** Recorder of Kubernetes Events for the object; calls `onEvent` for each. */
  readonly events: PrimaryEvents;
}

/**
 * Definition of a phased reconciler: functions that observe and change the
 * managed system. The framework decides in which order they are called. Only the
 * first five are required.
 *
 * @typeParam P The type of the objects.
 * @typeParam Observed The type of the observed state.
 */
export interface PhasedDefinition<P extends PhasedObject, Observed> {
  /**
   * Compares two specs and determines the change that is needed; see `changeMap`.
   */
  readonly diff: (before: unknown, after: unknown) => SpecDiff;
  /** Observes the running deployment, by the spec that was deployed. Read-only. */
  readonly observe: (
    run: PhasedRun<P>,
    deployed: P["spec"],
  ) => MaybePromise<Observed>;
  /** Whether the deployment is stable; a string says why it is not. */
  readonly stable: (observed: Observed) => boolean | string;
  /**
   * Whether an attempt was deployed, by the id that `deploy` has put on the
   * deployment.
   */
  readonly isDeployed: (
    run: PhasedRun<P>,
    attempt: string,
  ) => MaybePromise<boolean>;
  /**
   * Deploys a spec: the object's own, or the last stable one in a rollback. It
   * may be called again for an attempt that was not deployed.
   *
   * `attempt` is the id of the attempt: `<generation>.<counter>`. Put it on the
   * deployment, so that `isDeployed` can distinguish this attempt from others.
   * An attempt that was not deployed is retried with the same id, so it also
   * serves as an idempotency key.
   *
   * `savepoint` is the state that the suspension or recovery handed over;
   * undefined for a first deployment and for one that discards the state.
   */
  readonly deploy: (
    run: PhasedRun<P>,
    deployment: {
      readonly spec: P["spec"];
      readonly attempt: string;
      readonly savepoint: unknown;
    },
  ) => MaybePromise<unknown>;
  /**
   * Validates a spec, and the transition from the last valid one. Returns the
   * problem, or undefined. An invalid spec never stops the running deployment:
   * the last valid one stays in effect. By default every spec is valid.
   */
  readonly validate?:
    | ((
      run: PhasedRun<P>,
      next: P["spec"],
      last: P["spec"] | undefined,
    ) => string | undefined)
    | undefined;
  /** Whether a spec requests that nothing runs. By default no spec does. */
  readonly suspended?: ((spec: P["spec"]) => boolean) | undefined;
  /**
   * Reason to defer changes, such as a backup in progress, or undefined. Changes
   * wait until it returns undefined. By default they are never deferred.
   */
  readonly deferChange?:
    | ((run: PhasedRun<P>, observed: Observed | undefined) =>
      | string
      | undefined)
    | undefined;
  /**
   * Stops the running deployment before the next one. It must be idempotent,
   * because the operator may crash right after it. By default nothing is
   * stopped: the new deployment replaces the old one.
   *
   * `next` is the spec that is deployed next, or that requests that nothing
   * runs. `discard` says that the next deployment starts without the old state.
   *
   * @returns The state of the suspension.
   * - `done`: nothing runs; `savepoint` is handed over to the next deployment.
   *   With `again` the deployment takes place in a separate run, which picks up
   *   a newer spec.
   * - `pending`: in progress; `suspend` is called again.
   * - `blocked`: not possible now; recovery and other changes go on.
   */
  readonly suspend?:
    | ((
      run: PhasedRun<P>,
      request: {
        /** Result of `observe`. */
        readonly observed: Observed;
        /** Spec that was deployed. */
        readonly deployed: P["spec"];
        readonly next: P["spec"];
        readonly discard: boolean;
      },
    ) => MaybePromise<
      | {
        readonly state: "done";
        readonly savepoint?: unknown;
        readonly again?: boolean | undefined;
      }
      | { readonly state: "pending"; readonly reason: string }
      | { readonly state: "blocked"; readonly reason: string }
    >)
    | undefined;
  /**
   * Changes the deployment in place, for differences that `diff` calls
   * `"scale"`. By default they are upgrades.
   *
   * @returns False if it is not possible, so that it becomes an upgrade.
   */
  readonly scale?:
    | ((run: PhasedRun<P>, spec: P["spec"]) => MaybePromise<boolean | void>)
    | undefined;
  /**
   * Reason and message if the deployment has failed permanently, or undefined.
   * The object is then Failed, until it recovers or another spec is deployed. By
   * default no deployment counts as failed.
   */
  readonly failed?:
    | ((observed: Observed) =>
      | { readonly reason: string; readonly message: string }
      | undefined)
    | undefined;
  /**
   * Decides whether the current spec must be deployed again, because the
   * deployment was lost or has failed. Returns the reason and message of a
   * Warning event, and the state to start from, or undefined. By default nothing
   * is recovered.
   */
  readonly recover?:
    | ((
      run: PhasedRun<P>,
      state: {
        /** Result of `observe`. */
        readonly observed: Observed;
        /** Spec that was deployed. */
        readonly deployed: P["spec"];
      },
    ) => MaybePromise<
      | {
        readonly reason: string;
        readonly message: string;
        readonly savepoint?: unknown;
      }
      | undefined
    >)
    | undefined;
  /**
   * Performs other work on the running deployment while its spec does not
   * change, such as a backup that is due.
   *
   * @returns Whether something was done, so that the next run follows soon.
   */
  readonly reconcileOtherChanges?:
    | ((
      run: PhasedRun<P>,
      state: Parameters<
        NonNullable<PhasedDefinition<P, Observed>["recover"]>
      >[1],
    ) => MaybePromise<boolean>)
    | undefined;
  /**
   * Conditions of a rollback to the last stable spec; a function chooses them
   * by the current spec. By default, and for undefined, there is no rollback.
   */
  readonly rollback?:
    | RollbackOptions<P>
    | ((current: P["spec"]) => RollbackOptions<P> | undefined)
    | undefined;
  /**
   * Reason why the object must not be deleted yet, or undefined. The deletion
   * waits until it returns undefined. By default it never waits.
   */
  readonly neededBy?:
    | ((run: PhasedRun<P>) => MaybePromise<string | undefined>)
    | undefined;
  /**
   * Undoes everything before the object is deleted. `observed` is undefined if
   * nothing is running or it could not be observed. By default there is nothing
   * to undo.
   *
   * @returns Whether it is done; undefined counts as done.
   */
  readonly cleanup?:
    | ((
      run: PhasedRun<P>,
      observed: Observed | undefined,
    ) => MaybePromise<boolean | void>)
    | undefined;
  /**
   * Converts a spec that an older version of the operator has stored in
   * `status.rollout`. By default it is used as it is.
   *
   * @param stored The stored spec.
   * @param version The version of its kind; undefined if unknown.
   */
  readonly convert?:
    | ((stored: unknown, version: string | undefined) => P["spec"])
    | undefined;
  /**
   * Delay of the next run while a change is in progress.
   *
   * @default {"10s"}
   */
  readonly poll?: Duration | undefined;
  /**
   * Delay of the next run while the object is stable.
   *
   * @default {"60s"}
   */
  readonly interval?: Duration | undefined;
  /** Limits and labels of the errors in the status. */
  readonly errors?: {
    /**
     * Maximum length of a field in characters.
     *
     * @default {2048}
     */
    readonly maxLength?: number | undefined;
    /**
     * Maximum number of causes.
     *
     * @default {2}
     */
    readonly maxCauses?: number | undefined;
    /**
     * Whether the stack trace is included, up to `maxLength`.
     *
     * @default {false}
     */
    readonly stack?: boolean | undefined;
    /**
     * Patterns by label: an error gets the label if its message, or that of a
     * cause, matches.
     *
     * @default {{}}
     */
    readonly labels?: Readonly<Record<string, RegExp>> | undefined;
  } | undefined;
  /**
   * Clock for attempts, conditions and metrics. Defaults to that of the operator,
   * and for metrics to the system clock.
   */
  readonly clock?: Clock | undefined;
  /**
   * Metrics that count lifecycle states and measure transitions; see
   * `LifecycleMetrics`. By default nothing is counted.
   */
  readonly metrics?: Metrics | undefined;
  /**
   * Callback for each written status, with the previous one. Errors that it
   * throws are ignored.
   */
  readonly onStatus?: ((object: P, previous: unknown) => void) | undefined;
  /**
   * Callback for each event of an object. Errors that it throws are ignored.
   */
  readonly onEvent?:
    | ((object: P, event: {
      readonly type: "Normal" | "Warning";
      readonly reason: string;
      readonly message: string;
    }) => void)
    | undefined;
}

/** Conditions of a rollback to the last stable spec. */
export interface RollbackOptions<P extends PhasedObject> {
  /**
   * Time that a deployment may take to become stable.
   *
   * @default {"5m"}
   */
  readonly after?: Duration | string | undefined;
  /**
   * Whether a rollback from the failed spec to the stable one is possible. By
   * default every rollback is possible.
   */
  readonly accepts?:
    | ((stable: P["spec"], failed: P["spec"]) => boolean)
    | undefined;
  /**
   * Whether a rollback is currently possible without loss of state. By default
   * every rollback counts as safe.
   */
  readonly safe?:
    | ((run: PhasedRun<P>) => MaybePromise<boolean>)
    | undefined;
}

export type ErrorReportOptions = NonNullable<
  PhasedDefinition<PhasedObject, never>["errors"]
>;

export type RunningState<P extends PhasedObject, Observed> = Parameters<
  NonNullable<PhasedDefinition<P, Observed>["recover"]>
>[1];

/** Validation rules of a {@linkcode PhasedDefinition}. */
export const PHASED_RULES: OptionRules<PhasedDefinition<PhasedObject, never>> =
  {
    diff: "function",
    observe: "function",
    stable: "function",
    isDeployed: "function",
    deploy: "function",
    validate: "function?",
    suspended: "function?",
    deferChange: "function?",
    suspend: "function?",
    scale: "function?",
    failed: "function?",
    recover: "function?",
    reconcileOtherChanges: "function?",
    rollback: {
      type: "any?",
      check(rollback, subject) {
        if (typeof rollback === "function") return;
        checkOptions(rollback, ROLLBACK_RULES, `${subject}, rollback`);
      },
    },
    neededBy: "function?",
    cleanup: "function?",
    convert: "function?",
    poll: "duration?",
    interval: "duration?",
    errors: {
      type: "object?",
      options: {
        maxLength: "size?",
        maxCauses: "size?",
        stack: "boolean?",
        labels: "object?",
      },
    },
    clock: "clock?",
    metrics: "metrics?",
    onStatus: "function?",
    onEvent: "function?",
  };
const ROLLBACK_RULES: OptionRules<RollbackOptions<PhasedObject>> = {
  after: "duration?",
  accepts: "function?",
  safe: "function?",
};
