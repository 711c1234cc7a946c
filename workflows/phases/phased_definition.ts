import type { Duration } from "../../core/api/duration.ts";
import type { Clock } from "../../core/clock.ts";
import type {
  Context,
  MaybePromise,
} from "../../core/controller/reconciler.ts";
import type { SpecDiff } from "./change_map.ts";
import type { PhasedObject } from "./rollout.ts";

/** The type of an object's spec. */
export type SpecOf<P extends PhasedObject> = P["spec"];

/** What every function of a phased reconciler is given. */
export interface PhasedRun<P extends PhasedObject> {
  /** The object as the pass has seen it. */
  readonly object: P;
  /** The context of the run. */
  readonly ctx: Context<P>;
}

/** What is to be deployed. */
export interface RolloutDeployment<P extends PhasedObject> {
  /** The spec: the object's own, or the last stable one in a rollback. */
  readonly spec: SpecOf<P>;
  /**
   * Stamps the attempt. Put it on what is deployed, so that `landed` can tell
   * this very attempt from any other.
   */
  readonly attempt: string;
  /** What the suspension before it handed over. */
  readonly carry: unknown;
}

/**
 * How a suspension went.
 *
 * - `done`: nothing runs any more; `carry` goes to the next deployment, and with
 *   `again` that happens in a pass of its own, which lets a newer spec in.
 * - `pending`: it is under way; ask again.
 * - `blocked`: it cannot be done now; steady work goes on.
 */
export type Suspension =
  | {
    readonly state: "done";
    readonly carry?: unknown;
    readonly again?: boolean | undefined;
  }
  | { readonly state: "pending"; readonly reason: string }
  | { readonly state: "blocked"; readonly reason: string };

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
 * is the framework's.
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
  /** Whether what runs does its work. */
  readonly stable: (seen: Seen) => boolean;
  /** Whether the deployment of an attempt took place; see `RolloutDeployment.attempt`. */
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
  /** Whether a spec asks for nothing to run. @default {never} */
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
   * Stops what runs before something else is deployed.
   *
   * @default {nothing is stopped: the deployment replaces it}
   */
  readonly suspend?:
    | ((run: PhasedRun<P>, seen: Seen) => MaybePromise<Suspension>)
    | undefined;
  /**
   * Changes what runs in place, for differences that ask for no more.
   *
   * @default {an upgrade}
   */
  readonly scale?:
    | ((run: PhasedRun<P>, spec: SpecOf<P>) => MaybePromise<unknown>)
    | undefined;
  /**
   * Looks after what runs while nothing is to be changed, such as recovering it
   * when it was lost.
   *
   * @returns Whether something was done, so that it is looked at again soon.
   * @default {nothing}
   */
  readonly steady?:
    | ((
      run: PhasedRun<P>,
      state: { readonly seen: Seen; readonly deployed: SpecOf<P> },
    ) => MaybePromise<boolean>)
    | undefined;
  /** When to go back to the last stable spec. @default {never} */
  readonly rollback?: RollbackOptions<P> | undefined;
  /**
   * Undoes everything before the object may go.
   *
   * @returns Whether it is done; nothing means that it is.
   */
  readonly cleanup?:
    | ((run: PhasedRun<P>) => MaybePromise<boolean | void>)
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
  /** Where time comes from. @default {the machine's clock} */
  readonly clock?: Clock | undefined;
  /**
   * Told of each status that was written, and what was there before.
   *
   * @default {nobody is told}
   */
  readonly onStatus?: ((object: P, previous: unknown) => void) | undefined;
}
