import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger, LogLevel } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { Tracer } from "../tracing.ts";
import type { ConcurrencyCap } from "./concurrency_cap.ts";
import type { Namespaces } from "./namespaces.ts";
import type { ShardAssignment } from "./shard.ts";

/** What a controller shares with the others of its operator. */
export interface ControllerSurroundings {
  readonly client: Client;
  readonly informers: InformerPool;
  /** Under which names the controllers write that there are now. */
  readonly fieldManagers: () => readonly string[];
  readonly cap: ConcurrencyCap;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Traces runs; undefined when nobody does. */
  readonly tracer: Tracer | undefined;
  readonly random: () => number;
  /** Which primaries this replica runs, where the controller does not say. */
  readonly shard: ShardAssignment;
  /** Which replica this is. */
  readonly instance: string;
  /** What a controller without namespaces of its own watches. */
  readonly namespaces: Namespaces;
  /** The namespace in which the operator runs, if it is known. */
  readonly currentNamespace: string | undefined;
  /** At which level runs are logged that went well, or that `onError` handled. */
  readonly successLevel: LogLevel;
}
