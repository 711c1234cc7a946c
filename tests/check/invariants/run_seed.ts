import process from "node:process";
import { z } from "zod";
import {
  ApiError,
  type KubernetesObject,
  type UntypedObject,
} from "@coracle/operator/client";
import type { RunCause } from "@coracle/operator/core";
import {
  crdManifest,
  type DefinedKind,
  defineKind,
} from "@coracle/operator/crd";
import type { ConfigMap } from "@coracle/operator/kinds";
import type { LeaseSpec } from "../../../core/operator/lease_data.ts";
import type {
  EventEntry,
  RequestEntry,
} from "../../../dev/testing/check/trace.ts";
import { World } from "../../../dev/testing/check/world.ts";
import type { WorldObjects } from "../../../dev/testing/check/world_objects.ts";
import { metricReader } from "../../soak/soaked_operator.ts";
import {
  childName,
  type ChildSource,
  finalizerOf,
  Fleet,
  type Primary,
  PRIMARY_KINDS,
  type Registry,
} from "./fleet.ts";
import {
  CARGO,
  type ControllerPlan,
  KINDS,
  NAMESPACES,
  type ObjectStep,
  type SeedPlan,
  SELECTED,
  type Step,
  type WatchStep,
} from "./seed_plan.ts";

/** Something that did not hold in the run of a plan. */
export interface Violation {
  readonly invariant: string;
  readonly detail: string;
}

const API_VERSION = "fleet.coracle.dev/v1";
const MINUTE_MS = 60_000;
/** Finalizer of the user. */
const GUARD = "user.coracle.dev/guard";
/** Time without change after which everything must be as it should be. */
const STILL_MS = MINUTE_MS;
/** Time in which an idle operator must send nothing. */
const IDLE_MS = 2 * MINUTE_MS;
/** Timers that an operator may have more than before there was an object. */
const MORE_TIMERS = 2;
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

class SeedRun {
  readonly violations: Violation[] = [];
  readonly #plan: SeedPlan;
  /** Controllers with the namespaces that they have now. */
  #controllers: readonly ControllerPlan[];
  readonly #fleets: Fleet[] = [];
  readonly #registry: Registry = {
    entries: new Set(),
    running: new Map(),
    generations: new Map(),
  };
  /** What the user has written last, by kind, namespace and name. */
  readonly #asked: Map<string, { value: string; marked: boolean }> = new Map();
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
    this.#plan = plan;
    this.#controllers = plan.controllers;
  }

  fail(invariant: string, detail: string): void {
    if (this.violations.length < 20) {
      this.violations.push({ invariant, detail });
    }
  }

  get #live(): Fleet[] {
    this.#readTrace();
    return this.#fleets.filter(({ incarnation }) =>
      !this.#dead.has(incarnation)
    );
  }

  async run(): Promise<void> {
    const plan = this.#plan;
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
        const controllers = this.#controllers;
        const fleet = new Fleet({ ...plan, controllers }, start, {
          registry: this.#registry,
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
        this.#fleets.push(fleet);
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
    for (const fleet of this.#fleets) fleet.calmDown();
    await this.#settle("after the workload");
    if (this.violations.length > 0) return;
    this.#judgeState();
    await this.#judgeCaches();
    this.#judgeMetrics();
    await this.#judgeIdle();
    if (this.violations.length > 0) return;
    await this.#removeAll();
    await this.#judgeEmpty();
    await this.#judgeStop();
  }

  async end(): Promise<void> {
    await this.#world?.end();
  }

  async #settle(when: string, isLate = false): Promise<void> {
    const world = this.#world as World;
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
    const hasInterval = this.#plan.controllers.some(({ interval }) => interval);
    if (outcome === "busy" && !hasInterval) {
      this.fail("it becomes quiet", `${when}: ${lastEntries(world)}`);
    }
    // Runs by an interval go on for ever.
    const isRunning = () =>
      this.#live.some(({ operator }) =>
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
      this.#plan.perturbations.filter((one) => one.do === "leader").length;
    if (deposed > 0) return (4 + 2 * deposed) * MINUTE_MS;
    // An informer that waits for a definition tries about once a minute, and a
    // first state that ends late may be given up twice after that.
    const isLate = this.#has("linger") &&
      this.#plan.steps.some((step) => step.do === "redefine");
    if (isLate) return 3 * STILL_MS;
    // A restarted replica waits for the Lease of the one before, which it may see
    // only after half a minute in an old state.
    return this.#plan.coordination === "none" ? STILL_MS : 3 * STILL_MS;
  }

  /** No two replicas may think that they lead. */
  #judgeLeaders(): void {
    // After a suspension, a replica learns that it was deposed when it goes on.
    if (this.#plan.coordination !== "leader" || this.#has("leader")) return;
    const leaders = this.#live.filter(({ operator }) =>
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
            !this.#controllers.some(({ selects }) => selects)
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
      this.#registry.running.clear();
    }
    if (entry.write === undefined || entry.code === 0) return;
    const leads = this.#plan.coordination !== "leader" ||
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
    const { generations } = this.#registry;
    const id = `${writer} ${uid}`;
    // One that another client has contributed to is greater.
    if (changed && !subresource && generations.get(id) === generation - 1) {
      generations.set(id, generation);
    }
  }

  /** A Lease counts its holders, and keeps the time at which it was taken. */
  #judgeTransition(spec: LeaseSpec): void {
    if (this.#plan.coordination !== "leader" || this.#has("leader")) return;
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
    // A deletion causes a run, whoever asked for it.
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
    for (const [id, run] of this.#registry.running) {
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
    const { perturbations, coordination, steps } = this.#plan;
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
      ...this.#controllers.flatMap((one) =>
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
    const newest = this.#plan.controllers.map(({ name }) =>
      this.#registry.generations.get(`${name} ${uid}`) ?? 0
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
    this.#controllers = this.#controllers.map((one) =>
      one.name === controller ? { ...one, namespaces } : one
    );
    for (const { handles, incarnation } of this.#live) {
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
      this.#plan.steps.map((step) => step.do === "watch" && step.controller),
    );
    for (const { name, cleanup, allEvents } of this.#controllers) {
      if (!changed.has(name) || !(cleanup || allEvents)) continue;
      this.#watch({ do: "watch", controller: name, namespaces: "all" });
    }
  }

  async #step(step: Step): Promise<void> {
    const world = this.#world as World;
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
        for (const { scribe } of this.#live) scribe?.write();
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
        for (const id of [...this.#asked.keys()]) {
          if (id.includes(` ${name}/`)) this.#asked.delete(id);
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
    const [kind = ""] = this.#plan.observed;
    for (const { observers, incarnation } of this.#live) {
      observers.get(kind)?.change(namespaces).catch((error: unknown) => {
        if (this.#hasEnded(incarnation)) return;
        this.fail("namespaces can be changed", String(error));
      });
    }
  }

  /** Ends the newest replica as SIGTERM does; another one follows. */
  async #stop(): Promise<void> {
    const world = this.#world as World;
    const fleet = this.#live.at(-1);
    if (fleet === undefined) return;
    let isStopped = false;
    this.#stopping.add(fleet.incarnation);
    void fleet.operator.stop().then(() => isStopped = true);
    while (!isStopped && this.#live.at(-1) === fleet) {
      await world.advance(1_000);
    }
    if (this.#live.at(-1) !== fleet) {
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
    const world = this.#world as World;
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
    const world = this.#world as World;
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
          this.#asked.set(id, { value, marked: false });
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
          const asked = this.#asked.get(id);
          if (asked) asked.marked = true;
          break;
        }
        case "guard":
        case "unguard":
          await this.#guard(step);
          break;
        case "remove":
          this.#asked.delete(id);
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
    const world = this.#world as World;
    const primaries = PRIMARY_KINDS.get(kind) as DefinedKind<Primary>;
    const key = { namespace, name };
    for (;;) {
      const found = await world.complete(world.client.find(primaries, key));
      if (found === undefined) return;
      const { uid = "", resourceVersion, finalizers = [], deletionTimestamp } =
        found.metadata;
      this.#judgeGuard(found);
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
  #judgeGuard({ metadata: { uid = "", name, finalizers } }: Primary): void {
    if (!this.#guarded.has(uid) || finalizers?.includes(GUARD)) return;
    this.fail("foreign finalizers stay", `${name} has ${finalizers}`);
  }

  /** Whether a perturbation of a kind is part of the plan. */
  #has(kind: string): boolean {
    return this.#plan.perturbations.some((one) => one.do === kind);
  }

  /** Whether the server shows no state that is older than one before. */
  get #isMonotonic(): boolean {
    // After a first state that breaks, an API server that is behind answers all,
    // and also a watch that has expired after it had seen more.
    const mayBreak = this.#plan.perturbations.some((one) =>
      one.do === "linger" && one.breaks
    );
    return !this.#has("stale") && !(mayBreak && this.#has("expire"));
  }

  #judgeState(): void {
    const objects = (this.#world as World).snapshot();
    const wasEdited = this.#plan.perturbations.some((one) => one.do === "edit");
    for (const primary of primariesIn(objects)) {
      const { namespace = "", name, annotations } = primary.metadata;
      this.#judgeGuard(primary);
      const id = `${primary.kind} ${namespace}/${name}`;
      if (primary.metadata.deletionTimestamp !== undefined) {
        this.fail("no finalizer is stuck", id);
        continue;
      }
      const asked = this.#asked.get(id);
      if (asked === undefined) {
        this.fail("no acknowledged write is lost", `${id} was deleted`);
      } else if (!wasEdited) {
        if (asked.value !== primary.spec.value) {
          this.fail(
            "no acknowledged write is lost",
            `${id} has ${primary.spec.value}, and ${asked.value} was written`,
          );
        }
        if (asked.marked && annotations?.["marked"] !== "yes") {
          this.fail("no acknowledged write is lost", `${id}: the mark`);
        }
      }
      for (const plan of this.#controllers) {
        if (isChosen(plan, primary)) this.#judgePrimary(plan, primary, objects);
      }
    }
    for (const [key, { metadata }] of Object.entries(objects)) {
      for (const { uid, kind, name } of metadata?.ownerReferences ?? []) {
        const owner = objects[
          `${API_VERSION} ${kind} ${metadata?.namespace}/${name}`
        ];
        if (owner?.metadata?.uid !== uid) {
          this.fail("nothing is orphaned", key);
        }
      }
    }
    this.#judgeRegistry(objects);
  }

  #judgePrimary(
    plan: ControllerPlan,
    { metadata, kind, spec, status }: Primary,
    objects: WorldObjects,
  ): void {
    const { namespace, name, uid, generation } = metadata;
    const id = `${plan.name}, ${kind} ${namespace}/${name}`;
    const settings = objects[`v1 ConfigMap ${namespace}/settings`] as
      | ConfigMap
      | undefined;
    const value = `${spec.value}/${
      plan.reads ? settings?.data?.["value"] ?? "" : ""
    }`;
    if (plan.status !== "none" && status?.[plan.name] !== value) {
      this.fail(
        "the last state is reconciled",
        `${id}: status ${status?.[plan.name]}, not ${value}`,
      );
    }
    if (plan.stamps && spec.stamp !== spec.value) {
      this.fail(
        "the last state is reconciled",
        `${id}: stamp ${spec.stamp}, not ${spec.value}`,
      );
    }
    const observed = status?.["observedGeneration"];
    // The field is one for all controllers: the last run of one that has left the
    // namespace may have written it after those that stay.
    const isShared = this.#plan.steps.some((step) =>
      step.do === "watch" && step.controller !== plan.name
    );
    if (kind === KINDS[0] && observed !== generation && !isShared) {
      this.fail(
        "the last state is reconciled",
        `${id}: observedGeneration ${observed}, not ${generation}`,
      );
    }
    for (let index = 0; index < 2; index++) {
      const child = childName(name, plan.name, index);
      const stored = objects[`v1 ConfigMap ${namespace}/${child}`] as
        | ConfigMap
        | undefined;
      const expected = index < spec.size ? value : undefined;
      if (stored?.data?.["value"] !== expected) {
        this.fail(
          "the last state is reconciled",
          `${child}: ${stored?.data?.["value"]}, not ${expected}`,
        );
      }
      const owners = stored?.metadata.ownerReferences ?? [];
      if (stored && !owners.some((owner) => owner.uid === uid)) {
        this.fail("the last state is reconciled", `${child} has no owner`);
      }
    }
  }

  /** What cleanup removes is there as long as the object, and no longer. */
  #judgeRegistry(objects: WorldObjects): void {
    const primaries = primariesIn(objects);
    const { entries } = this.#registry;
    for (const plan of this.#controllers) {
      if (!plan.cleanup && !plan.allEvents) continue;
      const wanted = new Set<string>();
      for (const primary of primaries) {
        if (!isChosen(plan, primary)) continue;
        const id = `${plan.name} ${primary.metadata.uid}`;
        wanted.add(id);
        const has = primary.metadata.finalizers?.includes(
          finalizerOf(plan.name),
        );
        if (plan.cleanup && !has) {
          this.fail("cleanup is called once", `${id} has no finalizer`);
        }
        if (!entries.has(id)) {
          this.fail(
            "cleanup is called once",
            `${id} exists, but was cleaned up`,
          );
        }
      }
      // All-events mode misses deletions while the operator is down or does not
      // watch, and a member of a shard group that loses its Lease forgets those
      // that wait for a run; an old state and an object that leaves the selection
      // are not cleaned up either.
      const { coordination, network } = this.#plan;
      const mayLoseShard = coordination === "sharding" &&
        (this.#has("leader") || network.cutAt !== undefined);
      const wasChanged = this.#plan.steps.some((step) =>
        step.do === "watch" && step.controller === plan.name
      );
      const isExact = !this.#has("stale") && !plan.selects &&
        (plan.cleanup ||
          this.#fleets.length === 1 && !wasChanged && !mayLoseShard);
      for (const id of entries) {
        if (!id.startsWith(`${plan.name} `) || wanted.has(id)) continue;
        if (isExact) {
          this.fail("cleanup is called once", `${id} is gone, not cleaned up`);
        }
      }
    }
  }

  async #judgeCaches(): Promise<void> {
    const world = this.#world as World;
    const objects = world.snapshot();
    for (const fleet of this.#live) {
      for (const [kind, observer] of fleet.observers) {
        observer.judge(versionsOf(kind, observer.informer.namespaces, objects));
      }
      for (const plan of this.#controllers) {
        const handle = fleet.handles.get(plan.name);
        const expected = primariesIn(objects).filter((one) =>
          isChosen(plan, one)
        );
        const cached = handle?.primaries.list() ?? [];
        this.#compare(`${plan.name} of ${fleet.incarnation}`, cached, expected);
        const source = fleet.sources.get(plan.name) as ChildSource;
        for (const namespace of NAMESPACES) {
          if (
            plan.namespaces !== "all" && !plan.namespaces.includes(namespace)
          ) {
            continue;
          }
          const maps = await source.list?.(namespace) ?? [];
          const stored = Object.entries(objects).flatMap(([key, object]) =>
            key.startsWith(`v1 ConfigMap ${namespace}/`) ? [object] : []
          );
          this.#compare(
            `ConfigMaps of ${plan.name} of ${fleet.incarnation}`,
            maps,
            stored,
          );
        }
        for (const primary of expected) {
          const owned = Object.values(objects).filter((object) =>
            object.metadata?.ownerReferences?.some(({ uid }) =>
              uid === primary.metadata.uid
            )
          );
          this.#compare(
            `Children of ${primary.metadata.name} in ${plan.name} of ${fleet.incarnation}`,
            await source.secondaries?.(primary) ?? [],
            owned,
          );
        }
      }
    }
  }

  #compare(
    cache: string,
    cached: readonly KubernetesObject[],
    stored: readonly KubernetesObject[],
  ): void {
    const lines = (objects: readonly KubernetesObject[]) =>
      objects.map(({ metadata, ...fields }) => {
        const { apiVersion: _, kind: __, ...others } = fields as Record<
          string,
          unknown
        >;
        return `${metadata?.namespace}/${metadata?.name} ${metadata?.uid} ${metadata?.resourceVersion} ${
          sorted(others)
        }`;
      }).sort();
    const [a, b] = [lines(cached), lines(stored)];
    const extra = a.filter((line) => !b.includes(line));
    const missing = b.filter((line) => !a.includes(line));
    if (a.length === b.length && extra.length + missing.length === 0) return;
    this.fail(
      "caches equal the server",
      `${cache}: it has ${extra}, the server has ${missing}`,
    );
  }

  #judgeMetrics(): void {
    const { coordination } = this.#plan;
    for (const fleet of this.#live) {
      const health = fleet.operator.health();
      const read = metricReader(fleet.operator.metrics());
      for (const plan of this.#controllers) {
        const controller = plan.name;
        const { calls, throws } = fleet.tallies.get(controller)!;
        const value = (name: string) => read(name, { controller });
        const ended = (result: string) =>
          read("coracle_reconciliations_total", { controller, result });
        const failed = ended("failure") + ended("aborted");
        const runs = ended("success") + failed;
        const one = health.controllers.find(({ name }) => name === controller);
        const equal = (what: string, a: unknown, b: unknown) => {
          if (a === b) return;
          this.fail(
            "metrics equal what was counted",
            `${controller} of ${fleet.incarnation}: ${what}: ${a}, not ${b}`,
          );
        };
        equal("active", value("coracle_reconciliations_active"), 0);
        // What a standby replica would do first waits in its queue.
        if (one?.active) equal("queue", value("coracle_queue_depth"), 0);
        equal("failing", value("coracle_failing_objects"), 0);
        equal("causes", value("coracle_reconciliation_causes_total"), runs);
        equal(
          "durations",
          value("coracle_reconciliation_duration_seconds_count"),
          runs,
        );
        equal("failing", one?.failing, 0);
        if (runs < calls || failed < throws) {
          equal(
            "runs and failed runs",
            `${runs} ${failed}`,
            `${calls} ${throws}`,
          );
        }
        if (coordination !== "sharding") {
          equal(
            "primaries",
            value("coracle_primaries"),
            fleet.handles.get(controller)?.primaries.list().length,
          );
        }
      }
    }
  }

  /** Nothing is sent and nothing runs while nothing changes. */
  async #judgeIdle(): Promise<void> {
    const world = this.#world as World;
    const hasInterval = this.#controllers.some(({ interval }) => interval);
    const { length } = world.trace;
    const calls = () =>
      this.#fleets.reduce(
        (sum, { tallies }) =>
          [...tallies.values()].reduce((all, one) => all + one.calls, sum),
        0,
      );
    const before = calls();
    await world.advance(IDLE_MS);
    const requests = world.trace.slice(length).filter((entry) =>
      entry.type === "request" && entry.verb !== "watch" &&
      entry.resource !== "leases" && (entry.write !== undefined || !hasInterval)
    ) as RequestEntry[];
    const isIdle = requests.length === 0;
    if (!isIdle) {
      this.fail(
        "no request when idle",
        requests.slice(0, 5).map(({ verb, path }) => `${verb} ${path}`).join(),
      );
    }
    if (!hasInterval && calls() !== before) {
      this.fail("no request when idle", `${calls() - before} runs`);
    }
  }

  async #removeAll(): Promise<void> {
    const world = this.#world as World;
    const all = primariesIn(world.snapshot());
    for (const { kind = "", metadata } of all) {
      const { namespace, name } = metadata;
      await world.delete({
        apiVersion: API_VERSION,
        kind,
        name,
        namespace,
      });
      this.#asked.delete(`${kind} ${namespace}/${name}`);
    }
    await this.#settle("after the removal", true);
  }

  async #judgeEmpty(): Promise<void> {
    const world = this.#world as World;
    const objects = world.snapshot();
    for (const { kind, metadata } of primariesIn(objects)) {
      this.fail("no finalizer is stuck", `${kind} ${metadata.name}`);
    }
    for (const [key, { metadata }] of Object.entries(objects)) {
      if (metadata?.ownerReferences?.length) {
        this.fail("nothing is orphaned", key);
      }
    }
    this.#judgeRegistry(objects);
    await this.#judgeCaches();
    for (const fleet of this.#live) {
      const { controllers } = fleet.operator.health();
      for (const { name, active, delayed, waiting, primaries } of controllers) {
        // A standby replica keeps deletions that it has to work on once it leads,
        // with the times at which their objects would have run next.
        const kept = active ? 0 : waiting;
        if (delayed > kept || primaries > 0) {
          this.fail(
            "no growth",
            `${name} of ${fleet.incarnation} has ${primaries} primaries, ${delayed} delayed and ${waiting} waiting keys`,
          );
        }
      }
    }
  }

  /** A stopped operator has no timer, and sends nothing. */
  async #judgeStop(): Promise<void> {
    const world = this.#world as World;
    for (const fleet of this.#live) {
      for (const { informer } of fleet.observers.values()) {
        await world.complete(informer.close());
      }
      if (fleet.scribe) await world.complete(fleet.scribe.informer.close());
      await world.complete(fleet.operator.stop());
      const { pending } = fleet.timers;
      if (pending > MORE_TIMERS) {
        this.fail("no growth", `${pending} timers after the end`);
      }
    }
    const { length } = world.trace;
    await world.advance(MINUTE_MS);
    const late = world.trace.slice(length).find(({ type }) =>
      type === "request"
    );
    if (late !== undefined) {
      this.fail("no request when idle", `stopped: ${JSON.stringify(late)}`);
    }
  }
}

/** Definition of the kind that observers find by discovery. */
function cargoKind(plural = "cargos"): DefinedKind {
  return defineKind({
    group: API_VERSION.split("/")[0] as string,
    version: "v1",
    kind: CARGO,
    plural,
    spec: z.object({ value: z.string() }),
  }) as unknown as DefinedKind;
}

/** A controller of an incarnation, and an object that it runs. */
function runId(
  { name }: ControllerPlan,
  { metadata }: Primary,
  incarnation: number,
): string {
  return `${incarnation} ${name} ${metadata.namespace}/${metadata.name} ${metadata.uid}`;
}

/** Versions of the objects of a kind, by namespace and name. */
function versionsOf(
  kind: string,
  namespaces: readonly string[] | undefined,
  objects: WorldObjects,
): Map<string, string> {
  return new Map(
    Object.entries(objects).flatMap(([key, { metadata }]) => {
      const { namespace = "", name, resourceVersion = "" } = metadata;
      const isWatched = namespaces?.includes(namespace) ?? true;
      return isWatched && key.startsWith(`${API_VERSION} ${kind} `)
        ? [[`${namespace}/${name}`, resourceVersion]]
        : [];
    }),
  );
}

function primariesIn(objects: WorldObjects): Primary[] {
  return Object.entries(objects).flatMap(([key, object]) =>
    key.startsWith(`${API_VERSION} `) && PRIMARY_KINDS.has(object.kind ?? "")
      ? [object as unknown as Primary]
      : []
  );
}

/** Whether a controller runs a primary. */
function isChosen(
  { kind, namespaces, selects }: ControllerPlan,
  { kind: other, metadata: { namespace = "", labels } }: Primary,
): boolean {
  return kind === other &&
    (namespaces === "all" || namespaces.includes(namespace)) &&
    (!selects || labels?.["tier"] === SELECTED.tier);
}

/** JSON with sorted keys. */
function sorted(value: unknown): string {
  return JSON.stringify(
    value,
    (_, part) =>
      part !== null && typeof part === "object" && !Array.isArray(part)
        ? Object.fromEntries(
          Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1),
        )
        : part,
  );
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
