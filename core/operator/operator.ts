/**
 * Operator: lifecycle of controllers that share one client, one pool of
 * informers and one memory budget; leader election, sharding, probes, metrics
 * and configuration.
 *
 * Guarantees: a start either brings up all controllers or leaves nothing
 * behind; a stop ends runs, watches, timers and sockets in order; a replica
 * that does not lead, or lost its lease, starts no run and writes nothing.
 *
 * The folder may import every other folder of core but kinds; of the package only
 * sources and workflows import it.
 *
 * @module
 */
import {
  isResolved,
  type Kind,
  kindText,
  type ResolvedKind,
} from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import {
  type Admission,
  type AdmissionHandlers,
  admissionOf,
  type AdmissionOptions,
} from "../admission/admission_options.ts";
import type { WebhookHealth, Webhooks } from "../admission/webhooks.ts";
import { loadModule } from "../clock.ts";
import { abortable } from "../signals.ts";
import { InformerPool } from "../cache/informer/informer_pool.ts";
import { Client } from "../client/client.ts";
import { host, type OperatorHandle } from "../client/host.ts";
import { traceRequests } from "../client/middleware.ts";
import { ConcurrencyCap } from "../controller/run/concurrency_cap.ts";
import {
  Controller,
  type ControllerDeps,
  type ControllerHealth,
  type ObjectHistory,
} from "../controller/controller.ts";
import type { ControllerOptions } from "../controller/controller_options.ts";
import type { EventSource, PrimaryCache } from "../controller/event_source.ts";
import { type Namespaces, namespaceSet } from "../controller/namespaces.ts";
import type { Reconciler } from "../controller/reconciler.ts";
import { type DefinedKind, isDefinedKind } from "../crd/kind_definition.ts";
import {
  admissionReader,
  checkSameKind,
  installCrds,
  logSyncProgress,
  type ManagedController,
  startAll,
  startController,
} from "./controller_start.ts";
import { Coordination, type LeaseHealth } from "./coordination.ts";
import { inspection, LoopLag } from "./inspection.ts";
import { MetricsRegistry } from "./metrics_registry.ts";
import {
  checkControllerNames,
  configuredController,
  configuredOperator,
} from "./operator_config.ts";
import { addOperatorGauges } from "./operator_gauges.ts";
import {
  type OperatorOptions,
  type OperatorSettings,
  operatorSettings,
  type StartErrorPolicy,
} from "./operator_options.ts";
import { ProbeServer, type ProbeSettings } from "./probe_server.ts";
import { openSnapshots, skipsRuns } from "./operator_snapshots.ts";
import { operatorBudget } from "./process_memory.ts";
import { drain, onStopSignal } from "./shutdown.ts";
import { logUnawaited } from "./unawaited_requests.ts";

/** Health of an operator. */
export interface OperatorHealth {
  /** Whether the operator was started and not stopped. */
  readonly started: boolean;
  /**
   * Whether the caches of all controllers are synced, and the Lease of this
   * replica could be read or renewed within the last lease duration.
   */
  readonly ready: boolean;
  /** Whether all informers and event sources, and the Lease, are healthy. */
  readonly healthy: boolean;
  /**
   * Whether this replica runs the controllers. With leader election, whether it
   * is the leader; with sharding, whether it is a member of its group. True until
   * the runs have ended during a stop.
   */
  readonly leading: boolean;
  /** Identity of the leader that was observed last, with leader election. */
  readonly leader: string | undefined;
  /** Health of the Lease; undefined without leader election and sharding. */
  readonly lease: LeaseHealth | undefined;
  /** Health of the webhooks; undefined without `admit` and `admission`. */
  readonly webhooks: WebhookHealth | undefined;
  /** Whether the process is close to its memory limit, if that is known. */
  readonly memoryIsShort: boolean;
  /** Health of each controller. */
  readonly controllers: readonly ControllerHealth[];
}

/**
 * Handle of a registered controller.
 *
 * @typeParam P The type of its primaries.
 */
export interface ControllerHandle<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Name of the controller, unique within the operator. */
  readonly name: string;
  /** Kind of the primaries. */
  readonly kind: Kind<P>;
  /** Cache of the primaries; reading it before the controller is started throws. */
  readonly primaries: PrimaryCache<P>;
  /** Changes the watched namespaces; resolves when their caches are synced. */
  changeNamespaces(namespaces: Namespaces): Promise<void>;
  /**
   * Triggers a run of a primary, like a change of the primary.
   *
   * @throws {TypeError} If no primary can have the key.
   */
  trigger(key: ObjectKey | string): void;
  /** Adds an event source; resolves when it has synced. */
  addSource(source: EventSource<P>): Promise<EventSource<P>>;
  /** Removes an event source and stops it. */
  removeSource(name: string): Promise<void>;
  /** Returns the health of the controller. */
  health(): ControllerHealth;
}

/** Health with counts and names only, without texts of errors. */
function withoutTexts(
  { lease, webhooks, controllers, ...others }: OperatorHealth,
): OperatorHealth {
  return {
    ...others,
    lease: lease && { ...lease, error: undefined },
    webhooks: webhooks && { ...webhooks, error: undefined },
    controllers: controllers.map(({ informers, sources, ...counts }) => ({
      ...counts,
      informers: informers.map((informer) => ({
        ...informer,
        watches: informer.watches.map((watch) => ({
          ...watch,
          lastError: undefined,
        })),
      })),
      sources: new Map(
        Array.from(sources, ([name, { status }]) => [name, { status }]),
      ),
    })),
  };
}

type State = "stopped" | "starting" | "started" | "stopping";

/**
 * Operator: a set of controllers that share one client, one cache of informers
 * and one lifecycle.
 *
 * @example An operator that only watches
 * ```ts ignore
 * import { Operator, untyped } from "@coracle/operator";
 *
 * const operator = new Operator();
 * operator.register(untyped({ group: "", version: "v1", kind: "Pod" }), {
 *   reconcile(pod, ctx) {
 *     ctx.log.info("Seen", { phase: (pod.status as { phase?: string })?.phase });
 *   },
 * });
 * await operator.run();
 * ```
 */
export class Operator {
  readonly #settings: OperatorSettings;
  readonly #controllers: Map<string, ManagedController> = new Map();
  readonly #cap: ConcurrencyCap | undefined;
  readonly #probes: ProbeServer;
  readonly #lag: LoopLag;
  #deps: ControllerDeps | undefined;
  /** Client as created or given; its writes do not depend on a lease. */
  #client: Client | undefined;
  #coordination: Coordination | undefined;
  /** Admissions, with the name of the controller of the short form. */
  readonly #admissions: {
    readonly admission: Admission;
    readonly controller: string | undefined;
  }[] = [];
  #webhooks: Webhooks | undefined;
  #state: State = "stopped";
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  /** Whether the operator stops because it could not start. */
  #failed = false;
  /** Callbacks that wait until the operator has stopped. */
  readonly #stopped: (() => void)[] = [];
  /** Controllers that start again because their kind has moved. */
  readonly #moving: Set<ManagedController> = new Set();
  /** Abort controller that is aborted when the operator stops. */
  #ending = new AbortController();
  /** Abort controller that ends the grace period of a stop in progress. */
  #hurry = new AbortController();

  /**
   * Creates an operator; nothing happens before it is started.
   *
   * @param options The options.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not
   * valid; the error names it.
   */
  constructor(options: OperatorOptions = {}) {
    const tool = host().operators;
    this.#settings = operatorSettings(
      configuredOperator(options),
      tool?.logger,
    );
    const { concurrency } = this.#settings;
    this.#cap = concurrency === Infinity
      ? undefined
      : new ConcurrencyCap(concurrency);
    addOperatorGauges(this.#settings.metrics, () => ({
      ...this.health(),
      informers: this.#deps?.informers,
    }));
    this.#lag = new LoopLag(this.#settings.clock);
    this.#probes = new ProbeServer({
      state: () => this.#state,
      health: (withTexts) =>
        withTexts ? this.health() : withoutTexts(this.health()),
      metrics: () => this.metrics(),
      why: (object) => this.why(object),
      inspect: () => this.inspect(),
      failed: (error) =>
        this.#settings.logger.error("Cannot answer a probe", { error }),
    });
    tool?.made(this);
  }

  /** Controllers of the operator, for tools. */
  get controllers(): OperatorHandle["controllers"] {
    return [...this.#controllers.values()];
  }

  /** Returns a controller by its name, for tools. */
  controllerNamed(name: string): ReturnType<OperatorHandle["controllerNamed"]> {
    return this.#controllers.get(name);
  }

  /** Options of the operator that its deployment depends on, for tools. */
  get settings(): OperatorHandle["settings"] {
    const { webhooks, ...settings } = this.#settings;
    // Without admission and conversion nothing is served.
    const serves = this.#admissions.length > 0 ||
      webhooks !== undefined && this.#convertedKinds().length > 0;
    return serves ? { ...settings, webhooks } : settings;
  }

  /** Port of the probes; undefined while they are not served. */
  get probePort(): number | undefined {
    return this.#probes.port;
  }

  /**
   * Registers a controller. On a started operator it starts immediately.
   *
   * @param kind The kind of the primaries.
   * @param reconciler The reconciler.
   * @param options The options of the controller.
   * @throws {TypeError} If the name or finalizer is taken, or a method missing or
   * misspelt.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not
   * valid; the error names it.
   * @throws {Error} If it has the option `admission` and the operator is started.
   */
  register<P extends KubernetesObject>(
    kind: Kind<P>,
    reconciler: Reconciler<P>,
    options: ControllerOptions<P> = {},
  ): ControllerHandle<P> {
    const { config } = this.#settings;
    const controller = new Controller(
      kind,
      reconciler,
      configuredController(kind, options, config),
    );
    if (this.#controllers.has(controller.name)) {
      throw new TypeError(
        `Cannot register a controller: the name is taken, so set another one with { name }: received "${controller.name}"`,
      );
    }
    if (options.install && !controller.watchedKinds.some(isDefinedKind)) {
      throw new TypeError(
        `Cannot register controller "${controller.name}": only a kind of defineKind carries the definition that "install" needs: received ${kind.kind}`,
      );
    }
    this.#controllers.forEach((one) => checkSameKind(controller, one));
    const { admission: given } = controller.settings;
    if (given !== undefined) {
      if (this.#state !== "stopped") {
        throw new Error(
          `Cannot register controller "${controller.name}": the operator is started, and "admission" is served from its start only`,
        );
      }
      const { validate, default: fill, ...admissionOptions } = given;
      const handlers = {
        ...(validate && { validate: validate.bind(given) }),
        ...(fill && { default: fill.bind(given) }),
      };
      this.#admissions.push({
        admission: admissionOf(kind, handlers, admissionOptions),
        controller: controller.name,
      });
    }
    this.#controllers.set(controller.name, controller);
    if (this.#state === "started") {
      const { signal } = this.#ending;
      this.#connect().then((deps) =>
        this.#startController(controller, deps, signal)
      ).catch((error: unknown) =>
        this.#settings.logger.error("Cannot start a controller", {
          controller: controller.name,
          error,
        })
      );
    }
    return controller;
  }

  /**
   * Admits the objects of a kind: `validate` decides whether a request to the API
   * server is allowed, `default` fills in what the user has left out. The kind may
   * be any, also one without a controller. All replicas answer, whether they lead or
   * not; `webhooks` among the options of the operator says how API servers reach
   * them. With a controller of the kind, the option `admission` is a short form.
   *
   * @param kind The kind of the objects; other versions are converted to its own.
   * @param handlers The handlers, at least one.
   * @param options Which requests the handlers see, and what follows if none answers.
   * @throws {TypeError} If there is no handler, or `failurePolicy` is not chosen.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not
   * valid; the error names it.
   * @throws {Error} If the operator is started.
   *
   * @example Refuse names that end in a digit
   * ```ts
   * import { allow, deny, Operator } from "@coracle/operator";
   * import { ConfigMap } from "@coracle/operator/kinds";
   *
   * const operator = new Operator({
   *   webhooks: { service: { namespace: "shop-system", name: "shop-operator" } },
   * });
   * operator.admit(ConfigMap, {
   *   validate(_object, { name = "" }) {
   *     return /\d$/.test(name)
   *       ? deny("must not end in a digit", { field: "metadata.name" })
   *       : allow();
   *   },
   * }, { failurePolicy: "Fail", operations: ["CREATE"] });
   * ```
   */
  admit<O extends KubernetesObject>(
    kind: Kind<O>,
    handlers: AdmissionHandlers<O>,
    options: AdmissionOptions,
  ): void {
    if (this.#state !== "stopped") {
      throw new Error(
        `Cannot admit ${kind.kind}: the operator is started, so call admit() before start()`,
      );
    }
    const admission = admissionOf(kind, handlers, options);
    this.#admissions.push({ admission, controller: undefined });
  }

  /**
   * Deletes the webhook configurations of the operator from the cluster, and the
   * Secret with its certificates, before it is uninstalled. Objects are no longer
   * admitted then.
   */
  async removeWebhooks(): Promise<void> {
    await this.#connect();
    const webhooks = this.#webhooks ?? await this.#loadWebhooks();
    await webhooks.remove();
  }

  /**
   * Unregisters a controller, and waits until it has stopped: its runs may end
   * within the grace period. A name that no controller has is ignored.
   */
  async unregister(name: string): Promise<void> {
    const controller = this.#controllers.get(name);
    if (controller === undefined) return;
    this.#controllers.delete(name);
    await this.#drain([controller]);
    await controller.stop();
  }

  /**
   * Starts the operator with all its controllers.
   *
   * @returns Resolves when the caches of all controllers are synced.
   * @throws {Error} If there is no controller, or one cannot start; the others
   * are stopped then.
   */
  async start(): Promise<void> {
    if (host().operators?.runs === false) return;
    if (this.#state === "stopping") await this.#stopping;
    try {
      await (this.#starting ??= this.#start());
    } catch (error) {
      this.#failed = error !== this.#ending.signal.reason;
      await this.stop();
      throw error;
    }
  }

  /**
   * Starts the operator and runs it until the process receives SIGTERM or SIGINT,
   * or {@linkcode Operator.stop} is called; then stops it gracefully. A second
   * signal ends the grace period.
   */
  async run(): Promise<void> {
    if (host().operators?.runs === false) return;
    const removeListener = onStopSignal((signal, count) => {
      this.#settings.logger.info("Stopping", { because: signal });
      if (count > 1) this.#hurry.abort();
      else void this.stop();
    });
    const removeLog = logUnawaited(this.#settings.logger);
    try {
      const stopped = new Promise<void>((resolve) =>
        this.#stopped.push(resolve)
      );
      const started = this.start().catch((error: unknown) => {
        // A stop during the start is an end like any other.
        if (error !== this.#ending.signal.reason) throw error;
      }).then(() => stopped);
      // The end of a simulation must not leave this promise pending.
      await Promise.race([started, host().ended ?? started]);
    } finally {
      removeListener();
      removeLog();
    }
  }

  /**
   * Stops the operator gracefully: no further runs start; current ones may end
   * within the grace period, then their signals abort; finally all watches,
   * timers and sockets are closed. Safe to call at any time and more than once.
   */
  async stop(): Promise<void> {
    if (this.#state === "stopped" && this.#starting === undefined) return;
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  /**
   * Applies the CustomResourceDefinitions of the watched kinds that were made by
   * `defineKind`, and waits until the server serves them.
   */
  async install(): Promise<void> {
    await this.#connect();
    const kinds = [...this.#controllers.values()]
      .flatMap(({ watchedKinds }) => watchedKinds);
    const { clock, logger } = this.#settings;
    await installCrds(this.#client as Client, kinds, { clock, logger });
  }

  /**
   * Returns the run history of an object in each controller that knows it: its
   * last runs with their causes, writes and outcomes, and its next run.
   *
   * @param key The key of the object, or `namespace/name`.
   */
  why(key: ObjectKey | string): readonly ObjectHistory[] {
    return [...this.#controllers.values()].flatMap((controller) =>
      controller.why(key) ?? []
    );
  }

  /**
   * Returns the state of the operator as plain data, for the page of `coracle ui`:
   * controllers, the objects that ran last with their conditions, and memory.
   */
  inspect(): object {
    return inspection({
      state: this.#state,
      controllers: this.#controllers.values(),
      informers: this.#deps?.informers,
      lag: this.#state === "started" ? this.#lag : undefined,
      lease: this.#coordination?.health(),
    });
  }

  /** Returns the health of the operator and its controllers. */
  health(): OperatorHealth {
    const controllers = [...this.#controllers.values()].map((controller) =>
      controller.health()
    );
    const { pressure, used = 0 } = this.#deps?.informers.budget ?? {};
    pressure?.measure(used);
    const started = this.#state === "started";
    const lease = this.#coordination?.health();
    const canLead = lease?.healthy ?? true;
    const webhooks = this.#webhooks?.health();
    return {
      started,
      ready: started && canLead && webhooks?.ready !== false &&
        controllers.every(({ ready }) => ready),
      healthy: canLead && webhooks?.error === undefined &&
        controllers.every(({ healthy }) => healthy),
      leading: this.#state !== "stopped" &&
        this.#coordination?.isLeading === true,
      leader: this.#coordination?.leader,
      lease,
      webhooks,
      memoryIsShort: pressure?.isHigh ?? false,
      controllers,
    };
  }

  /**
   * Returns the metrics in the text format of Prometheus; empty if the option
   * `metrics` is not a `MetricsRegistry`.
   */
  metrics(): string {
    const { metrics } = this.#settings;
    return metrics instanceof MetricsRegistry ? metrics.text() : "";
  }

  async #start(): Promise<void> {
    const { logger, probes, config } = this.#settings;
    const admits = this.#admissions.length > 0;
    checkControllerNames([...this.#controllers.keys()], config, admits);
    this.#state = "starting";
    const { signal } = this.#ending = new AbortController();
    const isServed = probes !== undefined && host().servesProbes;
    if (isServed) await this.#serveProbes(probes);
    const deps = await this.#connect();
    signal.throwIfAborted();
    await abortable(
      Promise.resolve(host().operators?.starting?.(this)),
      signal,
    );
    const converted = this.#settings.webhooks === undefined
      ? []
      : this.#convertedKinds();
    if (admits || converted.length > 0) {
      this.#webhooks = await abortable(this.#loadWebhooks(), signal);
      this.#webhooks.convert(converted);
      await this.#webhooks.open();
      await this.#prepareConversions(converted, this.#webhooks);
    }
    await abortable(Promise.resolve(this.#coordination?.start()), signal);
    const start = (controller: ManagedController) =>
      this.#startController(controller, deps, signal);
    const progress = logSyncProgress(deps);
    await abortable(startAll(this.#controllers, start), signal)
      .finally(() => progress.cancel());
    await this.#webhooks?.register();
    signal.throwIfAborted();
    this.#state = "started";
    logger.info("Operator started", {
      controllers: [...this.#controllers.keys()],
    });
    host().operators?.started?.(this);
  }

  /** Kinds whose versions this operator converts. */
  #convertedKinds(): readonly DefinedKind[] {
    const kinds = [...this.#controllers.values()]
      .flatMap(({ watchedKinds }) => watchedKinds);
    return [...new Set(kinds)].filter((kind) =>
      isDefinedKind(kind) && kind.conversion !== undefined
    ) as DefinedKind[];
  }

  /**
   * Registers conversions before informers list: objects that are stored in another
   * version cannot be read without them.
   */
  async #prepareConversions(
    kinds: readonly DefinedKind[],
    webhooks: Webhooks,
  ): Promise<void> {
    const { clock, logger } = this.#settings;
    const { conversion } = webhooks;
    if (kinds.length > 0 && host().operators !== undefined) {
      // A tool installs the other kinds, and leaves these to who converts them.
      const client = this.#client as Client;
      await installCrds(client, kinds, { clock, logger, conversion });
    }
    await webhooks.registerConversions().catch((error: unknown) =>
      logger.warn("Cannot register the conversions yet, which is tried again", {
        error,
      })
    );
  }

  /** Creates the webhooks of the admissions; loads their modules. */
  async #loadWebhooks(): Promise<Webhooks> {
    const { webhooks: place, logger, namespaces, metrics, clock } =
      this.#settings;
    const first = this.#admissions[0]?.admission.kind ??
      this.#convertedKinds()[0];
    if (place === undefined || first === undefined) {
      throw new TypeError(
        `Cannot serve webhooks: ${
          first === undefined
            ? "no kind is admitted, so call operator.admit() first"
            : 'the option "webhooks" of the operator must say how API servers reach it, such as { service: { name } }'
        }`,
      );
    }
    const { Webhooks } = await loadModule(import("../admission/webhooks.ts"));
    const client = this.#client as Client;
    const suffix = Array.isArray(namespaces) ? `.${namespaces[0]}` : "";
    const webhooks = new Webhooks(place, {
      client,
      clock,
      log: logger,
      metrics,
      signal: this.#ending.signal,
      isDeveloped: host().operators !== undefined,
      fallbackName: `${first.kind.toLowerCase()}${suffix}`,
      reader: admissionReader(() => this.#controllers.values(), client),
    });
    for (const { admission, controller: name } of this.#admissions) {
      const controller = () => this.#controllers.get(name ?? "");
      webhooks.add({
        admission,
        namespaces: () =>
          namespaceSet(
            controller()?.namespaces ?? namespaces,
            client.namespace,
            admission.kind,
          ),
        isActive: () => name === undefined || controller() !== undefined,
      });
    }
    return webhooks;
  }

  async #serveProbes(settings: ProbeSettings): Promise<void> {
    try {
      await this.#probes.start(settings);
    } catch (error) {
      // In development another program may have the port.
      const { code } = Object((error as Error).cause);
      if (host().operators === undefined || code !== "EADDRINUSE") throw error;
      await this.#probes.start({ ...settings, port: 0 });
      this.#settings.logger.warn(
        "The port of the probes is in use: they are served on another",
        { inUse: settings.port, url: `http://127.0.0.1:${this.#probes.port}` },
      );
    }
  }

  async #startController(
    controller: ManagedController,
    deps: ControllerDeps,
    signal: AbortSignal,
    startErrors: StartErrorPolicy = this.#settings.startErrors,
  ): Promise<void> {
    signal.throwIfAborted();
    // Every member of a shard group runs the objects that it owns at the time.
    if (this.#settings.sharding || this.#coordination?.isLeading) {
      controller.startLeading();
    }
    await startController(controller, {
      ...this.#settings,
      startErrors,
      deps,
      controllers: this.#controllers,
      client: this.#client as Client,
      conversion: this.#webhooks?.conversion,
      signal,
    });
  }

  /**
   * Starts the controllers of a kind again that the server serves under another
   * plural or scope: their finalizer, their paths and their keys depend on it.
   */
  #followMoved(moved: ResolvedKind): void {
    for (const controller of this.#controllers.values()) {
      const isMoved = kindText(controller.kind) === kindText(moved) &&
        !isResolved(controller.kind) && !this.#moving.has(controller);
      if (!isMoved || this.#state !== "started") continue;
      const { plural, scope } = moved;
      const fields = { controller: controller.name, plural, scope };
      const { logger } = this.#settings;
      logger.warn(
        "The server serves a kind under another plural or scope: its controller starts again",
        fields,
      );
      this.#moving.add(controller);
      this.#startAgain(controller).catch((error: unknown) =>
        logger.error("Cannot start a controller again", { ...fields, error })
      ).finally(() => this.#moving.delete(controller));
    }
  }

  async #startAgain(controller: ManagedController): Promise<void> {
    const { signal } = this.#ending;
    await this.#drain([controller]);
    await controller.stop();
    const deps = await this.#connect();
    signal.throwIfAborted();
    // Its discovery is not that of the informers, which have noticed the change.
    await deps.client.resolve(controller.kind, { fresh: true }).catch(() => {});
    await this.#startController(controller, deps, signal, "wait");
  }

  async #stop(): Promise<void> {
    const { logger } = this.#settings;
    const controllers = [...this.#controllers.values()];
    this.#state = "stopping";
    this.#ending.abort(new Error("Cannot run the operator: it was stopped"));
    this.#hurry = new AbortController();
    await this.#drain(controllers);
    try {
      await Promise.all(controllers.map((controller) => controller.stop()));
      // A start in progress may have opened something, which is closed as well.
      await this.#starting?.catch(() => {});
      await this.#webhooks?.close();
      this.#webhooks = undefined;
      this.#lag.close();
      await this.#coordination?.stop();
      await this.#deps?.informers.stop();
      if (this.#settings.client === undefined) await this.#client?.close();
      this.#deps = this.#coordination = this.#client = undefined;
      await this.#probes.stop();
    } finally {
      this.#state = "stopped";
      this.#starting = this.#stopping = undefined;
      if (!this.#failed) logger.info("Operator stopped");
      this.#failed = false;
      for (const resolve of this.#stopped.splice(0)) resolve();
    }
  }

  async #drain(controllers: readonly ManagedController[]): Promise<void> {
    const { clock, logger: log, shutdownGrace: grace } = this.#settings;
    await drain(controllers, { clock, log, grace, hurry: this.#hurry.signal });
  }

  /** Returns the dependencies that all controllers share; created once. */
  async #connect(): Promise<ControllerDeps> {
    if (this.#deps !== undefined) return this.#deps;
    const { clock, logger, metrics, random, reconnect, cache, tracer } =
      this.#settings;
    const common = { clock, logger, metrics, random };
    const base = this.#settings.client ?? await Client.load(common);
    this.#client = base;
    const coordination = this.#coordination = new Coordination({
      ...this.#settings,
      client: base,
      log: logger,
      controllers: () => this.#controllers.values(),
    });
    const { client, shard } = coordination;
    this.#deps = {
      ...this.#settings,
      client: tracer === undefined
        ? client
        : client.with([traceRequests(tracer)]),
      informers: new InformerPool(base, {
        ...common,
        reconnect,
        onMoved: (kind) => this.#followMoved(kind),
        budget: operatorBudget(cache, { clock, log: logger }),
        snapshots: await openSnapshots(this.#settings, base),
      }),
      skipsRuns: skipsRuns(this.#settings),
      fieldManagers: () =>
        Array.from(
          this.#controllers.values(),
          ({ settings }) => settings.fieldManager,
        ),
      cap: this.#cap,
      log: logger,
      shard,
      mayRun: () => coordination.mayRun,
      isLeading: () => coordination.isLeading,
      instance: host().hostname(),
      currentNamespace: base.namespace,
      isDeveloped: host().operators !== undefined,
    };
    return this.#deps;
  }
}
