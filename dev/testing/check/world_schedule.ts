/** Chooser of the order of pending actions, and of crashes. */
export interface Chooser {
  /** Error that ends the run; undefined while it goes on. */
  readonly ended?: Error | undefined;
  /**
   * Chooses the action that happens next.
   *
   * @param choices Actions that may happen.
   * @param pending All pending actions.
   * @returns Index of a choice.
   */
  order(choices: readonly Action[], pending: readonly Action[]): number;
  /** Decides whether a write kills the operator, and at what point. */
  crash?(target: string): "before" | "unanswered" | undefined;
}

/** Creates a chooser that takes any action. */
export function randomChooser(random: () => number): Chooser {
  return { order: ({ length }) => Math.floor(random() * length) };
}

/** Pending action: a request to handle, or an event to deliver. */
export interface Action {
  /** Name of the delivery or write; undefined if its order is irrelevant. */
  readonly name?: string | undefined;
  /** Number of the watch of an event; events of a watch stay in order. */
  readonly watch?: number | undefined;
  /** Revision of an event. */
  readonly revision?: number | undefined;
  /** Sort key among requests that arrived at the same time. */
  readonly key?: string | undefined;
  /** Whether the action is a write of the operator. */
  readonly isWrite?: boolean | undefined;
  /** Returns whether the action must wait. */
  readonly blocked?: (() => boolean) | undefined;
  readonly run: () => void;
}

/**
 * Pending actions of a simulation. Actions that arrive together are put into an
 * order that does not depend on how many event-loop turns each has taken.
 */
export class Schedule {
  readonly #chooser: Chooser | undefined;
  #arrived: Action[] = [];
  #ready: Action[] = [];

  /**
   * Creates an empty schedule.
   *
   * @param chooser Chooses among the pending actions; by default the first one is
   * taken.
   */
  constructor(chooser: Chooser | undefined) {
    this.#chooser = chooser;
  }

  add(action: Action): void {
    this.#arrived.push(action);
  }

  /** Removes an action without performing it. */
  delete(action: Action): void {
    this.#arrived = this.#arrived.filter((other) => other !== action);
    this.#ready = this.#ready.filter((other) => other !== action);
  }

  /** Whether any action is pending. */
  get waiting(): boolean {
    return this.#arrived.length > 0 || this.#ready.length > 0;
  }

  /** Removes and returns the next action; undefined if none may happen now. */
  next(): Action | undefined {
    if (this.#arrived.length > 0) {
      this.#ready.push(...this.#arrived.sort(byArrival));
      this.#arrived = [];
    }
    const choices: number[] = [];
    const seen = new Set<number>();
    for (const [index, { watch, blocked }] of this.#ready.entries()) {
      if (watch !== undefined) {
        if (seen.has(watch)) continue;
        seen.add(watch);
      }
      if (blocked?.()) continue;
      choices.push(index);
      if (this.#chooser === undefined) break;
    }
    if (choices.length === 0) return undefined;
    const choice = choices.length === 1 || this.#chooser === undefined
      ? choices[0]
      : choices[
        this.#chooser.order(choices.map((at) => this.#ready[at]!), this.#ready)
      ];
    return this.#ready.splice(choice as number, 1)[0];
  }
}

function byArrival(a: Action, b: Action): number {
  if (a.watch !== undefined || b.watch !== undefined) {
    if (a.watch === undefined) return 1;
    if (b.watch === undefined) return -1;
    // Events of one watch stay in the order in which they were sent.
    if (a.watch === b.watch) return 0;
    return (a.revision ?? 0) - (b.revision ?? 0) || a.watch - b.watch;
  }
  const [x = "", y = ""] = [a.key, b.key];
  return x < y ? -1 : x > y ? 1 : 0;
}
