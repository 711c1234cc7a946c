import { hostname } from "node:os";
import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import { abortable } from "../signals.ts";
import { InformerPool } from "../cache/informer/informer_pool.ts";
import { Client } from "../client/client.ts";
import { traceRequests } from "../client/middleware.ts";
import { ConcurrencyCap } from "../controller/run/concurrency_cap.ts";
import { Controller, type ObjectHistory } from "../controller/controller.ts";
import type { ControllerOptions } from "../controller/controller_options.ts";
import type { ControllerDeps } from "../controller/controller.ts";
import type { Reconciler } from "../controller/reconciler.ts";
import { installCrd } from "../crd/install_crd.ts";
import { isDefinedKind } from "../crd/kind_definition.ts";
import type { ControllerHandle } from "./controller_handle.ts";
import {
  type ManagedController,
  startAll,
  startController,
} from "./controller_start.ts";
import { coordinate, type Coordination } from "./coordination.ts";
import { development, type OperatorHandle } from "./development.ts";
import { MetricsRegistry } from "./metrics_registry.ts";
import {
  checkControllerNames,
  configuredController,
  configuredOperator,
} from "./operator_config.ts";
import { OperatorGauges } from "./operator_gauges.ts";
import type { OperatorHealth } from "./operator_health.ts";
import {
  type OperatorOptions,
  type OperatorSettings,
  operatorSettings,
} from "./operator_options.ts";
import { ProbeServer } from "./probe_server.ts";
import { operatorBudget } from "./process_memory.ts";
import { drain } from "./shutdown.ts";
import { onStopSignal } from "./stop_signals.ts";

type State = "stopped" | "starting" | "started" | "stopping";

/**
 * Controllers that share a cluster, its caches and a life.
 *
 * @example An operator that only looks
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
export class Operator implements OperatorHandle {
  readonly #settings: OperatorSettings;
  readonly #controllers: Map<string, ManagedController> = new Map();
  readonly #cap: ConcurrencyCap | undefined;
  readonly #probes: ProbeServer;
  readonly #gauges: OperatorGauges;
  #deps: ControllerDeps | undefined;
  /** The client as made or given: its writes are not fenced. */
  #client: Client | undefined;
  #coordination: Coordination | undefined;
  #state: State = "stopped";
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  /** Whether it stops because it could not start: it never ran. */
  #failed = false;
  /** Who waits for the operator to have stopped. */
  readonly #stopped: (() => void)[] = [];
  /** Fires when the operator stops. */
  #ending = new AbortController();
  /** Fires to end the grace of a stop that is under way. */
  #hurry = new AbortController();

  /**
   * Makes an operator; nothing happens before it is started.
   *
   * @param options How it behaves.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or
   * makes no sense, naming it.
   */
  constructor(options: OperatorOptions = {}) {
    const tool = development();
    this.#settings = operatorSettings(
      configuredOperator(options),
      tool?.logger,
    );
    const { concurrency } = this.#settings;
    this.#cap = concurrency === Infinity
      ? undefined
      : new ConcurrencyCap(concurrency);
    this.#gauges = new OperatorGauges(this.#settings.metrics);
    this.#probes = new ProbeServer({
      state: () => ({ state: this.#state }),
      ready: () => {
        const health = this.health();
        return { ok: health.ready, body: health };
      },
      metrics: () => this.metrics(),
      why: (object) => {
        const body = this.why(object);
        return { ok: body.length > 0, body };
      },
    });
    tool?.operatorMade(this);
  }

  /** Its controllers, for tools. */
  get controllers(): OperatorHandle["controllers"] {
    return [...this.#controllers.values()];
  }

  /** The port of the probes; undefined when they are not served. */
  get probePort(): number | undefined {
    return this.#probes.port;
  }

  /**
   * Adds a controller. On a started operator it starts at once.
   *
   * @param kind The kind of its primaries.
   * @param reconciler What it runs.
   * @param options How it behaves.
   * @throws {TypeError} If the name is taken, or the reconciler lacks a method.
   * @throws {TypeError | RangeError | SyntaxError} If an option is unknown or
   * makes no sense, naming it.
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
        `Cannot register a controller: there is one of this name already, so give one of them another with { name }: received "${controller.name}"`,
      );
    }
    if (options.install && !isDefinedKind(kind)) {
      throw new TypeError(
        `Cannot register controller "${controller.name}": only a kind of defineKind carries the definition that "install" needs: received ${kind.kind}`,
      );
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

  /** Takes a controller away; its runs may end within the shutdown grace. */
  async unregister(name: string): Promise<void> {
    const controller = this.#controllers.get(name);
    if (controller === undefined) return;
    this.#controllers.delete(name);
    const { clock, logger, shutdownGrace } = this.#settings;
    await drain([controller], {
      clock,
      log: logger,
      grace: shutdownGrace,
      hurry: this.#hurry.signal,
    });
    await controller.stop();
  }

  /**
   * Starts everything.
   *
   * @returns Fulfilled when the caches of all controllers are complete.
   * @throws {Error} If there is no controller, or one cannot start; what was
   * started is stopped then.
   */
  async start(): Promise<void> {
    if (development()?.runs === false) return;
    if (this.#state === "stopping") await this.#stopping;
    const starting = this.#starting ??= this.#start();
    try {
      await starting;
    } catch (error) {
      // Another start may have come since: it is not to be stopped.
      this.#failed = this.#starting === starting;
      if (this.#failed) await this.stop();
      throw error;
    }
  }

  /**
   * Starts and goes on until the process is asked to end by SIGTERM or SIGINT,
   * or {@linkcode Operator.stop} is called; then stops in order. A second signal
   * ends the grace.
   */
  async run(): Promise<void> {
    if (development()?.runs === false) return;
    const removeListener = onStopSignal((signal, count) => {
      this.#settings.logger.info("Stopping", { because: signal });
      if (count > 1) this.#hurry.abort();
      else void this.stop();
    });
    try {
      const stopped = new Promise<void>((resolve) =>
        this.#stopped.push(resolve)
      );
      await this.start();
      await stopped;
    } finally {
      removeListener();
    }
  }

  /**
   * Stops in order: no run begins any more; those that there are may end within
   * the shutdown grace; then their signals fire; then all watches, timers and
   * sockets are freed. Safe to call at any time, and more than once.
   */
  async stop(): Promise<void> {
    if (this.#state === "stopped" && this.#starting === undefined) return;
    this.#stopping ??= this.#stop();
    await this.#stopping;
  }

  /**
   * Applies the CustomResourceDefinitions of all kinds that carry one, and waits
   * until they are served.
   */
  async install(): Promise<void> {
    await this.#connect();
    const { clock } = this.#settings;
    const client = this.#client as Client;
    for (const { kind } of this.#controllers.values()) {
      if (isDefinedKind(kind)) await installCrd(client, kind, { clock });
    }
  }

  /**
   * Why an object ran and will run, by each controller that knows it: its last
   * runs with causes, writes and outcomes.
   *
   * @param key The object, as a key or as `namespace/name`.
   */
  why(key: ObjectKey | string): readonly ObjectHistory[] {
    return [...this.#controllers.values()].flatMap((controller) =>
      controller.why(key) ?? []
    );
  }

  /** How it fares. */
  health(): OperatorHealth {
    const controllers = [...this.#controllers.values()].map((controller) =>
      controller.health()
    );
    const started = this.#state === "started";
    return {
      started,
      ready: started && controllers.every(({ ready }) => ready),
      healthy: controllers.every(({ healthy }) => healthy),
      leading: started && this.#coordination?.isLeading === true,
      leader: this.#coordination?.leader,
      controllers,
    };
  }

  /**
   * What was counted, in the text format of Prometheus; empty if the operator
   * was given other metrics than a `MetricsRegistry`.
   */
  metrics(): string {
    const { metrics } = this.#settings;
    const { informers } = this.#deps ?? {};
    this.#gauges.set(this.health().controllers, informers);
    return metrics instanceof MetricsRegistry ? metrics.text() : "";
  }

  async #start(): Promise<void> {
    const { logger, probes, config } = this.#settings;
    checkControllerNames([...this.#controllers.keys()], config);
    this.#state = "starting";
    const { signal } = this.#ending = new AbortController();
    if (probes !== undefined) await this.#probes.start(probes);
    signal.throwIfAborted();
    const deps = await this.#connect();
    signal.throwIfAborted();
    await abortable(Promise.resolve(this.#coordination?.start()), signal);
    const start = (controller: ManagedController) =>
      this.#startController(controller, deps, signal);
    await abortable(startAll(this.#controllers, start), signal);
    this.#state = "started";
    logger.info("Operator started", {
      controllers: [...this.#controllers.keys()],
    });
    development()?.operatorStarted?.(this);
  }

  async #startController(
    controller: ManagedController,
    deps: ControllerDeps,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    if (this.#coordination?.isLeading) controller.startLeading();
    await startController(controller, {
      ...this.#settings,
      deps,
      controllers: this.#controllers,
      client: this.#client as Client,
      signal,
    });
  }

  async #stop(): Promise<void> {
    const { logger, clock, shutdownGrace } = this.#settings;
    const controllers = [...this.#controllers.values()];
    this.#state = "stopping";
    this.#ending.abort(
      new Error("Cannot go on: the operator was stopped: received a stop"),
    );
    this.#hurry = new AbortController();
    await drain(controllers, {
      clock,
      log: logger,
      grace: shutdownGrace,
      hurry: this.#hurry.signal,
    });
    try {
      await Promise.all(controllers.map((controller) => controller.stop()));
      // What it has opened meanwhile is closed, too.
      await this.#starting?.catch(() => {});
      await this.#disconnect();
      await this.#probes.stop();
    } finally {
      this.#state = "stopped";
      this.#starting = this.#stopping = undefined;
      if (!this.#failed) logger.info("Operator stopped");
      this.#failed = false;
      for (const resolve of this.#stopped.splice(0)) resolve();
    }
  }

  /** What all controllers share; made when first needed. */
  async #connect(): Promise<ControllerDeps> {
    if (this.#deps !== undefined) return this.#deps;
    const { clock, logger, metrics, random, reconnect, cache, tracer } =
      this.#settings;
    const common = { clock, logger, metrics, random };
    const base = this.#settings.client ?? await Client.load(common);
    this.#client = base;
    this.#coordination = coordinate({
      ...this.#settings,
      client: base,
      log: logger,
      controllers: () => this.#controllers.values(),
    });
    const { client, shard } = this.#coordination;
    this.#deps = {
      client: tracer === undefined
        ? client
        : client.with([traceRequests(tracer)]),
      informers: new InformerPool(base, {
        ...common,
        reconnect,
        budget: operatorBudget(cache, { clock, log: logger }),
      }),
      fieldManagers: () =>
        Array.from(
          this.#controllers.values(),
          ({ settings }) => settings.fieldManager,
        ),
      cap: this.#cap,
      clock,
      log: logger,
      metrics,
      tracer,
      random,
      shard,
      instance: hostname(),
      namespaces: this.#settings.namespaces,
      currentNamespace: base.namespace,
      successLevel: development() === undefined ? "debug" : "info",
    };
    return this.#deps;
  }

  async #disconnect(): Promise<void> {
    await this.#coordination?.stop();
    await this.#deps?.informers.stop();
    if (this.#settings.client === undefined) await this.#client?.close();
    this.#deps = this.#coordination = this.#client = undefined;
  }
}
