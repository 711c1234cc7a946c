import type { KubernetesObject } from "../api/object.ts";
import type { CacheEvent } from "../cache/informer/cache_event.ts";
import type { Clock } from "../clock.ts";
import type { ConcurrencyCap } from "./concurrency_cap.ts";
import type { ControllerSettings } from "./controller_settings.ts";
import type { PrimaryCache } from "./event_source.ts";
import type { OnFault } from "./guarded.ts";
import type { Run, RunResult } from "./run.ts";
import type { RunObserver } from "./run_observer.ts";
import type { ShardAssignment } from "./shard.ts";

/** A deleted primary whose deletion is still to be reconciled. */
export type DeletedPrimary<P extends KubernetesObject> = Pick<
  CacheEvent<P>,
  "object" | "finalStateUnknown"
>;

/** What an `EventProcessor` works with. */
export interface EventProcessorOptions<P extends KubernetesObject> {
  readonly settings: Pick<
    ControllerSettings<P>,
    | "retry"
    | "limiter"
    | "throughput"
    | "maxInterval"
    | "concurrency"
    | "timeout"
    | "allEvents"
    | "selection"
  >;
  readonly primaries: PrimaryCache<P>;
  /** Which of them are run here. */
  readonly shard: ShardAssignment;
  /** Does one run. Neither throws nor rejects. */
  readonly dispatch: (run: Run<P>) => RunResult | Promise<RunResult>;
  readonly cap: ConcurrencyCap;
  readonly clock: Clock;
  readonly random: () => number;
  readonly observers: readonly RunObserver<P>[];
  /** Told of what observers, retry policy and limiter have thrown. */
  readonly onFault: OnFault;
}
