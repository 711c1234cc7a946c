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
import type { Kind } from "../api/kind.ts";
import type { KubernetesObject, UntypedObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type {
  AdmissionHandlers,
  AdmissionOptions,
} from "../admission/admission_options.ts";
import type { AdmissionRule } from "../api/admission_rule.ts";
import { checkOption, checkOptions } from "../api/options.ts";
import { ConcurrencyLimit } from "../pace.ts";
import { abortable } from "../signals.ts";
import { Client } from "../client/client.ts";
import { host, type OperatorHandle } from "../client/host.ts";
import { ConcurrencyCap } from "../controller/run/concurrency_cap.ts";
import { Controller, type ControllerDeps } from "../controller/controller.ts";
import type { ControllerOptions } from "../controller/controller_options.ts";
import {
  JobController,
  type JobRun,
} from "../controller/job/job_controller.ts";
import {
  JOB_KIND,
  type JobOptions,
  jobSettings,
} from "../controller/job/job_options.ts";
import { KindsController } from "../controller/kinds/kinds_controller.ts";
import {
  type KindsHandle,
  type KindsHandler,
  type KindsOptions,
  kindsSettings,
} from "../controller/kinds/kinds_options.ts";
import type { KindSelector } from "../controller/kinds/kind_selector.ts";
import type { ObjectHistory } from "../controller/object_history.ts";
import {
  TaskController,
  type TaskOptions,
  taskOptions,
  type TaskRun,
} from "../controller/task/task_controller.ts";
import type { Reconciler } from "../controller/reconciler.ts";
import { CRD_KIND } from "../crd/crd_object.ts";
import type { AdmissionPolicy } from "../crd/policies.ts";
import {
  checkDefinition,
  checkSameKind,
  installCrds,
  type ManagedController,
  MAX_CHECKS,
  startAll,
  startController,
  startLate,
  unfenced,
} from "./controller_start.ts";
import { ClustersController } from "./clusters/clusters_controller.ts";
import type { ControllerHandle, JobHandle } from "./controller_handle.ts";
import { Coordination } from "./coordination.ts";
import { inspection, LoopLag } from "./inspection.ts";
import { LogConfiguration } from "./log_configuration.ts";
import { MetricsRegistry } from "./metrics_registry.ts";
import { MovedKinds } from "./moved_kinds.ts";
import { OperatorAdmission } from "./operator_admission.ts";
import {
  checkControllerNames,
  checkFreeName,
  configuredController,
  configuredOperator,
} from "./operator_config.ts";
import { addOperatorGauges, type ObservedState } from "./operator_gauges.ts";
import {
  type OperatorOptions,
  type OperatorSettings,
  operatorSettings,
  type StartErrorPolicy,
} from "./operator_options.ts";
import {
  type OperatorHealth,
  operatorHealth,
  withoutTexts,
} from "./operator_health.ts";
import {
  ProbeServer,
  serveProbes,
  serveSecureMetrics,
} from "./probe_server.ts";
import { sharedDeps, traced } from "./shared_deps.ts";
import { drain, onStopSignal } from "./shutdown.ts";
import { singleRun } from "./single_run.ts";
import { StorageMigrations } from "./storage_migrations.ts";
import { logSyncProgress } from "./sync_progress.ts";
import { logUnawaited } from "./unawaited_requests.ts";

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
  readonly #admission: OperatorAdmission;
  readonly #checks: ConcurrencyLimit = new ConcurrencyLimit(MAX_CHECKS);
  readonly #migrations: StorageMigrations;
  readonly #moved: MovedKinds;
  #state: State = "stopped";
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  /** Whether each object runs once. */
  #isOnce = false;
  /** Whether the operator stops because it could not start. */
  #failed = false;
  /** Callbacks that wait until the operator has stopped. */
  readonly #stopped: (() => void)[] = [];
  readonly #log: LogConfiguration;
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
    this.#admission = new OperatorAdmission({
      settings: this.#settings,
      controllers: this.#controllers,
    });
    this.#migrations = new StorageMigrations({
      clock: this.#settings.clock,
      log: this.#settings.logger,
      controllers: () => this.#controllers.values(),
    });
    const { concurrency, logger, log, clock } = this.#settings;
    this.#log = new LogConfiguration({ settings: log, logger, clock });
    this.#moved = new MovedKinds({
      log: logger,
      controllers: () => this.#controllers.values(),
      isStarted: () => this.#state === "started",
      startAgain: (controller) => this.#startAgain(controller),
    });
    this.#cap = concurrency === Infinity
      ? undefined
      : new ConcurrencyCap(concurrency);
    addOperatorGauges(this.#settings.metrics, this, Operator.#observed);
    this.#lag = new LoopLag(this.#settings.clock);
    this.#probes = new ProbeServer({
      clock,
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

  /** State for the gauges; no closure, since the metrics may outlive the operator. */
  static readonly #observed = (operator: Operator): ObservedState => ({
    ...operator.health(),
    informers: operator.#deps?.informers,
    others: operator.#controllers.values(),
  });

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
    const { isServed, policies } = this.#admission;
    return { ...settings, ...isServed && { webhooks }, policies };
  }

  /** Port of the probes; undefined while they are not served. */
  get probePort(): number | undefined {
    return this.#probes.port;
  }

  /** Port of the metrics; undefined while they are not served. */
  get metricsPort(): number | undefined {
    return this.#probes.metricsPort;
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
    const { config, reconnect, shutdownGrace } = this.#settings;
    const given = configuredController(kind, options, config);
    const controller = given.clusters === undefined
      ? new Controller(kind, reconciler, given)
      : new ClustersController(kind, reconciler, given, {
        reconnect,
        shutdownGrace,
        around: (client) => this.#coordination?.around(client) ?? client,
        traced: (client) => traced(client, this.#settings.tracer),
        settled: () => this.#coordination?.settled() ?? Promise.resolve(),
      });
    checkFreeName(controller.name, this.#controllers);
    checkDefinition(controller);
    this.#controllers.forEach((one) => checkSameKind(controller, one));
    this.#admission.addOf(controller, { isStarted: this.#state !== "stopped" });
    this.#add(controller);
    return controller;
  }

  /**
   * Registers a job: work without a primary, such as a schedule or the sync of a
   * whole kind. It has one run at a time, which does all that there is to do:
   * changes during a run, and missed times, cause one more run.
   *
   * @param name The name of the job, unique among the controllers of the operator.
   * @param options What causes a run; without anything the job runs at the start.
   * @param run The function; an error fails the run, which is retried.
   * @throws {TypeError} If the name is taken or not valid.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not
   * valid; the error names it.
   */
  job(name: string, options: JobOptions, run: JobRun): JobHandle {
    const { job, controller: given } = jobSettings(name, options);
    checkOption(run, "function", { name: "run", subject: `job "${name}"` });
    const { config } = this.#settings;
    const controller = new JobController(
      job,
      configuredController(JOB_KIND, given, config),
      run,
    );
    this.#add(controller);
    return {
      name,
      trigger: () => controller.trigger(name),
      health: () => controller.health(),
    };
  }

  /**
   * Registers tasks: a long function for each object of a kind, such as one that
   * follows a stream, with `ctx.signal` for its end. The task of an object begins
   * when it appears, and ends when it is deleted, changes as `when` says, or this
   * replica no longer leads. One that throws is started again after a pause. A stop of
   * the operator ends all, and waits for them within its grace period.
   *
   * @param kind The kind of the objects.
   * @param options Which objects have a task, and when it is started again.
   * @param run The task.
   * @throws {TypeError} If the name is taken.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or not
   * valid; the error names it.
   *
   * @example Follow the log of each Pod with a label
   * ```ts
   * import { Operator } from "@coracle/operator";
   * import { Pod } from "@coracle/operator/kinds";
   *
   * const operator = new Operator();
   * operator.task(Pod, {
   *   labelSelector: "logs=collected",
   *   when: (pod) => pod.status?.phase === "Running",
   * }, async (pod, { client, log, signal }) => {
   *   const lines = client.logs(pod.metadata, { follow: true, signal });
   *   for await (const line of lines) log.info(line);
   * });
   * ```
   */
  task<P extends KubernetesObject>(
    kind: Kind<P>,
    options: TaskOptions<P>,
    run: TaskRun<P>,
  ): ControllerHandle<P> {
    const given = taskOptions(kind, options, run);
    const configured = configuredController(kind, given, this.#settings.config);
    const controller = new TaskController(kind, run, configured, options.when);
    this.#add(controller);
    return controller;
  }

  /**
   * Watches the objects of all kinds that a selector selects, while kinds come and go:
   * a CustomResourceDefinition that is installed is followed at once, and one that is
   * deleted no longer, its objects being reported as deleted. Only metadata is cached,
   * unless the options say otherwise. A kind that may not be listed is named in the
   * log and the health, and does not stop the others.
   *
   * @param selector Which kinds; `{}` for all that can be listed and watched.
   * @param react A handler of all changes, on each replica; or a reconciler, of
   * which each kind gets a controller.
   * @param options Which objects of the kinds, and how a reconciler runs.
   * @throws {TypeError} If the name is taken.
   * @throws {TypeError | RangeError | SyntaxError} If the selector or an option is not
   * valid; the error names it.
   *
   * @example Count the objects of each kind of a group
   * ```ts
   * import { Operator } from "@coracle/operator";
   *
   * const operator = new Operator();
   * const counts = new Map<string, number>();
   * operator.watchKinds({ groups: ["*.example.com"] }, ({ type }, { kind }) => {
   *   const change = { added: 1, updated: 0, deleted: -1 }[type];
   *   counts.set(kind, (counts.get(kind) ?? 0) + change);
   * });
   * ```
   */
  watchKinds(
    selector: KindSelector,
    react: KindsHandler | Reconciler<UntypedObject>,
    options: KindsOptions = {},
  ): KindsHandle {
    const { config } = this.#settings;
    const given = configuredController(
      CRD_KIND,
      { name: "kinds", ...options },
      config,
    );
    const settings = kindsSettings(selector, react, given);
    const controller = new KindsController(settings, {
      register: (...given) =>
        this.register(...given) as Controller<UntypedObject>,
      unregister: (name) => this.unregister(name),
    });
    this.#add(controller);
    return controller;
  }

  /** Adds a controller, and starts it if the operator is started. */
  #add(controller: ManagedController): void {
    checkFreeName(controller.name, this.#controllers);
    this.#controllers.set(controller.name, controller);
    if (this.#state === "started") this.#startLate([controller]);
  }

  #startLate(controllers: readonly ManagedController[]): void {
    startLate(controllers, this.#startNow, this.#settings.logger);
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
  ): void;
  /**
   * Admits the objects of a kind by a policy, which the operator applies when it
   * starts, with its binding. Where the API server has no such policies, a handler
   * stands in its place, with a webhook that sees the same requests.
   *
   * @param policy Policy of `validatingPolicy` or `mutatingPolicy`.
   * @param handlers Handler that does the same: `validate` or `default`. Without it,
   * an operator reports in its health that an older API server lacks the policy.
   * @throws {TypeError} If there is another handler, or a match condition of the
   * policy uses variables that webhooks do not have.
   * @throws {Error} If the operator is started.
   */
  admit<O extends KubernetesObject>(
    policy: AdmissionPolicy<O>,
    handlers?: AdmissionHandlers<O>,
  ): void;
  admit<O extends KubernetesObject>(
    subject: Kind<O> | AdmissionPolicy<O>,
    handlers: AdmissionHandlers<O> = {},
    options?: AdmissionOptions,
  ): void {
    if (this.#state !== "stopped") {
      throw new Error(
        "Cannot admit a kind: the operator is started, so call admit() before start()",
      );
    }
    this.#admission.admit(subject, handlers, options);
  }

  /**
   * Lists where each rule for the kinds of the operator is enforced, and why there:
   * by the schemas and the CEL rules of their definitions, by policies, and by
   * handlers behind webhooks. What a policy has become is known after the start.
   */
  admission(): readonly AdmissionRule[] {
    return this.#admission.rules();
  }

  /**
   * Deletes webhook configurations, policies and the Secret with the certificates
   * from the cluster, before the operator is uninstalled: it admits nothing then.
   */
  async removeWebhooks(): Promise<void> {
    await this.#connect();
    await this.#admission.remove(this.#client as Client, this.#ending.signal);
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
   *
   * @param options With `once`, the operator stops when each object and each job
   * has had a run, for a CronJob of a cluster: a run that fails is not repeated,
   * and later events, reschedules and schedules have no run.
   * @throws {Error} If the operator cannot start, or with `once` if a run failed,
   * so that a program that awaits the promise ends with code 1.
   */
  async run(
    options: { readonly once?: boolean | undefined } = {},
  ): Promise<void> {
    checkOptions(options, { once: "boolean?" }, "operator.run()");
    if (host().operators?.runs === false) return;
    this.#isOnce = options.once === true;
    const removeListener = onStopSignal((signal, count) => {
      this.#settings.logger.info("Stopping", { because: signal });
      if (count > 1) this.#hurry.abort();
      else void this.stop();
    });
    const removeSignal = this.#log.onSignal();
    const removeLog = logUnawaited(this.#settings.logger);
    try {
      const stopped = new Promise<void>((resolve) =>
        this.#stopped.push(resolve)
      );
      const started = this.start().catch((error: unknown) => {
        // A stop during the start is an end like any other.
        if (error !== this.#ending.signal.reason) throw error;
      }).then(() =>
        this.#isOnce && this.#state === "started"
          ? Promise.race([singleRun([...this.#controllers.values()]), stopped])
          : stopped
      );
      // The end of a simulation must not leave this promise pending.
      await Promise.race([started, host().ended ?? started]);
    } finally {
      removeListener();
      removeSignal();
      removeLog();
      if (this.#isOnce) await this.stop();
      this.#isOnce = false;
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
      .flatMap(({ isRemote, watchedKinds }) => isRemote ? [] : watchedKinds);
    const { clock, logger } = this.#settings;
    await installCrds(this.#client as Client, kinds, { clock, logger });
  }

  /**
   * Returns the run history of an object in each controller that knows it: its
   * last runs with their causes, writes and outcomes, and its next run.
   *
   * @param key The key of the object, or `namespace/name`; for an object of another
   * cluster, the name of the cluster and a slash before it.
   */
  why(key: ObjectKey | string): readonly ObjectHistory[] {
    const all = [...this.#controllers.values()];
    const remote = all.filter(({ isRemote }) => isRemote);
    const isOfCluster = remote.length > 0 && typeof key === "string" &&
      key.split("/").length > 2;
    return (isOfCluster ? remote : all).flatMap((controller) =>
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
    return operatorHealth({
      state: this.#state,
      controllers: this.#controllers.values(),
      informers: this.#deps?.informers,
      coordination: this.#coordination,
      webhooks: this.#admission.health(),
    });
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
    const admits = this.#admission.count > 0;
    checkControllerNames([...this.#controllers.keys()], config, admits);
    this.#state = "starting";
    const { signal } = this.#ending = new AbortController();
    await this.#log.start();
    signal.throwIfAborted();
    await abortable(
      Promise.resolve(host().operators?.starting?.(this)),
      signal,
    );
    const isServed = probes !== undefined && host().servesProbes;
    if (isServed) await serveProbes(this.#probes, probes, logger);
    const deps = await this.#connect(signal);
    signal.throwIfAborted();
    const client = this.#client as Client;
    if (isServed) {
      const { clock } = this.#settings;
      const deps = { client, clock, log: logger, signal };
      await serveSecureMetrics(this.#probes, probes.metrics, deps);
    }
    await this.#admission.open(client, signal);
    await abortable(Promise.resolve(this.#coordination?.start()), signal);
    const progress = logSyncProgress(deps, this.#controllers);
    const starts = startAll(this.#controllers, this.#startNow);
    const begun = await abortable(starts, signal)
      .finally(() => progress.cancel());
    await this.#admission.register();
    signal.throwIfAborted();
    this.#state = "started";
    logger.info("Operator started", {
      controllers: [...this.#controllers.keys()],
    });
    const all = [...this.#controllers.values()];
    this.#startLate(all.filter((controller) => !begun.has(controller)));
    this.#migrate();
    host().operators?.started?.(this);
  }

  /** Begins the migrations of stored objects, if this replica leads. */
  #migrate(): void {
    const client = this.#coordination?.isLeading && this.#deps?.client;
    if (!client || this.#state !== "started") return;
    this.#migrations.begin(client, this.#ending.signal);
  }

  readonly #startNow = (controller: ManagedController): Promise<void> => {
    const deps = this.#deps as ControllerDeps;
    return this.#startController(controller, deps, this.#ending.signal);
  };

  async #startController(
    controller: ManagedController,
    deps: ControllerDeps,
    signal: AbortSignal,
    startErrors: StartErrorPolicy = this.#isOnce
      ? "fail"
      : this.#settings.startErrors,
  ): Promise<void> {
    signal.throwIfAborted();
    // Every member of a shard group runs the objects that it owns at the time.
    const { leaderOnly } = controller;
    if (
      !leaderOnly || this.#settings.sharding || this.#coordination?.isLeading
    ) controller.startLeading();
    await startController(controller, {
      ...this.#settings,
      startErrors,
      deps: leaderOnly ? deps : unfenced(deps),
      controllers: this.#controllers,
      client: this.#client as Client,
      checks: this.#checks,
      conversion: this.#admission.conversion,
      signal,
    });
  }

  async #startAgain(controller: ManagedController): Promise<void> {
    const { signal } = this.#ending;
    await this.#drain([controller]);
    await controller.stop();
    // A stop may have come first: nobody would close what is opened after it.
    signal.throwIfAborted();
    const deps = await this.#connect(signal);
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
    await Promise.all([
      this.#drain(controllers),
      this.#admission.leave(this.#settings.shutdownGrace, this.#hurry.signal),
    ]);
    try {
      await Promise.all(controllers.map((controller) => controller.stop()));
      // A start in progress may have opened something, which is closed as well.
      await this.#starting?.catch(() => {});
      await this.#deps?.recording?.close();
      this.#lag.close();
      await this.#coordination?.stop();
      const tool = host().operators;
      // The process that takes over has the same ports.
      if (tool?.leaving !== undefined) await this.#probes.stop();
      await this.#admission.close(await tool?.leaving?.(this));
      await this.#deps?.informers.stop();
      if (this.#settings.client === undefined) await this.#client?.close();
      this.#deps = this.#coordination = this.#client = undefined;
      await this.#probes.stop();
    } finally {
      this.#log.stop();
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

  /**
   * Returns the dependencies that all controllers share; created once.
   *
   * @param signal Signal that ends the wait for the server.
   */
  async #connect(signal?: AbortSignal): Promise<ControllerDeps> {
    if (this.#deps !== undefined) return this.#deps;
    const { clock, logger, metrics, random } = this.#settings;
    const base = this.#settings.client ??
      await Client.load({ clock, logger, metrics, random });
    this.#client = base;
    const coordination = this.#coordination = new Coordination({
      ...this.#settings,
      client: base,
      log: logger,
      controllers: () =>
        [...this.#controllers.values()].filter(({ leaderOnly }) => leaderOnly),
      onLeading: () => this.#migrate(),
    });
    return this.#deps = await sharedDeps({
      settings: this.#settings,
      controllers: this.#controllers,
      coordination,
      base,
      cap: this.#cap,
      isOnce: this.#isOnce,
      onMoved: (kind) => this.#moved.follow(kind),
      signal,
    });
  }
}
