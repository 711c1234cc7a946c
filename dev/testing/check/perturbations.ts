import type { Client, Clock } from "@coracle/operator/client";
import { Lease } from "@coracle/operator/internal";
import type { FaultEffect } from "../../apiserver/faults/fault_rule.ts";
import type { ObjectReference } from "./object_reference.ts";
import type { WorldClock } from "./world_clock.ts";

/** Change of an object by another writer: a JSON merge patch, or a deletion. */
export interface ObjectChange {
  readonly patch?: object | undefined;
  /** Whether it is deleted, or what happens to its parts then. */
  readonly delete?: true | "Background" | "Foreground" | undefined;
}

/**
 * Fault in a simulation, as plain JSON. Writes and events are identified by
 * their number in the trace of an undisturbed run, which a disturbed run equals
 * up to that point.
 */
export type Perturbation =
  /** Kills the operator at a write, and restarts it after `downMs`. */
  | {
    readonly do: "crash";
    readonly write: number;
    readonly place: "before" | "unanswered" | "after";
    /**
     * Downtime, in milliseconds.
     *
     * @default {0}
     */
    readonly downMs?: number | undefined;
  }
  /**
   * Watches, and lists that name a version, of `resource` if it is given, answer
   * with an earlier revision, as from an API server that lags behind. With `write` the operator is
   * killed after that write first. Ends after `ms`, or before the next write if
   * all resources lag.
   */
  | {
    readonly do: "stale";
    readonly write?: number | undefined;
    readonly revision: number;
    readonly resource?: string | undefined;
    readonly ms: number;
  }
  /**
   * Events of a resource are not delivered: from `from` to before `to`. The watch
   * expires a minute later.
   */
  | {
    readonly do: "missed";
    readonly resource: string;
    readonly group?: string | undefined;
    readonly from: number;
    readonly to: number;
  }
  /** Event `event` waits until event `after` is delivered, or for 30 seconds. */
  | { readonly do: "order"; readonly event: number; readonly after: number }
  /**
   * First states of watches end late, after the changes of that time. With
   * `breaks` the first of them that has a deletion does not end but breaks, and is
   * read again from an API server that has not seen the deletion.
   */
  | {
    readonly do: "linger";
    readonly ms: number;
    /**
     * Whether one of them breaks.
     *
     * @default {false}
     */
    readonly breaks?: boolean | undefined;
  }
  /** The watch breaks before an event. */
  | { readonly do: "cut"; readonly event: number }
  /** The watch ends with 410 instead of an event. */
  | { readonly do: "expire"; readonly event: number }
  /**
   * Another client changes the object right before a write, and before its
   * repetitions up to `times`, which conflict with that: the fault
   * `{ conflict: true }` of the server.
   */
  | {
    readonly do: "conflict";
    readonly write: number;
    /**
     * Number of attempts that the perturbation affects.
     *
     * @default {1}
     */
    readonly times?: number | undefined;
  }
  /**
   * A write, and its repetitions up to `times`, are refused: by admission, quota
   * or missing rights.
   */
  | {
    readonly do: "refuse";
    readonly write: number;
    /**
     * HTTP status of the answer.
     *
     * @default {403}
     */
    readonly code?: 403 | 422 | 500 | 503 | undefined;
    /**
     * Number of attempts that the perturbation affects.
     *
     * @default {1}
     */
    readonly times?: number | undefined;
  }
  /**
   * From a write on, every request is answered with 429 for a while; those for
   * Leases for a minute at most, because an operator that does not lead only waits.
   */
  | { readonly do: "throttle"; readonly write: number; readonly ms: number }
  /**
   * From a write on, the webhooks of the operator are away for a while, answer
   * later than the API server waits, or have a new certificate, which the API server
   * trusts on every other connection only.
   */
  | {
    readonly do: "webhook";
    readonly write: number;
    readonly how: WebhookFault;
    readonly ms: number;
  }
  /** A request outside of the cluster is disturbed. */
  | {
    readonly do: "call";
    /** Number of the request, from 1. */
    readonly call: number;
    readonly how: CallFault;
  }
  /** A write is committed, but its connection breaks before the answer. */
  | { readonly do: "lost"; readonly write: number }
  /**
   * Before a write the process is suspended for two minutes; its Leases expire,
   * and another replica takes them for a minute.
   */
  | { readonly do: "leader"; readonly write: number }
  /** Starts a second instance of the operator before a write. */
  | { readonly do: "twins"; readonly write: number }
  /** Change or deletion by another writer before a write. */
  | ObjectChange & {
    readonly do: "edit";
    readonly write: number;
    readonly target: ObjectReference;
  }
  /** The wall clock jumps before a write. */
  | { readonly do: "clock"; readonly write: number; readonly ms: number }
  /** Simulated containers become ready late, intermittently, or never. */
  | { readonly do: "late" | "flap" | "never" };

/** Disturbances of the webhooks of an operator. */
export const WEBHOOK_FAULTS = ["down", "slow", "rotated"] as const;

export type WebhookFault = typeof WEBHOOK_FAULTS[number];

/** Disturbances of a request outside of the cluster, with their descriptions. */
export const CALL_FAULTS = {
  refused: "which is refused three times",
  lost: "which is done, but its answer is lost",
  killed: "which is done, and the operator is killed before the answer",
  slow: "which is answered after two minutes",
  twice: "which arrives twice",
} as const;

export type CallFault = keyof typeof CALL_FAULTS;

/** Number of attempts of a request that are refused. */
const REFUSED_CALLS = 3;

/** Maximum time that a delayed event waits, in milliseconds. */
const DELAY_LIMIT_MS = 30_000;
/** Time after which a watch that has missed events expires, in milliseconds. */
const GAP_MS = 60_000;
/** Maximum time for which requests for Leases are throttled, in milliseconds. */
const THROTTLED_LEASES_MS = 60_000;
/** Time for which a process is suspended, in milliseconds. */
const SUSPENDED_MS = 120_000;
/** Time for which another replica holds the Leases, in milliseconds. */
const DEPOSED_MS = 60_000;

/** Parts of a simulation that perturbations change. */
export interface PerturbedWorld {
  readonly client: Client;
  readonly clock: WorldClock;
  /** Clock whose timers continue when the operator is killed. */
  readonly outside: Clock;
  twin(): void;
  /** Leaves the renewal of leases to the operator, from now on. */
  disturbLeases(): void;
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

/** Kinds of perturbations that never end. */
const LASTING: ReadonlySet<Perturbation["do"]> = new Set([
  "clock",
  "late",
  "flap",
  "never",
  "linger",
  "twins",
]);

/** Number of attempts that a perturbation affects. */
function attemptsOf(one: Perturbation): number {
  if (one.do === "call") return one.how === "refused" ? REFUSED_CALLS : 1;
  return "times" in one ? one.times ?? 1 : 1;
}

/** Perturbations of a simulation; each takes effect at its write or event. */
export class Perturbations {
  readonly #all: readonly Perturbation[];
  readonly hits: number[];
  #world: PerturbedWorld | undefined;
  #stale: Kind<"stale"> & { readonly until: number } | undefined;
  /** Callbacks that end the staleness of open watches. */
  readonly #staleWatches: Set<() => void> = new Set();
  #throttledUntil = -Infinity;
  #leasesThrottledUntil = -Infinity;
  /** Time until which another replica holds the Leases. */
  #deposedUntil = -Infinity;
  /** Watches that have missed events. */
  readonly #gaps: Set<object> = new Set();
  #gapIsOver = false;
  #webhookFault: WebhookFault | undefined;
  #webhooksUntil = 0;
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
    for (const one of this.#all) {
      if (one.do !== "late" && one.do !== "flap" && one.do !== "never") {
        continue;
      }
      this.#hit(one);
      return one.do;
    }
    return undefined;
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
      const hits = this.hits[this.#all.indexOf(one)] ?? 0;
      if (hits >= attemptsOf(one)) continue;
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
          verdict = { fault, effect: { status: one.code ?? 403 } };
          break;
        case "lost":
          verdict = { fault, effect: { reset: "answer" } };
          break;
        case "throttle":
          world.disturbLeases();
          this.#throttledUntil = world.clock.now() + one.ms;
          this.#leasesThrottledUntil = world.clock.now() +
            Math.min(one.ms, THROTTLED_LEASES_MS);
          break;
        case "webhook":
          this.#webhookFault = one.how;
          this.#webhooksUntil = world.clock.now() + one.ms;
          this.lasts(this.#webhooksUntil);
          break;
        case "clock":
          world.clock.jump(one.ms);
          break;
        case "twins":
          world.twin();
          break;
        case "leader":
          await this.#depose(world);
          verdict = { fault, wasSuspended: true };
          break;
        case "edit":
          await world.edit(one.target, one);
      }
    }
    return verdict;
  }

  /** Whether all have taken effect, and none has any more. */
  get areOver(): boolean {
    if (this.#stale !== undefined || this.endangersLeases) return false;
    if (this.#now < this.until) return false;
    return this.#all.every((one, at) => {
      if (LASTING.has(one.do)) return false;
      if (one.do === "missed") return this.#gapIsOver;
      return (this.hits[at] ?? 0) >= attemptsOf(one);
    });
  }

  /** Whether the Leases of the operator are in danger. */
  get endangersLeases(): boolean {
    return this.#now <=
      Math.max(this.#leasesThrottledUntil, this.#deposedUntil);
  }

  /** Disturbance of the webhooks of the operator now; undefined without one. */
  get webhookFault(): WebhookFault | undefined {
    return this.#now < this.#webhooksUntil ? this.#webhookFault : undefined;
  }

  /** Disturbance of a request outside of the cluster; undefined without one. */
  onCall(call: number, target: string): CallFault | undefined {
    for (const one of this.#of("call")) {
      const hits = this.hits[this.#all.indexOf(one)] ?? 0;
      if (hits >= attemptsOf(one)) continue;
      if (call === one.call) this.#targets.set(one, target);
      if (this.#targets.get(one) !== target) continue;
      this.#hit(one);
      return one.how;
    }
    return undefined;
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
    { verb, resource, path }: {
      readonly verb: string;
      readonly resource: string;
      /** Path of the request with its query. */
      readonly path: string;
    },
  ): FaultEffect | undefined {
    const throttledUntil = resource === "leases"
      ? this.#leasesThrottledUntil
      : this.#throttledUntil;
    if (this.#now < throttledUntil) return { status: 429, retryAfter: 1 };
    // A list that names no version is that of the newest state.
    const mayLag = verb === "watch" ||
      verb === "list" && /[?&]resourceVersion=\d/.test(path);
    if (!mayLag) return undefined;
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
    this.#world?.outside.setTimer(end, one.ms);
    return true;
  }

  /**
   * Whether a first state with a deletion breaks; then it is read again without
   * the deletion.
   */
  breaks(resource: string, deletion: number): boolean {
    const [one] = this.#of("linger");
    if (!one?.breaks || this.hits[this.#all.indexOf(one)] !== 0) return false;
    const { ms } = one;
    this.#hit(one);
    this.#becomeStale({ do: "stale", revision: deletion - 1, resource, ms });
    return true;
  }

  /** Registers a watch that is stale until the server has caught up. */
  staleWatch(release: () => void): void {
    this.#staleWatches.add(release);
  }

  #becomeStale(one: Kind<"stale">): void {
    const world = this.#world as PerturbedWorld;
    this.#stale = { ...one, until: world.clock.now() + one.ms };
    world.outside.setTimer(() => this.#catchUp(true), one.ms);
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
  async #depose(
    { client, clock, outside, disturbLeases }: PerturbedWorld,
  ): Promise<void> {
    this.#deposedUntil = clock.now() + SUSPENDED_MS + DEPOSED_MS;
    disturbLeases();
    clock.moveTo(clock.now() + SUSPENDED_MS);
    const { items } = await client.list(Lease);
    const now = new Date(clock.wallTime()).toISOString().replace("Z", "000Z");
    for (const { metadata, spec } of items) {
      const { namespace = "", name } = metadata;
      if (namespace.startsWith("kube-")) continue;
      const { leaseTransitions = 0 } = spec ?? {};
      const set = (holderIdentity: string) =>
        client.patch(Lease, { namespace, name }, {
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
    for (const one of this.#of("order")) {
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
  ): "cut" | "expire" | "missed" | undefined {
    this.#delivered = Math.max(this.#delivered, n);
    for (const one of this.#all) {
      if (one.do === "cut" || one.do === "expire") {
        const index = this.#all.indexOf(one);
        if (one.event !== n || (this.hits[index] ?? 0) > 0) continue;
      } else if (one.do === "missed") {
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
}
