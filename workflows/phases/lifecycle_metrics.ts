import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../core/api/options.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import {
  type Gauge,
  type Histogram,
  type Metrics,
  unfailingMetrics,
} from "../../core/metrics.ts";
import type { Lifecycle, PhasedObject } from "./phased_status.ts";

/** Upper bounds of buckets in seconds: rollouts take minutes to hours. */
const BUCKETS: readonly number[] = // deno-fmt-ignore
  [1, 5, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400, 86_400];

/** Options of {@linkcode LifecycleMetrics}. */
export interface LifecycleMetricsOptions {
  /** Kind of the objects, as a label. */
  readonly kind: string;
  /**
   * Clock for the durations.
   *
   * @default {systemClock}
   */
  readonly clock?: Clock | undefined;
}

const RULES: OptionRules<LifecycleMetricsOptions> = {
  kind: "name",
  clock: "clock?",
};

/**
 * Metrics of the objects of a kind by lifecycle state, with the duration of
 * states and of transitions between them:
 *
 * - `coracle_lifecycle_objects{kind,namespace,state}`, a gauge;
 * - `coracle_lifecycle_state_seconds{kind,namespace,state}`, a histogram;
 * - `coracle_lifecycle_transition_seconds{kind,namespace,transition}`, a
 *   histogram.
 *
 * `phased` updates them if it has the option `metrics`.
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
  readonly #kind: string;
  readonly #clock: Clock;
  readonly #objects: Gauge;
  readonly #states: Histogram;
  readonly #transitions: Histogram;
  /** Objects by uid. */
  readonly #tracked: Map<string, Tracked> = new Map();
  readonly #counts: Map<string, number> = new Map();

  /**
   * Creates the metrics.
   *
   * @param metrics The registry, such as that of the operator.
   * @param options The kind, and the clock.
   * @throws {TypeError | RangeError} If an option is unknown, missing or
   * invalid.
   */
  constructor(metrics: Metrics, options: LifecycleMetricsOptions) {
    const subject = "LifecycleMetrics";
    checkOption(metrics, "metrics", { name: "metrics", subject });
    checkOptions(options, RULES, subject);
    this.#kind = options.kind;
    this.#clock = options.clock ?? systemClock;
    const unfailing = unfailingMetrics(metrics);
    this.#objects = unfailing.gauge({
      name: "coracle_lifecycle_objects",
      help: "Objects by lifecycle state.",
      labels: ["kind", "namespace", "state"],
    });
    this.#states = unfailing.histogram({
      name: "coracle_lifecycle_state_seconds",
      help: "Time that objects were in a lifecycle state, in seconds.",
      labels: ["kind", "namespace", "state"],
      buckets: BUCKETS,
    });
    this.#transitions = unfailing.histogram({
      name: "coracle_lifecycle_transition_seconds",
      help: "Duration of transitions between lifecycle states, in seconds.",
      labels: ["kind", "namespace", "transition"],
      buckets: BUCKETS,
    });
  }

  /** Number of tracked objects. */
  get size(): number {
    return this.#tracked.size;
  }

  /**
   * Updates the metrics for an object that was read or written.
   *
   * @param now Time in milliseconds since the Unix epoch; by default that of the
   * clock.
   */
  update(object: PhasedObject, now: number = this.#clock.wallTime()): void {
    const { uid = "", namespace = "", creationTimestamp } = object.metadata;
    const state = object.status?.lifecycle ?? "Created";
    const tracked = this.#tracked.get(uid);
    if (tracked === undefined) {
      const created = Date.parse(creationTimestamp ?? "");
      const since = state === "Created" && created < now ? created : now;
      const times = new Map([[state, { first: since, last: since }]]);
      this.#tracked.set(uid, { namespace, state, times });
      this.#count(namespace, state, 1);
    } else if (tracked.state === state) tracked.times.get(state)!.last = now;
    else this.#enter(tracked, state, now);
  }

  /** Removes a deleted object. */
  forget(object: PhasedObject): void {
    const { uid = "" } = object.metadata;
    const tracked = this.#tracked.get(uid);
    if (tracked === undefined) return;
    this.#tracked.delete(uid);
    this.#count(tracked.namespace, tracked.state, -1);
  }

  #count(namespace: string, state: Lifecycle, by: number): void {
    const id = `${namespace}/${state}`;
    const count = (this.#counts.get(id) ?? 0) + by;
    const labels = { kind: this.#kind, namespace, state };
    if (count > 0) {
      this.#counts.set(id, count);
      this.#objects.set(count, labels);
    } else {
      // A deleted namespace leaves no series.
      this.#counts.delete(id);
      this.#objects.remove(labels);
    }
  }

  /**
   * Measures the transition of an object to another state. Entering a terminal
   * state removes the times of all other states; starting an upgrade those of
   * all but the state before it.
   */
  #enter(tracked: Tracked, state: Lifecycle, now: number): void {
    const { namespace, state: before, times } = tracked;
    const labels = { kind: this.#kind, namespace };
    this.#count(namespace, before, -1);
    this.#count(namespace, state, 1);
    for (const [transition, first, last, fromFirst] of TRANSITIONS) {
      const from = times.get(first);
      if (last !== state || from === undefined) continue;
      const begin = fromFirst ? from.first : from.last;
      const seconds = (now - begin) / 1_000;
      this.#transitions.observe(seconds, { ...labels, transition });
    }
    times.set(state, { first: now, last: now });
    tracked.state = state;
    const upgrading = state === "Upgrading";
    if (!upgrading && !TERMINAL.has(state)) return;
    // No further transition can begin in the other states.
    for (const [other, { first, last }] of times) {
      if (other === state || upgrading && other === before) continue;
      times.delete(other);
      const seconds = (last - first) / 1_000;
      this.#states.observe(seconds, { ...labels, state: other });
    }
  }
}

/** Object with the times of its states, in milliseconds. */
interface Tracked {
  readonly namespace: string;
  state: Lifecycle;
  readonly times: Map<Lifecycle, { readonly first: number; last: number }>;
}

/**
 * Measured transitions, those of the Flink operator: name, first state, last
 * state, and whether the duration starts with the first time in the first state
 * rather than with the last.
 */
const TRANSITIONS: readonly (readonly [string, Lifecycle, Lifecycle, true?])[] =
  [
    ["Resume", "Suspended", "Stable"],
    ["Upgrade", "Stable", "Stable"],
    ...(["Deployed", "Stable", "RolledBack"] as const).flatMap((from) => [
      ["Suspend", from, "Upgrading"] as const,
      ["Suspend", from, "Suspended"] as const,
    ]),
    ["Submission", "Upgrading", "Deployed"],
    ["Submission", "RollingBack", "RolledBack"],
    ["Stabilization", "Deployed", "Stable", true],
    ["Rollback", "Deployed", "RolledBack", true],
  ];

/** States that are not left without a change of the object. */
const TERMINAL: ReadonlySet<Lifecycle> = new Set([
  "Suspended",
  "Stable",
  "RolledBack",
  "Failed",
  "Deleting",
]);
