import type { Duration } from "../../core/api/duration.ts";
import { checkOptions, type OptionRules } from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { Context, PrimaryEvents } from "../../core/controller/context.ts";
import type { MaybePromise } from "../../core/controller/reconciler.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { SpecDiff } from "./change_map.ts";
import { type ErrorReportOptions, REPORT_RULES } from "./error_report.ts";
import type { Reasons } from "./lifecycle_conditions.ts";
import type { PhasedObject } from "./phased_status.ts";

/** The type of an object's spec. */
export type SpecOf<P extends PhasedObject> = P["spec"];

/** What every function of a phased reconciler is given. */
export interface PhasedRun<P extends PhasedObject> {
  /**
   * The object as the pass has seen it. `observe` may keep what it learns in
   * fields of its own in the status; they are written with the rest.
   */
  readonly object: P;
  /** The context of the run. */
  readonly ctx: Context<P>;
  /** Kubernetes Events about the object; `onEvent` hears of them. */
  readonly events: PrimaryEvents;
}

/** What is to be deployed. */
export interface RolloutDeployment<P extends PhasedObject> {
  /** The spec: the object's own, or the last stable one in a rollback. */
  readonly spec: SpecOf<P>;
  /**
   * Stamps the attempt: `<generation>.<counter>`. Put it on what is deployed, so
   * that `landed` can tell this very attempt from any other. An attempt that did
   * not land is tried again under the same stamp, so it also serves as an id
   * that makes a deployment happen once.
   */
  readonly attempt: string;
  /**
   * What the suspension before it handed over; undefined for a first deployment
   * and for one that starts anew.
   */
  readonly carry: unknown;
}

/** What is to be suspended, and for what. */
export interface SuspensionRequest<P extends PhasedObject, Seen> {
  /** What the observation found. */
  readonly seen: Seen;
  /** The spec of what runs. */
  readonly deployed: SpecOf<P>;
  /** The spec that is deployed next, or that asks for nothing to run. */
  readonly next: SpecOf<P>;
  /** Whether the next deployment starts anew: nothing needs to be kept. */
  readonly discard: boolean;
}

/**
 * How a suspension went.
 *
 * - `done`: nothing runs any more; `carry` goes to the next deployment, and with
 *   `again` that happens in a pass of its own, which lets a newer spec in.
 * - `pending`: it is under way; ask again.
 * - `blocked`: it cannot be done now; recovery and steady work go on.
 */
export type Suspension =
  | {
    readonly state: "done";
    readonly carry?: unknown;
    readonly again?: boolean | undefined;
  }
  | { readonly state: "pending"; readonly reason: string }
  | { readonly state: "blocked"; readonly reason: string };

/** What runs, and by which spec. */
export interface RunningState<P extends PhasedObject, Seen> {
  /** What the observation found. */
  readonly seen: Seen;
  /** The spec of what runs. */
  readonly deployed: SpecOf<P>;
}

/** That what runs, or should, is to be deployed once more as it was. */
export interface Recovery extends Reasons {
  /** What the deployment is given, such as the state to start from. */
  readonly carry?: unknown;
}

/** When and how to go back to the last stable spec. */
export interface RollbackOptions<P extends PhasedObject> {
  /**
   * How long after its deployment a spec must have become stable.
   *
   * @default {"5m"}
   */
  readonly after?: Duration | undefined;
  /**
   * Whether one can go back from the failed spec to the stable one.
   *
   * @default {always}
   */
  readonly accepts?:
    | ((stable: SpecOf<P>, failed: SpecOf<P>) => boolean)
    | undefined;
  /**
   * Whether nothing would be lost by it now.
   *
   * @default {always}
   */
  readonly safe?: ((run: PhasedRun<P>) => MaybePromise<boolean>) | undefined;
}

/**
 * What a phased reconciler knows of its subject; the order in which it is asked
 * is the framework's. Only the first five are needed.
 *
 * @typeParam P The type of the objects.
 * @typeParam Seen What an observation finds.
 */
export interface PhasedDefinition<P extends PhasedObject, Seen> {
  /** What changed fields of the spec ask for; see {@linkcode changeMap}. */
  readonly diff: (before: unknown, after: unknown) => SpecDiff;
  /**
   * Looks at what runs. It only reads, and by the spec that was deployed.
   */
  readonly observe: (
    run: PhasedRun<P>,
    deployed: SpecOf<P>,
  ) => MaybePromise<Seen>;
  /** Whether what runs does its work; a text says why it does not yet. */
  readonly stable: (seen: Seen) => boolean | string;
  /**
   * Whether the deployment of an attempt took place; see
   * `RolloutDeployment.attempt`.
   */
  readonly landed: (
    run: PhasedRun<P>,
    attempt: string,
  ) => MaybePromise<boolean>;
  /** Deploys. It may be called again for an attempt that did not land. */
  readonly deploy: (
    run: PhasedRun<P>,
    deployment: RolloutDeployment<P>,
  ) => MaybePromise<unknown>;
  /**
   * What is wrong with a spec, or undefined; also which transitions are not
   * allowed. An invalid spec never stops what runs: the last valid one goes on.
   *
   * @default {nothing is}
   */
  readonly validate?:
    | ((
      run: PhasedRun<P>,
      next: SpecOf<P>,
      last: SpecOf<P> | undefined,
    ) => string | undefined)
    | undefined;
  /**
   * Whether a spec asks for nothing to run.
   *
   * @default {never}
   */
  readonly parked?: ((spec: SpecOf<P>) => boolean) | undefined;
  /**
   * What must not be interrupted, or undefined; nothing is changed meanwhile.
   *
   * @default {nothing}
   */
  readonly busy?:
    | ((run: PhasedRun<P>, seen: Seen | undefined) => string | undefined)
    | undefined;
  /**
   * Stops what runs before something else is deployed. It must bear being called
   * again after it was done, since the operator may die right after it.
   *
   * @default {nothing is stopped: the deployment replaces it}
   */
  readonly suspend?:
    | ((
      run: PhasedRun<P>,
      request: SuspensionRequest<P, Seen>,
    ) => MaybePromise<Suspension>)
    | undefined;
  /**
   * Changes what runs in place, for differences that ask for no more.
   *
   * @returns False if it cannot, so that it becomes an upgrade.
   * @default {an upgrade}
   */
  readonly scale?:
    | ((run: PhasedRun<P>, spec: SpecOf<P>) => MaybePromise<boolean | void>)
    | undefined;
  /**
   * Why what runs has failed for good, or undefined. The object is then Failed,
   * until it recovers or another spec is deployed.
   *
   * @default {it never has}
   */
  readonly failed?: ((seen: Seen) => Reasons | undefined) | undefined;
  /**
   * Whether what was deployed must be deployed once more, because it was lost or
   * has failed. The reason becomes a Warning event.
   *
   * @default {never}
   */
  readonly recover?:
    | ((
      run: PhasedRun<P>,
      state: RunningState<P, Seen>,
    ) => MaybePromise<Recovery | undefined>)
    | undefined;
  /**
   * Looks after what runs while nothing is to be changed, such as a backup that
   * is due.
   *
   * @returns Whether something was done, so that it is looked at again soon.
   * @default {nothing}
   */
  readonly steady?:
    | ((
      run: PhasedRun<P>,
      state: RunningState<P, Seen>,
    ) => MaybePromise<boolean>)
    | undefined;
  /**
   * When to go back to the last stable spec; a function decides by the present
   * spec of the object, and undefined from it means never.
   *
   * @default {never}
   */
  readonly rollback?:
    | RollbackOptions<P>
    | ((current: SpecOf<P>) => RollbackOptions<P> | undefined)
    | undefined;
  /**
   * What still needs the object, or undefined; its deletion waits meanwhile.
   *
   * @default {nothing}
   */
  readonly neededBy?:
    | ((run: PhasedRun<P>) => MaybePromise<string | undefined>)
    | undefined;
  /**
   * Undoes everything before the object may go. What runs was looked at before;
   * nothing is seen where nothing runs, and where it could not be looked at.
   *
   * @returns Whether it is done; nothing means that it is.
   * @default {nothing}
   */
  readonly cleanup?:
    | ((
      run: PhasedRun<P>,
      seen: Seen | undefined,
    ) => MaybePromise<boolean | void>)
    | undefined;
  /**
   * Reads a spec that was stored by an older version of the operator.
   *
   * @param stored The spec as it stands in `status.rollout`.
   * @param version The version of the kind then; undefined if it is not known.
   * @default {it is taken as it is}
   */
  readonly convert?:
    | ((stored: unknown, version: string | undefined) => SpecOf<P>)
    | undefined;
  /**
   * How long to wait while something is under way.
   *
   * @default {"10s"}
   */
  readonly poll?: Duration | undefined;
  /**
   * How long to wait while all is well.
   *
   * @default {"60s"}
   */
  readonly interval?: Duration | undefined;
  /** How much of an error the status tells. */
  readonly errors?: ErrorReportOptions | undefined;
  /**
   * Where time comes from.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
  /**
   * Where states of life and the times between them are counted; see
   * {@linkcode LifecycleMetrics}.
   *
   * @default {nowhere}
   */
  readonly metrics?: Metrics | undefined;
  /**
   * Told of each status that was written, and what was there before. What it
   * throws is dropped.
   *
   * @default {nobody is told}
   */
  readonly onStatus?: ((object: P, previous: unknown) => void) | undefined;
  /**
   * Told of each event about an object. What it throws is dropped.
   *
   * @default {nobody is told}
   */
  readonly onEvent?: ((object: P, event: PhasedEvent) => void) | undefined;
}

const RULES: OptionRules<PhasedDefinition<PhasedObject, never>> = {
  diff: "function",
  observe: "function",
  stable: "function",
  landed: "function",
  deploy: "function",
  validate: "function?",
  parked: "function?",
  busy: "function?",
  suspend: "function?",
  scale: "function?",
  failed: "function?",
  recover: "function?",
  steady: "function?",
  rollback: "any?",
  neededBy: "function?",
  cleanup: "function?",
  convert: "function?",
  poll: "duration?",
  interval: "duration?",
  errors: "object?",
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

/**
 * Refuses a definition that cannot be one.
 *
 * @throws {TypeError | RangeError} If anything is unknown, missing or makes no
 * sense.
 */
export function checkPhased<P extends PhasedObject, Seen>(
  definition: PhasedDefinition<P, Seen>,
): void {
  const subject = "a phased reconciler";
  checkOptions(definition, RULES, subject);
  const { rollback = {}, errors = {} } = definition;
  checkOptions(errors, REPORT_RULES, `${subject}, errors`);
  if (typeof rollback === "function") return;
  checkOptions(rollback, ROLLBACK_RULES, `${subject}, rollback`);
}

/** An event about a phased object. */
export interface PhasedEvent extends Reasons {
  /** Whether it is good or bad news. */
  readonly type: "Normal" | "Warning";
}
