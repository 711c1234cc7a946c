import {
  Client,
  type Logger,
  type UntypedObject,
} from "@coracle/operator/client";
import { installCrd } from "@coracle/operator/crd";
import {
  errorMessage,
  leveledLogger,
  type NamedWebhookHost,
} from "@coracle/operator/internal";
import { type Random, seededRandom } from "../../apiserver/random.ts";
import {
  ApiServer,
  pointOf,
  startAt,
  startWith,
  storeOf,
} from "../../apiserver/server.ts";
import type { ApiServerOptions } from "../../apiserver/server_options.ts";
import type { Change } from "../../apiserver/storage/history.ts";
import type { Store } from "../../apiserver/storage/store.ts";
import { Perturbations } from "./perturbations.ts";
import { conversionConfig, conversionServices } from "../conversion_service.ts";
import { disturbedHost } from "./disturbed_webhooks.ts";
import { LeaseClock } from "./lease_clock.ts";
import { type ObjectReference, referenceOf } from "./object_reference.ts";
import { OtherWriters } from "./other_writers.ts";
import { podHooks } from "./pod_readiness.ts";
import type { RequestEntry, TraceEntry, TraceSink } from "./trace.ts";
import { WorldClock } from "./world_clock.ts";
import { worldControllers } from "./world_controllers.ts";
import { type WorldPoint, WorldPoints } from "./world_point.ts";
import { type Incarnation, replaceRuntime } from "./world_runtime.ts";
import { type Chooser, randomChooser, Schedule } from "./world_schedule.ts";
import { StoredObjects, type WorldObjects } from "./world_objects.ts";
import type { WorldOptions } from "./world_options.ts";
import {
  type Surroundings,
  targetOf,
  WorldTransport,
} from "./world_transport.ts";
import { Programs, realSleep, settleWork } from "./settled_work.ts";
import { webhookServices } from "../webhook_services.ts";

/** Maximum real time for work outside the simulation, in milliseconds. */
const MAX_REAL_MS = 20_000;
/** Delays before an operator that has exited is restarted, in milliseconds. */
const RESTART_MS = { first: 10_000, longest: 300_000 };

const MINUTE_MS = 60_000;
/** Factor for the required time without changes after a failed request. */
const FAILED_STILL = 4;
/** Number of requests and deliveries in a virtual second that take no time. */
const MAX_CROWD = 100;
/** Virtual time of each further request or delivery, in milliseconds. */
const CROWDED_MS = 5;
/** Counters whose numbers are those of no write and event of a plan. */
const UNCOUNTED = { writes: -1e9, events: -1e9 };
/** Sort key after those of all requests. */
const LAST = "~";
/** Error that is thrown where the simulated process exits. */
const EXIT = new Error("Cannot go on: the process of the operator has ended");
const realNow = performance.now.bind(performance);

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
  /** Moments from which other simulations can go on, with `keepsPoints`. */
  readonly points: WorldPoints = new WorldPoints();
  readonly #options: WorldOptions;
  readonly #sink: TraceSink;
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
  readonly #objects: StoredObjects;
  readonly #incarnations: Incarnation[] = [];
  readonly #changes: Change[] = [];
  readonly #surroundings: Surroundings;
  readonly #others: OtherWriters;
  #lastChange = 0;
  #activity = 0;
  #actions = 0;
  #maxActions: number;
  #failedStarts = 0;
  /** Number of simulated processes whose modules are being loaded. */
  #spawning = 0;
  /** Number of calls in progress on other threads. */
  #working = 0;
  readonly #programs = new Programs();
  /** Error of the simulation itself, which aborts the run. */
  #failure: { readonly error: unknown } | undefined;

  /** Calls the admission handlers of operators. */
  readonly #webhooks: NamedWebhookHost;

  private constructor(
    options: WorldOptions,
    { clock, server, perturbations, webhooks }: {
      readonly clock: WorldClock;
      readonly server: ApiServer;
      readonly perturbations: Perturbations;
      readonly webhooks: NamedWebhookHost;
    },
  ) {
    this.#webhooks = webhooks;
    this.#options = options;
    this.#maxActions = options.maxActions ?? 100_000;
    this.#sink = options.sink ?? this.trace;
    this.#clock = clock;
    this.#server = server;
    this.#outside = clock.view();
    this.#random = seededRandom(options.seed * 1_000);
    this.#store = storeOf(server) as Store;
    const { from } = options;
    this.#objects = new StoredObjects(this.#store, from?.objects);
    this.client = new Client({ transport: server.transport }, {
      clock: this.#outside,
      random: this.#random.next,
      retry: false,
    });
    this.#others = new OtherWriters({
      client: this.client,
      complete: (work) => this.complete(work),
      attribute: () => this.#attribute(this.#changes.splice(0)),
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
      trace: this.#sink,
      loadsAtOnce: options.content !== undefined,
      counters: {
        requests: 0,
        writes: 0,
        events: 0,
        watches: 0,
        failed: false,
        ...from?.counters,
        // No perturbation is meant by what a new process does until it is at rest.
        ...from?.incarnation && !from.write && UNCOUNTED,
      },
      now: () => this.now,
      active: () => this.#activity++,
      renewed: () => this.#restLeases(),
      takeChanges: () => this.#changes.splice(0),
      attribute: (changes) => this.#attribute(changes),
      crash: (why, downMs) => this.#crash(why, downMs),
      passes: options.keepsPoints
        ? (place, entry) => this.#passes(place, entry)
        : undefined,
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
    const clock = new WorldClock(options.startAt);
    const perturbations = new Perturbations(options.perturbations ?? []);
    const webhooks = options.webhooks ??
      webhookServices(conversionServices(options.kinds));
    const { content, from } = options;
    if (from !== undefined) clock.moveTo(from.now);
    const start = from !== undefined
      ? (given: ApiServerOptions) => startAt(given, from.server)
      : content === undefined
      ? ApiServer.start
      : (given: ApiServerOptions) =>
        startWith(given, { ...content, turn: () => active?.turn() });
    const server = await start({
      port: false,
      services: webhooks.services,
      clock: clock.view(),
      bookmarks: false,
      seed,
      token: "world",
      simulate,
      pods: podHooks(perturbations, clock),
      controllers: worldControllers({ simulate, endpoints }),
    });
    const world: World = new World(options, {
      clock,
      server,
      perturbations,
      webhooks: disturbedHost(webhooks.host, {
        perturbations,
        clock,
        current: () => world.#current,
      }),
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
    return (this.#options.from?.incarnation ?? 0) + this.#incarnations.length;
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

  /** Whether the requests, deliveries and timers have reached their maximum. */
  get isExhausted(): boolean {
    return this.#actions >= this.#maxActions;
  }

  /** Allows so many requests, deliveries and timers from now on. */
  allow(actions: number): void {
    this.#maxActions = this.#actions + actions;
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
      edit: (target, change) =>
        this.#others.change("check", target, change).catch(() => {}),
    });
    this.#replaceRuntime();
    await this.#settle();
    const { content, from } = this.#options;
    if (content === undefined && from === undefined) this.#objects.begin();
    this.#store.listen((change) => {
      this.#options.onChange?.(change);
      this.#activity++;
      this.#changes.push(change);
    });
    if (from !== undefined) return await this.#goOn(from);
    for (const kind of kinds) {
      await this.complete(
        installCrd(this.client, kind, { conversion: conversionConfig(kind) }),
      );
    }
    for (const object of objects) await this.apply(object);
    if (this.#options.keepsPoints) this.points.start = this.point();
    await this.#spawn("the start");
  }

  /** Goes on from a moment of another simulation. */
  async #goOn({ trace, length, write }: WorldPoint): Promise<void> {
    this.trace.push(...trace.slice(0, length));
    if (write === undefined) return await this.#spawn("the start");
    const { entry, at } = write;
    const { fault, crash } = await this.#perturbations.beforeWrite(
      entry.write as number,
      targetOf(entry),
    );
    if (crash === undefined) {
      throw new Error(
        "Cannot go on from a write: no perturbation kills the operator there",
      );
    }
    const { place, why, downMs } = crash;
    this.trace[at] = { ...entry, fault, answered: place === "after" };
    const { now, incarnation } = this;
    this.trace.push({ type: "kill", at: now, incarnation, why });
    this.#later(downMs, why);
  }

  /**
   * Counts on where the moment did from which this world has gone on.
   *
   * @returns Whether the new process of the operator has changed nothing in that time.
   */
  countOn({ counters, length }: WorldPoint): boolean {
    Object.assign(this.#surroundings.counters, counters);
    return this.trace.slice(length).every((entry) => {
      switch (entry.type) {
        case "request":
          return !entry.changed || isRecord(entry.resource);
        case "event":
        case "log":
        case "start":
          return true;
        default:
          return false;
      }
    });
  }

  /** Keeps the moment at a write, unless another client is in the middle of one. */
  #passes(place: "before" | "after", entry: RequestEntry): void {
    if (this.#others.acting !== undefined || this.#spawning > 0) return;
    const at = place === "before"
      ? this.trace.length
      : this.trace.lastIndexOf(entry);
    const point = this.point({ entry: { ...entry }, at });
    if (point !== undefined) this.points.add(place, point);
  }

  /** The current moment, from which others can go on. */
  point(write?: WorldPoint["write"]): WorldPoint | undefined {
    const server = pointOf(this.#server);
    return server && {
      server,
      now: this.now,
      counters: { ...this.#surroundings.counters },
      objects: this.#objects,
      incarnation: this.incarnation,
      trace: this.trace,
      length: this.trace.length,
      ...write && { write },
    };
  }

  #replaceRuntime(): void {
    this.#restore.push(replaceRuntime({
      options: this.#options,
      current: () => this.#current,
      outside: this.#outside,
      random: this.#random,
      perturbations: this.#perturbations,
      webhooks: this.#webhooks,
      trace: this.#sink,
      logger: this.#logger(),
      ended: this.#ended.promise,
      now: () => this.now,
      incarnation: () => this.incarnation,
      active: () => this.#activity++,
      working: (change) => this.#working += change,
      exit: (why) => this.#exit(why),
      rejected: (error) => this.#rejected(error),
      crash: (why) => this.#crash(why, 0),
    }));
  }

  /** Lets the operator see a change of a controller before the next one. */
  turn(): Promise<void> | undefined {
    if (this.#incarnations.length === 0) return;
    this.#activity++;
    return new Promise((run) => this.#schedule.add({ key: LAST, run }));
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
      this.#sink.push({ type: "log", at, incarnation, level, message, fields });
    });
  }

  #rejected(error: unknown): void {
    if (error === EXIT) return;
    const message = error instanceof Error
      ? error.stack ?? String(error)
      : String(error);
    this.#sink.push({ type: "rejection", at: this.now, message });
  }

  /** Starts a simulated process of the operator. */
  async #spawn(why: string): Promise<void> {
    const number = this.incarnation + 1;
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
    this.#sink.push({ type: "start", at: this.now, incarnation: number, why });
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
    }, (error) => this.#exited(incarnation, errorMessage(error)));
    // While modules load in real time, virtual time stands still.
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
    this.#sink.push({ type: "exit", at: this.now, incarnation: number, why });
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
      this.#sink.push({ type: "kill", at: this.now, incarnation: number, why });
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
      if (isRecord(plural)) continue;
      this.#lastChange = this.now;
      const { namespace, name, uid } = object;
      const { acting } = this.#others;
      const isOwn = acting?.key === `${group}/${plural}/${object.key}`;
      this.#sink.push({
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
    await settleWork({
      activity: () => this.#clock.activity + this.#activity,
      working: () => this.#working,
      programs: this.#programs,
      limit: MAX_REAL_MS,
    });
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
      if (this.isExhausted) return false;
      const end = until();
      const next = this.#schedule.next();
      if (next !== undefined) {
        this.#actions++;
        // A loop of requests takes time, so that the timers of others can end it.
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
    await this.#others.apply(object);
  }

  /** Changes an object as the user, by a JSON merge patch that names it. */
  async patch(object: UntypedObject): Promise<void> {
    await this.#others.change("user", referenceOf(object), { patch: object });
  }

  /**
   * Deletes an object as the user.
   *
   * @param policy What happens to its parts: kubectl deletes them after it.
   */
  async delete(
    target: ObjectReference,
    policy: "Background" | "Foreground" = "Background",
  ): Promise<void> {
    await this.#others.change("user", target, { delete: policy });
  }

  /** Returns all objects except Events and those of a new server. */
  snapshot(): WorldObjects {
    return this.#objects.now();
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

/** Whether the objects of a resource are no state of the operator. */
function isRecord(resource: string): boolean {
  return resource === "events" || resource === "leases";
}
