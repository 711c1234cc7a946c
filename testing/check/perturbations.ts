import { untyped } from "../../core/api/kind.ts";
import type { Client } from "../../core/client/client.ts";
import type { Clock } from "../../core/clock.ts";
import type { FaultEffect } from "../../apiserver/faults/fault_rule.ts";
import type {
  ObjectChange,
  ObjectReference,
  Perturbation,
} from "./perturbation.ts";
import type { WorldClock } from "./world_clock.ts";

/** Maximum time that a delayed event waits, in milliseconds. */
const DELAY_LIMIT_MS = 30_000;
/** Time after which a watch that has missed events expires, in milliseconds. */
const GAP_MS = 60_000;
/** Time for which a process is suspended, in milliseconds. */
const SUSPENDED_MS = 120_000;
/** Time for which another replica holds the Leases, in milliseconds. */
const DEPOSED_MS = 60_000;

const LEASE = untyped({
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
});

/** Parts of a simulation that perturbations change. */
export interface PerturbedWorld {
  readonly client: Client;
  readonly clock: WorldClock;
  /** Clock whose timers continue when the operator is killed. */
  readonly outside: Clock;
  twin(): void;
  edit(
    target: ObjectReference,
    change: ObjectChange,
  ): Promise<void>;
}

/** Decision of the perturbations on a write. */
export interface WriteVerdict {
  /** Name of the perturbation that decided. */
  readonly fault?: string | undefined;
  /** Crash before the write, before the answer, or after the answer. */
  readonly crash?: {
    readonly place: "before" | "unanswered" | "after";
    readonly why: string;
    readonly downMs: number;
  } | undefined;
  /** Whether the process was suspended before the write. */
  readonly wasSuspended?: boolean | undefined;
  /** Fault that the server injects. */
  readonly effect?: FaultEffect | undefined;
}

type Kind<D extends Perturbation["do"]> = Extract<
  Perturbation,
  { readonly do: D }
>;

/** Perturbations of a simulation; each takes effect at its write or event. */
export class Perturbations {
  readonly #all: readonly Perturbation[];
  readonly hits: number[];
  #world: PerturbedWorld | undefined;
  #stale: Kind<"stale"> & { readonly until: number } | undefined;
  /** Callbacks that end the staleness of open watches. */
  readonly #staleWatches: Set<() => void> = new Set();
  #throttledUntil = -Infinity;
  /** Watches that have missed events. */
  readonly #gaps: Set<object> = new Set();
  #gapIsOver = false;
  #lastsUntil = 0;
  /** Number of the last event that was delivered. */
  #delivered = 0;
  /** Times at which delayed events began to wait. */
  readonly #delayedSince: Map<number, number> = new Map();
  readonly #due: Set<number> = new Set();
  /** Objects whose writes are affected, from the first affected write on. */
  readonly #targets: Map<Perturbation, string> = new Map();

  constructor(all: readonly Perturbation[]) {
    this.#all = all;
    this.hits = all.map(() => 0);
  }

  attach(world: PerturbedWorld): void {
    this.#world = world;
    for (const one of this.#of("stale")) {
      if (one.write === undefined) this.#becomeStale(one);
    }
  }

  *#of<D extends Perturbation["do"]>(kind: D): Iterable<Kind<D>> {
    for (const one of this.#all) if (one.do === kind) yield one as Kind<D>;
  }

  #hit(one: Perturbation): void {
    const index = this.#all.indexOf(one);
    this.hits[index] = (this.hits[index] ?? 0) + 1;
  }

  get #now(): number {
    return this.#world?.clock.now() ?? 0;
  }

  /** Mode in which simulated containers become ready; undefined if normal. */
  get dependents(): "late" | "flap" | "never" | undefined {
    const [one] = this.#of("dependents");
    if (one !== undefined) this.#hit(one);
    return one?.mode;
  }

  /**
   * Applies the perturbations of a write, and returns the decision on it.
   *
   * @param write Number of the write.
   * @param target Object that it writes.
   */
  async beforeWrite(write: number, target: string): Promise<WriteVerdict> {
    const world = this.#world as PerturbedWorld;
    this.#catchUp();
    let verdict: WriteVerdict = {};
    for (const one of this.#all) {
      if (!("write" in one) || one.write === undefined) continue;
      const times = "times" in one ? one.times ?? 1 : 1;
      const hits = this.hits[this.#all.indexOf(one)] ?? 0;
      if (hits >= times) continue;
      if (write === one.write) this.#targets.set(one, target);
      if (this.#targets.get(one) !== target) continue;
      this.#hit(one);
      const fault = one.do;
      switch (one.do) {
        case "crash": {
          const why = `write ${write}, ${one.place}`;
          const { place, downMs = 0 } = one;
          verdict = { fault, crash: { place, why, downMs } };
          break;
        }
        case "stale": {
          this.#becomeStale(one);
          const why = `write ${write}, after`;
          verdict = { fault, crash: { place: "after", why, downMs: 0 } };
          break;
        }
        case "conflict":
          verdict = { fault, effect: { conflict: true } };
          break;
        case "refuse":
          verdict = { fault, effect: { status: one.code } };
          break;
        case "lose":
          verdict = { fault, effect: { reset: "answer" } };
          break;
        case "throttle":
          this.#throttledUntil = world.clock.now() + one.forMs;
          break;
        case "clock":
          world.clock.jump(one.jumpMs);
          break;
        case "twins":
          world.twin();
          break;
        case "depose":
          await this.#depose(world);
          verdict = { fault, wasSuspended: true };
          break;
        case "edit":
          await world.edit(one.target, one);
      }
    }
    return verdict;
  }

  /** Time until which perturbations last. */
  get until(): number {
    const stale = this.#stale?.until ?? 0;
    return Math.max(this.#throttledUntil, stale, this.#lastsUntil);
  }

  /** Records that a perturbation lasts until a time. */
  lasts(until: number): void {
    this.#lastsUntil = Math.max(this.#lastsUntil, until);
  }

  /** Effect of lasting perturbations on a request; undefined without any. */
  effect(
    { verb, resource }: { readonly verb: string; readonly resource: string },
  ): FaultEffect | undefined {
    if (this.#now < this.#throttledUntil) return { status: 429, retryAfter: 1 };
    if (verb !== "list" && verb !== "watch") return undefined;
    if (this.#stale === undefined) return undefined;
    const { revision, resource: lagging = resource } = this.#stale;
    return resource === lagging ? { staleAt: revision } : undefined;
  }

  /**
   * Delays the end of a first state.
   *
   * @param end Called later.
   * @returns Whether it is delayed.
   */
  lingers(end: () => void): boolean {
    const [one] = this.#of("linger");
    if (one === undefined || this.#stale !== undefined) return false;
    this.#world?.outside.setTimer(end, one.forMs);
    return true;
  }

  /**
   * Whether a first state with a deletion breaks; then it is read again without
   * the deletion.
   */
  breaks(resource: string, deletion: number): boolean {
    const [one] = this.#of("linger");
    if (!one?.breaks || this.hits[this.#all.indexOf(one)] !== 0) return false;
    const { forMs } = one;
    this.#hit(one);
    this.#becomeStale({ do: "stale", revision: deletion - 1, resource, forMs });
    return true;
  }

  /** Registers a watch that is stale until the server has caught up. */
  staleWatch(release: () => void): void {
    this.#staleWatches.add(release);
  }

  #becomeStale(one: Kind<"stale">): void {
    const world = this.#world as PerturbedWorld;
    this.#stale = { ...one, until: world.clock.now() + one.forMs };
    world.outside.setTimer(() => this.#catchUp(true), one.forMs);
  }

  /** Ends the staleness once a restarted operator has a stale watch. */
  #catchUp(
    now = this.#staleWatches.size > 0 && this.#stale?.resource === undefined,
  ): void {
    if (!now) return;
    this.#stale = undefined;
    for (const release of this.#staleWatches) release();
    this.#staleWatches.clear();
  }

  /**
   * Suspends the process of the operator until its Leases have expired, so that
   * another replica holds them for a while.
   */
  async #depose({ client, clock, outside }: PerturbedWorld): Promise<void> {
    clock.moveTo(clock.now() + SUSPENDED_MS);
    const { items } = await client.list(LEASE);
    const now = new Date(clock.wallTime()).toISOString().replace("Z", "000Z");
    for (const { metadata, ...lease } of items) {
      const { namespace = "", name = "" } = metadata ?? {};
      if (namespace.startsWith("kube-")) continue;
      const { spec = {} } = lease as {
        spec?: { leaseTransitions?: number };
      };
      const { leaseTransitions = 0 } = spec;
      const set = (holderIdentity: string | null) =>
        client.patch(LEASE, { namespace, name }, {
          spec: {
            holderIdentity,
            renewTime: now,
            acquireTime: now,
            leaseDurationSeconds: DEPOSED_MS / 1000,
            leaseTransitions: leaseTransitions + 1,
          },
        }, { fieldManager: "check" });
      await set("check");
      outside.setTimer(() => void set("").catch(() => {}), DEPOSED_MS);
    }
  }

  /** Whether an event has to wait for another one. */
  isDelayed(event: number): boolean {
    for (const one of this.#of("delay")) {
      if (one.event !== event || this.#delivered >= one.after) continue;
      const since = this.#delayedSince.get(event);
      if (since === undefined) {
        this.#delayedSince.set(event, this.#now);
        this.#hit(one);
        // So that the time comes when nothing else is due.
        this.#world?.outside.setTimer(
          () => this.#due.add(event),
          DELAY_LIMIT_MS,
        );
      }
      if (!this.#due.has(event)) return true;
    }
    return false;
  }

  /** Effect of the perturbations on an event; undefined to deliver it. */
  onEvent(
    { n, group, resource, revision, isInitial }: {
      readonly n: number;
      readonly group: string;
      readonly resource: string;
      readonly revision: number;
      /** Whether the event is part of the initial state of a watch. */
      readonly isInitial: boolean;
    },
  ): "cut" | "expire" | "withhold" | undefined {
    this.#delivered = Math.max(this.#delivered, n);
    for (const one of this.#all) {
      if (one.do === "cut" || one.do === "expire") {
        const index = this.#all.indexOf(one);
        if (one.event !== n || (this.hits[index] ?? 0) > 0) continue;
      } else if (one.do === "withhold") {
        const { group: wanted = group } = one;
        if (one.resource !== resource || wanted !== group) continue;
        if (this.#gapIsOver || isInitial) continue;
        if (revision < one.from || revision >= one.to) continue;
      } else continue;
      this.#hit(one);
      return one.do;
    }
    return undefined;
  }

  /** Stops withholding events, because the list that follows is complete. */
  endGap(): void {
    this.#gapIsOver = true;
  }

  /** Closes a watch that has missed events, after a while. */
  closeLater(watch: object, close: () => void): void {
    if (this.#gaps.has(watch)) return;
    this.#gaps.add(watch);
    this.lasts(this.#now + GAP_MS);
    this.#world?.outside.setTimer(() => {
      this.endGap();
      close();
    }, GAP_MS);
  }

  /** Changes by other writers that follow a step of the workload. */
  *afterStep(step: number): Iterable<Kind<"edit">> {
    for (const one of this.#of("edit")) {
      if (one.step !== step) continue;
      this.#hit(one);
      yield one;
    }
  }
}
