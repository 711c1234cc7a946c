import { checkKind, type ResolvedKind, sameKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import {
  checkOption,
  checkOptions,
  editDistance,
  nearestName,
  type OptionTable,
  resolveOptions,
  type Settings,
  typeText,
} from "../api/options.ts";
import type { SelectionOptions } from "../api/selection.ts";
import type { TokenBucket } from "../pace.ts";
import { exponentialBackoff, type RetryPolicy } from "../queue/retry_policy.ts";
import {
  type Limiter,
  type RateLimitWindow,
  tokenBucket,
} from "../queue/limits.ts";
import {
  CONTROLLER_OPTIONS,
  type ControllerOptions,
  type PrimaryCacheOptions,
  type WithoutDefault,
} from "./controller_options.ts";
import type { EventSource } from "./event_source.ts";
import { defaultFinalizer } from "./finalizer.ts";
import type { Reconciler } from "./reconciler.ts";
import { type ShardAssignment, staticShard } from "./shard.ts";
import { foreignManagedFields, WatchingSource } from "./watch/watch_source.ts";

/** Options of a controller, checked and with defaults; times in milliseconds. */
export interface ControllerSettings<
  P extends KubernetesObject = KubernetesObject,
> extends
  Omit<
    Settings<ControllerOptions<P>, WithoutDefault>,
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
  readonly limiter: RateLimitWindow | Limiter | undefined;
  /** Rate limit over all objects. */
  readonly throughput: TokenBucket | undefined;
  /** Whether the reconciler or the workflow needs a finalizer. */
  readonly usesFinalizer: boolean;
  /** Selection of the primaries, and their form in the cache. */
  readonly selection: SelectionOptions & Settings<PrimaryCacheOptions>;
  /** Quiet time before a run that a source causes, in milliseconds. */
  readonly debounce: number;
  /** Whether primaries that exist run when this replica begins to run them. */
  readonly runsAtStart: boolean;
  /** Whether a run is a long task, which a change of its object ends. */
  readonly isTask: boolean;
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
    resolveOptions<ControllerOptions<P>, WithoutDefault>(
      options,
      CONTROLLER_OPTIONS as unknown as OptionTable<
        ControllerOptions<P>,
        WithoutDefault
      >,
    );
  const { owns, watches, ...settings } = others;
  const { workflow, allEvents, takeOver, perCluster } = settings;
  if (perCluster !== undefined) {
    throw new TypeError(
      `Cannot register ${subject}: "perCluster" is for the option "clusters", which is absent`,
    );
  }
  const needsCleanup = reconciler.cleanup !== undefined ||
    workflow?.needsFinalizer === true;
  if (allEvents && reconciler.cleanup !== undefined) {
    throw new TypeError(
      `Cannot register ${subject}: "allEvents" hands deletions to reconcile, so that a cleanup cannot be combined with it`,
    );
  }
  if (allEvents && needsCleanup && !workflow?.explicit) {
    throw new TypeError(
      `Cannot register ${subject}: "allEvents" adds no finalizer, which its workflow needs for what the garbage collector does not delete, so make the workflow { explicit: true }, and call it from reconcile`,
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
    limiter: rateLimit,
    throughput: throughput && tokenBucket(throughput),
    maxInterval: settings.maxInterval || Infinity,
    usesFinalizer: needsCleanup && !allEvents,
    selection: {
      labelSelector: settings.labelSelector,
      fieldSelector: settings.fieldSelector,
      shardSelector: settings.shardSelector,
      ...cacheOf(cache as Settings<PrimaryCacheOptions>, takeOver),
    },
    debounce: 0,
    runsAtStart: true,
    isTask: false,
  };
}

/** Cache of the primaries, which keeps the entries of managers to take over. */
function cacheOf(
  cache: Settings<PrimaryCacheOptions>,
  takeOver: readonly string[],
): Settings<PrimaryCacheOptions> {
  if (takeOver.length === 0) return cache;
  const prune = cache.prune.map((path) =>
    path === "metadata.managedFields" ? foreignManagedFields(takeOver) : path
  );
  return { ...cache, prune };
}

/** Finalizer of a controller; undefined if it needs none. */
export function finalizerOf(
  settings: Pick<ControllerSettings, "finalizer" | "usesFinalizer">,
  kind: Pick<ResolvedKind, "group" | "plural">,
): string | undefined {
  if (!settings.usesFinalizer) return undefined;
  return settings.finalizer ?? defaultFinalizer(kind);
}

/**
 * Event sources of a controller. An owned kind that a dependent watches needs no
 * source of its own; the dependent uses the selectors of `owns`.
 */
function allSources<P extends KubernetesObject>(
  { owns, watches, sources }: Pick<
    Settings<ControllerOptions<P>, WithoutDefault>,
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
