import process from "node:process";
import {
  Client,
  type Kind,
  type Logger,
  untyped,
  type UntypedObject,
} from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import {
  type CrdManifest,
  type DefinedKind,
  installCrd,
} from "@coracle/operator/crd";
import {
  applyCrd,
  CRD_KIND,
  leveledLogger,
  modulesLoaded,
  nextTurn,
  parseApiVersion,
  replaceHost,
  sameKind,
  sleep,
  type WebhookHost,
} from "@coracle/operator/internal";
import type { PodSpec } from "@coracle/operator/kinds";
import { defaultControllers } from "../../apiserver/controllers/controller_names.ts";
import { type Random, seededRandom } from "../../apiserver/random.ts";
import { ApiServer, storeOf } from "../../apiserver/server.ts";
import type { Change } from "../../apiserver/storage/history.ts";
import type { Store } from "../../apiserver/storage/store.ts";
import type { PodHooks } from "../../apiserver/pods/pod_hooks.ts";
import {
  type ObjectChange,
  type ObjectReference,
  type Perturbation,
  Perturbations,
} from "./perturbations.ts";
import type { CheckOptions } from "../check_options.ts";
import { conversionConfig, conversionServices } from "../conversion_service.ts";
import { LeaseClock } from "./lease_clock.ts";
import type { TraceEntry } from "./trace.ts";
import { WorldClock } from "./world_clock.ts";
import { replaceGlobals, unanswered } from "./world_globals.ts";
import { replaceHttp } from "./world_http.ts";
import { type Chooser, Schedule } from "./world_schedule.ts";
import { replaceServers } from "./world_servers.ts";
import { type Surroundings, WorldTransport } from "./world_transport.ts";
import { webhookServices } from "../webhook_services.ts";

/** Number of event-loop turns without activity after which work has settled. */
const QUIET_TURNS = 4;
/** Maximum number of event-loop turns for one step of work. */
const MAX_TURNS = 5_000;
/** Maximum real time for work outside the simulation, in milliseconds. */
const MAX_REAL_MS = 20_000;
/** Delays before an operator that has exited is restarted, in milliseconds. */
const RESTART_MS = { first: 10_000, longest: 300_000 };

/** Controllers that are switched off without endpoints. */
const ENDPOINT_CONTROLLERS = [
  "-endpoints-controller",
  "-endpointslice-controller",
  "-endpointslice-mirroring-controller",
] as const;

const MINUTE_MS = 60_000;
/** Minimum time after which a watch ends: longer than any run, in milliseconds. */
const WATCH_TIMEOUT_MS = 30 * 24 * 60 * MINUTE_MS;
/** Factor for the required time without changes after a failed request. */
const FAILED_STILL = 4;
/** Number of requests and deliveries in a virtual second that take no time. */
const MAX_CROWD = 100;
/** Virtual time of each further request or delivery, in milliseconds. */
const CROWDED_MS = 5;
/** Time until a slow request outside of the cluster is answered, in milliseconds. */
const SLOW_CALL_MS = 120_000;
/** Error that is thrown where the simulated process exits. */
const decoder = new TextDecoder();
const EXIT = new Error("Cannot go on: the process of the operator has ended");
const realSetTimeout = globalThis.setTimeout;
const realNow = performance.now.bind(performance);

type CreatesOperator = Extract<
  CheckOptions["operator"],
  (cluster: never) => unknown
>;

/** Options with which an operator can be created. */
export type OperatorCluster = Parameters<CreatesOperator>[0];

/** Operator, or another object that can be started. */
export type StartedOperator = ReturnType<CreatesOperator>;

/** Start of a simulated process of the operator. */
export interface WorldStart {
  /** Number of the simulated process, from 1. */
  readonly incarnation: number;
  /** Operators that were created in this process so far. */
  readonly made: readonly OperatorHandle[];
  readonly cluster: OperatorCluster;
}

export interface WorldOptions {
  /** Seed of names, times and, with `order`, the order of concurrent work. */
  readonly seed: number;
  /**
   * Loads the operator for a simulated process, with the time, random numbers
   * and `fetch` of the simulation. Returns undefined if it starts by itself.
   */
  readonly load: (
    start: WorldStart,
  ) =>
    | Promise<StartedOperator | undefined>
    | StartedOperator
    | undefined;
  /** Kinds that are installed before the operator starts. */
  readonly kinds?: readonly DefinedKind[] | undefined;
  /** Objects that are applied before the operator starts. */
  readonly objects?: readonly UntypedObject[] | undefined;
  /**
   * Whether pods run on a simulated node.
   *
   * @default {true}
   */
  readonly simulate?: boolean | undefined;
  /**
   * Whether Services get Endpoints and EndpointSlices. Those cost a tenth of a run
   * with pods, and few operators read them.
   *
   * @default {true}
   */
  readonly endpoints?: boolean | undefined;
  /**
   * Whether the Lease of a leader that is alone and undisturbed needs no renewals,
   * which saves most of the time of an idle day.
   *
   * @default {true}
   */
  readonly renewsLeases?: boolean | undefined;
  readonly perturbations?: readonly Perturbation[] | undefined;
  /**
   * Order of requests and deliveries that are pending at the same time.
   *
   * @default {"canonical"}
   */
  readonly order?: "canonical" | "seeded" | Chooser | undefined;
  /** Maximum number of requests, deliveries and timers; by default 100,000. */
  readonly maxActions?: number | undefined;
  /** Called after each change of an object. */
  readonly onChange?: (() => void) | undefined;
  /** Answers the `fetch` requests of the operator. By default they fail. */
  readonly fetch?: ((request: Request) => Promise<Response>) | undefined;
}

/** Objects by key: `apiVersion kind namespace/name`. */
export type WorldObjects = Readonly<Record<string, UntypedObject>>;

/** Simulated process of the operator. */
interface Incarnation {
  readonly number: number;
  readonly clock: ReturnType<WorldClock["view"]>;
  readonly leaseClock: LeaseClock;
  readonly transport: WorldTransport;
  readonly random: Random;
  readonly made: OperatorHandle[];
  alive: boolean;
}

let active: World | undefined;

/**
 * Deterministic simulation of one operator: an embedded API server, a virtual
 * clock and the operator in one process. Requests are handled and events
 * delivered one at a time, each after everything before it has settled, so that
 * one seed gives one trace on every runtime.
 *
 * Only one can exist at a time, since it replaces globals of the process.
 */
export class World {
  readonly trace: TraceEntry[] = [];
  /** Client of the user; await its promises with {@linkcode World.complete}. */
  readonly client: Client;
  readonly #options: WorldOptions;
  readonly #clock: WorldClock;
  readonly #server: ApiServer;
  readonly #store: Store;
  readonly #chooser: Chooser | undefined;
  readonly #schedule: Schedule;
  readonly #perturbations: Perturbations;
  readonly #outside: ReturnType<WorldClock["view"]>;
  readonly #random: Random;
  readonly #restore: (() => void)[] = [];
  readonly #ended: PromiseWithResolvers<void> = Promise.withResolvers();
  readonly #bootstrap: Map<string, number> = new Map();
  readonly #incarnations: Incarnation[] = [];
  readonly #changes: Change[] = [];
  readonly #surroundings: Surroundings;
  /** Object that the user or the check is changing. */
  #acting: { who: "user" | "check"; key: string } | undefined;
  #lastChange = 0;
  #activity = 0;
  #actions = 0;
  /** Number of requests outside of the cluster. */
  #calls = 0;
  #failedStarts = 0;
  /** Number of simulated processes whose modules are being loaded. */
  #spawning = 0;
  /** Number of calls in progress on other threads. */
  #working = 0;
  /** Error of the simulation itself, which aborts the run. */
  #failure: { readonly error: unknown } | undefined;

  /** Calls the admission handlers of operators. */
  readonly #webhooks: WebhookHost;

  private constructor(
    options: WorldOptions,
    { clock, server, perturbations, webhooks }: {
      readonly clock: WorldClock;
      readonly server: ApiServer;
      readonly perturbations: Perturbations;
      readonly webhooks: WebhookHost;
    },
  ) {
    this.#webhooks = webhooks;
    this.#options = options;
    this.#clock = clock;
    this.#server = server;
    this.#outside = clock.view();
    this.#random = seededRandom(options.seed * 1_000);
    this.#store = storeOf(server) as Store;
    this.client = new Client({ transport: server.transport }, {
      clock: this.#outside,
      random: this.#random.next,
      retry: false,
    });
    const { order } = options;
    this.#chooser = order === "seeded"
      ? randomChooser(seededRandom(options.seed * 1_000 + 999).next)
      : order === "canonical"
      ? undefined
      : order;
    this.#schedule = new Schedule(this.#chooser);
    this.#perturbations = perturbations;
    this.#surroundings = {
      inner: server.transport,
      faults: server.faults,
      schedule: this.#schedule,
      perturbations,
      chooser: this.#chooser,
      trace: this.trace,
      counters: {
        requests: 0,
        writes: 0,
        events: 0,
        watches: 0,
        failed: false,
      },
      now: () => this.now,
      active: () => this.#activity++,
      renewed: () => this.#restLeases(),
      takeChanges: () => this.#changes.splice(0),
      attribute: (changes) => this.#attribute(changes),
      crash: (why, downMs) => this.#crash(why, downMs),
    };
  }

  /**
   * Starts a simulation: server, kinds, objects and the first process of the
   * operator, which is starting when the promise is fulfilled.
   *
   * @throws {Error} If another simulation exists.
   */
  static async start(options: WorldOptions): Promise<World> {
    if (active !== undefined) {
      throw new Error("Cannot start a world: another one has not ended");
    }
    const { seed, simulate = true, endpoints = true } = options;
    const clock = new WorldClock();
    const perturbations = new Perturbations(options.perturbations ?? []);
    const webhooks = webhookServices(conversionServices(options.kinds));
    const server = await ApiServer.start({
      port: false,
      services: webhooks.services,
      clock: clock.view(),
      bookmarks: false,
      seed,
      token: "world",
      simulate,
      pods: podHooks(perturbations, clock),
      controllers: [
        ...defaultControllers(simulate),
        // Its certificate would differ from run to run.
        "-root-ca-certificate-publisher-controller",
        ...endpoints ? [] : ENDPOINT_CONTROLLERS,
      ],
    });
    const world = new World(options, {
      clock,
      server,
      perturbations,
      webhooks: webhooks.host,
    });
    active = world;
    try {
      await world.#begin();
    } catch (error) {
      await world.end();
      throw error;
    }
    return world;
  }

  /** Number of the last simulated process. */
  get incarnation(): number {
    return this.#incarnations.length;
  }

  /** Number of times that each perturbation took effect. */
  get hits(): readonly number[] {
    return this.#perturbations.hits;
  }

  /** Whether all perturbations have taken effect, and none has any more. */
  get isUndisturbed(): boolean {
    return this.#perturbations.areOver;
  }

  /** Virtual time since the start, in milliseconds. */
  get now(): number {
    return this.#clock.now();
  }

  /** Shifts the wall time, like a correction of a machine's clock. */
  jump(milliseconds: number): void {
    this.#clock.jump(milliseconds);
  }

  /** Current revision of the server. */
  get revision(): number {
    return this.#store.revision;
  }

  /** Number of the last write of the operator. */
  get writes(): number {
    return this.#surroundings.counters.writes;
  }

  /** Number of requests, deliveries and timers so far. */
  get actions(): number {
    return this.#actions;
  }

  async #begin(): Promise<void> {
    const { kinds = [], objects = [] } = this.#options;
    this.#perturbations.attach({
      client: this.client,
      clock: this.#clock,
      outside: this.#outside,
      twin: () => {
        this.#disturbLeases();
        this.#spawnAside("a second replica");
      },
      disturbLeases: () => this.#disturbLeases(),
      edit: (target, change) => this.#edit(target, change),
    });
    this.#replaceGlobals();
    await this.#settle();
    for (const collection of this.#store.collections()) {
      for (const stored of collection.values()) {
        this.#bootstrap.set(
          `${collection.resource.group}/${collection.resource.plural}/${stored.key}`,
          stored.revision,
        );
      }
    }
    this.#store.listen((change) => {
      this.#options.onChange?.();
      this.#activity++;
      this.#changes.push(change);
    });
    for (const kind of kinds) {
      await this.complete(
        installCrd(this.client, kind, { conversion: conversionConfig(kind) }),
      );
    }
    for (const object of objects) await this.apply(object);
    await this.#spawn("the start");
  }

  #replaceGlobals(): void {
    const current = () => this.#current;
    const clock = () => current()?.clock ?? this.#outside;
    const random = () => (current()?.random ?? this.#random).next();
    const restoreHost = replaceHost({
      openTransport: () => {
        const { transport } = current() ?? {};
        if (transport !== undefined) return transport;
        throw new Error("Cannot connect: no operator runs in this world");
      },
      clock,
      random,
      hostname: () => "operator-0",
      servesProbes: false,
      webhooks: this.#webhooks,
      minWatchTimeout: WATCH_TIMEOUT_MS,
      leaderClock: () => current()?.leaseClock,
      ended: this.#ended.promise,
      operators: {
        runs: true,
        logger: this.#logger(),
        made: (operator) => void current()?.made.push(operator),
      },
    });
    const rejected = (error: unknown) => this.#rejected(error);
    const { exit } = process;
    process.exit = (code) => this.#exit(`process.exit(${code ?? ""})`);
    process.on("unhandledRejection", rejected);
    process.on("uncaughtException", rejected);
    const signals = ["SIGTERM", "SIGINT"] as const;
    const listeners = signals.map((signal) => process.listeners(signal));
    this.#restore.push(
      () => {
        signals.forEach((signal, index) => {
          for (const listener of process.listeners(signal)) {
            if (listeners[index]?.includes(listener)) continue;
            process.off(signal, listener as () => void);
          }
        });
      },
      () => {
        process.exit = exit;
      },
      () => process.off("unhandledRejection", rejected),
      () => process.off("uncaughtException", rejected),
      restoreHost,
      replaceHttp(),
      replaceServers(),
      replaceGlobals({
        clock,
        random,
        uuid: () => (current()?.random ?? this.#random).uid(),
        fetch: (request) => this.#fetch(request),
        working: (change) => {
          this.#working += change;
          this.#activity++;
        },
      }),
    );
  }

  /** Lets the operator renew its Lease, from now on. */
  #disturbLeases(): void {
    for (const { leaseClock } of this.#incarnations) leaseClock.wake();
  }

  /** Spares the operator the renewals of its Lease while nobody else looks at it. */
  #restLeases(): void {
    const [leader, ...others] = this.#incarnations.filter(({ alive }) => alive);
    if (this.#options.renewsLeases === false || others.length > 0) return;
    if (!this.#perturbations.endangersLeases) leader?.leaseClock.rest();
  }

  get #current(): Incarnation | undefined {
    return this.#incarnations.findLast(({ alive }) => alive);
  }

  /** Logger whose warnings and errors are in the trace. */
  #logger(number?: number): Logger {
    return leveledLogger("warn", (level, message, given) => {
      const fields = JSON.stringify(
        given,
        (_, value) => value instanceof Error ? String(value) : value,
      );
      const { now: at } = this;
      const incarnation = number ?? this.incarnation;
      this.trace.push({ type: "log", at, incarnation, level, message, fields });
    });
  }

  #rejected(error: unknown): void {
    if (error === EXIT) return;
    const message = error instanceof Error
      ? error.stack ?? String(error)
      : String(error);
    this.trace.push({ type: "rejection", at: this.now, message });
  }

  async #fetch(request: Request): Promise<Response> {
    const { method, url } = request;
    const at = this.now;
    const { incarnation } = this;
    const entry = { type: "external", at, incarnation, method, url } as const;
    const body = await request.clone().text() || undefined;
    this.#activity++;
    const n = ++this.#calls;
    const { fetch } = this.#options;
    if (fetch === undefined) {
      this.trace.push({ ...entry, body, status: 0, n });
      // deno-lint-ignore coracle/error-message -- as the runtimes word it
      throw new TypeError("fetch failed", { cause: unanswered(request) });
    }
    const fault = this.#perturbations.onCall(n, `${method} ${url}`);
    if (fault === "refused") {
      this.trace.push({ ...entry, body, status: 0, n, fault });
      throw broken("ECONNREFUSED");
    }
    if (fault === "twice") await fetch(request.clone());
    const response = await fetch(request);
    this.#activity++;
    const { status } = response;
    this.trace.push({ ...entry, body, status, n, fault });
    if (fault === "lost") throw broken("ECONNRESET");
    if (fault === "killed") {
      this.#crash(`request ${n} outside of the cluster, unanswered`, 0);
      return await new Promise(() => {});
    }
    if (fault === "slow") {
      const clock = this.#outside;
      await sleep(SLOW_CALL_MS, { clock, signal: request.signal });
      this.#activity++;
    }
    return response;
  }

  /** Starts a simulated process of the operator. */
  async #spawn(why: string): Promise<void> {
    const number = this.#incarnations.length + 1;
    const { seed } = this.#options;
    const clock = this.#clock.view();
    const random = seededRandom(seed * 1_000 + number);
    const incarnation: Incarnation = {
      number,
      clock,
      leaseClock: new LeaseClock(clock),
      random,
      made: [],
      alive: true,
      transport: new WorldTransport(number, this.#surroundings),
    };
    this.#incarnations.push(incarnation);
    this.#lastChange = this.now;
    this.trace.push({ type: "start", at: this.now, incarnation: number, why });
    const logger = this.#logger(number);
    const { transport } = incarnation;
    const cluster = {
      client: new Client({ transport }, { clock, logger, random: random.next }),
      clock,
      logger,
      namespaces: "all",
    } as const;
    let loaded = false;
    const load = async () => {
      const start = { incarnation: number, made: incarnation.made, cluster };
      const operator = await this.#options.load(start);
      loaded = true;
      this.#activity++;
      await operator?.start();
    };
    load().then(() => {
      this.#activity++;
      this.#failedStarts = 0;
    }, (error) => this.#exited(incarnation, messageOf(error)));
    // Loading modules takes real time, in which virtual time stands still.
    const end = realNow() + MAX_REAL_MS;
    const isRunning = () => loaded || transport.isUsed || !incarnation.alive;
    while (!isRunning()) {
      await this.#settle();
      if (isRunning()) break;
      if (realNow() > end) {
        throw new Error(
          `Cannot start the operator: its module was not loaded within ${MAX_REAL_MS} ms, and sent no request`,
        );
      }
      await realSleep(1);
    }
  }

  /** Ends the current simulated process, which has requested it. */
  #exit(why: string): never {
    const incarnation = this.#current;
    if (incarnation !== undefined) this.#exited(incarnation, why);
    throw EXIT;
  }

  /** Restarts a process that has exited by itself, with increasing delays. */
  #exited(incarnation: Incarnation, why: string): void {
    this.#activity++;
    if (!incarnation.alive) return;
    this.#drop(incarnation);
    const { number } = incarnation;
    this.trace.push({ type: "exit", at: this.now, incarnation: number, why });
    const wait = RESTART_MS.first * 2 ** this.#failedStarts++;
    this.#later(Math.min(wait, RESTART_MS.longest), "an exit");
  }

  #later(delay: number, why: string): void {
    this.#outside.setTimer(() => this.#spawnAside(why), delay);
  }

  /** Starts a simulated process during a step of the simulation. */
  #spawnAside(why: string): void {
    this.#spawning++;
    this.#spawn(why).catch((error) => this.#failure ??= { error })
      .finally(() => {
        this.#spawning--;
        this.#activity++;
      });
  }

  /** Kills all simulated processes at a write, and starts the next one. */
  #crash(why: string, downMs: number): void {
    this.#killAll(why);
    this.#later(downMs, why);
  }

  #killAll(why: string): void {
    for (const incarnation of this.#incarnations) {
      if (!incarnation.alive) continue;
      this.#drop(incarnation);
      const { number } = incarnation;
      this.trace.push({ type: "kill", at: this.now, incarnation: number, why });
    }
  }

  #drop(incarnation: Incarnation): void {
    incarnation.alive = false;
    incarnation.clock.drop();
    incarnation.transport.drop();
  }

  /** Kills the operator, like a power failure. */
  async kill(why = "the check"): Promise<void> {
    await this.#settle();
    this.#killAll(why);
  }

  /** Kills the operator if it is running, and starts it again. */
  async restart(why = "the check"): Promise<void> {
    await this.kill(why);
    await this.#spawn(why);
  }

  /** Records changes that no request of an operator made. */
  #attribute(changes: readonly Change[]): void {
    for (const { type, object, revision } of changes) {
      const { group, plural } = object.definition;
      if (plural === "events" || plural === "leases") continue;
      this.#lastChange = this.now;
      const { namespace, name, uid } = object;
      const acting = this.#acting;
      const isOwn = acting?.key === `${group}/${plural}/${object.key}`;
      this.trace.push({
        type: "actor",
        at: this.now,
        who: isOwn ? acting.who : "cluster",
        change: type,
        group,
        resource: plural,
        namespace,
        name,
        uid,
        revision,
      });
    }
  }

  /** Waits until promises and in-process I/O have settled. */
  async #settle(): Promise<void> {
    let seen = -1;
    let quiet = 0;
    let waits = 0;
    for (let turns = 0; turns < MAX_TURNS; turns++) {
      await nextTurn();
      const activity = this.#clock.activity + this.#activity;
      quiet = activity === seen ? quiet + 1 : 0;
      seen = activity;
      if (quiet < QUIET_TURNS) continue;
      const modules = modulesLoaded();
      if (modules !== undefined) {
        await modules;
        quiet = 0;
        continue;
      }
      const isWaiting = (this.#working > 0 || readsFiles()) &&
        waits < MAX_REAL_MS;
      if (!isWaiting) break;
      waits++;
      await realSleep(1);
    }
    if (this.#changes.length > 0 && !this.#isServing) {
      this.#attribute(this.#changes.splice(0));
    }
  }

  get #isServing(): boolean {
    return this.#incarnations.some(({ transport }) => transport.isServing);
  }

  /**
   * Handles requests, delivers events and fires timers until a condition holds.
   *
   * @param until Time beyond which no timer fires.
   * @returns Whether the condition holds; false if the time is reached first.
   */
  async #run(done: () => boolean, until: () => number): Promise<boolean> {
    const { maxActions = 100_000 } = this.#options;
    let instant = this.now;
    let crowd = 0;
    for (;;) {
      await this.#settle();
      if (this.#failure) throw this.#failure.error;
      if (this.#chooser?.ended) throw this.#chooser.ended;
      if (this.#spawning > 0) {
        await realSleep(1);
        continue;
      }
      if (done()) return true;
      if (this.#actions >= maxActions) return false;
      const end = until();
      const next = this.#schedule.next();
      if (next !== undefined) {
        this.#actions++;
        // A loop of requests takes time, in which the timers of others end it.
        if (this.now - instant > 1_000) [instant, crowd] = [this.now, 0];
        if (++crowd > MAX_CROWD) {
          const later = this.now + CROWDED_MS;
          if (!this.#clock.fireNext(later)) this.#clock.moveTo(later);
        }
        if (next.isWrite) this.#lastChange = this.now;
        next.run();
      } else {
        try {
          if (!this.#clock.fireNext(end)) {
            this.#clock.moveTo(end);
            return done();
          }
        } catch (error) {
          this.#rejected(error);
        }
        this.#actions++;
      }
    }
  }

  /** Advances the virtual time, and runs everything that becomes due. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.now + milliseconds;
    await this.#run(() => false, () => end);
  }

  /**
   * Runs the simulation until a promise is settled.
   *
   * @throws {Error} If the promise is not settled within a virtual hour.
   */
  async complete<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const end = () => {
      settled = true;
      this.#activity++;
    };
    work.then(end, end);
    const limit = this.now + 60 * MINUTE_MS;
    await this.#run(() => settled, () => limit);
    if (settled) return await work;
    throw new Error("Cannot complete the work: a virtual hour has passed");
  }

  /**
   * Runs the simulation until the operator has attempted no write, and nothing
   * but Leases and Events has changed, for a while.
   *
   * @param options.within Limit, in virtual milliseconds; by default two hours.
   * @param options.still Virtual milliseconds without change; by default five
   * minutes. It is longer while the last request of the operator has failed.
   * @param options.writes Number of writes after which the result is `busy`.
   */
  async quiet(
    { within = 120 * MINUTE_MS, still = 5 * MINUTE_MS, writes = Infinity }: {
      readonly within?: number | undefined;
      readonly still?: number | undefined;
      readonly writes?: number | undefined;
    } = {},
  ): Promise<"quiet" | "busy"> {
    const limit = this.now + within;
    const { counters } = this.#surroundings;
    const last = counters.writes + writes;
    const isBusy = () => counters.writes >= last;
    this.#lastChange = this.now;
    const end = () => {
      // What has failed is retried later and later.
      const since = Math.max(this.#lastChange, this.#perturbations.until);
      return since + (counters.failed ? FAILED_STILL : 1) * still;
    };
    const isQuiet = () =>
      this.now >= end() && this.#current !== undefined &&
      !this.#schedule.waiting;
    const reached = await this.#run(
      () => isBusy() || isQuiet(),
      () => this.#current === undefined ? limit : Math.min(end(), limit),
    );
    return reached && !isBusy() ? "quiet" : "busy";
  }

  /** Applies an object as the user; waits until a CRD is served. */
  async apply(object: UntypedObject): Promise<void> {
    const kind = kindOf(referenceOf(object));
    if (sameKind(kind, CRD_KIND)) {
      const crd: object = object;
      const options = { fieldManager: "user" };
      await this.complete(applyCrd(this.client, crd as CrdManifest, options));
      return;
    }
    await this.#act(
      "user",
      referenceOf(object),
      (namespace) =>
        this.client.apply(
          kind,
          { ...object, metadata: { ...object.metadata, namespace } },
          { force: true, fieldManager: "user" },
        ),
    );
  }

  /** Changes an object as the user, by a JSON merge patch that names it. */
  async patch(object: UntypedObject): Promise<void> {
    await this.#change("user", referenceOf(object), { patch: object });
  }

  /** Deletes an object as the user. */
  async delete(target: ObjectReference): Promise<void> {
    await this.#change("user", target, { delete: true });
  }

  async #edit(
    target: ObjectReference,
    change: ObjectChange,
  ): Promise<void> {
    await this.#change("check", target, change).catch(() => {});
  }

  async #change(
    who: "user" | "check",
    target: ObjectReference,
    { patch = {}, delete: deletes }: ObjectChange,
  ): Promise<void> {
    const kind = kindOf(target);
    await this.#act(
      who,
      target,
      (namespace) => {
        const key = { name: target.name, namespace };
        return deletes
          // As kubectl does; the server's default leaves the pods of a Job.
          ? this.client.delete(kind, key, { propagationPolicy: "Background" })
          : this.client.patch(kind, key, patch, { fieldManager: who });
      },
    );
  }

  async #act(
    who: "user" | "check",
    target: ObjectReference,
    act: (namespace: string | undefined) => Promise<unknown>,
  ): Promise<void> {
    const kind = kindOf(target);
    const work = async () => {
      const resolved = await this.client.resolve(kind);
      const namespace = resolved.scope === "Cluster"
        ? undefined
        : target.namespace ?? "default";
      const own = namespace === undefined ? "" : `${namespace}/`;
      const key = `${kind.group}/${resolved.plural}/${own}${target.name}`;
      this.#attribute(this.#changes.splice(0));
      this.#acting = { who, key };
      try {
        await act(namespace);
      } finally {
        this.#attribute(this.#changes.splice(0));
        this.#acting = undefined;
      }
    };
    // A perturbation acts within a step of the simulation, which waits for it.
    await (who === "check" ? work() : this.complete(work()));
  }

  /** Returns all objects except Events and those of a new server. */
  snapshot(): WorldObjects {
    const objects: [string, UntypedObject][] = [];
    for (const collection of this.#store.collections()) {
      const { group, plural } = collection.resource;
      if (plural === "events") continue;
      for (const stored of collection.values()) {
        const known = `${group}/${plural}/${stored.key}`;
        if (this.#bootstrap.get(known) === stored.revision) continue;
        // As a client reads it, with doubles as numbers.
        const object: UntypedObject = JSON.parse(decoder.decode(stored.bytes));
        const key = `${object.apiVersion} ${object.kind} ${stored.key}`;
        objects.push([key, object]);
      }
    }
    return Object.fromEntries(objects.sort(([a], [b]) => a < b ? -1 : 1));
  }

  /** Ends the simulation and restores the globals of the process. */
  async end(): Promise<void> {
    for (const incarnation of this.#incarnations) this.#drop(incarnation);
    this.#outside.drop();
    this.#ended.resolve();
    await this.#settle();
    for (const restore of this.#restore.splice(0)) restore();
    await this.client.close();
    await this.#server.stop();
    if (active === this) active = undefined;
  }
}

function randomChooser(random: () => number): Chooser {
  return { order: ({ length }) => Math.floor(random() * length) };
}

/** Error of `fetch` for a connection that has failed. */
function broken(code: string): TypeError {
  // deno-lint-ignore coracle/error-message -- as the runtimes word it
  const cause = Object.assign(new Error(`connection failed: ${code}`), {
    code,
  });
  // deno-lint-ignore coracle/error-message -- as the runtimes word it
  return new TypeError("fetch failed", { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function kindOf({ apiVersion, kind }: ObjectReference): Kind<UntypedObject> {
  return untyped({ ...parseApiVersion(apiVersion), kind });
}

export function referenceOf(object: object): ObjectReference {
  const { apiVersion = "", kind = "", metadata } = object as UntypedObject;
  const { name = "", namespace } = metadata ?? {};
  return { apiVersion, kind, name, ...(namespace && { namespace }) };
}

/** Number of readiness changes of a flapping container; the last is ready. */
const FLAPS = 7;
/** Time until a late or flapping container is first ready, in milliseconds. */
const READY_MS = { late: 10 * MINUTE_MS, flap: 3 * MINUTE_MS };

function podHooks(
  perturbations: Perturbations,
  clock: WorldClock,
): PodHooks | undefined {
  const mode = perturbations.dependents;
  if (mode === undefined) return undefined;
  const view = clock.view();
  return {
    run({ pod, ready }) {
      ready(false);
      let isReady = false;
      let turns = 0;
      const { restartPolicy } = pod["spec"] as PodSpec;
      const ended = Promise.withResolvers<number>();
      const turn = () => {
        isReady = !isReady;
        ready(isReady);
        if (mode === "flap" && ++turns < FLAPS) view.setTimer(turn, MINUTE_MS);
        // That of a Job ends by itself, as without a hook.
        else if (restartPolicy !== "Always") ended.resolve(0);
      };
      if (mode !== "never") {
        view.setTimer(turn, READY_MS[mode]);
        perturbations.lasts(clock.now() + READY_MS[mode] + FLAPS * MINUTE_MS);
      }
      return ended.promise;
    },
  };
}

/** Whether files are being read; only known in Node. */
function readsFiles(): boolean {
  return process.getActiveResourcesInfo?.().some((name) =>
    name.startsWith("FSReq")
  ) ?? false;
}

function realSleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => realSetTimeout(resolve, milliseconds));
}
