/**
 * Controllers, which reconcile the objects of one kind.
 *
 * This folder contains the types that the author of an operator uses
 * (`reconciler.ts`, `context.ts`, `result.ts`, `controller_options.ts`), in
 * `watch/` the event sources, of primaries and others, and in `run/` the run loop,
 * from an event to a run and the writes of its result.
 *
 * Guarantees: one run of an object at a time, no lost events, every run sees
 * the newest state including own writes, every failure is retried or reported.
 *
 * It must not import `operator`, `apiserver`, `sources` or `workflows`.
 *
 * @module
 */
import {
  type Kind,
  kindText,
  type ResolvedKind,
  sameKind,
  whyNoKeyOf,
} from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../api/object_key.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { InformerSelection } from "../cache/watch/watch_requests.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { Tracer } from "../tracing.ts";
import type { ConcurrencyCap } from "./run/concurrency_cap.ts";
import type { ControllerHealth } from "./controller_health.ts";
import type { ControllerOptions } from "./controller_options.ts";
import {
  type ControllerSettings,
  controllerSettings,
  finalizerOf,
} from "./controller_settings.ts";
import { Dispatcher } from "./run/dispatcher.ts";
import { EventProcessor } from "./run/event_processor.ts";
import { EventRecorder } from "./event_recorder.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceHealth,
} from "./event_source.ts";
import { defaultFinalizer } from "./finalizer.ts";
import {
  checkNamespaces,
  type Namespaces,
  namespaceSet,
} from "./namespaces.ts";
import { Ownership } from "./run/owner.ts";
import { type Primaries, PrimarySource } from "./watch/primary_source.ts";
import type { WatchedSelection } from "./kinds/kind_selector.ts";
import type { Reconciler } from "./reconciler.ts";
import { ResultWriter } from "./run/result_writer.ts";
import type { RunDeps } from "./run/run_deps.ts";
import { lazyApplyMemory } from "./run/run_writes.ts";
import { FirstRuns } from "./run/first_runs.ts";
import type { RunRecorder } from "./record/run_recorder.ts";
import type { AbortCause } from "./run/run.ts";
import type { ObjectHistory } from "./object_history.ts";
import {
  EndlessRuns,
  FailureEvents,
  OverdueRuns,
  RunHistory,
  type RunObserver,
  RunReporter,
} from "./run/run_observers.ts";
import type { ShardAssignment } from "./shard.ts";
import { SourceGroup } from "./watch/source_group.ts";
import { WatchGroup } from "./watch/watch_group.ts";
import { foreignManagedFields, WatchingSource } from "./watch/watch_source.ts";
import { WriteObserver } from "./run/write_loop.ts";

/** Dependencies of a {@linkcode Controller}, shared by the controllers of an operator. */
export interface ControllerDeps {
  readonly client: Client;
  /** Name of the cluster; undefined for the operator's own. */
  readonly cluster?: string | undefined;
  /** Client whose writes do not depend on a lease. */
  readonly unfenced: Client;
  readonly informers: InformerPool;
  /** Field managers of the current controllers of the operator. */
  readonly fieldManagers: () => readonly string[];
  /** Whether a controller of the operator watches a kind with a selection. */
  readonly watches?:
    | ((kind: Kind, selection: InformerSelection) => boolean)
    | undefined;
  /** Limit of concurrent runs across controllers; undefined if absent. */
  readonly cap: ConcurrencyCap | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Tracer of runs; undefined if runs are not traced. */
  readonly tracer: Tracer | undefined;
  /** Random number from 0 to below 1, for the jitter of retries. */
  readonly random: () => number;
  /**
   * Assignment of primaries to this replica, for controllers without an
   * assignment of their own; undefined if this replica runs all primaries.
   */
  readonly shard: ShardAssignment | undefined;
  /** Whether a run may begin; false if this replica may have lost its lease. */
  readonly mayRun: () => boolean;
  /** Whether this replica runs the controllers, or its share of the objects. */
  readonly isLeading: () => boolean;
  /** Name of this replica. */
  readonly instance: string;
  /** Namespaces of controllers without the option `namespaces`. */
  readonly namespaces: Namespaces;
  /** Namespace in which the operator runs; undefined if it is not known. */
  readonly currentNamespace: string | undefined;
  /**
   * Whether, after a start from snapshots, only those objects run that changed
   * since or were waiting.
   */
  readonly skipsRuns: boolean;
  /** Returns how many objects of a controller have a history of runs, at least. */
  readonly historyLimit?: (() => number) | undefined;
  /** Whether a tool such as `coracle dev` shows the runs and their writes. */
  readonly isDeveloped: boolean;
  /** Whether each primary runs once, and then the operator ends. */
  readonly isOnce?: boolean | undefined;
  /** Recorder of the runs; undefined if they are not recorded. */
  readonly recording?: RunRecorder | undefined;
}

/** What runs read and write, in a replay of recorded ones. */
export type ReplayedParts<P extends KubernetesObject> = Pick<
  RunDeps<P>,
  | "applied"
  | "client"
  | "clock"
  | "cluster"
  | "log"
  | "primaries"
  | "recorder"
  | "sources"
  | "writeObserver"
>;

/** Reader of objects, from caches or the server. */
export type CacheReader = Pick<SourceGroup<never>, "read" | "readList">;

/** Parts of a controller, created at every start. */
interface ControllerParts<P extends KubernetesObject>
  extends Pick<ControllerDeps, "isLeading"> {
  readonly clock: Clock;
  readonly primaries: Primaries<P>;
  readonly sources: SourceGroup<P>;
  readonly processor: EventProcessor<P>;
  readonly watches: WatchGroup<P>;
  readonly recorder: EventRecorder;
  readonly history: RunHistory<P>;
  readonly overdue: OverdueRuns<P>;
  readonly firstRuns: FirstRuns<P> | undefined;
}

/**
 * Controller of the objects of one kind: it watches them and the resources that
 * they depend on, decides which object runs when, and calls the reconciler.
 *
 * Expected flow: `start` fills the caches; `startLeading` starts the runs, and
 * `stopLeading` ends them while the caches stay up to date; `stop` ends everything.
 * After that the controller may be started again.
 */
export class Controller<P extends KubernetesObject = KubernetesObject> {
  /** Name of the controller, unique within the operator. */
  readonly name: string;
  /** Kind of the primaries. */
  readonly kind: Kind<P>;
  /** Options of the controller, with defaults. */
  readonly settings: ControllerSettings<P>;
  readonly #reconciler: Reconciler<P>;
  #parts: ControllerParts<P> | undefined;
  #namespaces: Namespaces | undefined;
  #ready = false;
  /** Number of starts and stops; detects a stop during a start. */
  #changes = 0;
  #leading = false;

  /**
   * Creates a controller without starting it.
   *
   * @param changes Settings that are no options.
   * @throws {TypeError | RangeError | SyntaxError} If an option is not valid.
   */
  constructor(
    kind: Kind<P>,
    reconciler: Reconciler<P>,
    options: ControllerOptions<P> = {},
    changes: Partial<ControllerSettings<P>> = {},
  ) {
    this.kind = kind;
    this.settings = {
      ...controllerSettings(kind, reconciler, options),
      ...changes,
    };
    this.name = this.settings.name;
    this.#reconciler = reconciler;
    this.#namespaces = this.settings.namespaces;
  }

  /** Whether the only primary is a job, and not an object of a cluster. */
  get isJob(): boolean {
    return false;
  }

  /** Whether the primaries are in other clusters than that of the operator. */
  get isRemote(): boolean {
    return false;
  }

  /** Caches of other clusters, by their names. */
  get remoteInformers(): ReadonlyMap<string, InformerPool> {
    return new Map();
  }

  /** Whether only the replica that leads runs the controller. */
  get leaderOnly(): boolean {
    return true;
  }

  /** Selection of the kinds that the controller follows; undefined if it has one. */
  get watchedSelection(): WatchedSelection | undefined {
    return undefined;
  }

  /** Kind of the object that keeps the state of a job, and its namespace. */
  get stateKind():
    | { readonly kind: Kind; readonly namespace?: string | undefined }
    | undefined {
    return undefined;
  }

  get primaries(): PrimaryCache<P> {
    return this.#started.primaries.cache;
  }

  /** Kinds that the event sources watch and the reconciler writes. */
  get secondaryKinds(): readonly Kind[] {
    return this.settings.sources.flatMap(({ kind, readOnly }) =>
      kind === undefined || readOnly ? [] : [kind]
    );
  }

  /** Kinds that the event sources watch and the reconciler never writes. */
  get readOnlyKinds(): readonly Kind[] {
    return this.settings.sources.flatMap(({ kind, readOnly }) =>
      kind !== undefined && readOnly ? [kind] : []
    );
  }

  /** Where the event sources are called from outside. */
  get listens(): readonly {
    readonly name: string;
    readonly port: number;
    readonly host: string;
  }[] {
    return this.settings.sources.flatMap(({ name, listens }) =>
      listens === undefined ? [] : [{ name, ...listens }]
    );
  }

  /** Kinds watched in the cluster of the primaries, their own kind first. */
  get watchedKinds(): readonly Kind[] {
    const others = this.watching.map(({ kind }) => kind);
    return this.isJob ? others : [this.kind, ...others];
  }

  /** Event sources that watch the cluster of the primaries. */
  get watching(): readonly Pick<
    WatchingSource<P>,
    "kind" | "selection" | "watchesAll"
  >[] {
    return this.settings.sources.filter((source) =>
      source instanceof WatchingSource && !source.isRemote
    ) as WatchingSource<P>[];
  }

  /** Whether one of its sources has an informer for primaries with this selection. */
  watches(kind: Kind, selection: InformerSelection): boolean {
    return this.settings.sources.some((source) =>
      source instanceof WatchingSource && sameKind(kind, source.kind) &&
      source.sharesWith(selection)
    );
  }

  /** Namespaces that the controller watches; undefined for those of the operator. */
  get namespaces(): Namespaces | undefined {
    return this.#namespaces;
  }

  /** Readers of the caches of a kind; undefined if none has synced. */
  cacheOf(kind: Kind): CacheReader | undefined {
    const { sources } = this.#parts ?? {};
    if (!this.#ready || sources === undefined) return undefined;
    const isHeld = sameKind(kind, this.kind) ||
      this.watching.some((source) => sameKind(kind, source.kind));
    return isHeld ? sources : undefined;
  }

  /**
   * Whether the caches of a kind have all objects of a namespace, or of all without
   * one, and not a selection of them.
   */
  cachesAll(kind: Kind, namespace: string | undefined): boolean {
    const { kind: primary, settings: { selection } } = this;
    const { labelSelector, fieldSelector, shardSelector } = selection;
    const isWhole = sameKind(kind, primary)
      ? !labelSelector && !fieldSelector && !shardSelector
      : this.settings.sources.some((source) =>
        source instanceof WatchingSource && !source.isRemote &&
        sameKind(kind, source.kind) && source.watchesAll
      );
    const namespaces = this.#parts?.primaries.cache.namespaces;
    return isWhole && (namespaces === undefined ||
      namespace !== undefined && namespaces.includes(namespace));
  }

  /** Keys of the objects with a run in progress. */
  get runningKeys(): readonly string[] {
    return (this.#parts?.processor.runs ?? []).map(({ key }) => key);
  }

  /**
   * Starts to watch, and fills the caches.
   *
   * @param options With `partly`, the controller starts with the namespaces
   * that can be watched, and adds the others when they can be.
   * @returns Fulfilled when the caches of these namespaces are complete.
   * @throws {TypeError} If the namespaces are not valid.
   * @throws {ApiError} If the server does not serve the kind.
   * @throws {Error} If a run of the previous start is still in progress, since
   * a second run of its object could begin.
   */
  async start(
    deps: ControllerDeps,
    { partly = false }: { readonly partly?: boolean | undefined } = {},
  ): Promise<void> {
    this.checkNoRuns();
    const change = ++this.#changes;
    const checkNotStopped = () => {
      if (change === this.#changes) return;
      throw new Error(`Cannot start controller "${this.name}": it was stopped`);
    };
    const kind = await deps.client.resolve(this.kind);
    checkNotStopped();
    const { watches, processor, primaries, sources } = this.#parts = this
      .#assemble(kind, deps);
    const namespaces = namespaceSet(
      this.#namespaces ?? deps.namespaces,
      deps.currentNamespace,
      this.isJob ? { kind: kind.kind } : kind,
    );
    const { clock, metrics } = deps;
    const began = clock.now();
    const duration = metrics.gauge({
      name: "coracle_controller_start_seconds",
      help: "Time until the caches of a controller were complete.",
      labels: ["controller"],
    });
    if (this.#leading) sources.lead();
    await watches.watch(namespaces, partly);
    checkNotStopped();
    this.#ready = true;
    if (deps.skipsRuns) {
      const keys = () => processor.busyKeys();
      primaries.cache.notePending?.(this.name, keys);
      sources.notePending(keys);
    }
    duration.set((clock.now() - began) / 1_000, { controller: this.name });
    this.#resume();
  }

  /** Starts the runs as soon as the caches are complete. */
  startLeading(): void {
    this.#leading = true;
    this.#parts?.sources.lead();
    this.#resume();
  }

  /** Starts the runs, once the sources of the leader have synced. */
  #resume(): void {
    const parts = this.#parts;
    if (!this.#ready || !this.#leading || parts === undefined) return;
    const { turning } = parts.sources;
    if (turning === undefined) parts.processor.resume();
    else {
      void turning.then(() => {
        if (this.#parts === parts) this.#resume();
      });
    }
  }

  /** Ends the runs; the caches stay up to date. */
  stopLeading(): void {
    this.pause();
    this.#parts?.processor.abortAll("leadership");
    this.#parts?.sources.unlead();
  }

  /**
   * Ends the runs of objects that no longer belong to the shard of this replica.
   *
   * @returns Fulfilled when no such run is in progress.
   */
  async releaseShard(): Promise<void> {
    await this.#parts?.processor.releaseShard();
  }

  /** Adds runs of the objects that are new in the shard of this replica. */
  acquireShard(wasOwned: (key: string) => boolean): void {
    this.#parts?.sources.lead();
    this.#parts?.processor.resync((key) => !wasOwned(key));
  }

  /** Prevents further runs; runs in progress continue. */
  pause(): void {
    this.#leading = false;
    this.#parts?.processor.pause();
  }

  /**
   * Waits until each primary has had a run.
   *
   * @returns Errors of the last runs by key; undefined for a success.
   */
  async ranOnce(): Promise<ReadonlyMap<string, unknown>> {
    const { processor, firstRuns } = this.#started;
    if (firstRuns === undefined) return new Map();
    await processor.whenAllRan(firstRuns);
    return firstRuns.errors;
  }

  /** Waits until no run is in progress. */
  whenIdle(): Promise<void> {
    return this.#parts?.processor.whenIdle() ?? Promise.resolve();
  }

  /** Aborts all runs, by default because the operator stops. */
  abort(cause: AbortCause = "shutdown"): void {
    this.#parts?.processor.abortAll(cause);
  }

  /** Stops the controller. Runs that are still in progress are not awaited. */
  async stop(): Promise<void> {
    this.#leading = false;
    await this.cancelStart();
  }

  /** Cleans up after a failed start; a later start may succeed. */
  async cancelStart(): Promise<void> {
    this.#parts?.processor.pause();
    this.#changes++;
    this.#ready = false;
    const { processor, watches, recorder, overdue } = this.#parts ?? {};
    await watches?.stop();
    processor?.clear();
    overdue?.close();
    await recorder?.close();
  }

  /**
   * Changes the namespaces of the controller. The objects of former namespaces are
   * removed and their runs aborted; those of other namespaces are not affected.
   *
   * @returns Fulfilled when the caches are complete again.
   * @throws {TypeError} If the namespaces are not valid, or are `"current"`, which
   * is fixed at start.
   */
  async changeNamespaces(namespaces: Namespaces): Promise<void> {
    checkNamespaces(namespaces, ["all"], `controller "${this.name}"`);
    const set = namespaceSet(namespaces, undefined, this.kind);
    this.#namespaces = namespaces;
    if (this.#parts === undefined) return;
    await this.#parts.watches.watch(set, false);
  }

  /**
   * Adds a run of a primary, like a change of the primary. An object that does
   * not exist is ignored.
   *
   * @throws {TypeError} If no primary can have the key.
   */
  trigger(key: ObjectKey | string): void {
    const text = typeof key === "string" ? key : keyText(key);
    const why = whyNoKeyOf(this.kind, text);
    if (why !== undefined) throw new TypeError(`Cannot trigger a run: ${why}`);
    this.#parts?.processor.request(text);
  }

  /**
   * Adds an event source while the controller runs.
   *
   * @returns The source with this name, which may have existed before; fulfilled
   * when it has synced.
   */
  addSource(source: EventSource<P>): Promise<EventSource<P>> {
    return this.#started.sources.add(source);
  }

  /** Stops an event source and removes it. */
  removeSource(name: string): Promise<void> {
    return this.#started.sources.remove(name);
  }

  /**
   * Returns the recent runs and current state of an object; undefined if the
   * object does not exist and has not run recently.
   */
  why(key: ObjectKey | string): ObjectHistory | undefined {
    const text = keyText(typeof key === "string" ? parseKey(key) : key);
    const { clock, primaries, processor, history, overdue } = this.#parts ?? {};
    const run = processor?.runOf(text);
    const runs = history?.of(text) ?? [];
    const known = primaries?.cache.has(text) ?? false;
    if (!known && runs.length === 0) return undefined;
    const { attempt = 0, exhausted = false } = processor?.stateOf(text) ?? {};
    return {
      controller: this.name,
      object: text,
      known,
      running: run !== undefined,
      runningFor: run && clock && clock.now() - run.startedAt,
      aborted: overdue?.of(text),
      attempt,
      exhausted,
      runs,
    };
  }

  /** State of a primary in the cache, for tools; undefined if it is not there. */
  current(key: string): P | undefined {
    return this.#parts?.primaries.cache.get(key);
  }

  /** Returns the objects that run now or ran last, the latest first. */
  recent(limit: number): readonly ObjectHistory[] {
    const latest = this.#parts?.history.latest(limit) ?? [];
    const keys = new Set([...this.runningKeys, ...latest]);
    return [...keys].slice(0, limit).flatMap((key) => this.why(key) ?? []);
  }

  health(): ControllerHealth {
    const { processor, primaries, sources, overdue, isLeading } = this.#parts ??
      {};
    // Another replica may have succeeded since this one led.
    const failures = this.#leading ? processor?.failures : undefined;
    const informers = primaries?.health() ?? [];
    const bySource = sources?.health() ?? new Map<string, SourceHealth>();
    return {
      name: this.name,
      kind: kindText(this.kind),
      ready: this.#ready,
      healthy: informers.every(({ healthy }) => healthy) &&
        [...bySource.values()].every(({ status }) => status !== "unhealthy"),
      active: this.#ready && this.#leading && isLeading?.() === true,
      primaries: primaries?.cache.size ?? 0,
      waiting: processor?.waiting ?? 0,
      running: processor?.running ?? 0,
      overdue: overdue?.size ?? 0,
      delayed: processor?.delayed ?? 0,
      failing: failures?.failing ?? 0,
      oldestFailure: failures?.oldest ?? 0,
      exhausted: failures?.exhausted ?? 0,
      informers,
      sources: bySource,
    };
  }

  /** Creates the source of the primaries, at each start. */
  protected primariesFrom(
    kind: ResolvedKind<P>,
    deps: ControllerDeps,
  ): Primaries<P> {
    const { settings, kind: statedKind } = this;
    const { informers } = deps;
    const { selection, takeOver } = settings;
    const usual = takeOver.length === 0
      ? "metadata.managedFields"
      : foreignManagedFields(takeOver);
    const isShared = String(selection.prune) === usual &&
      deps.watches?.(statedKind, selection);
    return new PrimarySource<P>({
      ...settings,
      kind,
      statedKind,
      informers,
      // In the form of watched objects, so that both have one watch and one cache.
      ...isShared && {
        selection: {
          ...selection,
          prune: [foreignManagedFields(this.#managers(deps))],
        },
      },
    });
  }

  /**
   * Field managers of the operator, in one order for all of its controllers, so that
   * they share informers; and one list for all, which is as long as they are many.
   */
  #managers({ fieldManagers }: ControllerDeps): readonly string[] {
    const { fieldManager, takeOver } = this.settings;
    const known = fieldManagers();
    const managers = [fieldManager, ...takeOver];
    return managers.every((one) => known.includes(one))
      ? known
      : [...new Set([...known, ...managers])].sort();
  }

  /** Creates observers of the runs besides those of each controller. */
  protected observersFor(_deps: ControllerDeps): readonly RunObserver<P>[] {
    return [];
  }

  /** @throws {Error} If runs of the last start are in progress. */
  protected checkNoRuns(): void {
    const { runningKeys } = this;
    if (runningKeys.length > 0) {
      throw new Error(
        `Cannot start controller "${this.name}": runs of its last start have not ended: received ${
          runningKeys.join(", ")
        }`,
      );
    }
  }

  get #started(): ControllerParts<P> {
    if (this.#parts !== undefined) return this.#parts;
    throw new Error(`Cannot use controller "${this.name}": it was not started`);
  }

  /** Creates the parts and connects them: watches, processor and runs. */
  #assemble(kind: ResolvedKind<P>, deps: ControllerDeps): ControllerParts<P> {
    const { settings, name: controller } = this;
    const { client, informers, clock, metrics } = deps;
    const { isJob } = this;
    const { fieldManager, selection } = settings;
    const finalizer = finalizerOf(settings, kind);
    const log = deps.log.with({ controller });
    const selector = selection.labelSelector ?? selection.fieldSelector;
    if (finalizer !== undefined && selector !== undefined) {
      log.warn(
        "Objects that leave the selection of this controller keep its finalizer: if one is deleted then, its deletion waits until it is selected again or the finalizer is removed",
        { finalizer },
      );
    }
    const common = { client, informers, clock, log, metrics, controller };
    const primaries = this.primariesFrom(kind, deps);
    const { takeOver } = settings;
    const sources = new SourceGroup<P>(settings.sources, {
      ...common,
      unfenced: deps.unfenced,
      takeOver,
      primaryKind: kind,
      primaries: primaries.cache,
      soleKey: isJob ? this.name : undefined,
      fieldManagers: this.#managers(deps),
    });
    const recorder = new EventRecorder({ ...common, instance: deps.instance });
    const own = this.#runDeps(kind, {
      ...common,
      cluster: deps.cluster,
      primaries,
      sources,
      recorder,
      applied: lazyApplyMemory(),
      writeObserver: new WriteObserver({
        ...common,
        kind,
        fieldManager,
        keepsChanges: deps.isDeveloped,
      }),
    });
    const { shard = deps.shard } = settings;
    const recording = settings.isTask ? undefined : deps.recording;
    const runDeps = recording?.observed(own) ?? own;
    const executor = this.#dispatcher(runDeps, { ...deps, shard });
    const recorded = recording?.of(own, executor);
    const history = new RunHistory<P>({ clock, limit: deps.historyLimit });
    const events = new FailureEvents<P>(recorder, kind);
    const overdue = new OverdueRuns<P>({ clock, log });
    const endless = new EndlessRuns<P>({ log, limit: deps.historyLimit });
    const reporter = new RunReporter<P>({
      ...common,
      successLevel: deps.isDeveloped ? "info" : "debug",
    });
    const firstRuns = deps.isOnce ? new FirstRuns<P>() : undefined;
    // Only what is needed: there may be a thousand controllers.
    const { random, mayRun } = deps;
    const processor = new EventProcessor<P>({
      clock,
      random,
      mayRun,
      // Tasks would leave no run to the others.
      cap: settings.isTask ? undefined : deps.cap,
      settings,
      finalizer,
      primaries: primaries.cache,
      sources,
      shard,
      dispatcher: recorded?.dispatcher ?? executor,
      wasIdle: deps.skipsRuns && !deps.isOnce && primaries.cache.notePending
        ? (event) =>
          event.snapshot?.wasIdle(controller, event.key) === true &&
          sources.wasIdle(event.key)
        : undefined,
      observers: [
        overdue,
        history,
        reporter,
        events,
        endless,
        ...recorded === undefined ? [] : [recorded.observer],
        ...firstRuns === undefined ? [] : [firstRuns],
        ...this.observersFor(deps),
      ],
      log,
    });
    const parts = {
      clock,
      primaries,
      sources,
      processor,
      recorder,
      firstRuns,
    };
    const watches = new WatchGroup<P>({
      ...common,
      ...parts,
      handler: processor,
    });
    const { isLeading } = deps;
    return { ...parts, watches, history, overdue, isLeading };
  }

  /** Executor of recorded runs, which read and write other things. */
  replaying(
    kind: ResolvedKind<P>,
    parts: ReplayedParts<P>,
  ): Pick<Dispatcher<P>, "dispatch"> {
    return this.#dispatcher(this.#runDeps(kind, parts), {
      mayRun: () => true,
      shard: undefined,
      tracer: undefined,
    });
  }

  #runDeps(kind: ResolvedKind<P>, parts: ReplayedParts<P>): RunDeps<P> {
    const { settings, name: controller, isJob } = this;
    const { sources, log } = parts;
    const { fieldManager, selection, takeOver } = settings;
    return {
      ...parts,
      controller,
      kind,
      fieldManager,
      takeOver,
      finalizer: settings.finalizer ?? defaultFinalizer(kind),
      keptFinalizer: finalizerOf(settings, kind),
      cacheIsPartial: selection.metadataOnly ||
        selection.prune.some((path) =>
          !/^metadata\.managedFields(\[|$)/.test(path)
        ),
      ownership: new Ownership({ kind, sources, log, ownsNothing: isJob }),
    };
  }

  #dispatcher(
    runDeps: RunDeps<P>,
    deps: Pick<ControllerDeps, "mayRun" | "shard" | "tracer">,
  ): Dispatcher<P> {
    const { settings } = this;
    return new Dispatcher<P>({
      ...deps,
      reconciler: this.#reconciler,
      workflow: settings.workflow,
      mode: settings,
      pauseAnnotation: settings.pauseAnnotation,
      runDeps,
      writer: new ResultWriter<P>({
        runDeps,
        serverSideApply: settings.serverSideApply,
      }),
    });
  }
}
