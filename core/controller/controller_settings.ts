import { milliseconds } from "../api/duration.ts";
import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
  typeText,
} from "../api/options.ts";
import { checkSelection } from "../cache/informer/informer_check.ts";
import { checkIndex } from "../cache/store/object_indexes.ts";
import type { IndexDefinition } from "../cache/store/object_store.ts";
import type { Limiter } from "../queue/limiter.ts";
import {
  exponentialBackoff,
  noRetry,
  RETRY_POLICY_RULES,
  type RetryPolicy,
} from "../queue/retry_policy.ts";
import {
  BUCKET_RULES,
  TokenBucket,
  type TokenBucketOptions,
} from "../queue/token_bucket.ts";
import {
  type RateLimitWindow,
  WINDOW_RULES,
  WindowLimiter,
} from "../queue/window_limiter.ts";
import type { ControllerOptions } from "./controller_options.ts";
import type { EventSource } from "./event_source.ts";
import { FILTER_RULES, type Filters } from "./filters.ts";
import { checkFinalizer, defaultFinalizer } from "./finalizer.ts";
import type { ManagedWorkflow } from "./managed_workflow.ts";
import {
  checkNamespaces,
  NAMESPACE_WORDS,
  type Namespaces,
} from "./namespaces.ts";
import type {
  PrimaryCacheOptions,
  PrimarySelection,
} from "./primary_source.ts";
import type { Reconciler } from "./reconciler.ts";
import { type ShardAssignment, staticShard } from "./shard.ts";

/** The options of a controller, checked and with defaults. */
export interface ControllerSettings<
  P extends KubernetesObject = KubernetesObject,
> {
  readonly name: string;
  readonly namespaces: Namespaces | undefined;
  readonly shard: ShardAssignment | undefined;
  readonly finalizer: string | undefined;
  readonly generationAware: boolean;
  readonly requestAnnotations: readonly string[];
  readonly defaultFilters: boolean;
  readonly filters: Filters<P>;
  readonly indexes: Readonly<Record<string, IndexDefinition<P>>>;
  readonly sources: readonly EventSource<P>[];
  readonly workflow: ManagedWorkflow<P> | undefined;
  readonly retry: RetryPolicy;
  readonly limiter: Limiter | undefined;
  readonly throughput: TokenBucket | undefined;
  /** Milliseconds; infinite for never. */
  readonly maxInterval: number;
  readonly concurrency: number;
  /** Milliseconds; infinite for no limit. */
  readonly timeout: number;
  readonly pauseAnnotation: string | undefined;
  readonly allEvents: boolean;
  readonly usesFinalizer: boolean;
  readonly fieldManager: string;
  readonly serverSideApply: boolean;
  readonly install: boolean;
  readonly selection: PrimarySelection;
}

const RULES: OptionRules<ControllerOptions<never>> = {
  name: "name?",
  namespaces: "any?",
  labelSelector: "selector?",
  fieldSelector: "selector?",
  shardSelector: "string?",
  shard: "object?",
  finalizer: "string?",
  generationAware: "boolean?",
  requestAnnotations: "strings?",
  defaultFilters: "boolean?",
  filters: "object?",
  indexes: "object?",
  sources: "array?",
  workflow: "object?",
  retry: "any?",
  rateLimit: "object?",
  throughput: "object?",
  maxInterval: "any?",
  concurrency: "count?",
  timeout: "duration?",
  cache: "object?",
  pauseAnnotation: "any?",
  allEvents: "boolean?",
  fieldManager: "name?",
  serverSideApply: "boolean?",
  install: "boolean?",
};
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
  maxAttempts: "number",
  delay: "function",
};
const LIMITER_PARTS: OptionRules<Limiter> = { admit: "function" };
const CACHE_RULES: OptionRules<PrimaryCacheOptions> = {
  prune: "strings?",
  metadataOnly: "boolean?",
  bounded: "boolean?",
};

/**
 * Checks the options of a controller and fills in the defaults.
 *
 * @param kind The kind of the primaries.
 * @param reconciler What the controller runs.
 * @param options What the user gave.
 * @throws {TypeError | RangeError | SyntaxError} If anything makes no sense,
 * naming it.
 */
export function controllerSettings<P extends KubernetesObject>(
  kind: { readonly kind: string },
  reconciler: Reconciler<P>,
  options: ControllerOptions<P>,
): ControllerSettings<P> {
  checkReconciler(kind.kind, reconciler);
  const { name = kind.kind.toLowerCase(), cache = {} } = options;
  const subject = `controller "${name}"`;
  checkOptions(options, RULES, subject);
  checkOptions(cache, CACHE_RULES, `${subject}, cache`);
  const { pauseAnnotation } = options;
  if (pauseAnnotation !== undefined && pauseAnnotation !== false) {
    checkOption(pauseAnnotation, "name", { name: "pauseAnnotation", subject });
  }
  const { namespaces, concurrency = 10, workflow, allEvents = false } = options;
  if (namespaces !== undefined) {
    checkNamespaces(namespaces, NAMESPACE_WORDS, subject);
  }
  if (workflow !== undefined) {
    checkParts(workflow, WORKFLOW_PARTS, `${subject}, workflow`);
  }
  for (const [name, index] of Object.entries(options.indexes ?? {})) {
    checkIndex(name, index);
  }
  checkSelection({ ...options, prune: cache.prune });
  if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) {
    throw new TypeError(
      `Cannot register a controller: its name must be of lower-case letters, digits, dashes and dots: received "${name}"`,
    );
  }
  const needsCleanup = reconciler.cleanup !== undefined ||
    workflow?.needsFinalizer === true;
  if (allEvents && (needsCleanup || workflow !== undefined)) {
    throw new TypeError(
      `Cannot register ${subject}: "allEvents" hands deletions to reconcile, so that neither a cleanup nor a workflow can be combined with it: received ${
        workflow === undefined ? "a cleanup" : "a workflow"
      }`,
    );
  }
  const interval = options.maxInterval ?? "10h";
  return {
    name,
    namespaces,
    shard: options.shard && staticShard(options.shard),
    finalizer: options.finalizer === undefined
      ? undefined
      : checkFinalizer(options.finalizer),
    generationAware: options.generationAware ?? true,
    requestAnnotations: options.requestAnnotations ?? [],
    defaultFilters: options.defaultFilters ?? true,
    filters: checkFilters(options.filters ?? {}, subject),
    indexes: options.indexes ?? {},
    sources: checkSources(
      [...options.sources ?? [], ...workflow?.sources ?? []],
      subject,
    ),
    workflow,
    retry: retryPolicy(options.retry, subject),
    limiter: options.rateLimit && rateLimiter(options.rateLimit, subject),
    throughput: options.throughput && tokenBucket(options.throughput, subject),
    maxInterval: interval === false
      ? Infinity
      : milliseconds(interval, "maxInterval") || Infinity,
    concurrency,
    timeout: options.timeout === undefined
      ? Infinity
      : milliseconds(options.timeout, "timeout"),
    pauseAnnotation: pauseAnnotation === false
      ? undefined
      : pauseAnnotation ?? "coracle.dev/paused",
    allEvents,
    usesFinalizer: needsCleanup && !allEvents,
    fieldManager: options.fieldManager ?? name,
    serverSideApply: options.serverSideApply ?? true,
    install: options.install ?? false,
    selection: {
      labelSelector: options.labelSelector,
      fieldSelector: options.fieldSelector,
      shardSelector: options.shardSelector,
      prune: cache.prune ?? ["metadata.managedFields"],
      metadataOnly: cache.metadataOnly ?? false,
      bounded: cache.bounded ?? false,
    },
  };
}

/** The finalizer of a controller, whose kind is known by now. */
export function finalizerOf(
  settings: Pick<ControllerSettings, "finalizer" | "usesFinalizer">,
  kind: ResolvedKind,
): string | undefined {
  if (!settings.usesFinalizer) return undefined;
  return settings.finalizer ?? defaultFinalizer(kind);
}

const METHODS: readonly (keyof Reconciler<never>)[] = [
  "reconcile",
  "initContext",
  "cleanup",
  "onError",
];

function checkReconciler(kind: string, reconciler: object): void {
  for (const name of METHODS) {
    const method = (reconciler as Record<string, unknown> | undefined)?.[name];
    if (typeof method === "function") continue;
    if (name !== "reconcile" && method === undefined) continue;
    throw new TypeError(
      `Cannot register a controller for ${kind}: its reconciler needs ${
        name === "reconcile"
          ? 'a method "reconcile(primary, ctx)"'
          : `"${name}" to be a method`
      }: received ${method === undefined ? "none" : typeof method}`,
    );
  }
}

function checkFilters<P extends KubernetesObject>(
  filters: Filters<P>,
  subject: string,
): Filters<P> {
  // That a primary is gone must always be known.
  const { delete: _always, ...rules } = FILTER_RULES;
  checkOptions(filters, rules, `${subject}, filters of primaries`);
  return filters;
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

function retryPolicy(
  retry: ControllerOptions["retry"],
  subject: string,
): RetryPolicy {
  if (retry === false) return noRetry;
  if (retry !== undefined) {
    checkOption(retry, "object", { name: "retry", subject });
    if ("delay" in retry) {
      checkParts(retry, RETRY_PARTS, `${subject}, retry`);
      return retry;
    }
    checkOptions(retry, RETRY_POLICY_RULES, `${subject}, retry`);
  }
  return exponentialBackoff(retry);
}

function rateLimiter(
  window: RateLimitWindow | Limiter,
  subject: string,
): Limiter {
  if ("admit" in window) {
    checkParts(window, LIMITER_PARTS, `${subject}, rateLimit`);
    return window;
  }
  checkOptions(window, WINDOW_RULES, `${subject}, rateLimit`);
  return new WindowLimiter(window);
}

function tokenBucket(
  options: TokenBucketOptions,
  subject: string,
): TokenBucket {
  checkOptions(options, BUCKET_RULES, `${subject}, throughput`);
  return new TokenBucket(options);
}
