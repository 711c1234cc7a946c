import type { InformerHealth } from "../cache/informer/shared_informer.ts";
import type { SourceHealth } from "./event_source.ts";

/** Health of a controller. */
export interface ControllerHealth {
  /** Name of the controller. */
  readonly name: string;
  /** Kind of the primaries, such as `apps/v1 Deployment`. */
  readonly kind: string;
  /** Whether the caches are complete, so that the controller can run. */
  readonly ready: boolean;
  /** Whether all informers and event sources are healthy. */
  readonly healthy: boolean;
  /** Whether the controller runs: false before its start, and while not leading. */
  readonly active: boolean;
  /** Number of primaries in the cache. */
  readonly primaries: number;
  /** Number of objects that are ready and wait for a run. */
  readonly waiting: number;
  /** Number of runs in progress. */
  readonly running: number;
  /**
   * Number of runs that continue ten seconds after their abort, because they
   * ignore `ctx.signal`. The object of such a run waits until it ends.
   */
  readonly overdue: number;
  /** Number of objects whose next run is planned for a later time. */
  readonly delayed: number;
  /** Number of objects whose last run has failed. */
  readonly failing: number;
  /**
   * Time since the first failure of the object that has been failing for
   * longest, in milliseconds; 0 if no object is failing.
   */
  readonly oldestFailure: number;
  /** Number of failing objects without retries left. */
  readonly exhausted: number;
  /** Clusters of the option `clusters`; absent for controllers without it. */
  readonly clusters?:
    | readonly {
      /** Name of the cluster. */
      readonly name: string;
      /** Whether its caches are complete, so that its objects run. */
      readonly ready: boolean;
      /** Whether its informers and event sources are healthy. */
      readonly healthy: boolean;
      /** Number of its primaries in the cache. */
      readonly primaries: number;
      /** Number of its objects that are ready and wait for a run. */
      readonly waiting: number;
      /** Number of its runs in progress. */
      readonly running: number;
      /** Number of its objects whose last run has failed. */
      readonly failing: number;
      /** Why it cannot be used now; undefined if it can. */
      readonly error: string | undefined;
    }[]
    | undefined;
  /** Kinds that `operator.watchKinds` follows; absent for other controllers. */
  readonly kinds?:
    | {
      /** Number of kinds. */
      readonly followed: number;
      /** Kinds that could not be read so far, such as for want of a right. */
      readonly unread: readonly string[];
    }
    | undefined;
  /** Health of the informers of the primaries. */
  readonly informers: readonly InformerHealth[];
  /** Health of the event sources by name. */
  readonly sources: ReadonlyMap<string, SourceHealth>;
}
