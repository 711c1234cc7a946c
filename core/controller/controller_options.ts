import type { Duration } from "../api/duration.ts";
import { isQualifiedName } from "../api/label_selector.ts";
import {
  checkKind,
  type Kind,
  type ResolvedKind,
  sameKind,
} from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  editDistance,
  nearestName,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
  typeText,
} from "../api/options.ts";
import type { ControllerAdmission } from "../admission/admission_options.ts";
import { SELECTION_OPTIONS, type SelectionOptions } from "../api/selection.ts";
import {
  checkIndex,
  type IndexDefinition,
} from "../cache/store/object_indexes.ts";
import { pruneTree } from "../json/prune.ts";
import type { Limiter } from "../queue/window_limiter.ts";
import {
  exponentialBackoff,
  noRetry,
  RETRY_POLICY_RULES,
  type RetryPolicy,
  type RetryPolicyOptions,
} from "../queue/retry_policy.ts";
import {
  BUCKET_RULES,
  tokenBucket,
  type TokenBucketOptions,
} from "../queue/token_bucket.ts";
import type { TokenBucket } from "../pace.ts";
import {
  type RateLimitWindow,
  WINDOW_RULES,
  WindowLimiter,
} from "../queue/window_limiter.ts";
import type { EventSource } from "./event_source.ts";
import { FILTER_RULES, type Filters } from "./filters.ts";
import { checkFinalizer, defaultFinalizer } from "./finalizer.ts";
import type { ManagedWorkflow } from "./managed_workflow.ts";
import { type Namespaces, NAMESPACES_OPTION } from "./namespaces.ts";
import type { Reconciler } from "./reconciler.ts";
import {
  type ShardAssignment,
  type StaticShard,
  staticShard,
} from "./shard.ts";
import { WatchingSource } from "./watch/watch_source.ts";

/** Options for the cached copies of the primaries. */
export interface PrimaryCacheOptions {
  /**
   * Paths that are removed before an object is stored, such as
   * `metadata.managedFields`. Reading one of them throws an error that names it.
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
   * value triggers a run, even if the generation does not change.
   *
   * @default {[]}
   */
  readonly requestAnnotations?: readonly string[] | undefined;
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
   * Lease before that run has succeeded.
   *
   * @default {false}
   */
  readonly allEvents?: boolean | undefined;
  /** Field manager of writes. Defaults to the name of the controller. */
  readonly fieldManager?: string | undefined;
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
   * Admission of the primaries: `validate` and `default` handlers with the options
   * of `operator.admit`, of which this is the short form. Defaults to no admission.
   */
  readonly admission?: ControllerAdmission<P> | undefined;
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
type Undefined =
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
  | "admission";

export const CONTROLLER_OPTIONS: OptionTable<
  ControllerOptions<never>,
  Undefined
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
  serverSideApply: { type: "boolean", default: true },
  install: { type: "boolean", default: false },
  // Checked by operator.admit().
  admission: { type: "object?", configurable: false },
};

/** Options of a controller, checked and with defaults; times in milliseconds. */
export interface ControllerSettings<
  P extends KubernetesObject = KubernetesObject,
> extends
  Omit<
    Settings<ControllerOptions<P>, Undefined>,
    | "shard"
    | "retry"
    | "rateLimit"
    | "throughput"
    | "cache"
    | "owns"
    | "watches"
  > {
  readonly name: string;
  readonly fieldManager: string;
  readonly shard: ShardAssignment | undefined;
  readonly retry: RetryPolicy;
  /** Rate limit per object. */
  readonly limiter: Limiter | undefined;
  /** Rate limit over all objects. */
  readonly throughput: TokenBucket | undefined;
  /** Whether the reconciler or the workflow needs a finalizer. */
  readonly usesFinalizer: boolean;
  /** Selection of the primaries, and their form in the cache. */
  readonly selection: SelectionOptions & Settings<PrimaryCacheOptions>;
}

/**
 * Checks the options of a controller and fills in the defaults.
 *
 * @throws {TypeError | RangeError | SyntaxError} If an option is not valid; the
 * error names it.
 */
export function controllerSettings<P extends KubernetesObject>(
  kind: { readonly kind: string },
  reconciler: Reconciler<P>,
  options: ControllerOptions<P>,
): ControllerSettings<P> {
  checkReconciler(kind.kind, reconciler);
  const { name = kind.kind.toLowerCase() } = options;
  const subject = `controller "${name}"`;
  checkOptions(options, CONTROLLER_OPTIONS, subject);
  const { shard, retry, rateLimit, throughput, cache, ...others } =
    resolveOptions<ControllerOptions<P>, Undefined>(
      options,
      CONTROLLER_OPTIONS as unknown as OptionTable<
        ControllerOptions<P>,
        Undefined
      >,
    );
  const { owns, watches, ...settings } = others;
  const { workflow, allEvents } = settings;
  const needsCleanup = reconciler.cleanup !== undefined ||
    workflow?.needsFinalizer === true;
  if (allEvents && (needsCleanup || workflow !== undefined)) {
    throw new TypeError(
      `Cannot register ${subject}: "allEvents" hands deletions to reconcile, so that neither a cleanup nor a workflow can be combined with it`,
    );
  }
  const { fieldManager = name } = settings;
  checkOption(fieldManager, "manager", { name: "fieldManager", subject });
  return {
    ...settings,
    name,
    fieldManager,
    shard: shard && staticShard(shard),
    sources: allSources<P>(
      {
        owns,
        watches,
        sources: [...settings.sources, ...workflow?.sources ?? []],
      },
      subject,
    ),
    retry: "delay" in retry ? retry : exponentialBackoff(retry),
    limiter: rateLimit === undefined || "admit" in rateLimit
      ? rateLimit
      : new WindowLimiter(rateLimit),
    throughput: throughput && tokenBucket(throughput),
    maxInterval: settings.maxInterval || Infinity,
    usesFinalizer: needsCleanup && !allEvents,
    selection: {
      labelSelector: settings.labelSelector,
      fieldSelector: settings.fieldSelector,
      shardSelector: settings.shardSelector,
      ...cache as Settings<PrimaryCacheOptions>,
    },
  };
}

/** Finalizer of a controller; undefined if it needs none. */
export function finalizerOf(
  settings: Pick<ControllerSettings, "finalizer" | "usesFinalizer">,
  kind: Pick<ResolvedKind, "group" | "plural">,
): string | undefined {
  if (!settings.usesFinalizer) return undefined;
  return settings.finalizer ?? defaultFinalizer(kind);
}

/** Checks a name that no object could have otherwise, so that it has no effect. */
function checkAnnotation(name: string): void {
  if (isQualifiedName(name)) return;
  throw new TypeError(
    `Cannot use an annotation: it is up to 63 letters, digits, -, _ and . with an optional DNS prefix and slash: received ${
      JSON.stringify(name)
    }`,
  );
}

const METHODS: readonly string[] = [
  "reconcile",
  "initContext",
  "cleanup",
  "onError",
] satisfies (keyof Reconciler<never>)[];

function checkReconciler(kind: string, reconciler: object): void {
  const refuse = (why: string) => {
    throw new TypeError(`Cannot register a controller for ${kind}: ${why}`);
  };
  for (const name of METHODS) {
    const method = (reconciler as Record<string, unknown> | undefined)?.[name];
    if (typeof method === "function") continue;
    if (name !== "reconcile" && method === undefined) continue;
    refuse(
      `its reconciler needs ${
        name === "reconcile"
          ? 'a method "reconcile(primary, ctx)"'
          : `"${name}" to be a method`
      }: received ${typeText(method)}`,
    );
  }
  const name = misspeltMethod(reconciler);
  if (name === undefined) return;
  const nearest = nearestName(name, METHODS);
  refuse(
    `its reconciler cannot have "${name}", ${
      nearest ? `did you mean "${nearest}"?` : `only ${METHODS.join(", ")}`
    }${
      name in CONTROLLER_OPTIONS ? "; options are the argument after it" : ""
    }`,
  );
}

/**
 * Member of a reconciler that is a mistake: any unknown one of a plain object.
 * Classes may have others, except nearly the name of a method that is missing.
 */
function misspeltMethod(reconciler: object): string | undefined {
  const parts: object[] = [];
  let part = reconciler;
  while (part && part !== Object.prototype) {
    parts.push(part);
    part = Object.getPrototypeOf(part);
  }
  const missing = METHODS.filter((name) => !(name in reconciler));
  return parts.flatMap(Object.getOwnPropertyNames).find((name) =>
    parts.length === 1
      ? !METHODS.includes(name)
      : missing.some((method) => editDistance(name, method) < 2)
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

/**
 * Event sources of a controller. An owned kind that a dependent watches needs no
 * source of its own; the dependent uses the selectors of `owns`.
 */
function allSources<P extends KubernetesObject>(
  { owns, watches, sources }: Pick<
    Settings<ControllerOptions<P>, Undefined>,
    "owns" | "watches" | "sources"
  >,
  subject: string,
): readonly EventSource<P>[] {
  checkSources(sources, subject);
  const dependents = sources.filter((source) =>
    source instanceof WatchingSource && source.isOwned
  ) as WatchingSource<P>[];
  const taken = new Set(sources.map(({ name }) => name));
  const owned = owns.flatMap((entry, number) => {
    const what = `${subject}, owns[${number}]`;
    if (typeof entry !== "object" || entry === null) checkKind(entry, what);
    const watched = dependents.filter(({ kind }) =>
      sameKind(kind, "start" in entry ? entry.kind : entry)
    );
    if (!("start" in entry)) {
      checkKind(entry, what);
      return watched.some(({ watchesAll }) => watchesAll)
        ? []
        : [new WatchingSource<P>(entry, {}).usedAs("owns", taken)];
    }
    if (!(entry instanceof WatchingSource) || !entry.mapsByOwner) {
      throw new TypeError(
        `Cannot register ${what}: owned objects are found by their owner, so give a kind or watch() without mapper and references here, and any other source in "watches"`,
      );
    }
    for (const dependent of watched) {
      if (dependent.watchesAll) dependent.selectAs(entry);
    }
    return [entry.usedAs("owns", taken)];
  });
  const watched = watches.map((entry, number) => {
    if (entry instanceof WatchingSource) return entry.usedAs("watches", taken);
    if (typeof entry?.start !== "function" || !entry.kind) {
      throw new TypeError(
        `Cannot register ${subject}, watches[${number}]: it must be watch(Kind, { mapper }), and a source of what is no kind belongs in "sources": received ${
          typeText(entry)
        }`,
      );
    }
    return entry;
  });
  return checkSources([...owned, ...watched, ...sources], subject);
}

function checkSources<P extends KubernetesObject>(
  sources: readonly EventSource<P>[],
  subject: string,
): readonly EventSource<P>[] {
  const names = new Set<string>();
  for (const source of sources) {
    const { name } = source ?? {};
    if (!name || typeof source.start !== "function") {
      throw new TypeError(
        `Cannot register ${subject}: its event sources must have a name and a method "start": received ${
          typeText(source)
        }`,
      );
    }
    if (names.has(name)) {
      throw new TypeError(
        `Cannot register ${subject}: its event sources must have different names: received "${name}" twice`,
      );
    }
    names.add(name);
  }
  return sources;
}
