import type { Lifecycle } from "./rollout.ts";

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
export interface LifecycleTimes {
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
  readonly #told: LifecycleTimes;
  #state: Lifecycle;

  /**
   * Begins to follow an object.
   *
   * @param state Where it is.
   * @param options Since when, in milliseconds on any scale, and who is told.
   */
  constructor(
    state: Lifecycle,
    options: { readonly since: number; readonly told: LifecycleTimes },
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
