import process from "node:process";
import { type Duration, milliseconds } from "../core/api/duration.ts";
import { parseApiVersion, untyped } from "../core/api/kind.ts";
import type { UntypedObject } from "../core/api/object.ts";
import { checkOptions } from "../core/api/option_rules.ts";
import { Client } from "../core/client/client.ts";
import { Connection } from "../core/client/connection.ts";
import type { Transport } from "../core/client/transport/transport.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { loadConfig } from "../core/config/load_config.ts";
import { installCrd } from "../core/crd/install_crd.ts";
import type { Logger } from "../core/logger.ts";
import { VirtualClock } from "./virtual_clock.ts";
import { FaultProxy } from "../apiserver/faults/fault_proxy.ts";
import type { Faults } from "../apiserver/faults/faults.ts";
import { LogTail } from "./log_tail.ts";
import { QuietTransport } from "./quiet_transport.ts";
import { RestrictedTransport } from "./restricted_transport.ts";
import { ApiServer } from "../apiserver/server.ts";
import {
  TEST_CLUSTER_RULES,
  type TestClusterOptions,
  type TestedOperator,
  type TestUntilOptions,
} from "./test_cluster_options.ts";

/** How often a condition is asked while real time passes, in milliseconds. */
const LOOK_EVERY = 20;
/** How long a real cluster's controllers may take, in milliseconds. */
const PATIENCE = 90_000;
/** How far a virtual clock moves at most, in milliseconds. */
const HOUR = 3_600_000;
/** How many turns of the event loop work may take without a timer. */
const IDLE_TURNS = 20_000;

/**
 * A cluster for one test, with a namespace of its own.
 *
 * @example A cluster without an operator
 * ```ts
 * import { TestCluster } from "@coracle/operator/testing";
 * import { ConfigMap } from "@coracle/operator/kinds";
 *
 * const cluster = await TestCluster.start();
 * const { client, namespace } = cluster;
 * await client.create(ConfigMap, { metadata: { namespace, name: "a" } });
 * await cluster.until(() => client.find(ConfigMap, { namespace, name: "a" }));
 * await cluster.stop();
 * ```
 */
export class TestCluster {
  /** The namespace of the test. */
  readonly namespace: string;
  /** The client of an administrator, for the test itself. */
  readonly client: Client;
  /** The client for the operator: it may do what the `permissions` say. */
  readonly operatorClient: Client;
  /** Reaches the server as an administrator. */
  readonly transport: Transport;
  /** The time of the cluster. */
  readonly clock: Clock;
  /** The embedded server; undefined on a real cluster. */
  readonly server: ApiServer | undefined;
  /**
   * How to make the server fail. Before a real cluster stands a proxy that
   * fails: there nothing can be compacted, no token be changed and no object be
   * lost.
   */
  readonly faults: Faults;
  readonly #log: LogTail;
  readonly #ownNamespace: boolean;
  #operator: TestedOperator | undefined;

  private constructor(target: Target, options: TestClusterOptions) {
    const { transport, server, faults } = target;
    const { clock = systemClock, permissions } = options;
    this.transport = transport;
    // The test itself lives in real time, and would wait for it in vain.
    this.client = new Client({ transport }, { retry: false });
    this.clock = clock;
    this.server = server;
    this.faults = faults;
    this.#ownNamespace = options.namespace === undefined;
    this.namespace = options.namespace ??
      `test-${crypto.randomUUID().slice(0, 8)}`;
    this.#log = new LogTail({ wallTime: () => clock.wallTime() });
    this.operatorClient = new Client({
      transport: new RestrictedTransport(
        { send: (request) => transport.send(request), close: async () => {} },
        permissions ??
          [{ apiGroups: ["*"], resources: ["*"], verbs: ["*" as "get"] }],
        { user: "operator" },
      ),
    }, { clock, logger: this.#log.logger, retry: false });
  }

  /**
   * Starts a cluster, makes what the options ask for, and starts the operator.
   *
   * @throws {RangeError} If there is no such cluster.
   * @throws {TypeError | RangeError} If an option is unknown or makes no sense.
   */
  static async start(options: TestClusterOptions = {}): Promise<TestCluster> {
    checkOptions(options, TEST_CLUSTER_RULES, "a test cluster");
    const cluster = new TestCluster(await target(options), options);
    try {
      await cluster.#slowly(cluster.#prepare(options));
      const operator = options.operator?.(cluster);
      cluster.#operator = operator;
      if (operator !== undefined) await cluster.complete(operator.start());
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Makes what is to be there before the test. */
  async #prepare(options: TestClusterOptions): Promise<void> {
    const { kinds = [], objects = [] } = options;
    const { client, namespace } = this;
    if (this.#ownNamespace) {
      await client.create(NAMESPACE, { metadata: { name: namespace } });
    }
    for (const kind of kinds) await installCrd(client, kind);
    for (const object of objects) await this.apply(object);
  }

  /**
   * Waits for what is done, and loaded, for the first time: that takes real time
   * of which a virtual clock knows nothing, so that it must not leap.
   */
  async #slowly(work: Promise<void>): Promise<void> {
    const { clock, server } = this;
    let settled = server === undefined || !(clock instanceof VirtualClock);
    const end = () => void (settled = true);
    work.then(end, end);
    while (clock instanceof VirtualClock && !settled) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await clock.advance(20);
    }
    await work;
  }

  /** What was logged, for the operator to write into and tests to read. */
  get logger(): Logger {
    return this.#log.logger;
  }

  /** The last lines of the log. */
  get log(): string {
    return this.#log.toString();
  }

  /**
   * Applies an object that carries its `apiVersion` and `kind`; without a
   * namespace it goes into that of the test.
   *
   * @returns The object as it is stored.
   */
  async apply(object: UntypedObject): Promise<UntypedObject> {
    const { apiVersion = "", kind: name = "", metadata } = object;
    const kind = untyped({ ...parseApiVersion(apiVersion), kind: name });
    const { scope } = await this.client.resolve(kind);
    const namespace = scope === "Cluster"
      ? undefined
      : metadata.namespace ?? this.namespace;
    return await this.client.apply(
      kind,
      { ...object, metadata: { ...metadata, namespace } },
      { force: true, fieldManager: "test" },
    );
  }

  /**
   * Waits for a condition; a virtual clock moves on meanwhile.
   *
   * @param condition Anything but undefined, null and false ends the wait. What
   * it throws does, too.
   * @returns What the condition gave.
   * @throws {Error} If it did not come true in time; the error has the log.
   */
  async until<T>(
    condition: () => T | Promise<T>,
    options: TestUntilOptions = {},
  ): Promise<NonNullable<Exclude<T, false>>> {
    const { clock } = this;
    const virtual = clock instanceof VirtualClock;
    const { within = virtual ? "1h" : "30s" } = options;
    const limit = milliseconds(within, "within");
    let value: T | undefined;
    const holds = async () => {
      value = await condition();
      return value !== undefined && value !== null && value !== false;
    };
    if (virtual) {
      await this.#move(clock, holds, limit).catch((error: unknown) => {
        throw this.#late(condition, within, error);
      });
    } else {
      const end = clock.now() + limit;
      while (!await holds()) {
        if (clock.now() > end) throw this.#late(condition, within);
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
      }
    }
    return value as NonNullable<Exclude<T, false>>;
  }

  /** Moves a virtual clock until a condition holds. */
  async #move(
    clock: VirtualClock,
    holds: () => boolean | Promise<boolean>,
    limit?: number,
  ): Promise<void> {
    if (this.server !== undefined) {
      return await clock.runUntil(holds, { limit, idleTurns: IDLE_TURNS });
    }
    const end = performance.now() + PATIENCE;
    const last = clock.now() + (limit ?? HOUR);
    await clock.settle();
    while (!await holds()) {
      const { nextDue = Infinity } = clock;
      if (nextDue <= last) {
        await clock.advance(Math.max(nextDue - clock.now(), 0));
        continue;
      }
      // All that is left is what the cluster's own controllers do.
      if (performance.now() > end) {
        throw new Error(
          `Cannot run until the condition holds: no timer is left, and ${PATIENCE} ms passed: received ${holds}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
      await clock.settle();
    }
  }

  #late(condition: unknown, within: Duration, cause?: unknown): Error {
    return new Error(
      `Cannot wait any longer: the condition did not hold within ${within}: received ${condition}\n\nThe log:\n${this.log}`,
      { cause },
    );
  }

  /**
   * Waits for work that needs time to pass; a virtual clock moves on until it is
   * done.
   *
   * @example The server is away for a while
   * ```ts
   * import { VirtualClock } from "@coracle/operator/testing";
   * import { TestCluster } from "@coracle/operator/testing";
   *
   * const cluster = await TestCluster.start({ clock: new VirtualClock() });
   * const { faults, clock } = cluster;
   * await cluster.complete(faults.restart({ downFor: 30_000 }));
   * if (clock.now() < 30_000) throw new Error("Too early");
   * await cluster.stop();
   * ```
   */
  async complete<T>(work: Promise<T>): Promise<T> {
    if (!(this.clock instanceof VirtualClock)) return await work;
    let settled = false;
    const end = () => void (settled = true);
    work.then(end, end);
    await this.#move(this.clock, () => settled);
    return await work;
  }

  /** Stops the operator; the cluster stays. Safe to call twice. */
  async stopOperator(): Promise<void> {
    const operator = this.#operator;
    this.#operator = undefined;
    if (operator !== undefined) await this.complete(operator.stop());
  }

  /**
   * Ends it all. On a real cluster the namespace is deleted while the operator
   * still runs, so that it can let go of its objects.
   */
  async stop(): Promise<void> {
    const key = { name: this.namespace };
    try {
      if (this.server === undefined && this.#ownNamespace) {
        await this.client.delete(NAMESPACE, key);
        await this.until(async () =>
          await this.client.find(NAMESPACE, key) === undefined
        );
      }
    } finally {
      await this.stopOperator();
      await this.operatorClient.close();
      await this.client.close();
      await this.server?.stop();
    }
  }
}

const NAMESPACE = untyped({
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  scope: "Cluster",
});

/** The cluster that a test runs against. */
interface Target {
  readonly transport: Transport;
  readonly server: ApiServer | undefined;
  readonly faults: Faults;
}

async function target(options: TestClusterOptions): Promise<Target> {
  const { clock = systemClock } = options;
  const where = options.cluster ?? process.env["CORACLE_TEST_CLUSTER"] ??
    "embedded";
  if (where === "embedded") {
    const server = await ApiServer.start({
      port: false,
      ...options.server,
      clock,
    });
    const { transport, faults } = server;
    return { transport, server, faults };
  }
  if (where !== "kubeconfig") {
    throw new RangeError(
      `Cannot start a test cluster: it must be "embedded" or "kubeconfig": received "${where}"`,
    );
  }
  const connection = new Connection(await loadConfig());
  const quiet = new QuietTransport({
    ...connection.shared([]),
    close: () => connection.close(),
  });
  if (clock instanceof VirtualClock) clock.waitFor(() => quiet.quiet());
  const transport = new FaultProxy(quiet, clock);
  return { transport, server: undefined, faults: transport.faults };
}

/**
 * A test body that runs in a cluster of its own: started before, stopped after,
 * and with the log of the operator in the error if it fails.
 *
 * @param options What the cluster has.
 * @param body The test.
 * @returns What test runners take.
 */
export function withTestCluster(
  options: TestClusterOptions,
  body: (cluster: TestCluster) => void | Promise<void>,
): () => Promise<void> {
  return async () => {
    const cluster = await TestCluster.start(options);
    let failure: { readonly error: unknown } | undefined;
    try {
      await body(cluster);
    } catch (error) {
      failure = { error };
    }
    const { log } = cluster;
    await cluster.stop().catch((error: unknown) => failure ??= { error });
    if (failure === undefined) return;
    const { error } = failure;
    const message = error instanceof Error ? error.message : String(error);
    throw message.includes(log) ? error : new Error(
      `Cannot pass the test: ${message}\n\nThe log:\n${log}`,
      { cause: error },
    );
  };
}
