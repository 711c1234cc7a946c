import type { Duration } from "../api/duration.ts";
import { isQualifiedName } from "../api/label_selector.ts";
import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
  type OptionTable,
} from "../api/options.ts";
import type { ControllerAdmission } from "../admission/admission_options.ts";
import { SELECTION_OPTIONS, type SelectionOptions } from "../api/selection.ts";
import {
  checkIndex,
  type IndexDefinition,
} from "../cache/store/object_indexes.ts";
import { pruneTree } from "../json/prune.ts";
import {
  noRetry,
  RETRY_POLICY_RULES,
  type RetryPolicy,
  type RetryPolicyOptions,
} from "../queue/retry_policy.ts";
import {
  BUCKET_RULES,
  type Limiter,
  type RateLimitWindow,
  type TokenBucketOptions,
  WINDOW_RULES,
} from "../queue/limits.ts";
import type { EventSource } from "./event_source.ts";
import { FILTER_RULES, type Filters } from "./filters.ts";
import { checkFinalizer } from "./finalizer.ts";
import type { ManagedWorkflow } from "./managed_workflow.ts";
import { type Namespaces, NAMESPACES_OPTION } from "./namespaces.ts";
import type { StaticShard } from "./shard.ts";
import type { Cluster, ClusterSet } from "./clusters/cluster_set.ts";

/** Options for the cached copies of the primaries. */
export interface PrimaryCacheOptions {
  /**
   * Paths that are removed before an object is stored, such as
   * `metadata.managedFields`. Reading one of them throws an error that names it.
   * With the default, primaries that a controller of the operator also owns or
   * watches keep the managed fields of the operator's own controllers, so that
   * both have one cache.
   *
   * @default {["metadata.managedFields"]}
   */
  readonly prune?: readonly string[] | undefined;
  /**
   * Whether only the metadata is watched and kept; all other fields of the
   * objects are undefined.
   *
   * @default {false}
   */
  readonly metadataOnly?: boolean | undefined;
  /**
   * Whether objects beyond the memory budget of the operator are kept as keys
   * only, and fetched again for each run. Status changes of these objects then
   * trigger runs as well, because their previous state is not known.
   *
   * @default {false}
   */
  readonly bounded?: boolean | undefined;
}

/** Options of a controller. */
export interface ControllerOptions<
  P extends KubernetesObject = KubernetesObject,
> extends SelectionOptions {
  /**
   * Name of the controller, unique within the operator; it appears in logs,
   * metrics and field managers. Defaults to the kind in lower case, such as
   * `"webpage"`.
   */
  readonly name?: string | undefined;
  /** Namespaces to watch. Defaults to those of the operator. */
  readonly namespaces?: Namespaces | undefined;
  /**
   * Static shard: the controller runs only the primaries of one of a fixed
   * number of equal parts. The part of an object follows from its name, and so
   * stays the same when it is recreated. In contrast to `shardSelector`, all
   * primaries are cached. For shards that follow the number of replicas, see
   * the `sharding` option of the operator. Defaults to all primaries.
   */
  readonly shard?:
    | {
      /** Index of this shard, from 0. */
      readonly index: number;
      /** Number of shards. */
      readonly count: number;
    }
    | undefined;
  /**
   * Finalizer that is added to the primaries when the reconciler has a
   * `cleanup` method. Defaults to `<plural>.<group>/finalizer`. Controllers of
   * one operator that clean up the same objects need one each.
   *
   * A primary that leaves the `labelSelector` or `fieldSelector` keeps its
   * finalizer: if it is deleted then, its deletion waits until it is selected
   * again or the finalizer is removed. To manage only objects with a certain
   * label, check the label in the reconciler instead.
   */
  readonly finalizer?: string | undefined;
  /**
   * Whether to ignore updates that do not change the generation of a primary,
   * such as updates of its status or labels. Kinds without generations, such as
   * Namespace and ConfigMap, run on each update.
   *
   * @default {true}
   */
  readonly generationAware?: boolean | undefined;
  /**
   * Annotations that request a run: an update that sets one of them to a new
   * value triggers a run, even if the generation does not change. The removal of
   * one triggers none.
   *
   * @default {[]}
   */
  readonly requestAnnotations?: readonly string[] | undefined;
  /**
   * Annotations that say how to reconcile: any change of one triggers a run, also
   * its removal, even if the generation does not change.
   *
   * @default {[]}
   */
  readonly watchedAnnotations?: readonly string[] | undefined;
  /**
   * Whether the filters of the framework apply; otherwise only `filters` does.
   *
   * @default {true}
   */
  readonly defaultFilters?: boolean | undefined;
  /** Filters for the events of the primaries. Defaults to no filters. */
  readonly filters?: Filters<P> | undefined;
  /**
   * Indexes of the primaries by name, for `primaries.byIndex`. Indexes by
   * label, annotation or owner do not decode the objects.
   *
   * @default {{}}
   */
  readonly indexes?: Readonly<Record<string, IndexDefinition<P>>> | undefined;
  /**
   * Kinds of the objects that the reconciler creates, such as `[ConfigMap]`: a
   * change or deletion of such an object triggers the primary that owns it,
   * which `ctx.apply` and `ctx.create` record in the object.
   *
   * `watch(Secret, { labelSelector: "app=web" })` in place of `Secret` caches
   * only these objects; the reconciler then cannot write any others. The kinds
   * of dependents need not be repeated here.
   *
   * @default {[]}
   */
  readonly owns?:
    | readonly (Kind | (EventSource<P> & { readonly kind: Kind }))[]
    | undefined;
  /**
   * Watches of other kinds, such as `[watch(Node, { mapper })]`: their changes
   * trigger the primaries that the mapper names. The reconciler only reads
   * these objects, unless the watch has the option `readOnly: false`.
   *
   * @default {[]}
   */
  readonly watches?:
    | readonly (EventSource<P> & { readonly kind: Kind })[]
    | undefined;
  /**
   * Event sources besides `owns` and `watches`, for changes outside of
   * Kubernetes objects: polls, timers, webhooks and others.
   *
   * @default {[]}
   */
  readonly sources?: readonly EventSource<P>[] | undefined;
  /** Workflow that runs before the reconciler. Defaults to no workflow. */
  readonly workflow?: ManagedWorkflow<P> | undefined;
  /**
   * Retry policy for failed runs and cleanups, or `false` for no retries. By
   * default they are retried until one succeeds: after 1 s, 2 s, 4 s and so on
   * up to every 5 minutes. An event of the object causes an earlier run.
   */
  readonly retry?: RetryPolicyOptions | RetryPolicy | false | undefined;
  /**
   * Rate limit per object: a number of runs in a period, or a limiter of your
   * own. Defaults to no limit.
   */
  readonly rateLimit?: RateLimitWindow | Limiter | undefined;
  /**
   * Rate limit over all objects of the controller, as a token bucket. Defaults
   * to no limit.
   */
  readonly throughput?: TokenBucketOptions | undefined;
  /**
   * Longest time between two runs of an object, or `false` for no limit. The
   * default is that of controller-runtime and of the Java Operator SDK.
   *
   * @default {"10h"}
   */
  readonly maxInterval?: Duration | false | undefined;
  /**
   * Maximum number of concurrent runs.
   *
   * @default {10}
   */
  readonly concurrency?: number | undefined;
  /**
   * Time limit of a run, after which `ctx.signal` aborts and the run counts as
   * failed. A run that ignores the signal cannot be ended: it occupies one of
   * the concurrent runs, and its object waits, until it returns. Ten seconds
   * after the signal a warning is logged, and repeated at intervals that double
   * up to an hour; the health (`overdue`), the metric
   * `coracle_reconciliations_overdue` and `coracle why` report it as well.
   * Defaults to no limit.
   */
  readonly timeout?: Duration | undefined;
  /** Options for the cached copies of the primaries. */
  readonly cache?: PrimaryCacheOptions | undefined;
  /**
   * Annotation that pauses an object while its value is `"true"`: the object is
   * neither reconciled nor cleaned up. `false` disables the feature.
   *
   * @default {"coracle.dev/paused"}
   */
  readonly pauseAnnotation?: string | false | undefined;
  /**
   * Whether `reconcile` also runs for primaries that are being deleted or were
   * deleted. The framework then adds no finalizer, and the run for a deletion is
   * missed if the operator is down, or if a member of a shard group loses its
   * Lease before that run has succeeded. A workflow only runs until the deletion
   * of its primary begins.
   *
   * @default {false}
   */
  readonly allEvents?: boolean | undefined;
  /** Field manager of writes. Defaults to the name of the controller. */
  readonly fieldManager?: string | undefined;
  /**
   * Field managers whose fields become the controller's, such as the name of the
   * operator that it replaces: at the first apply of an object, or of a status by
   * `setStatus`, fields of theirs that the apply leaves out are removed. This is
   * logged, and shown by `coracle plan`. Those of a primary are kept by the
   * framework's own writes, such as that of the finalizer. A manager that goes on
   * writing loses what it writes again.
   *
   * @default {[]}
   */
  readonly takeOver?: readonly string[] | undefined;
  /**
   * Whether the finalizer is added by server-side apply; otherwise by JSON Patch.
   *
   * @default {true}
   */
  readonly serverSideApply?: boolean | undefined;
  /**
   * Whether the CustomResourceDefinitions of the watched kinds are applied at
   * start; only kinds of `defineKind` have one.
   *
   * @default {false}
   */
  readonly install?: boolean | undefined;
  /**
   * Whether the replica that leads rewrites the primaries in the storage version
   * of their definition, if some may be stored in another one, as `coracle migrate`
   * does; only kinds of `defineKind` have one.
   *
   * @default {false}
   */
  readonly migrateStorage?: boolean | undefined;
  /**
   * Admission of the primaries, a short form of `operator.admit`: `validate` and
   * `default` handlers and its options. Defaults to no admission.
   */
  readonly admission?: ControllerAdmission<P> | undefined;
  /**
   * Clusters whose objects are the primaries, in place of the operator's own: a list,
   * or a source of sets of clusters, such as `kubeconfigSecrets()`, whose clusters
   * join and leave while the operator runs. Each has its own caches, queue and
   * `concurrency`. A run finds its cluster in `ctx.cluster`, and reads and writes
   * there. Defaults to the cluster of the operator.
   */
  readonly clusters?: readonly Cluster[] | ClusterSet | undefined;
  /**
   * Options that each of the `clusters` has a copy of its own of, since they keep
   * state by object: a function that creates them. It is called with the name of a
   * cluster that joins, and at the registration with an empty name. Defaults to none.
   */
  readonly perCluster?:
    | ((cluster: string) => Pick<
      ControllerOptions<P>,
      "owns" | "rateLimit" | "sources" | "watches" | "workflow"
    >)
    | undefined;
}

const WORKFLOW_PARTS: OptionRules<ManagedWorkflow<never>> = {
  needsFinalizer: "boolean",
  explicit: "boolean?",
  sources: "array",
  reconcile: "function",
  cleanup: "function",
  resultIn: "function",
  toMermaid: "function?",
};
const RETRY_PARTS: OptionRules<RetryPolicy> = {
  delay: "function",
  maxAttempts: "number",
};
const LIMITER_PARTS: OptionRules<Limiter> = { admit: "function" };
const SHARD_OPTIONS: OptionRules<StaticShard> = {
  index: "number",
  count: "number",
};
const CACHE_OPTIONS: OptionTable<PrimaryCacheOptions> = {
  prune: {
    type: "strings",
    default: ["metadata.managedFields"],
    configurable: false,
    check: pruneTree,
  },
  metadataOnly: { type: "boolean", default: false },
  bounded: { type: "boolean", default: false },
};

/** Options of a controller that stay undefined when they are left out. */
export type WithoutDefault =
  | keyof SelectionOptions
  | "name"
  | "namespaces"
  | "shard"
  | "finalizer"
  | "workflow"
  | "rateLimit"
  | "throughput"
  | "pauseAnnotation"
  | "fieldManager"
  | "admission"
  | "clusters"
  | "perCluster";

export const CONTROLLER_OPTIONS: OptionTable<
  ControllerOptions<never>,
  WithoutDefault
> = {
  ...SELECTION_OPTIONS,
  name: { type: "name?", configurable: false, check: checkName },
  namespaces: NAMESPACES_OPTION,
  shard: { type: "object?", options: SHARD_OPTIONS },
  finalizer: { type: "string?", check: checkFinalizer },
  generationAware: { type: "boolean", default: true },
  requestAnnotations: {
    type: "strings",
    default: [],
    check: (names) => names.forEach(checkAnnotation),
  },
  watchedAnnotations: {
    type: "strings",
    default: [],
    check: (names) => names.forEach(checkAnnotation),
  },
  defaultFilters: { type: "boolean", default: true },
  filters: { type: "object", default: {}, check: checkFilters },
  indexes: {
    type: "object",
    default: {},
    check: (indexes) =>
      Object.entries(indexes).forEach((entry) => checkIndex(...entry)),
  },
  owns: { type: "array", default: [] },
  watches: { type: "array", default: [] },
  sources: { type: "array", default: [] },
  workflow: {
    type: "object?",
    check(workflow, subject) {
      if ("read" in workflow && !("resultIn" in workflow)) {
        throw new TypeError(
          `Cannot read the options of ${subject}: "workflow" must be a Workflow, so write new Workflow().add("name", dependent): received a dependent with ${
            Object.keys(workflow).join(", ")
          }`,
        );
      }
      checkParts(workflow, WORKFLOW_PARTS, `${subject}, workflow`);
    },
  },
  retry: {
    type: "object",
    default: {},
    off: noRetry,
    options: RETRY_POLICY_RULES,
    custom: RETRY_PARTS,
  },
  rateLimit: { type: "object?", options: WINDOW_RULES, custom: LIMITER_PARTS },
  throughput: { type: "object?", options: BUCKET_RULES },
  maxInterval: { type: "duration", default: "10h", off: Infinity },
  concurrency: { type: "count", default: 10 },
  timeout: { type: "duration", default: Infinity },
  cache: { type: "object", default: {}, options: CACHE_OPTIONS },
  pauseAnnotation: {
    type: "name",
    default: "coracle.dev/paused",
    off: undefined,
    check: checkAnnotation,
  },
  allEvents: { type: "boolean", default: false },
  fieldManager: "manager?",
  takeOver: { type: "strings", default: [] },
  serverSideApply: { type: "boolean", default: true },
  install: { type: "boolean", default: false },
  migrateStorage: { type: "boolean", default: false },
  // Checked by operator.admit().
  admission: { type: "object?", configurable: false },
  // Checked by the controller of clusters.
  clusters: { type: "any?", configurable: false },
  perCluster: "function?",
};

/** Checks a name that no object could have otherwise, so that it has no effect. */
function checkAnnotation(name: string): void {
  if (isQualifiedName(name)) return;
  throw new TypeError(
    `Cannot use an annotation: it is up to 63 letters, digits, -, _ and . with an optional DNS prefix and slash: received ${
      JSON.stringify(name)
    }`,
  );
}

function checkName(name: string): void {
  if (/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) return;
  throw new TypeError(
    `Cannot register a controller: its name must be of lower-case letters, digits, dashes and dots: received "${name}"`,
  );
}

function checkFilters(filters: object, subject: string): void {
  // Deletions of primaries cannot be filtered: they must always be handled.
  const { delete: _always, ...rules } = FILTER_RULES;
  checkOptions(filters, rules, `${subject}, filters of primaries`);
}
