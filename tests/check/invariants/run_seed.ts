import process from "node:process";
import { ApiError, type UntypedObject } from "@coracle/operator/client";
import type { RunCause } from "@coracle/operator/core";
import { crdManifest, type DefinedKind } from "@coracle/operator/crd";
import type { LeaseSpec } from "../../../core/operator/lease_data.ts";
import type {
  EventEntry,
  RequestEntry,
} from "../../../dev/testing/check/trace.ts";
import { World } from "../../../dev/testing/check/world.ts";
import {
  childName,
  Fleet,
  type Primary,
  PRIMARY_KINDS,
  type Registry,
} from "./fleet.ts";
import {
  CARGO,
  type ControllerPlan,
  NAMESPACES,
  type ObjectStep,
  type SeedPlan,
  SELECTED,
  type Step,
  type WatchStep,
} from "./seed_plan.ts";
import {
  API_VERSION,
  cargoKind,
  hasPerturbation,
  primariesIn,
} from "./seed_objects.ts";
import { type SeedState, StateJudge } from "./state_judge.ts";

/** Something that did not hold in the run of a plan. */
export interface Violation {
  readonly invariant: string;
  readonly detail: string;
}

const MINUTE_MS = 60_000;
/** Finalizer of the user. */
const GUARD = "user.coracle.dev/guard";
/** Time without change after which everything must be as it should be. */
const STILL_MS = MINUTE_MS;
/** Actions of a run, beyond which it is a loop. */
const MAX_ACTIONS = 20_000;

/** Runs a plan in a world of its own, and returns what did not hold. */
export async function runSeed(plan: SeedPlan): Promise<Violation[]> {
  const judged = new SeedRun(plan);
  try {
    await judged.run();
  } catch (error) {
    judged.fail(
      "no failure of the world",
      error instanceof Error ? error.stack ?? "" : String(error),
    );
  } finally {
    await judged.end();
  }
  return judged.violations;
}

class SeedRun implements SeedState {
  readonly violations: Violation[] = [];
  readonly plan: SeedPlan;
  /** Controllers with the namespaces that they have now. */
  controllers: readonly ControllerPlan[];
  readonly fleets: Fleet[] = [];
  readonly registry: Registry = {
    entries: new Set(),
    running: new Map(),
    generations: new Map(),
  };
  /** What the user has written last, by kind, namespace and name. */
  readonly asked: Map<string, { value: string; marked: boolean }> = new Map();
  #world: World | undefined;
  /** Whether runs no longer fail by themselves, those of new incarnations included. */
  #isCalm = false;
  /** Entries of the trace that were read. */
  #read = 0;
  #holder: number | undefined;
  readonly #dead: Set<number> = new Set();
  readonly #gone: Set<string> = new Set();
  /** Incarnations that are stopping or have stopped. */
  readonly #stopping: Set<number> = new Set();
  /**
   * Entries of the trace when the last two runs of an object began, unless one
   * failed.
   */
  readonly #begun: Map<string, readonly [number, number]> = new Map();
  /**
   * Last entries of the trace that may cause a run, by incarnation and object, and
   * by the controller that made the change; "" for others.
   */
  readonly #causes: Map<string, Map<string, number>> = new Map();
  /** Lease of the leader as it was written last. */
  #lease: LeaseSpec | undefined;
  /** UIDs of the objects with a finalizer of the user. */
  readonly #guarded: Set<string> = new Set();
  /** Controllers that wrote versions. */
  readonly #writers: Map<number, string> = new Map();

  constructor(plan: SeedPlan) {
    this.plan = plan;
    this.controllers = plan.controllers;
  }

  fail(invariant: string, detail: string): void {
    if (this.violations.length < 20) {
      this.violations.push({ invariant, detail });
    }
  }

  /** Fleets of the incarnations that are not dead. */
  get live(): Fleet[] {
    this.#readTrace();
    return this.fleets.filter(({ incarnation }) =>
      !this.#dead.has(incarnation)
    );
  }

  get world(): World {
    return this.#world as World;
  }

  async run(): Promise<void> {
    const plan = this.plan;
    const kinds = new Set(plan.controllers.map(({ kind }) => kind));
    const metadata = (name: string) => ({ name });
    const world = await World.start({
      seed: plan.seed,
      order: "seeded",
      simulate: false,
      renewsLeases: false,
      maxActions: MAX_ACTIONS,
      perturbations: plan.perturbations,
      kinds: [...kinds].map((kind) =>
        PRIMARY_KINDS.get(kind) as DefinedKind<Primary>
      ),
      objects: [
        ...NAMESPACES.map((name) => ({
          apiVersion: "v1",
          kind: "Namespace",
          metadata: metadata(name),
        })),
        ...plan.observed.includes(CARGO) ? [crdManifest(cargoKind())] : [],
      ] as unknown as readonly UntypedObject[],
      onChange: () => this.#judgeLeaders(),
      load: (start) => {
        const controllers = this.controllers;
        const fleet = new Fleet({ ...plan, controllers }, start, {
          registry: this.registry,
          outside: {
            isAlive: (incarnation) => {
              this.#readTrace();
              return !this.#dead.has(incarnation);
            },
            holder: () => {
              this.#readTrace();
              return this.#holder;
            },
            isGone: (uid, incarnation) => {
              this.#readTrace();
              return this.#gone.has(`${incarnation} ${uid}`) ||
                this.#gone.has(uid);
            },
            fail: (invariant, detail) => this.fail(invariant, detail),
            begun: (...run) => this.#judgeCause(...run),
            failed: (plan, primary, incarnation) =>
              void this.#begun.delete(runId(plan, primary, incarnation)),
            now: () => this.#world?.now ?? 0,
            led: () => this.#judgeLeaders(),
            isMonotonic: this.#isMonotonic,
          },
        });
        if (this.#isCalm) fleet.calmDown();
        this.fleets.push(fleet);
        return fleet.operator;
      },
    });
    this.#world = world;
    await world.advance(1_000);
    for (const step of plan.steps) {
      await this.#step(step);
      if (step.then > 0) await world.advance(step.then);
    }
    for (const step of plan.steps) {
      if (step.do === "guard") await this.#act({ ...step, do: "unguard" });
    }
    // Clients keep what they have discovered for ten minutes.
    const isRedefined = plan.steps.some((step) => step.do === "redefine");
    if (isRedefined) await world.advance(11 * MINUTE_MS);
    this.#watchLeft();
    this.#isCalm = true;
    for (const fleet of this.fleets) fleet.calmDown();
    await this.#settle("after the workload");
    if (this.violations.length > 0) return;
    const judge = new StateJudge(this);
    judge.judgeState();
    await judge.judgeCaches();
    judge.judgeMetrics();
    await judge.judgeIdle();
    if (this.violations.length > 0) return;
    await this.#removeAll();
    await judge.judgeEmpty();
    await judge.judgeStop();
  }

  async end(): Promise<void> {
    await this.#world?.end();
  }

  async #settle(when: string, isLate = false): Promise<void> {
    const world = this.world;
    const within = 60 * MINUTE_MS;
    const { incarnation, hits } = world;
    const before = hits.join();
    let outcome = await world.quiet({
      still: isLate ? STILL_MS : this.#stillness,
      within,
    });
    // Nothing is due later, unless a perturbation has acted again.
    if (
      isLate && outcome === "quiet" &&
      (world.incarnation !== incarnation || world.hits.join() !== before)
    ) outcome = await world.quiet({ still: this.#stillness, within });
    const hasInterval = this.plan.controllers.some(({ interval }) => interval);
    if (outcome === "busy" && !hasInterval) {
      this.fail("it becomes quiet", `${when}: ${lastEntries(world)}`);
    }
    // Runs by an interval go on forever.
    const isRunning = () =>
      this.live.some(({ operator }) =>
        operator.health().controllers.some(({ running }) => running > 0)
      );
    for (let tries = 0; tries < 30 && isRunning(); tries++) {
      await world.advance(500);
    }
    this.#readTrace();
  }

  /** Time without change after which nothing else may be due. */
  get #stillness(): number {
    // Whenever such a write comes, the process then stands still for two minutes,
    // twice that if two come at the same write, and others have its Leases for as
    // long, until they are known to be dead.
    const deposed =
      this.plan.perturbations.filter((one) => one.do === "leader").length;
    if (deposed > 0) return (4 + 2 * deposed) * MINUTE_MS;
    // An informer that waits for a definition tries about once a minute, and a
    // first state that ends late may be given up twice after that.
    const isLate = hasPerturbation(this.plan, "linger") &&
      this.plan.steps.some((step) => step.do === "redefine");
    if (isLate) return 3 * STILL_MS;
    // A restarted replica waits for the Lease of the one before, which it may see
    // only after half a minute in an old state.
    return this.plan.coordination === "none" ? STILL_MS : 3 * STILL_MS;
  }

  /** No two replicas may think that they lead. */
  #judgeLeaders(): void {
    // After a suspension, a replica learns that it was deposed when it goes on.
    if (
      this.plan.coordination !== "leader" ||
      hasPerturbation(this.plan, "leader")
    ) return;
    const leaders = this.live.filter(({ operator }) =>
      operator.health().leading
    );
    if (leaders.length < 2) return;
    this.fail(
      "one leader at a time",
      `${
        leaders.map(({ incarnation }) => incarnation)
      } at ${this.#world?.now} ms`,
    );
  }

  /** Follows kills, Leases, deletions and writes of the trace. */
  #readTrace(): void {
    const { trace } = this.#world ?? { trace: [] };
    for (; this.#read < trace.length; this.#read++) {
      const entry = trace[this.#read]!;
      switch (entry.type) {
        case "kill":
        case "exit":
          this.#dead.add(entry.incarnation);
          break;
        case "rejection":
          this.fail("no unhandled rejection", entry.message);
          break;
        case "event":
          // What leaves a selection is deleted for its watch only.
          if (
            entry.event === "DELETED" && this.#guarded.has(entry.uid) &&
            !this.controllers.some(({ selects }) => selects)
          ) {
            this.fail("foreign finalizers stay", `${entry.name} was deleted`);
          }
          if (entry.event === "DELETED" && !entry.fault) {
            this.#gone.add(`${entry.incarnation} ${entry.uid}`);
          }
          this.#noteCause(entry);
          break;
        case "actor":
          // The informer may also learn of it by a new list.
          if (entry.change === "DELETED") this.#gone.add(entry.uid);
          break;
        case "request":
          this.#readRequest(entry);
      }
    }
  }

  #readRequest(entry: RequestEntry): void {
    const { verb, resource, changed, incarnation, uid = "" } = entry;
    if (verb === "delete" && changed) this.#gone.add(uid);
    const writer = /fieldManager=(c\d)/.exec(entry.path)?.[1];
    this.#noteGeneration(entry, writer);
    if (changed && entry.revision && writer) {
      this.#writers.set(entry.revision, writer);
      // Other controllers learn of it from the cache before the event comes.
      this.#noteCause({ ...entry, event: "", revision: entry.revision });
    }
    if (resource === "leases" && changed) this.#judgeRelease(entry);
    if (resource === "leases" && changed) {
      const { spec = {} } = JSON.parse(entry.body ?? "{}") as {
        spec?: LeaseSpec;
      };
      this.#judgeTransition(spec);
      const [, holder] = spec.holderIdentity?.split("-") ?? [];
      this.#holder = holder ? Number(holder) : undefined;
    }
    if (entry.fault === "leader") {
      this.#holder = 0;
      // The process stood still: a run before may go on beside that of another.
      this.registry.running.clear();
    }
    if (entry.write === undefined || entry.code === 0) return;
    const leads = this.plan.coordination !== "leader" ||
      resource === "customresourcedefinitions" ||
      this.#holder === undefined || this.#holder === incarnation;
    if (!leads) {
      this.fail(
        "no write by a deposed leader",
        `${verb} ${entry.path} of incarnation ${incarnation} at ${entry.at} ms, while ${this.#holder} leads`,
      );
    }
    this.#readObserved(entry);
  }

  /** A controller that has changed the spec knows the generation that follows. */
  #noteGeneration(
    { uid, generation = 0, subresource, changed }: RequestEntry,
    writer: string | undefined,
  ): void {
    const { generations } = this.registry;
    const id = `${writer} ${uid}`;
    // One that another client has contributed to is greater.
    if (changed && !subresource && generations.get(id) === generation - 1) {
      generations.set(id, generation);
    }
  }

  /** A Lease counts its holders, and keeps the time at which it was taken. */
  #judgeTransition(spec: LeaseSpec): void {
    if (
      this.plan.coordination !== "leader" ||
      hasPerturbation(this.plan, "leader")
    ) return;
    const before = this.#lease;
    this.#lease = spec;
    if (before === undefined || spec.holderIdentity === "") return;
    const isTaken = before.holderIdentity !== spec.holderIdentity;
    const { leaseTransitions = 0 } = before;
    if (
      spec.leaseTransitions === leaseTransitions + Number(isTaken) &&
      (isTaken || spec.acquireTime === before.acquireTime)
    ) return;
    this.fail(
      "a Lease counts its holders",
      `${JSON.stringify(spec)} after ${JSON.stringify(before)}`,
    );
  }

  #noteCause(
    { incarnation, resource, namespace, name, event, revision }: Pick<
      EventEntry,
      "incarnation" | "resource" | "namespace" | "name" | "event" | "revision"
    >,
  ): void {
    const key = `${incarnation} ${resource} ${namespace}/${name}`;
    // A deletion causes a run, no matter who asked for it.
    const writer = event === "DELETED"
      ? undefined
      : this.#writers.get(revision);
    const causes = this.#causes.get(key) ?? new Map<string, number>();
    this.#causes.set(key, causes.set(writer ?? "", this.#read));
  }

  /** A replica must not release its Lease while a run goes on. */
  #judgeRelease(
    { verb, name, body = "", incarnation, at }: RequestEntry,
  ): void {
    const isReleased = verb === "delete"
      ? name.includes(`replica-${incarnation}-`)
      : body.includes('"holderIdentity":""');
    if (!isReleased) return;
    for (const [id, run] of this.registry.running) {
      if (run.incarnation !== incarnation) continue;
      this.fail(
        "no Lease is released during a run",
        `${id} of incarnation ${incarnation}, at ${at} ms`,
      );
    }
  }

  /**
   * A run after two others needs a cause that its controller has not written
   * itself, where the server refuses and forgets nothing. The cause may have come
   * before the last of them, and was held back by an own write under way.
   */
  #judgeCause(
    controller: ControllerPlan,
    object: Primary,
    incarnation: number,
    cause: RunCause,
  ): void {
    const { name, reads, kind, interval, allEvents } = controller;
    const { perturbations, coordination, steps } = this.plan;
    this.#readTrace();
    const { namespace, name: primary } = object.metadata;
    const id = runId(controller, object, incarnation);
    const [before, last] = this.#begun.get(id) ?? [];
    // The first run adds the finalizer before, and may be asked for again by then.
    this.#begun.set(id, [last ?? 0, last === undefined ? 0 : this.#read]);
    // Deletions that all-events mode has collected run one after the other.
    const isPlain = coordination === "none" && interval === undefined &&
      !allEvents &&
      perturbations.every((one) => one.do === "order" || one.do === "cut") &&
      !steps.some((step) => step.do === "drop" || step.do === "stop");
    if (before === undefined || !isPlain) return;
    const plural = PRIMARY_KINDS.get(kind)?.plural;
    const objects = [
      `${plural} ${namespace}/${primary}`,
      // The children of other controllers have the same owner.
      ...this.controllers.flatMap((one) =>
        [0, 1].map((index) =>
          `configmaps ${namespace}/${childName(primary, one.name, index)}`
        )
      ),
      ...reads ? [`configmaps ${namespace}/settings`] : [],
      "namespaces",
    ];
    const newest = Math.max(
      ...objects.flatMap((one) =>
        [...this.#causes.get(`${incarnation} ${one}`) ?? []].map((
          [writer, at],
        ) => writer === name ? -1 : at)
      ),
    );
    if (newest >= before) return;
    this.fail(
      "own writes cause no run",
      `${id} runs again at ${this.#world?.now} ms: ${JSON.stringify(cause)}`,
    );
  }

  /** A status must not tell of a generation that no run has seen. */
  #readObserved({ subresource, body, uid }: RequestEntry): void {
    if (subresource !== "status" || body === undefined) return;
    const observed = /"observedGeneration":(\d+)/.exec(body) ??
      /observedGeneration","value":(\d+)/.exec(body);
    if (observed === null) return;
    // A status without a resourceVersion may reach a new object of the same name:
    // API servers ignore its UID.
    const meant = /"uid":"([^"]+)"/.exec(body)?.[1];
    if (meant !== undefined && meant !== uid) return;
    const newest = this.plan.controllers.map(({ name }) =>
      this.registry.generations.get(`${name} ${uid}`) ?? 0
    );
    if (Number(observed[1]) > Math.max(...newest) && uid) {
      this.fail(
        "observedGeneration was seen",
        `${observed[1]} was written, and runs have seen ${newest}`,
      );
    }
  }

  /** Changes the namespaces of a controller in all incarnations. */
  #watch({ controller, namespaces }: Omit<WatchStep, "then">): void {
    this.controllers = this.controllers.map((one) =>
      one.name === controller ? { ...one, namespaces } : one
    );
    for (const { handles, incarnation } of this.live) {
      this.#causes.set(`${incarnation} namespaces`, new Map([["", Infinity]]));
      handles.get(controller)?.changeNamespaces(namespaces).catch(
        (error: unknown) => {
          if (this.#hasEnded(incarnation)) return;
          this.fail("namespaces can be changed", String(error));
        },
      );
    }
  }

  /**
   * Changes controllers that clean up back to all namespaces: nobody else removes
   * their finalizers from objects of a namespace that they have left.
   */
  #watchLeft(): void {
    const changed = new Set(
      this.plan.steps.map((step) => step.do === "watch" && step.controller),
    );
    for (const { name, cleanup, allEvents } of this.controllers) {
      if (!changed.has(name) || !(cleanup || allEvents)) continue;
      this.#watch({ do: "watch", controller: name, namespaces: "all" });
    }
  }

  async #step(step: Step): Promise<void> {
    const world = this.world;
    switch (step.do) {
      case "watch":
        return this.#watch(step);
      case "observe":
        return this.#observe(step.namespaces);
      case "stop":
        return await this.#stop();
      case "redefine":
        return await this.#redefine();
      case "scribble":
        for (const { scribe } of this.live) scribe?.write();
        return;
      case "found":
      case "drop": {
        const { namespace: name } = step;
        const namespace = { apiVersion: "v1", kind: "Namespace" };
        if (step.do === "found") {
          return await world.apply(
            { ...namespace, metadata: { name } } as UntypedObject,
          );
        }
        for (const id of [...this.asked.keys()]) {
          if (id.includes(` ${name}/`)) this.asked.delete(id);
        }
        return await world.delete({ ...namespace, name });
      }
      default:
        return await this.#act(step);
    }
  }

  #hasEnded(incarnation: number): boolean {
    return this.#dead.has(incarnation) || this.#stopping.has(incarnation);
  }

  #observe(namespaces: readonly string[] | undefined): void {
    const [kind = ""] = this.plan.observed;
    for (const { observers, incarnation } of this.live) {
      observers.get(kind)?.change(namespaces).catch((error: unknown) => {
        if (this.#hasEnded(incarnation)) return;
        this.fail("namespaces can be changed", String(error));
      });
    }
  }

  /** Ends the newest replica as SIGTERM does; another one follows. */
  async #stop(): Promise<void> {
    const world = this.world;
    const fleet = this.live.at(-1);
    if (fleet === undefined) return;
    let isStopped = false;
    this.#stopping.add(fleet.incarnation);
    void fleet.operator.stop().then(() => isStopped = true);
    while (!isStopped && this.live.at(-1) === fleet) {
      await world.advance(1_000);
    }
    if (this.live.at(-1) !== fleet) {
      return void this.#dead.add(fleet.incarnation);
    }
    try {
      process.exit(0);
    } catch {
      // The world has ended the incarnation, and starts the next one.
    }
  }

  /** Defines the kind under another plural, in place of the definition before. */
  async #redefine(): Promise<void> {
    const world = this.world;
    const { apiVersion, kind, metadata: { name } } = crdManifest(cargoKind());
    await world.delete({ apiVersion, kind, name });
    const key = `${apiVersion} ${kind} ${name}`;
    while (world.snapshot()[key] !== undefined) await world.advance(500);
    const cargo = cargoKind("cargoes");
    await world.apply(crdManifest(cargo) as unknown as UntypedObject);
    for (const namespace of NAMESPACES) {
      const metadata = { name: "box", namespace };
      const box = { metadata, spec: { value: "red" } };
      const options = { force: true, fieldManager: "user" };
      await this.#attempt(async () => {
        await world.complete(world.client.apply(cargo, box, options));
      });
    }
  }

  /** Does what a missing or terminating namespace may refuse. */
  async #attempt(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      const isRefused = error instanceof ApiError &&
        (error.isNotFound || error.isForbidden);
      if (!isRefused) throw error;
    }
  }

  async #act(step: ObjectStep): Promise<void> {
    const world = this.world;
    const { namespace, name } = step;
    const metadata = { namespace, name };
    if (step.do === "set") {
      const data = { value: step.value };
      const settings = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
      return await this.#attempt(() => world.apply(settings as UntypedObject));
    }
    const reference = { apiVersion: API_VERSION, kind: step.kind, ...metadata };
    const id = `${step.kind} ${namespace}/${name}`;
    await this.#attempt(async () => {
      switch (step.do) {
        case "put": {
          const { kind, value, size, isGold } = step;
          const labels = { tier: isGold ? SELECTED.tier : "tin" };
          await world.apply({
            apiVersion: API_VERSION,
            kind,
            metadata: { ...metadata, labels },
            spec: { value, size },
          } as UntypedObject);
          this.asked.set(id, { value, marked: false });
          break;
        }
        case "mark": {
          const { apiVersion, kind } = reference;
          const annotations = { marked: "yes" };
          await world.patch({
            apiVersion,
            kind,
            metadata: { ...metadata, annotations },
          } as UntypedObject);
          const asked = this.asked.get(id);
          if (asked) asked.marked = true;
          break;
        }
        case "guard":
        case "unguard":
          await this.#guard(step);
          break;
        case "remove":
          this.asked.delete(id);
          await world.delete(reference);
      }
    });
  }

  /** Adds or removes the finalizer of the user, who never finds it removed. */
  async #guard(
    { do: what, kind, namespace, name }: Extract<
      ObjectStep,
      { readonly do: "guard" | "unguard" }
    >,
  ): Promise<void> {
    const world = this.world;
    const primaries = PRIMARY_KINDS.get(kind) as DefinedKind<Primary>;
    const key = { namespace, name };
    for (;;) {
      const found = await world.complete(world.client.find(primaries, key));
      if (found === undefined) return;
      const { uid = "", resourceVersion, finalizers = [], deletionTimestamp } =
        found.metadata;
      this.judgeGuard(found);
      if (what === "guard" && deletionTimestamp !== undefined) return;
      this.#guarded.delete(uid);
      const others = finalizers.filter((one) => one !== GUARD);
      const wanted = what === "guard" ? [...others, GUARD] : others;
      const patch = { metadata: { resourceVersion, finalizers: wanted } };
      try {
        await world.complete(world.client.patch(primaries, key, patch));
        if (what === "guard") this.#guarded.add(uid);
        return;
      } catch (error) {
        if (!ApiError.is(error) || !error.isConflict) throw error;
      }
    }
  }

  /** Nobody but the user removes the finalizer of the user. */
  judgeGuard({ metadata: { uid = "", name, finalizers } }: Primary): void {
    if (!this.#guarded.has(uid) || finalizers?.includes(GUARD)) return;
    this.fail("foreign finalizers stay", `${name} has ${finalizers}`);
  }

  /** Whether the server shows no state that is older than one before. */
  get #isMonotonic(): boolean {
    // After a first state that breaks, an API server that is behind answers all,
    // and also a watch that has expired after it had seen more.
    const mayBreak = this.plan.perturbations.some((one) =>
      one.do === "linger" && one.breaks
    );
    return !hasPerturbation(this.plan, "stale") &&
      !(mayBreak && hasPerturbation(this.plan, "expire"));
  }

  async #removeAll(): Promise<void> {
    const world = this.world;
    const all = primariesIn(world.snapshot());
    for (const { kind = "", metadata } of all) {
      const { namespace, name } = metadata;
      await world.delete({
        apiVersion: API_VERSION,
        kind,
        name,
        namespace,
      });
      this.asked.delete(`${kind} ${namespace}/${name}`);
    }
    await this.#settle("after the removal", true);
  }
}

/** A controller of an incarnation, and an object that it runs. */
function runId(
  { name }: ControllerPlan,
  { metadata }: Primary,
  incarnation: number,
): string {
  return `${incarnation} ${name} ${metadata.namespace}/${metadata.name} ${metadata.uid}`;
}

function lastEntries({ trace }: World): string {
  return trace.slice(-6).map((entry) =>
    entry.type === "request"
      ? `${entry.at} ${entry.verb} ${entry.path} ${entry.code}`
      : entry.type === "log"
      ? `${entry.at} ${entry.message} ${entry.fields}`
      : `${entry.type}`
  ).join("; ");
}
