import type { Duration } from "../api/duration.ts";
import type { FieldRequirement, FieldSelector } from "../api/field_selector.ts";
import type { LabelRequirement } from "../api/label_requirement.ts";
import type { LabelSelector } from "../api/label_selector.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { IndexDefinition } from "../cache/store/object_store.ts";
import type { Limiter } from "../queue/limiter.ts";
import type { RetryPolicy, RetryPolicyOptions } from "../queue/retry_policy.ts";
import type { TokenBucketOptions } from "../queue/token_bucket.ts";
import type { RateLimitWindow } from "../queue/window_limiter.ts";
import type { EventSource } from "./event_source.ts";
import type { Filters } from "./filters.ts";
import type { ManagedWorkflow } from "./managed_workflow.ts";
import type { Namespaces } from "./namespaces.ts";
import type { PrimaryCacheOptions } from "./primary_source.ts";
import type { StaticShard } from "./shard.ts";

/** How a controller behaves. */
export interface ControllerOptions<
  P extends KubernetesObject = KubernetesObject,
> {
  /**
   * Unique within the operator; seen in logs and metrics, and the field manager
   * of its writes.
   *
   * @default {the kind in lower case, such as "webpage"}
   */
  readonly name?: string | undefined;
  /**
   * Which namespaces are watched.
   *
   * @default {that of the operator, which is "all"}
   */
  readonly namespaces?: Namespaces | undefined;
  /**
   * Only primaries with such labels.
   *
   * @default {all}
   */
  readonly labelSelector?:
    | string
    | LabelSelector
    | readonly LabelRequirement[]
    | undefined;
  /**
   * Only primaries with such fields.
   *
   * @default {all}
   */
  readonly fieldSelector?:
    | string
    | FieldSelector
    | readonly FieldRequirement[]
    | undefined;
  /**
   * Only primaries of such a shard, as `shardSelector()` writes it, so that
   * several deployments of the operator share them: each receives and keeps its
   * own alone where the server knows shards (KEP-5866, Kubernetes 1.36), and
   * keeps its own alone where not.
   *
   * @default {all}
   */
  readonly shardSelector?: string | undefined;
  /**
   * Only the primaries of one of a fixed number of equal parts, by their names:
   * unlike with `shardSelector`, all are kept, and one that is made anew stays in
   * its part. See `sharding` of the operator for
   * parts that follow the number of replicas.
   *
   * @default {all}
   */
  readonly shard?: StaticShard | undefined;
  /**
   * The finalizer, where the reconciler has a `cleanup`.
   *
   * @default {"<plural>.<group>/finalizer"}
   */
  readonly finalizer?: string | undefined;
  /**
   * Whether changes of a primary that leave its generation as it was, such as
   * those of its status and labels, are ignored.
   *
   * @default {true}
   */
  readonly generationAware?: boolean | undefined;
  /**
   * Annotations by which people and other programs ask for a run: an update that
   * gives one of them a new value counts, although the generation stays. Which
   * value it is means nothing.
   *
   * @default {[]}
   */
  readonly requestAnnotations?: readonly string[] | undefined;
  /**
   * Whether the framework's own filters apply; without them `filters` alone
   * decide.
   *
   * @default {true}
   */
  readonly defaultFilters?: boolean | undefined;
  /**
   * Which events of the primaries matter.
   *
   * @default {all}
   */
  readonly filters?: Filters<P> | undefined;
  /**
   * Indexes over the primaries, by name, for `primaries.byIndex`. Those by label,
   * annotation and owner decode nothing.
   *
   * @default {{}}
   */
  readonly indexes?: Readonly<Record<string, IndexDefinition<P>>> | undefined;
  /**
   * What else triggers runs.
   *
   * @default {[]}
   */
  readonly sources?: readonly EventSource<P>[] | undefined;
  /**
   * Runs before the reconciler.
   *
   * @default {none}
   */
  readonly workflow?: ManagedWorkflow<P> | undefined;
  /**
   * How failed runs are repeated; `false` for not at all.
   *
   * @default {after 2 s, then 1.5 times later each, 5 times}
   */
  readonly retry?: RetryPolicyOptions | RetryPolicy | false | undefined;
  /**
   * How often one object may run: a number of runs in a period, or a limiter of
   * your own.
   *
   * @default {no limit}
   */
  readonly rateLimit?: RateLimitWindow | Limiter | undefined;
  /**
   * How many runs may begin, over all objects.
   *
   * @default {no limit}
   */
  readonly throughput?: TokenBucketOptions | undefined;
  /**
   * After how long without a run an object runs again; `false` for never. The
   * default is that of controller-runtime and of the Java Operator SDK.
   *
   * @default {"10h"}
   */
  readonly maxInterval?: Duration | false | undefined;
  /**
   * How many objects may run at once.
   *
   * @default {10}
   */
  readonly concurrency?: number | undefined;
  /**
   * After how long `ctx.signal` fires and the run counts as failed. A run cannot
   * be ended from outside: one that does not heed the signal keeps its place, and
   * its object waits, until it ends by itself. From ten seconds after the signal
   * on a warning tells of it, with pauses that double up to an hour, and so do
   * `overdue` of the health, `coracle_reconciliations_overdue` and `coracle why`.
   *
   * @default {no limit}
   */
  readonly timeout?: Duration | undefined;
  /** What of the primaries is kept. */
  readonly cache?: PrimaryCacheOptions | undefined;
  /**
   * The annotation by which a person pauses an object, with the value `"true"`:
   * it is not reconciled and not cleaned up until the annotation goes; `false`
   * for none.
   *
   * @default {"coracle.dev/paused"}
   */
  readonly pauseAnnotation?: string | false | undefined;
  /**
   * Whether `reconcile` is called for primaries marked for deletion and for
   * deleted ones, too. The framework then adds no finalizer.
   *
   * @default {false}
   */
  readonly allEvents?: boolean | undefined;
  /**
   * Whose fields the controller's writes are.
   *
   * @default {the name of the controller}
   */
  readonly fieldManager?: string | undefined;
  /**
   * Whether results are written by server-side apply, and otherwise by merge
   * patches.
   *
   * @default {true}
   */
  readonly serverSideApply?: boolean | undefined;
  /**
   * Whether the CustomResourceDefinition of the kind is applied at start; the
   * kind must be one of `defineKind`.
   *
   * @default {false}
   */
  readonly install?: boolean | undefined;
}
