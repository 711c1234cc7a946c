import { type Kind, whyNoKeyOf } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import { checkOption, checkOptions, typeText } from "../../api/options.ts";
import { deadline, sleep } from "../../clock.ts";
import {
  checkClusters,
  type Cluster,
  type ClusterSet,
  clusterSource,
} from "../../controller/clusters/cluster_set.ts";
import {
  Controller,
  type ControllerDeps,
} from "../../controller/controller.ts";
import type { ControllerHealth } from "../../controller/controller_health.ts";
import type { ControllerOptions } from "../../controller/controller_options.ts";
import type {
  EventSource,
  PrimaryCache,
  SourceHealth,
} from "../../controller/event_source.ts";
import type { Namespaces } from "../../controller/namespaces.ts";
import type { ObjectHistory } from "../../controller/object_history.ts";
import type { Reconciler } from "../../controller/reconciler.ts";
import type { AbortCause } from "../../controller/run/run.ts";
import { WatchingSource } from "../../controller/watch/watch_source.ts";
import type { InformerPool } from "../../cache/informer/informer_pool.ts";
import { isDefinedKind } from "../../crd/kind_definition.ts";
import { messageWithCause } from "../../error_text.ts";
import { ConcurrencyLimit, pauseAfter } from "../../pace.ts";
import { abortable } from "../../signals.ts";
import { ClusterMember, type ClustersHost } from "./cluster_member.ts";

/** Options of a controller that each cluster has a copy of its own of. */
const PER_CLUSTER = ["owns", "rateLimit", "sources", "watches", "workflow"];

/** Time that a start waits for clusters that neither answer nor refuse, in milliseconds. */
const START_LIMIT_MS = 10_000;

/** Pauses before a source of clusters that has failed is called again. */
const PAUSE = { initial: 1_000, max: 30_000 } as const;

/** Bytes of first states that the clusters read at the same time. */
const START_BYTES = 32 << 20;

/** Options of a controller of clusters, for the controller of each. */
type MemberOptions<P extends KubernetesObject> = Omit<
  ControllerOptions<P>,
  "clusters" | "perCluster"
>;

/**
 * Controller whose primaries are in other clusters: each cluster of a set has an
 * ordinary controller, with a client, caches and a queue of its own. So equal names in
 * two clusters are two objects, and a cluster that is down delays its own only.
 */
export class ClustersController<P extends KubernetesObject>
  extends Controller<P> {
  readonly #given: ControllerOptions<P>;
  readonly #host: ClustersHost;
  readonly #create: (cluster: string) => Controller<P>;
  readonly #members: Map<string, ClusterMember<P>> = new Map();
  /** Last set of clusters, by name. */
  #set: ReadonlyMap<string, Cluster> = new Map();
  #namespaces: Namespaces | undefined;
  #deps: ControllerDeps | undefined;
  #starts: ConcurrencyLimit = new ConcurrencyLimit(START_BYTES);
  #ending: AbortController = new AbortController();
  #following: Promise<void> | undefined;
  #isReady = false;
  #runsObjects = false;
  /** Why the source of the clusters has failed. */
  #fault: string | undefined;

  /**
   * Creates a controller without starting it.
   *
   * @throws {TypeError | RangeError | SyntaxError} If an option is not valid.
   */
  constructor(
    kind: Kind<P>,
    reconciler: Reconciler<P>,
    given: ControllerOptions<P>,
    host: ClustersHost,
  ) {
    super(kind, reconciler, memberOptions(given, ""));
    const subject = `controller "${this.name}"`;
    checkGiven(given, kind, subject);
    for (const source of this.settings.sources) {
      if (!(source instanceof WatchingSource) || !source.isRemote) continue;
      throw new TypeError(
        `Cannot register ${subject}: with "clusters" a watch() has the client of each cluster, so leave out { client } of "${source.name}"`,
      );
    }
    this.#given = given;
    this.#host = host;
    this.#namespaces = this.settings.namespaces;
    this.#create = (cluster) =>
      new Controller(kind, reconciler, {
        ...memberOptions(given, cluster),
        namespaces: this.#namespaces,
      });
  }

  override get isRemote(): boolean {
    return true;
  }

  /** Where the clusters come from, for tools. */
  get clusters(): Pick<ClusterSet, "reads"> {
    const { clusters } = this.#given;
    return typeof clusters === "function" ? { reads: clusters.reads } : {};
  }

  override get namespaces(): Namespaces | undefined {
    return this.#namespaces;
  }

  override get remoteInformers(): ReadonlyMap<string, InformerPool> {
    const pools = new Map<string, InformerPool>();
    for (const [name, { informers }] of this.#members) {
      if (informers !== undefined) pools.set(name, informers);
    }
    return pools;
  }

  override get primaries(): PrimaryCache<P> {
    throw new Error(
      `Cannot use the cache of controller "${this.name}": each cluster has one of its own, so read ctx.primaries in a run`,
    );
  }

  override get runningKeys(): readonly string[] {
    return this.#all.flatMap(([cluster, { runningKeys }]) =>
      runningKeys.map((key) => `${cluster}/${key}`)
    );
  }

  /**
   * Follows the set of clusters, and starts the controllers of those that it has.
   *
   * @returns Fulfilled when each cluster of the first set has been read, or could not
   * be, or did not answer within ten seconds.
   * @throws The error of the source of the clusters, if it fails before its first set.
   */
  override async start(deps: ControllerDeps): Promise<void> {
    this.checkNoRuns();
    const { signal } = this.#ending = new AbortController();
    this.#deps = deps;
    // Those of the last start have its dependencies.
    this.#members.clear();
    this.#starts = new ConcurrencyLimit(START_BYTES);
    const first = Promise.withResolvers<void>();
    this.#following = this.#follow(deps, signal, first);
    await abortable(first.promise, signal);
    const attempted = Promise.all(
      Array.from(this.#members.values(), (member) => member.attempted),
    );
    await deadline(attempted, START_LIMIT_MS, { ...deps, signal }).catch(() => {
      signal.throwIfAborted();
      deps.log.warn("Clusters do not answer yet, and join when they do", {
        controller: this.name,
        clusters: this.#unready.slice(0, 10),
      });
    });
    this.#isReady = true;
  }

  override startLeading(): void {
    super.startLeading();
    this.#runsObjects = true;
    for (const [, controller] of this.#current) controller.startLeading();
  }

  override stopLeading(): void {
    super.stopLeading();
    this.#runsObjects = false;
    for (const [, controller] of this.#current) controller.stopLeading();
  }

  override async releaseShard(): Promise<void> {
    await Promise.all(
      this.#all.map(([, controller]) => controller.releaseShard()),
    );
  }

  /** Joins the clusters that are new in the shard of this replica, and leaves others. */
  override acquireShard(wasOwned: (key: string) => boolean): void {
    for (const [cluster, controller] of this.#current) {
      if (this.#owns(cluster)) controller.acquireShard(() => wasOwned(cluster));
    }
    this.#apply();
  }

  override pause(): void {
    super.pause();
    this.#runsObjects = false;
    for (const [, controller] of this.#all) controller.pause();
  }

  override async ranOnce(): Promise<ReadonlyMap<string, unknown>> {
    const errors = new Map<string, unknown>();
    await Promise.all(Array.from(this.#members.values(), async (member) => {
      const { name, ready, error = "it does not answer" } = member.health();
      if (!ready || member.controller === undefined) {
        const why = `Cannot reconcile the objects of a cluster: ${error}`;
        errors.set(name, new Error(why));
        return;
      }
      for (const [key, error] of await member.controller.ranOnce()) {
        errors.set(`${name}/${key}`, error);
      }
    }));
    return errors;
  }

  override async whenIdle(): Promise<void> {
    await Promise.all(this.#all.map(([, controller]) => controller.whenIdle()));
  }

  override abort(cause?: AbortCause): void {
    for (const [, controller] of this.#all) controller.abort(cause);
  }

  override async cancelStart(): Promise<void> {
    this.#ending.abort(
      new Error(`Cannot start controller "${this.name}": it was stopped`),
    );
    this.#isReady = this.#runsObjects = false;
    await Promise.all([
      this.#following,
      ...Array.from(this.#members.values(), (member) => member.stop()),
    ]);
    this.#deps = this.#fault = undefined;
    this.#set = new Map();
    this.#forget();
    await super.cancelStart();
  }

  override async changeNamespaces(namespaces: Namespaces): Promise<void> {
    await super.changeNamespaces(namespaces);
    this.#namespaces = namespaces;
    await Promise.all(
      this.#current.map(([, controller]) =>
        controller.changeNamespaces(namespaces)
      ),
    );
  }

  /**
   * Adds a run of a primary.
   *
   * @param key Key of the primary after the name of its cluster, such as
   * `east/default/web`. A cluster or an object that does not exist is ignored.
   * @throws {TypeError} If no primary can have the key.
   */
  override trigger(key: ObjectKey | string): void {
    const parts = typeof key === "string" ? partsOf(key) : undefined;
    const why = parts === undefined
      ? `it begins with a cluster, as in "east/default/web": received ${
        typeof key === "string" ? `"${key}"` : typeText(key)
      }`
      : whyNoKeyOf(this.kind, parts.key);
    if (parts === undefined || why !== undefined) {
      throw new TypeError(`Cannot trigger a run: ${why}`);
    }
    this.#members.get(parts.cluster)?.controller?.trigger(parts.key);
  }

  override addSource(source: EventSource<P>): Promise<EventSource<P>> {
    return Promise.reject(
      new TypeError(
        `Cannot add event source "${source?.name}" to controller "${this.name}": with "clusters" each cluster needs one of its own, so create it in the option "perCluster"`,
      ),
    );
  }

  override removeSource(name: string): Promise<void> {
    return Promise.reject(
      new TypeError(
        `Cannot remove event source "${name}" from controller "${this.name}": each cluster has one of its own`,
      ),
    );
  }

  /** Returns the history of an object, by a key such as `east/default/web`. */
  override why(key: ObjectKey | string): ObjectHistory | undefined {
    const parts = typeof key === "string" ? partsOf(key) : undefined;
    const controller = parts &&
      this.#members.get(parts.cluster)?.controller;
    if (
      controller === undefined || whyNoKeyOf(this.kind, parts?.key ?? "")
    ) return undefined;
    const history = controller.why(parts?.key ?? "");
    return history &&
      { ...history, object: `${parts?.cluster}/${history.object}` };
  }

  override current(key: string): P | undefined {
    const parts = partsOf(key);
    return parts &&
      this.#members.get(parts.cluster)?.controller?.current(parts.key);
  }

  override recent(limit: number): readonly ObjectHistory[] {
    return this.#current.flatMap(([cluster, controller]) =>
      controller.recent(limit).map((history) => ({
        ...history,
        object: `${cluster}/${history.object}`,
      }))
    ).slice(0, limit);
  }

  override health(): ControllerHealth {
    const all = this.#current.map(([, controller]) => controller.health());
    const sum = (valueOf: (health: ControllerHealth) => number) =>
      all.reduce((total, health) => total + valueOf(health), 0);
    const source: SourceHealth = this.#fault === undefined
      ? { status: "healthy" }
      : { status: "unhealthy", message: this.#fault };
    return {
      ...super.health(),
      ready: this.#isReady,
      // A cluster that is down is named, and no reason to restart the operator.
      healthy: this.#fault === undefined,
      active: this.#isReady && this.#runsObjects &&
        this.#deps?.isLeading() === true,
      primaries: sum(({ primaries }) => primaries),
      waiting: sum(({ waiting }) => waiting),
      running: sum(({ running }) => running),
      overdue: sum(({ overdue }) => overdue),
      delayed: sum(({ delayed }) => delayed),
      failing: sum(({ failing }) => failing),
      oldestFailure: Math.max(0, ...all.map((one) => one.oldestFailure)),
      exhausted: sum(({ exhausted }) => exhausted),
      sources: new Map([["clusters", source]]),
      clusters: Array.from(this.#members.values(), (one) => one.health()),
    };
  }

  /** Controllers of the clusters that have joined. */
  get #current(): readonly (readonly [string, Controller<P>])[] {
    return Array.from(
      this.#members,
      ([name, { controller }]) => controller && [name, controller] as const,
    ).filter((entry) => entry !== undefined);
  }

  /** Controllers of clusters, also those that have left with runs in progress. */
  get #all(): readonly (readonly [string, Controller<P>])[] {
    return [...this.#members].flatMap(([name, { controllers }]) =>
      controllers.map((controller) => [name, controller] as const)
    );
  }

  get #unready(): readonly string[] {
    return Array.from(this.#members.values(), (member) => member.health())
      .flatMap(({ name, ready, error }) =>
        ready || error !== undefined ? [] : [name]
      );
  }

  #owns(cluster: string): boolean {
    return this.#deps?.shard?.owns(cluster) ?? true;
  }

  /** Follows the sets of the source until the controller stops. */
  async #follow(
    deps: ControllerDeps,
    signal: AbortSignal,
    first: PromiseWithResolvers<void>,
  ): Promise<void> {
    const { clock, informers, currentNamespace: namespace } = deps;
    const log = deps.log.with({ controller: this.name });
    const context = {
      client: deps.unfenced,
      informers,
      namespace,
      clock,
      log,
      signal,
    };
    const source = clusterSource(this.#given.clusters ?? []);
    let hasBegun = false;
    for (let failures = 1;; failures++) {
      try {
        for await (const clusters of until(source(context), signal)) {
          const set = checkClusters(clusters, `controller "${this.name}"`);
          this.#set = new Map(set.map((cluster) => [cluster.name, cluster]));
          this.#fault = undefined;
          failures = 0;
          hasBegun = true;
          this.#apply();
          first.resolve();
        }
        if (hasBegun || signal.aborted) return;
        throw new Error(
          `Cannot start controller "${this.name}": its clusters ended before the first set`,
        );
      } catch (error) {
        if (signal.aborted) return;
        if (!hasBegun) return first.reject(error);
        this.#fault = messageWithCause(error);
        const retryIn = pauseAfter(failures + 1, PAUSE);
        log.error("Cannot follow the clusters, the last ones stay", {
          retryIn,
          error,
        });
        await sleep(retryIn, { clock, signal }).catch(() => {});
      }
    }
  }

  /** Lets clusters join and leave as the last set says. */
  #apply(): void {
    const deps = this.#deps;
    if (deps === undefined || this.#ending.signal.aborted) return;
    for (const [name, { target }] of this.#set) {
      if (!this.#owns(name)) continue;
      let member = this.#members.get(name);
      if (member === undefined) {
        member = new ClusterMember<P>({
          name,
          host: this.#host,
          deps,
          starts: this.#starts,
          create: () => this.#create(name),
          isLeading: () => this.#runsObjects,
          onEnded: () => this.#forget(),
        });
        this.#members.set(name, member);
      }
      if (target instanceof Error) member.fail(target);
      else member.join(target);
    }
    for (const [name, member] of this.#members) {
      if (this.#set.has(name) && this.#owns(name)) continue;
      void member.leave().then(() => this.#forget());
    }
  }

  /** Forgets clusters that have left, when nothing of them runs. */
  #forget(): void {
    for (const [name, member] of this.#members) {
      if (member.isGone) this.#members.delete(name);
    }
  }
}

/** Options of the controller of one cluster. */
function memberOptions<P extends KubernetesObject>(
  { clusters: _, perCluster, ...options }: ControllerOptions<P>,
  cluster: string,
): MemberOptions<P> {
  if (perCluster === undefined) return options;
  checkOption(perCluster, "function", {
    name: "perCluster",
    subject: "a controller",
  });
  const own = perCluster(cluster);
  checkOptions(
    own,
    {
      owns: "any?",
      rateLimit: "any?",
      sources: "any?",
      watches: "any?",
      workflow: "any?",
    },
    "perCluster()",
  );
  return { ...options, ...own };
}

/** Refuses options that cannot be shared by clusters, or are of the operator's own. */
function checkGiven<P extends KubernetesObject>(
  given: ControllerOptions<P>,
  kind: Kind<P>,
  subject: string,
): void {
  const refuse = (why: string) => {
    throw new TypeError(`Cannot register ${subject}: ${why}`);
  };
  const { clusters } = given;
  if (typeof clusters !== "function") {
    checkClusters(clusters as readonly Cluster[], subject);
  }
  for (const option of ["admission", "migrateStorage"] as const) {
    if (given[option]) {
      refuse(`"${option}" is for objects of the operator's own cluster`);
    }
  }
  if (given.install && isDefinedKind(kind) && kind.conversion !== undefined) {
    refuse(
      `other clusters cannot call the operator for the conversion of ${kind.kind}, so leave out "install"`,
    );
  }
  const isShared = (option: string) =>
    option === "workflow" && given.workflow !== undefined ||
    option === "sources" && (given.sources?.length ?? 0) > 0 ||
    option === "rateLimit" && given.rateLimit !== undefined &&
      "admit" in given.rateLimit;
  const shared = PER_CLUSTER.find(isShared);
  if (shared !== undefined) {
    refuse(
      `"${shared}" keeps state by object, so that each cluster needs one of its own: move it to perCluster: () => ({ ${shared} })`,
    );
  }
}

/** Parts of a key such as `east/default/web`; undefined without a cluster. */
function partsOf(
  text: string,
): { readonly cluster: string; readonly key: string } | undefined {
  const slash = text.indexOf("/");
  return slash < 1
    ? undefined
    : { cluster: text.slice(0, slash), key: text.slice(slash + 1) };
}

/** Values of an iteration until a signal aborts, also if the next never comes. */
async function* until<T>(
  values: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T, void, undefined> {
  const iterator = values[Symbol.asyncIterator]();
  try {
    while (true) {
      const { done, value } = await abortable(iterator.next(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    // A generator that waits for something else ends when that has come.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}
