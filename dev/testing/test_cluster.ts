import process from "node:process";
import {
  Client,
  type Clock,
  type Duration,
  type KubernetesObject,
  loadConfig,
  type Logger,
  milliseconds,
  systemClock,
  type Transport,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import type { OperatorHandle, OperatorOptions } from "@coracle/operator/core";
import {
  type CrdManifest,
  crdManifest,
  type DefinedKind,
  installCrd,
} from "@coracle/operator/crd";
import {
  applyCrd,
  checkOption,
  checkOptions,
  checkParts,
  clientSettings,
  CRD_KIND,
  errorMessage,
  openConnection,
  type OptionRules,
  parseApiVersion,
  sameKind,
  typeText,
} from "@coracle/operator/internal";
import { Namespace, type PolicyRule } from "@coracle/operator/kinds";
import { VirtualClock } from "./virtual_clock.ts";
import { FaultProxy } from "../apiserver/faults/fault_proxy.ts";
import type { Faults } from "../apiserver/faults/faults.ts";
import { LogTail } from "./log_tail.ts";
import { EndlessRequests } from "./endless_requests.ts";
import { followFetches } from "./open_fetches.ts";
import { QuietTransport } from "./quiet_transport.ts";
import {
  ANY_WATCHED_NAMESPACE,
  neededVerbs,
  type RecordedRequest,
  RequestRecord,
} from "./request_record.ts";
import { ActingTransport } from "./acting_transport.ts";
import { AdmissionRecord } from "./admission_record.ts";
import { conversionConfig, conversionServices } from "./conversion_service.ts";
import { ApiServer, startWith } from "../apiserver/server.ts";
import type { ServerContent } from "../apiserver/storage/file_journal.ts";
import { bindingManifest, type RbacManifest, rbacManifests } from "./rbac.ts";
import { operatorAccess } from "./operator_access.ts";
import type { KubernetesVersion } from "../apiserver/kubernetes_release.ts";
import type { ApiServerOptions } from "../apiserver/server_options.ts";
import { webhookServices } from "./webhook_services.ts";

/** Minimum time after which a watch ends on a virtual clock, in milliseconds. */
const WATCH_TIMEOUT_MS = 30 * 24 * 3_600_000;
/** Interval of checking a condition in real time, in milliseconds. */
const POLL_INTERVAL_MS = 20;
/** Time limit for the controllers of a real cluster, in milliseconds. */
const CLUSTER_TIMEOUT_MS = 90_000;
/** Maximum number of event-loop turns that work may take without a timer. */
const MAX_IDLE_TURNS = 20_000;
/** Maximum real time of a wait without a due timer, in milliseconds. */
const MAX_IDLE_MS = 3_000;

/** Operator, or another object that a test starts and stops. */
export interface TestedOperator {
  /** Starts the operator; resolves when it is running. */
  start(): Promise<void>;
  /** Stops the operator; resolves when everything is released. */
  stop(): Promise<void>;
}

/** Options of {@linkcode TestCluster.start} and {@linkcode withTestCluster}. */
export interface TestClusterOptions {
  /**
   * Cluster to use: an embedded API server for this test alone, or the cluster of
   * the kubeconfig. Defaults to the environment variable `CORACLE_TEST_CLUSTER`,
   * else `"embedded"`.
   */
  readonly cluster?: "embedded" | "kubeconfig" | undefined;
  /**
   * Existing namespace for the test; objects that the test leaves there stay.
   * Defaults to a new namespace, which is deleted on a real cluster.
   */
  readonly namespace?: string | undefined;
  /**
   * Kinds whose CustomResourceDefinitions are installed first.
   *
   * @default {[]}
   */
  readonly kinds?: readonly DefinedKind[] | undefined;
  /**
   * Objects to apply before the operator starts, with `apiVersion` and `kind`.
   * Objects without a namespace are created in the namespace of the test, and
   * CustomResourceDefinitions are served before the next object is applied.
   *
   * @default {[]}
   */
  readonly objects?: readonly UntypedObject[] | undefined;
  /**
   * Creates the operator, which is started after kinds and objects are applied.
   * It gets options to pass on to `new Operator()`, as `coracle dev` passes
   * them: the client, clock and logger of the cluster and the namespace of the
   * test. By default no operator is started.
   */
  readonly operator?:
    | ((options: {
      /** Client with the rights of the operator. */
      readonly client: Client;
      /** Clock of the operators and of the embedded server. */
      readonly clock: Clock;
      /** Logger whose lines are in the log of the cluster. */
      readonly logger: Logger;
      /** Namespace that the test has for itself. */
      readonly namespaces: readonly [string];
      /** Disabled probes: tests that run in parallel would share their port. */
      readonly probes?: undefined;
      /**
       * Admission in the process of the test; on a real cluster, a listener on the
       * loopback interface.
       */
      readonly webhooks: OperatorOptions["webhooks"];
      /**
       * Watches that last for weeks on a virtual clock, where an idle operator
       * would begin hundreds of new ones a day.
       */
      readonly reconnect?:
        | { readonly minWatchTimeout: number }
        | undefined;
    }) => TestedOperator)
    | undefined;
  /**
   * Rights of the operator, which the server enforces: all of them, those of the
   * roles that `coracle manifests` prints for it, or RBAC rules. With any but
   * `"all"` the operator runs as a service account of its own.
   *
   * @default {"all"}
   */
  readonly rights?: "all" | "manifests" | readonly PolicyRule[];
  /**
   * File to which the requests of the operator are appended, for
   * `coracle manifests --recorded FILE`. Defaults to the environment variable
   * `CORACLE_RECORD`, else nothing is recorded.
   */
  readonly record?: string | undefined;
  /**
   * Clock of server, client and operator; with a `VirtualClock` hours pass in
   * milliseconds. A real cluster keeps its own time: there the clock is that of
   * the operator alone and advances when the cluster is quiet. Defaults to the
   * system clock.
   */
  readonly clock?: Clock | undefined;
  /**
   * File of `coracle snapshot`, with whose objects an embedded server starts.
   * Definitions are those of the snapshot; `kinds` and `objects` are applied after
   * it. By default the server starts empty.
   */
  readonly snapshot?: string | URL | undefined;
  /**
   * Minor version of Kubernetes that the embedded server reproduces; a real
   * cluster has its own.
   *
   * @default {"1.37"}
   */
  readonly version?: KubernetesVersion | undefined;
  /**
   * Further options of the embedded server. By default it opens no socket.
   */
  readonly server?: Omit<ApiServerOptions, "clock"> | undefined;
}

const WAIT_RULES: OptionRules<{ readonly within?: Duration | undefined }> = {
  within: "duration?",
};

const TEST_CLUSTER_RULES: OptionRules<TestClusterOptions> = {
  cluster: ["embedded", "kubeconfig", undefined],
  namespace: "name?",
  kinds: "array?",
  objects: "array?",
  operator: "function?",
  rights: "any?",
  record: "name?",
  clock: "clock?",
  snapshot: "any?",
  version: "any?",
  server: "object?",
};

const RIGHT_PARTS = {
  apiGroups: "strings?",
  resources: "strings?",
  verbs: "strings",
} as const;

/**
 * Cluster for one test, embedded or real, with a namespace of its own.
 *
 * @example A cluster without an operator
 * ```ts
 * import { TestCluster } from "@coracle/dev";
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
  /** Namespace that the test has for itself. */
  readonly namespace: string;
  /** Client with all rights, for the test itself. */
  readonly client: Client;
  /** Client for the operator, with its `rights`. */
  readonly operatorClient: Client;
  /** Transport to the server, with all rights. */
  readonly transport: Transport;
  /** Clock of the operators and of the embedded server. */
  readonly clock: Clock;
  /** Embedded server; undefined on a real cluster. */
  readonly server: ApiServer | undefined;
  /**
   * Fault injection. On a real cluster a proxy injects the faults; compaction,
   * token rotation and loss of data are not available there.
   */
  readonly faults: Faults;
  /**
   * Option `webhooks` for operators that the test makes itself: their admission
   * handlers are called in the process of the test; on a real cluster, by a listener
   * on the loopback interface.
   */
  readonly webhooks: OperatorOptions["webhooks"];
  readonly #log: LogTail;
  readonly #ownNamespace: boolean;
  /** Rules that were logged for refused requests. */
  readonly #saidRules: Set<string> = new Set();
  /** Functions that give the clock free. */
  readonly #forget: (() => void)[] = [];
  readonly #endless: EndlessRequests | undefined;
  #operator: TestedOperator | undefined;
  /** Whether a method of this cluster advances the clock. */
  #isMoving = false;
  /** Functions that delete objects which a real cluster would keep. */
  readonly #given: (() => Promise<unknown>)[] = [];

  private constructor(
    target: Target,
    options: TestClusterOptions,
    record: RequestRecord | undefined,
  ) {
    const { transport, server, faults } = target;
    const { clock = systemClock, rights = "all" } = options;
    // A test may take methods out of its cluster: `{ client, until }`.
    this.apply = this.apply.bind(this);
    this.until = this.until.bind(this);
    this.complete = this.complete.bind(this);
    this.transport = transport;
    // The test itself runs in real time; retries on a virtual clock would hang.
    this.client = new Client({ transport }, { retry: false });
    this.clock = clock;
    this.server = server;
    this.faults = faults;
    this.webhooks = target.webhooks;
    this.#ownNamespace = options.namespace === undefined;
    if (clock instanceof VirtualClock) {
      const endless = new EndlessRequests(clock);
      this.#endless = endless;
      this.#forget.push(
        followFetches(clock),
        clock.waitFor(() => endless.check()),
      );
    }
    this.namespace = options.namespace ??
      `test-${crypto.randomUUID().slice(0, 8)}`;
    this.#log = new LogTail(() => clock.wallTime());
    const admission = new AdmissionRecord();
    this.#given.push(() => admission.remove(this.client));
    this.operatorClient = new Client({
      transport: new ActingTransport(transport, {
        user: rights === "all"
          ? undefined
          : `system:serviceaccount:${this.namespace}:${this.#account}`,
        record: record && this.#recorder(record),
        refused: rights === "all"
          ? undefined
          : (request) => this.#sayRule(request),
        sending: (request) => {
          this.#endless?.count(request);
          if (server === undefined) admission.note(request);
        },
      }),
      namespace: this.namespace,
    }, { clock, logger: this.#log.logger, retry: false });
  }

  /**
   * Starts a cluster, creates the namespace, kinds and objects of the options,
   * and starts the operator.
   *
   * @throws {TypeError | RangeError} If an option is unknown or invalid.
   */
  static async start<C extends Clock = Clock>(
    options: TestClusterOptions & { readonly clock?: C | undefined } = {},
  ): Promise<TestCluster & { readonly clock: C }> {
    checkOptions(options, TEST_CLUSTER_RULES, "a test cluster");
    checkRights(options);
    // It throws for what is no kind, before anything is made in a cluster.
    for (const kind of options.kinds ?? []) crdManifest(kind);
    const record = recordOf(options);
    const cluster = new TestCluster(await target(options), options, record);
    try {
      await cluster.#slowly(cluster.#prepare(options));
      const { operatorClient, clock, logger, namespace, webhooks } = cluster;
      cluster.#operator = options.operator?.({
        client: operatorClient,
        clock,
        logger,
        namespaces: [namespace],
        probes: undefined,
        webhooks,
        reconnect: clock instanceof VirtualClock
          ? { minWatchTimeout: WATCH_TIMEOUT_MS }
          : undefined,
      });
      if (options.operator !== undefined) checkOperator(cluster.#operator);
      await cluster.#slowly(cluster.#grant(options.rights));
      if (cluster.#operator) await cluster.complete(cluster.#operator.start());
      // Its clock is that of the options.
      return cluster as TestCluster & { readonly clock: C };
    } catch (error) {
      await cluster.stop().catch(() => {}); // The first error says why.
      throw error;
    }
  }

  /** Logs the rule for a request that the server has refused, once. */
  #sayRule(request: RecordedRequest): void {
    const { group, resource } = request;
    const rule = {
      apiGroups: [group],
      resources: [resource],
      verbs: neededVerbs(request, 403),
    };
    const text = JSON.stringify(rule);
    if (this.#saidRules.has(text)) return;
    this.#saidRules.add(text);
    this.#log.logger.warn(
      "The server has refused a request; if the operator lacks the right, add this rule",
      { rule },
    );
  }

  /** Creates the function that records requests. */
  #recorder(
    record: RequestRecord,
  ): (request: RecordedRequest, status: number) => void {
    return (request, status) => {
      const isHere = request.namespace === this.namespace;
      const namespace = isHere ? ANY_WATCHED_NAMESPACE : request.namespace;
      record.add({ ...request, namespace }, status);
    };
  }

  /** Name of the service account and of the roles of the operator. */
  get #account(): string {
    return `operator-${this.namespace}`;
  }

  /** Creates the service account of the operator and its roles. */
  async #grant(rights: TestClusterOptions["rights"]): Promise<void> {
    if (rights === undefined || rights === "all") return;
    const { namespace } = this;
    const name = this.#account;
    const operator = this.#operator as OperatorHandle | undefined;
    const access = rights === "manifests" && operator
      ? operatorAccess(operator, { namespace })
      : [];
    const manifests = rbacManifests({
      name,
      namespace,
      access: await Promise.all(
        access.map(async (one) => ({
          ...one,
          kind: await this.client.resolve(one.kind),
        })),
      ),
    });
    for (const manifest of manifests) await this.#give(manifest);
    if (rights === "manifests") return;
    const binding = bindingManifest({ name }, name, { name, namespace });
    const { apiVersion, metadata } = binding;
    const role = { apiVersion, metadata, kind: "ClusterRole", rules: rights };
    await this.#give(role);
    await this.#give(binding);
  }

  async #give(manifest: RbacManifest): Promise<void> {
    const { kind, apiVersion, metadata } = manifest;
    await this.apply(manifest as object as UntypedObject);
    if (this.server !== undefined || metadata.namespace !== undefined) return;
    const given = untyped({ ...parseApiVersion(apiVersion), kind });
    this.#given.push(() => this.client.delete(given, metadata));
  }

  /** Creates namespace, kinds and objects. */
  async #prepare(options: TestClusterOptions): Promise<void> {
    const { kinds = [], objects = [] } = options;
    const { client, namespace } = this;
    if (this.#ownNamespace) {
      await client.create(Namespace, { metadata: { name: namespace } });
    }
    for (const kind of kinds) {
      await installCrd(client, kind, { conversion: conversionConfig(kind) });
    }
    for (const object of objects) await this.apply(object);
  }

  /**
   * Waits for work that takes real time, such as loading modules for the first
   * time, while a virtual clock advances in small steps only.
   */
  async #slowly(work: Promise<void>): Promise<void> {
    const { clock, server } = this;
    let settled = server === undefined || !(clock instanceof VirtualClock);
    const end = () => void (settled = true);
    work.then(end, end);
    this.#isMoving = true;
    try {
      while (clock instanceof VirtualClock && !settled) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        await clock.advance(20);
      }
    } finally {
      this.#isMoving = false;
    }
    await work;
  }

  /** Logger for the operator; its lines are in {@linkcode log}. */
  get logger(): Logger {
    return this.#log.logger;
  }

  /** Last lines of the log. */
  get log(): string {
    return this.#log.toString();
  }

  /**
   * Applies an object with `apiVersion` and `kind`; without a namespace it is
   * created in the namespace of the test. A CustomResourceDefinition is served
   * when the promise is fulfilled.
   *
   * @returns The stored object.
   */
  async apply(object: UntypedObject): Promise<UntypedObject> {
    checkOption(object, "object", { name: "object", subject: "apply()" });
    const { apiVersion, kind: name, metadata } = object;
    if (!apiVersion || !name) {
      throw new TypeError(
        `Cannot apply an object: "apiVersion" and "kind" must be set: received one with ${
          Object.keys(object).join(", ")
        }`,
      );
    }
    const kind = untyped({ ...parseApiVersion(apiVersion), kind: name });
    if (sameKind(kind, CRD_KIND)) {
      const crd: object = object;
      const served = applyCrd(this.client, crd as CrdManifest, {
        fieldManager: "test",
      });
      return await this.complete(served) as KubernetesObject as UntypedObject;
    }
    const { scope } = await this.client.resolve(kind);
    const namespace = scope === "Cluster"
      ? undefined
      : metadata?.namespace ?? this.namespace;
    return await this.client.apply(
      kind,
      { ...object, metadata: { ...metadata, namespace } },
      { force: true, fieldManager: "test" },
    );
  }

  /**
   * Waits for a condition while a virtual clock advances.
   *
   * @param condition Function that ends the wait by any result but undefined, null
   * and false, or by throwing.
   * @param options Limit of the wait.
   * @param options.within Time limit on the clock of the cluster. Defaults to
   * `"30s"`, on a virtual clock to `"1h"`.
   * @returns The result of the condition.
   * @throws {Error} If the condition did not hold in time; the error has the log.
   */
  async until<T>(
    condition: () => T | Promise<T>,
    options: { readonly within?: Duration | undefined } = {},
  ): Promise<NonNullable<Exclude<T, false>>> {
    const { clock } = this;
    checkOption(condition, "function", {
      name: "condition",
      subject: "until()",
    });
    checkOptions(options, WAIT_RULES, "until()");
    const virtual = clock instanceof VirtualClock;
    const { within = virtual ? "1h" : "30s" } = options;
    const limit = milliseconds(within, "within");
    const why = () =>
      `the condition did not hold within ${within}: received ${condition}`;
    let value: T | undefined;
    const holds = async () => {
      value = await condition();
      return value !== undefined && value !== null && value !== false;
    };
    if (virtual) {
      await this.#move(clock, holds, limit).catch((error: unknown) => {
        throw this.#late(why(), error);
      });
    } else {
      const end = clock.now() + limit;
      while (!await holds()) {
        if (clock.now() > end) throw this.#late(why());
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
      }
    }
    return value as NonNullable<Exclude<T, false>>;
  }

  /** Advances a virtual clock until a condition holds. */
  async #move(
    clock: VirtualClock,
    holds: () => boolean | Promise<boolean>,
    limit: number,
  ): Promise<void> {
    const last = clock.now() + limit;
    if (this.server !== undefined) {
      let idleSince = Infinity;
      const holdsInTime = async () => {
        if (await holds()) return true;
        if ((clock.nextDue ?? Infinity) <= last) idleSince = Infinity;
        else idleSince = Math.min(idleSince, performance.now());
        if (performance.now() - idleSince <= MAX_IDLE_MS) return false;
        throw new Error(
          `Cannot run until the condition holds: nothing was due for ${MAX_IDLE_MS} ms of real time`,
        );
      };
      const idleTurns = MAX_IDLE_TURNS;
      return await clock.runUntil(holdsInTime, { limit, idleTurns });
    }
    const end = performance.now() + CLUSTER_TIMEOUT_MS;
    await clock.settle();
    while (!await holds()) {
      const { nextDue = Infinity } = clock;
      if (nextDue <= last) {
        await clock.advance(Math.max(nextDue - clock.now(), 0));
        continue;
      }
      // Only the cluster's own controllers can make a difference now.
      if (performance.now() > end) {
        throw new Error(
          `Cannot run until the condition holds: no timer is left, and ${CLUSTER_TIMEOUT_MS} ms passed`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
      await clock.settle();
    }
  }

  #late(why: string, cause?: unknown): Error {
    const { error } = this.#endless ?? {};
    const text = error !== undefined && cause === error
      ? error.message
      : `Cannot wait any longer: ${why}`;
    return new Error(`${text}\n\nThe log:\n${this.log}`, { cause });
  }

  /**
   * Waits for a promise while a virtual clock advances.
   *
   * @param work Promise to wait for.
   * @param options Limit of the wait.
   * @param options.within Time limit on a virtual clock. Defaults to `"1h"`.
   * @throws {Error} If the promise was not settled in time.
   *
   * @example Restart the server
   * ```ts
   * import { TestCluster, VirtualClock } from "@coracle/dev";
   *
   * const cluster = await TestCluster.start({ clock: new VirtualClock() });
   * const { faults, clock } = cluster;
   * await cluster.complete(faults.restart({ downFor: 30_000 }));
   * if (clock.now() < 30_000) throw new Error("Too early");
   * await cluster.stop();
   * ```
   */
  async complete<T>(
    work: Promise<T>,
    options: { readonly within?: Duration | undefined } = {},
  ): Promise<T> {
    checkOptions(options, WAIT_RULES, "complete()");
    // Another call advances the clock for `complete(apply(definition))`.
    if (!(this.clock instanceof VirtualClock) || this.#isMoving) {
      return await work;
    }
    const { within = "1h" } = options;
    const limit = milliseconds(within, "within");
    let settled = false;
    const end = () => void (settled = true);
    work.then(end, end);
    this.#isMoving = true;
    try {
      await this.#move(this.clock, () => settled, limit);
    } catch (error) {
      const why = `the promise was not settled within ${within}`;
      throw this.#late(`${why}, set another limit with { within }`, error);
    } finally {
      this.#isMoving = false;
    }
    return await work;
  }

  /** Stops the operator but not the cluster. Safe to call twice. */
  async stopOperator(): Promise<void> {
    const operator = this.#operator;
    this.#operator = undefined;
    if (operator !== undefined) await this.complete(operator.stop());
  }

  /**
   * Stops operator and cluster. On a real cluster the namespace is deleted while
   * the operator is running, which can remove its finalizers, and webhooks later.
   */
  async stop(): Promise<void> {
    const key = { name: this.namespace };
    try {
      if (this.server === undefined && this.#ownNamespace) {
        await this.client.delete(Namespace, key);
        await this.until(async () =>
          await this.client.find(Namespace, key) === undefined
        );
      }
    } finally {
      for (const forget of this.#forget) forget();
      await this.stopOperator().finally(() => this.#release());
    }
  }

  /** Deletes what a real cluster would keep, and closes clients and server. */
  async #release(): Promise<void> {
    try {
      for (const remove of this.#given.splice(0)) await remove();
    } finally {
      await this.operatorClient.close();
      await this.client.close();
      await this.server?.stop();
    }
  }
}

/** Record of the requests of the operator; undefined without a file. */
function recordOf(
  { record = process.env["CORACLE_RECORD"] }: TestClusterOptions,
): RequestRecord | undefined {
  return record ? new RequestRecord(record) : undefined;
}

/** Checks that a function has returned an operator. */
function checkOperator(operator: unknown): void {
  const { start } = Object(operator) as Partial<TestedOperator>;
  if (typeof start === "function") return;
  throw new TypeError(
    `Cannot start a test cluster: the function "operator" must return an operator: received ${
      typeText(operator)
    }`,
  );
}

function checkRights({ rights, operator }: TestClusterOptions): void {
  if (rights === undefined) return;
  const subject = "a test cluster";
  if (typeof rights === "string") {
    const known = ["all", "manifests"] as const;
    checkOption(rights, known, { name: "rights", subject });
    if (rights === "all" || operator !== undefined) return;
    throw new TypeError(
      'Cannot start a test cluster: "manifests" needs the option operator, whose roles it gives',
    );
  }
  checkOption(rights, "array", { name: "rights", subject });
  for (const rule of rights) {
    checkParts(rule, RIGHT_PARTS, `${subject}, rights`);
  }
}

/** Cluster that a test runs against. */
interface Target {
  readonly transport: Transport;
  readonly server: ApiServer | undefined;
  readonly faults: Faults;
  readonly webhooks: OperatorOptions["webhooks"];
}

/** Objects of the file of a snapshot. */
async function snapshotContent(file: string | URL): Promise<ServerContent> {
  const [{ readSnapshot }, { fileURLToPath }] = await Promise.all([
    import("./plan/snapshot_file.ts"),
    import("node:url"),
  ]);
  const path = file instanceof URL ? fileURLToPath(file) : file;
  return (await readSnapshot(path)).content((definition) => definition);
}

async function target(options: TestClusterOptions): Promise<Target> {
  const { clock = systemClock } = options;
  const where = options.cluster ?? process.env["CORACLE_TEST_CLUSTER"] ??
    "embedded";
  if (where === "embedded") {
    const { host, services } = webhookServices({
      ...conversionServices(options.kinds),
      ...options.server?.services,
    });
    const given = {
      port: false as const,
      // They would be the only thing that happens in an idle virtual day.
      bookmarks: !(clock instanceof VirtualClock),
      version: options.version,
      ...options.server,
      services,
      clock,
    };
    const { snapshot } = options;
    const server = snapshot === undefined
      ? await ApiServer.start(given)
      : await startWith(given, await snapshotContent(snapshot));
    const { transport, faults } = server;
    return { transport, server, faults, webhooks: host };
  }
  if (options.snapshot !== undefined) {
    throw new TypeError(
      `Cannot start a test cluster: "snapshot" needs an embedded server: received the cluster "${where}"`,
    );
  }
  if (where !== "kubeconfig") {
    throw new RangeError(
      `Cannot start a test cluster: it must be "embedded" or "kubeconfig": received "${where}"`,
    );
  }
  const config = await loadConfig();
  const connection = openConnection(config, clientSettings(config, {}));
  const quiet = new QuietTransport(connection);
  if (clock instanceof VirtualClock) clock.waitFor(() => quiet.quiet());
  const transport = new FaultProxy(quiet, clock);
  const webhooks = { port: 0, host: "127.0.0.1", url: "https://127.0.0.1:0" };
  return { transport, server: undefined, faults: transport.faults, webhooks };
}

/**
 * Test function with a cluster of its own, which is started before the body and
 * stopped after it. If the body fails, the error contains the operator's log.
 *
 * @param options Options of the cluster.
 * @param body Body of the test.
 * @returns A function for the test runner.
 */
export function withTestCluster<C extends Clock = Clock>(
  options: TestClusterOptions & { readonly clock?: C | undefined },
  body: (
    cluster: TestCluster & { readonly clock: C },
  ) => void | Promise<void>,
): () => Promise<void> {
  const subject = "withTestCluster()";
  checkOption(body, "function", { name: "body", subject });
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
    const why = errorMessage(failure.error);
    throw why.includes(log) ? failure.error : new Error(
      `Cannot pass the test: ${why}\n\nThe log:\n${log}`,
      { cause: failure.error },
    );
  };
}
