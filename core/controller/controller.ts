import { type Kind, kindText, type ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { keyText, type ObjectKey } from "../api/object_key.ts";
import type { InformerHealth } from "../cache/informer/informer_options.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import type { Logger, LogLevel } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { Tracer } from "../tracing.ts";
import type { ApplyMemory } from "./run/apply_memory.ts";
import type { ConcurrencyCap } from "./run/concurrency_cap.ts";
import type { ControllerOptions } from "./controller_options.ts";
import {
  type ControllerSettings,
  controllerSettings,
  finalizerOf,
} from "./controller_options.ts";
import { Dispatcher } from "./run/dispatcher.ts";
import { EventProcessor } from "./run/event_processor.ts";
import { EventRecorder } from "./event_recorder.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceHealth,
} from "./event_source.ts";
import { defaultFinalizer } from "./finalizer.ts";
import { type Namespaces, namespaceSet } from "./namespaces.ts";
import { PrimarySource } from "./primary_source.ts";
import type { Reconciler } from "./reconciler.ts";
import { ResultWriter } from "./run/result_writer.ts";
import type { RunDeps } from "./run/run_context.ts";
import {
  type AbortedRun,
  OverdueRuns,
  type RecordedRun,
  RunHistory,
  RunReporter,
} from "./run/run_observers.ts";
import type { ShardAssignment } from "./shard.ts";
import { SourceGroup } from "./source_group.ts";
import { WatchGroup } from "./watch_group.ts";
import { WriteObserver } from "./run/write_loop.ts";

/** How a controller fares. */
export interface ControllerHealth {
  /** The name of the controller. */
  readonly name: string;
  /** Its kind, for people: `apps/v1 Deployment`. */
  readonly kind: string;
  /** Whether its caches are complete, so that it can run. */
  readonly ready: boolean;
  /** Whether its informers and sources all do their work. */
  readonly healthy: boolean;
  /** Whether it runs what waits: false before start and on standby. */
  readonly active: boolean;
  /** How many primaries it knows. */
  readonly primaries: number;
  /** How many wait for a worker. */
  readonly waiting: number;
  /** How many run. */
  readonly running: number;
  /**
   * How many of them were asked to end at least ten seconds ago: code that does
   * not heed `ctx.signal`. Each keeps its place until it ends by itself.
   */
  readonly overdue: number;
  /** How many wait for a time. */
  readonly delayed: number;
  /** How many objects have used up their retries. */
  readonly exhausted: number;
  /** How its watches fare. */
  readonly informers: readonly InformerHealth[];
  /** How its event sources fare, by name. */
  readonly sources: ReadonlyMap<string, SourceHealth>;
}

/** What a controller remembers of an object. */
export interface ObjectHistory {
  /** Which controller remembers it. */
  readonly controller: string;
  /** The object, as `namespace/name`. */
  readonly object: string;
  /** Whether it is in the cache. */
  readonly known: boolean;
  /** Whether it runs now. */
  readonly running: boolean;
  /** Why and when the run that there is was asked to end, if it was. */
  readonly aborted?: AbortedRun | undefined;
  /** Which retry is next or was last; 0 when none. */
  readonly attempt: number;
  /** Whether its retries are used up. */
  readonly exhausted: boolean;
  /** Its last runs, the latest last. */
  readonly runs: readonly RecordedRun[];
}

/** Dependencies of a {@linkcode Controller}, shared by the controllers of an operator. */
export interface ControllerDeps {
  readonly client: Client;
  readonly informers: InformerPool;
  /** Under which names the controllers write that there are now. */
  readonly fieldManagers: () => readonly string[];
  /** Limit of concurrent runs across controllers; undefined if there is none. */
  readonly cap: ConcurrencyCap | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Traces runs; undefined when nobody does. */
  readonly tracer: Tracer | undefined;
  readonly random: () => number;
  /**
   * Assignment of primaries to this replica, unless the controller has its own;
   * undefined if it runs all of them.
   */
  readonly shard: ShardAssignment | undefined;
  /** Which replica this is. */
  readonly instance: string;
  /** What a controller without namespaces of its own watches. */
  readonly namespaces: Namespaces;
  /** The namespace in which the operator runs, if it is known. */
  readonly currentNamespace: string | undefined;
  /** At which level runs are logged that went well, or that `onError` handled. */
  readonly successLevel: LogLevel;
}

/** Parts of a controller, which live from one start to the next stop. */
interface ControllerParts<P extends KubernetesObject> {
  readonly primaries: PrimarySource<P>;
  readonly sources: SourceGroup<P>;
  readonly processor: EventProcessor<P>;
  readonly watches: WatchGroup<P>;
  readonly recorder: EventRecorder;
  readonly history: RunHistory<P>;
  readonly overdue: OverdueRuns<P>;
}

/**
 * Reconciles the objects of one kind: watches them and what they depend on,
 * decides when which of them runs, and runs the reconciler.
 *
 * Expected flow: `start` fills the caches; `lead` begins to run what waits, and
 * `stopLeading` ends that while the caches stay warm; `stop` ends everything. After
 * that it may be started again.
 *
 * @typeParam P The type of the primaries.
 */
export class Controller<P extends KubernetesObject = KubernetesObject> {
  /** Unique within the operator. */
  readonly name: string;
  /** The kind of the primaries. */
  readonly kind: Kind<P>;
  /** Its options, checked and with defaults. */
  readonly settings: ControllerSettings<P>;
  readonly #reconciler: Reconciler<P>;
  #parts: ControllerParts<P> | undefined;
  #namespaces: Namespaces | undefined;
  #ready = false;
  /** How often it was started and stopped: who waited sees what came between. */
  #changes = 0;
  #leading = false;
  /** Whether others may have acted since this controller last ran. */
  #hasLed = false;

  /**
   * @param kind The kind of the primaries.
   * @param reconciler What runs.
   * @param options How the controller behaves.
   * @throws {TypeError | RangeError | SyntaxError} If an option makes no sense.
   */
  constructor(
    kind: Kind<P>,
    reconciler: Reconciler<P>,
    options: ControllerOptions<P> = {},
  ) {
    this.kind = kind;
    this.settings = controllerSettings(kind, reconciler, options);
    this.name = this.settings.name;
    this.#reconciler = reconciler;
    this.#namespaces = this.settings.namespaces;
  }

  /** The primaries that it knows. */
  get primaries(): PrimaryCache<P> {
    return this.#started.primaries;
  }

  /** The kinds that it keeps, which are those of its event sources. */
  get secondaryKinds(): readonly Kind[] {
    return this.#sources.flatMap(({ kind, readOnly }) =>
      kind === undefined || readOnly ? [] : [kind]
    );
  }

  /** The kinds that it only watches. */
  get readOnlyKinds(): readonly Kind[] {
    return this.#sources.flatMap(({ kind, readOnly }) =>
      kind !== undefined && readOnly ? [kind] : []
    );
  }

  /** Which objects run now. */
  get runningKeys(): readonly string[] {
    return [...this.#parts?.processor.runs ?? []].map((run) => run.key);
  }

  /**
   * Fills the caches.
   *
   * @param deps Its dependencies.
   * @param options With `partly`, it begins with the namespaces that can be
   * watched, and goes on to wait for the others.
   * @returns Fulfilled when the caches are complete, or those that can be.
   * @throws {TypeError} If its namespaces make no sense.
   * @throws {ApiError} If the server does not serve its kind.
   * @throws {Error} If a run of the last start has still not ended: a second one
   * of the same object might begin.
   */
  async start(
    deps: ControllerDeps,
    options: { readonly partly?: boolean | undefined } = {},
  ): Promise<void> {
    const { runningKeys } = this;
    if (runningKeys.length > 0) {
      throw new Error(
        `Cannot start controller "${this.name}": runs of its last start have not ended: received ${
          runningKeys.join(", ")
        }`,
      );
    }
    const change = ++this.#changes;
    const kind = await deps.client.resolve(this.kind);
    if (change !== this.#changes) {
      throw new Error(
        `Cannot start controller "${this.name}": it was stopped meanwhile: received a stop`,
      );
    }
    const { watches } = this.#parts = this.#assemble(kind, deps);
    const namespaces = namespaceSet(
      this.#namespaces ?? deps.namespaces,
      deps.currentNamespace,
      kind,
    );
    const { clock, metrics } = deps;
    const began = clock.now();
    const duration = metrics.gauge({
      name: "coracle_controller_start_seconds",
      help: "How long it took until the caches of a controller were complete.",
    });
    await watches.watch(namespaces, {
      partly: options.partly ?? false,
      onReady: () => {
        this.#ready = true;
        const seconds = (clock.now() - began) / 1_000;
        duration.set(seconds, { controller: this.name });
        if (this.#leading) this.#resume();
      },
    });
  }

  /** Begins to run what waits, as soon as the caches are complete. */
  startLeading(): void {
    this.#leading = true;
    if (this.#ready) this.#resume();
  }

  /** Runs no more, and asks what runs to end; the caches stay warm. */
  stopLeading(): void {
    this.#leading = false;
    this.#parts?.processor.pause();
    this.#parts?.processor.abortAll("leadership");
  }

  /**
   * Ends the runs of what the shard does not own any more.
   *
   * @returns Fulfilled when none is left.
   */
  async releaseShard(): Promise<void> {
    await this.#parts?.processor.releaseShard();
  }

  /** Runs what the shard owns now and did not own before. */
  acquireShard(wasOwned: (key: string) => boolean): void {
    this.#parts?.processor.resync((key) => !wasOwned(key));
  }

  /** Begins no more runs; what runs goes on. */
  pause(): void {
    this.#leading = false;
    this.#parts?.processor.pause();
  }

  /** Fulfilled when nothing runs. */
  whenIdle(): Promise<void> {
    return this.#parts?.processor.whenIdle() ?? Promise.resolve();
  }

  /** Asks what runs to end, since the operator stops. */
  abort(): void {
    this.#parts?.processor.abortAll("shutdown");
  }

  /** Ends everything; what still runs is on its own. */
  async stop(): Promise<void> {
    this.#leading = false;
    await this.cancelStart();
  }

  /** Ends what a start that failed has begun; one that works later may run. */
  async cancelStart(): Promise<void> {
    this.#parts?.processor.pause();
    this.#changes++;
    this.#ready = false;
    this.#hasLed = false;
    const { processor, watches, recorder, overdue } = this.#parts ?? {};
    await watches?.stop();
    processor?.clear();
    overdue?.close();
    await recorder?.close();
  }

  /**
   * Watches other namespaces from now on. Objects of those left behind are
   * forgotten, their runs aborted; what stays watched is not disturbed.
   *
   * @param namespaces `"all"` or a list of names.
   * @returns Fulfilled when the caches are complete again.
   * @throws {TypeError} If the namespaces make no sense, or `"current"` is
   * asked for, which cannot change.
   */
  async changeNamespaces(namespaces: Namespaces): Promise<void> {
    if (namespaces === "current") {
      throw new TypeError(
        'Cannot change namespaces: name them, or use "all": received "current"',
      );
    }
    const { scope = "Namespaced" } = this.kind;
    const set = namespaceSet(namespaces, undefined, {
      scope,
      kind: this.kind.kind,
    });
    this.#namespaces = namespaces;
    if (this.#parts === undefined) return;
    await this.#parts.watches.watch(set, { partly: false });
  }

  /**
   * Makes a primary run, as a change of it would; retries begin anew. One that
   * the controller does not know is ignored.
   */
  trigger(key: ObjectKey | string): void {
    this.#parts?.processor.request(
      typeof key === "string" ? key : keyText(key),
    );
  }

  /**
   * Adds an event source while the controller runs.
   *
   * @returns The source of that name, which may have been there before;
   * fulfilled when it has synced.
   */
  addSource(source: EventSource<P>): Promise<EventSource<P>> {
    return this.#started.sources.add(source);
  }

  /** Takes an event source away and stops it. */
  removeSource(name: string): Promise<void> {
    return this.#started.sources.remove(name);
  }

  /**
   * Why an object ran and will run; undefined if the controller does not know it
   * and has not run it lately.
   */
  why(key: ObjectKey | string): ObjectHistory | undefined {
    const text = typeof key === "string" ? key : keyText(key);
    const { primaries, processor, history, overdue } = this.#parts ?? {};
    const runs = history?.of(text) ?? [];
    const known = primaries?.has(text) ?? false;
    if (!known && runs.length === 0) return undefined;
    const { attempt = 0, exhausted = false } = processor?.stateOf(text) ?? {};
    return {
      controller: this.name,
      object: text,
      known,
      running: this.runningKeys.includes(text),
      aborted: overdue?.of(text),
      attempt,
      exhausted,
      runs,
    };
  }

  /** How it fares. */
  health(): ControllerHealth {
    const { processor, primaries, sources, overdue } = this.#parts ?? {};
    const informers = primaries?.health() ?? [];
    const bySource = sources?.health() ?? new Map<string, SourceHealth>();
    return {
      name: this.name,
      kind: kindText(this.kind),
      ready: this.#ready,
      healthy: informers.every(({ healthy }) => healthy) &&
        [...bySource.values()].every(({ status }) => status !== "unhealthy"),
      active: this.#ready && this.#leading,
      primaries: primaries?.size ?? 0,
      waiting: processor?.waiting ?? 0,
      running: processor?.running ?? 0,
      overdue: overdue?.size ?? 0,
      delayed: processor?.delayed ?? 0,
      exhausted: processor?.exhausted ?? 0,
      informers,
      sources: bySource,
    };
  }

  get #sources(): readonly EventSource<P>[] {
    return this.settings.sources;
  }

  get #started(): ControllerParts<P> {
    if (this.#parts !== undefined) return this.#parts;
    throw new Error(
      `Cannot use controller "${this.name}" yet: it was not started: received a call`,
    );
  }

  /** Makes the parts: events go from the watches to the processor to the runs. */
  #assemble(
    kind: ResolvedKind<P>,
    deps: ControllerDeps,
  ): ControllerParts<P> {
    const { settings, name: controller } = this;
    const { client, informers, clock, metrics } = deps;
    const { fieldManager, selection } = settings;
    const finalizer = finalizerOf(settings, kind);
    const log = deps.log.with({ controller });
    const common = { client, informers, clock, log, metrics, controller };
    const primaries = new PrimarySource<P>({
      name: controller,
      kind,
      informers,
      selection,
      indexes: settings.indexes,
    });
    const managers = new Set([...deps.fieldManagers(), fieldManager]);
    const sources = new SourceGroup<P>(settings.sources, {
      ...common,
      primaryKind: kind,
      primaries,
      // In one order for all controllers, so that they share informers.
      fieldManagers: [...managers].sort(),
    });
    const recorder = new EventRecorder({
      ...common,
      component: controller,
      instance: deps.instance,
    });
    const runDeps: RunDeps<P> = {
      ...common,
      kind,
      fieldManager,
      finalizer: settings.finalizer ?? defaultFinalizer(kind),
      cacheIsPartial: selection.metadataOnly ||
        selection.prune.some((path) =>
          !/^metadata\.managedFields(\[|$)/.test(path)
        ),
      primaries,
      sources,
      recorder,
      applied: rememberedApplies(),
      writeObserver: new WriteObserver(common),
    };
    const dispatcher = new Dispatcher<P>({
      reconciler: this.#reconciler,
      workflow: settings.workflow,
      mode: settings,
      finalizer,
      pauseAnnotation: settings.pauseAnnotation,
      log,
      tracer: deps.tracer,
      runDeps,
      writer: new ResultWriter<P>({
        runDeps,
        serverSideApply: settings.serverSideApply,
        finalizer,
      }),
    });
    const history = new RunHistory<P>({ clock });
    const overdue = new OverdueRuns<P>({ clock, log });
    const { successLevel } = deps;
    const reporter = new RunReporter<P>({ ...common, successLevel });
    const processor = new EventProcessor<P>({
      settings,
      finalizer,
      primaries,
      sources,
      shard: settings.shard ?? deps.shard,
      dispatcher,
      cap: deps.cap,
      clock,
      random: deps.random,
      observers: [overdue, history, reporter],
      log,
    });
    const watches = new WatchGroup<P>({
      primaries,
      sources,
      handler: processor,
      clock,
      log,
    });
    return {
      primaries,
      sources,
      processor,
      watches,
      recorder,
      history,
      overdue,
    };
  }

  #resume(): void {
    const { processor } = this.#started;
    if (this.#hasLed) processor.resync();
    this.#hasLed = true;
    processor.resume();
  }
}

/** What was applied, remembered from the first apply on: it needs hashes. */
function rememberedApplies(): RunDeps<KubernetesObject>["applied"] {
  let memory: Promise<ApplyMemory> | undefined;
  return () =>
    memory ??= import("./run/apply_memory.ts").then(({ ApplyMemory }) =>
      new ApplyMemory()
    );
}
