import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Gauge, Metrics } from "../../core/metrics.ts";
import type { Lifecycle, PhasedObject } from "./phased_status.ts";

/** Upper bounds of the times, in seconds: rollouts take minutes to hours. */
const BUCKETS: readonly number[] = [
  1,
  5,
  15,
  30,
  60,
  120,
  300,
  600,
  1_800,
  3_600,
  14_400,
  86_400,
];

/** What {@linkcode LifecycleMetrics} works with. */
export interface LifecycleMetricsOptions {
  /** The kind that is told of, as a label. */
  readonly kind: string;
  /**
   * Where time comes from.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
}

const RULES: OptionRules<LifecycleMetricsOptions> = {
  kind: "name",
  clock: "clock?",
};

/**
 * Counts the objects of a kind by their state of life, and times how long they
 * stay in a state and what the transitions between them take:
 *
 * - `coracle_lifecycle_objects{kind,namespace,state}`, a gauge;
 * - `coracle_lifecycle_state_seconds{kind,namespace,state}`, a histogram;
 * - `coracle_lifecycle_transition_seconds{kind,namespace,transition}`, another.
 *
 * `phased` keeps them by itself where it is given `metrics`.
 *
 * @example Count objects
 * ```ts
 * import { MetricsRegistry } from "@coracle/operator/core";
 * import { LifecycleMetrics } from "@coracle/operator/workflows";
 *
 * const registry = new MetricsRegistry();
 * const metrics = new LifecycleMetrics(registry, { kind: "Engine" });
 * metrics.update({ metadata: { name: "one", uid: "1" }, spec: {} });
 * if (!registry.text().includes('state="Created"} 1')) throw new Error();
 * ```
 */
export class LifecycleMetrics {
  readonly #metrics: Metrics;
  readonly #kind: string;
  readonly #clock: Clock;
  readonly #objects: Gauge;
  readonly #trackers: Map<string, Tracked> = new Map();
  readonly #counts: Map<string, number> = new Map();

  /**
   * Begins to count.
   *
   * @param metrics Where it is counted, such as the registry of the operator.
   * @param options The kind.
   * @throws {TypeError | RangeError} If an option is unknown, missing or makes no
   * sense.
   */
  constructor(metrics: Metrics, options: LifecycleMetricsOptions) {
    const subject = "LifecycleMetrics";
    checkOption(metrics, "metrics", { name: "metrics", subject });
    checkOptions(options, RULES, subject);
    this.#metrics = metrics;
    this.#kind = options.kind;
    this.#clock = options.clock ?? systemClock;
    this.#objects = metrics.gauge({
      name: "coracle_lifecycle_objects",
      help: "Objects by their state of life.",
    });
  }

  /** How many objects are followed. */
  get size(): number {
    return this.#trackers.size;
  }

  /** An object was seen, or its status was written. */
  update(object: PhasedObject): void {
    const { uid = "", namespace = "", creationTimestamp } = object.metadata;
    const state = object.status?.lifecycle ?? "Created";
    const now = this.#clock.wallTime();
    const tracked = this.#trackers.get(uid);
    if (tracked === undefined) {
      const created = Date.parse(creationTimestamp ?? "");
      const since = state === "Created" && created < now ? created : now;
      const told = this.#times(namespace);
      const tracker = new LifecycleTracker(state, { since, told });
      this.#trackers.set(uid, { tracker, namespace });
      this.#count(namespace, state, 1);
      return;
    }
    const before = tracked.tracker.state;
    tracked.tracker.update(state, now);
    if (before === state) return;
    this.#count(namespace, before, -1);
    this.#count(namespace, state, 1);
  }

  /** Forgets an object that is gone. */
  forget(object: PhasedObject): void {
    const { uid = "" } = object.metadata;
    const tracked = this.#trackers.get(uid);
    if (tracked === undefined) return;
    this.#trackers.delete(uid);
    this.#count(tracked.namespace, tracked.tracker.state, -1);
  }

  #count(namespace: string, state: Lifecycle, by: number): void {
    const id = `${namespace}/${state}`;
    const count = (this.#counts.get(id) ?? 0) + by;
    const labels = { kind: this.#kind, namespace, state };
    if (count > 0) {
      this.#counts.set(id, count);
      this.#objects.set(count, labels);
    } else {
      // A namespace that is gone leaves no series behind.
      this.#counts.delete(id);
      this.#objects.remove(labels);
    }
  }

  #times(namespace: string): LifecycleListener {
    const common = { kind: this.#kind, namespace };
    const states = this.#metrics.histogram({
      name: "coracle_lifecycle_state_seconds",
      help: "How long objects were in a state of life.",
      buckets: BUCKETS,
    });
    const transitions = this.#metrics.histogram({
      name: "coracle_lifecycle_transition_seconds",
      help: "How long transitions between states of life took.",
      buckets: BUCKETS,
    });
    return {
      state: (state, duration) =>
        states.observe(duration / 1_000, { ...common, state }),
      transition: ({ name }, duration) =>
        transitions.observe(duration / 1_000, { ...common, transition: name }),
    };
  }
}

interface Tracked {
  readonly tracker: LifecycleTracker;
  readonly namespace: string;
}

/** A change from one state of life to another that is timed. */
export interface LifecycleTransition {
  /** What it is called. */
  readonly name:
    | "Resume"
    | "Upgrade"
    | "Suspend"
    | "Submission"
    | "Stabilization"
    | "Rollback";
  /** Where it begins. */
  readonly from: Lifecycle;
  /** Where it ends. */
  readonly to: Lifecycle;
  /**
   * Whether it is timed from the first moment in the state that it begins in,
   * rather than from the last.
   */
  readonly fromFirst?: boolean | undefined;
}

/** The transitions that are timed: those of the Flink operator. */
export const LIFECYCLE_TRANSITIONS: readonly LifecycleTransition[] = [
  { name: "Resume", from: "Suspended", to: "Stable" },
  { name: "Upgrade", from: "Stable", to: "Stable" },
  ...(["Deployed", "Stable", "RolledBack"] as const).flatMap((from) =>
    (["Upgrading", "Suspended"] as const).map((to) => (
      { name: "Suspend", from, to } as const
    ))
  ),
  { name: "Submission", from: "Upgrading", to: "Deployed" },
  { name: "Submission", from: "RollingBack", to: "RolledBack" },
  { name: "Stabilization", from: "Deployed", to: "Stable", fromFirst: true },
  { name: "Rollback", from: "Deployed", to: "RolledBack", fromFirst: true },
];

/** The states in which nothing more comes by itself. */
const TERMINAL: ReadonlySet<Lifecycle> = new Set([
  "Suspended",
  "Stable",
  "RolledBack",
  "Failed",
  "Deleting",
]);

/** Told of times, in milliseconds. */
export interface LifecycleListener {
  /** A transition has come to its end. */
  readonly transition: (
    transition: LifecycleTransition,
    duration: number,
  ) => void;
  /** An object has left a state for good. */
  readonly state: (state: Lifecycle, duration: number) => void;
}

/**
 * Follows one object from state to state and tells how long each took. Pure.
 *
 * Entering a terminal state forgets the times of all others; beginning an upgrade
 * those of all but the state that it began in.
 */
export class LifecycleTracker {
  readonly #times: Map<Lifecycle, { first: number; last: number }> = new Map();
  readonly #told: LifecycleListener;
  #state: Lifecycle;

  /**
   * Begins to follow an object.
   *
   * @param state Where it is.
   * @param options Since when, in milliseconds on any scale, and who is told.
   */
  constructor(
    state: Lifecycle,
    options: { readonly since: number; readonly told: LifecycleListener },
  ) {
    this.#state = state;
    this.#told = options.told;
    this.#times.set(state, { first: options.since, last: options.since });
  }

  /** Where the object was last seen. */
  get state(): Lifecycle {
    return this.#state;
  }

  /**
   * The object was seen in a state.
   *
   * @param now When, in milliseconds on the scale of `since`.
   */
  update(state: Lifecycle, now: number): void {
    const before = this.#state;
    const times = this.#times.get(state);
    if (state === before) {
      times!.last = now;
      return;
    }
    for (const transition of LIFECYCLE_TRANSITIONS) {
      if (transition.to !== state) continue;
      const from = this.#times.get(transition.from);
      if (from === undefined) continue;
      const begin = transition.fromFirst ? from.first : from.last;
      this.#told.transition(transition, now - begin);
    }
    this.#times.set(state, { first: now, last: now });
    this.#state = state;
    this.#clear(before);
  }

  /** Forgets what no further transition can begin in. */
  #clear(before: Lifecycle): void {
    const state = this.#state;
    const upgrading = state === "Upgrading";
    if (!upgrading && !TERMINAL.has(state)) return;
    for (const [other, { first, last }] of this.#times) {
      if (other === state || upgrading && other === before) continue;
      this.#times.delete(other);
      this.#told.state(other, last - first);
    }
  }
}
